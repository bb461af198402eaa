//! How long each stage of a compilation takes.
//!
//!     cargo bench -p runner --bench compile_time [-- [--cpu CPU] [--rounds N] DIR...]
//!
//! A DIR has a `graph.pb` (or `graph.pbtxt`) and a `config.pbtxt`. The figures are the best of the rounds, in milliseconds; stages
//! under a fiftieth of the whole are one line. Reading the files does not count, packing and placing the constants does.

#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on has nobody to tell but the terminal")]

use bytes::Bytes;
use compiler::{AotOptions, BackOptions, Input, Observer, build, guarded, host};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// Milliseconds of each stage; one that comes several times is summed.
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
            // Cargo's own.
            "--bench" => {}
            "--cpu" => cpu = words.next().expect("--cpu NAME"),
            "--rounds" => rounds = words.next().and_then(|w| w.parse().ok()).expect("--rounds NUMBER"),
            _ => models.push(word),
        }
    }
    if models.is_empty() {
        println!("no model: give folders with graph.pb and config.pbtxt");
    }
    models.iter().for_each(|model| measure(Path::new(model), &cpu, rounds));
}

fn measure(model: &Path, cpu: &str, rounds: usize) {
    let read = |names: &[&str]| {
        let found = names.iter().find_map(|name| std::fs::read(model.join(name)).ok());
        Bytes::from(found.unwrap_or_else(|| panic!("{}: none of {names:?}", model.display())))
    };
    let (graph, config) = (read(&["graph.pb", "graph.pbtxt"]), read(&["config.pbtxt", "config_named.pbtxt"]));
    let mut best: Option<(f64, Times)> = None;
    for _ in 0..rounds.max(1) {
        let input = Input::parse(("graph", graph.clone()), ("config", config.clone())).unwrap();
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
