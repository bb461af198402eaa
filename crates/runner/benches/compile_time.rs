//! Measures the time of each stage of a compilation.
//!
//!     cargo bench -p runner --bench compile_time [-- [--cpu CPU] [--rounds N] DIR...]
//!
//! Each DIR contains a `graph.pb` (or `graph.pbtxt`) and a `config.pbtxt`. Figures are milliseconds
//! of the best round. Stages below a fiftieth of the total share one line. Reading the files is
//! excluded, packing and placing the constants is included.

#![allow(clippy::unwrap_used, reason = "a failed measurement can only report to the terminal")]

use bytes::Bytes;
use compiler::{AotOptions, BackOptions, File, Input, Observer, build, guarded, host};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// Milliseconds of each stage, summed over repeated stages.
struct Times {
    last: Instant,
    stages: Vec<String>,
    times: BTreeMap<String, f64>,
}

impl Observer for Times {
    fn ended(&mut self, stage: &str, _detail: &dyn Fn() -> String) {
        let time = self.last.elapsed().as_secs_f64() * 1e3;
        if !self.times.contains_key(stage) {
            self.stages.push(stage.to_owned());
        }
        *self.times.entry(stage.to_owned()).or_default() += time;
        self.last = Instant::now();
    }
}

fn main() {
    let (mut cpu, mut rounds, mut models) = ("native".to_owned(), 3usize, Vec::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            // Passed by Cargo.
            "--bench" => {}
            "--cpu" => cpu = words.next().expect("--cpu NAME"),
            "--rounds" => rounds = words.next().and_then(|w| w.parse().ok()).expect("--rounds NUMBER"),
            _ => models.push(word),
        }
    }
    if models.is_empty() {
        println!("missing model: pass folders that contain graph.pb and config.pbtxt");
    }
    models.iter().for_each(|model| measure(Path::new(model), &cpu, rounds));
}

fn measure(model: &Path, cpu: &str, rounds: usize) {
    let read = |names: &[&str]| {
        let contents = names.iter().find_map(|name| std::fs::read(model.join(name)).ok());
        Bytes::from(contents.unwrap_or_else(|| panic!("{}: none of {names:?}", model.display())))
    };
    let (graph, config) = (read(&["graph.pb", "graph.pbtxt"]), read(&["config.pbtxt", "config_named.pbtxt"]));
    let mut best: Option<(f64, Times)> = None;
    for _ in 0..rounds.max(1) {
        let input = Input::parse(
            File { name: "graph", content: graph.clone() },
            File { name: "config", content: config.clone() },
        )
        .unwrap();
        let options = AotOptions::new("Model", BackOptions::new(host(cpu).unwrap(), "model"));
        let start = Instant::now();
        let mut times = Times { last: start, stages: Vec::new(), times: BTreeMap::new() };
        guarded(|| build(input, &options, &mut times)).unwrap();
        let total = start.elapsed().as_secs_f64() * 1e3;
        if best.as_ref().is_none_or(|(least, _)| total < *least) {
            best = Some((total, times));
        }
    }
    let (total, times) = best.expect("there is a round");
    println!("\n{}: {total:.1} ms", model.display());
    let mut others = 0.0;
    for stage in &times.stages {
        let time = times.times[stage];
        if time < total / 50.0 {
            others += time;
        } else {
            println!("{time:>10.1}  {:>5.1} %  {stage}", time / total * 100.0);
        }
    }
    println!("{others:>10.1}  {:>5.1} %  all others", others / total * 100.0);
}
