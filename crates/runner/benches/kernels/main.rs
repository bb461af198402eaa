//! Measures individual kernels as shares of the machine's peak at the same moment.
//!
//!     cargo bench -p runner --bench kernels [-- [FILTER] [--cpu CPU] [--seconds S] [--json]]
//!
//! Kernels and probes (multiply-adds or products of groups in registers, reads of the kernel's
//! number of bytes) alternate. A kernel's share is the median over the rounds of its rate divided
//! by the probe's rate in the same round, so that other load on the machine affects both.

#![allow(clippy::unwrap_used, reason = "a failed measurement can only report to the terminal")]

mod cases;

use cases::{Case, Work, cases, literal};
use compiler::{Executable, NoObserver, compile_module, in_process_options};
use runner::{Latency, Probe, Random};
use shape::Literal;
use target::Target;

/// The measurement of one case.
struct Row {
    family: &'static str,
    name: String,
    /// Time of the fastest call, in seconds.
    seconds: f64,
    work: Work,
    /// Share of the machine's peak; `None` for elements.
    share: Option<f64>,
}

/// Number of rounds per case.
const ROUNDS: usize = 5;

fn main() {
    let mut filter = String::new();
    let (mut cpu, mut seconds, mut is_json) = ("native".to_owned(), 0.05, false);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            // Passed by Cargo.
            "--bench" => {}
            "--cpu" => cpu = words.next().expect("--cpu NAME"),
            "--seconds" => seconds = words.next().and_then(|w| w.parse().ok()).expect("--seconds NUMBER"),
            "--json" => is_json = true,
            _ => filter = word,
        }
    }
    let target = compiler::host(&cpu).unwrap();
    let chosen =
        cases().into_iter().filter(|case| format!("{} {}", case.family, case.name).contains(&filter));
    let rows: Vec<Row> = chosen.map(|case| measure(&case, &target, seconds)).collect();
    if is_json { print_json(&rows) } else { print(&rows) }
}

fn measure(case: &Case, target: &Target, seconds: f64) -> Row {
    let module = case.module().unwrap_or_else(|e| panic!("{}: {e}\n{}", case.name, case.text));
    let options = in_process_options(target.clone());
    let compiled = compiler::guarded(|| compile_module(module, &options, &mut NoObserver)).unwrap();
    let executable = Executable::load(&compiled).unwrap();
    let random = Random::new(0);
    let array = |(k, hlo::Argument { shape, .. }): (usize, &hlo::Argument)| {
        let (least, most) = if k == 0 { case.range } else { (-1.0, 1.0) };
        let mut source = random.fork(k);
        let count = shape.element_count();
        literal(shape.clone(), (0..count).map(|_| least + (most - least) * source.uniform()))
    };
    let arguments: Vec<Literal> = executable.interface().arguments().iter().enumerate().map(array).collect();
    let mut session = executable.session(&arguments).unwrap();
    let probe = match case.work {
        Work::Flops(_) => Some(Probe::arithmetic(target).unwrap()),
        Work::Products(_) => Some(Probe::bytes(target).unwrap()),
        Work::Pairs(_) => Some(Probe::bf16(target).unwrap()),
        Work::Bytes(bytes) => Some(Probe::stream(target, bytes as u64).unwrap()),
        Work::Elements(_) => None,
    };
    let (mut best, mut shares) = (f64::INFINITY, Vec::new());
    for _ in 0..ROUNDS {
        let time = Latency::measure(seconds, || session.run()).unwrap();
        best = best.min(time.min);
        if let (
            Some(probe),
            Work::Flops(work) | Work::Products(work) | Work::Pairs(work) | Work::Bytes(work),
        ) = (&probe, case.work)
        {
            shares.push(work / time.p50 / probe.best(1, 20).unwrap());
        }
    }
    shares.sort_by(f64::total_cmp);
    let share = shares.get(shares.len() / 2).copied();
    Row { family: case.family, name: case.name.clone(), seconds: best, work: case.work, share }
}

fn print(rows: &[Row]) {
    let mut family = "";
    for row in rows {
        if row.family != family {
            family = row.family;
            println!("\n{family}");
        }
        let rate = match row.work {
            Work::Flops(flops) => format!("{:>8.1} Gflop/s", flops / row.seconds / 1e9),
            Work::Products(operations) | Work::Pairs(operations) => {
                format!("{:>8.1} Gop/s   ", operations / row.seconds / 1e9)
            }
            Work::Bytes(bytes) => format!("{:>8.1} GB/s   ", bytes / row.seconds / 1e9),
            Work::Elements(count) => format!("{:>8.3} ns each", row.seconds / count * 1e9),
        };
        let share =
            row.share.map_or(String::new(), |share| format!("{:>6.1} % of the machine's", share * 100.0));
        println!("  {:<34}{:>10.2} us {rate} {share}", row.name, row.seconds * 1e6);
    }
}

fn print_json(rows: &[Row]) {
    let row = |row: &Row| {
        let (unit, work) = match row.work {
            Work::Flops(work) => ("flops", work),
            Work::Products(work) | Work::Pairs(work) => ("operations", work),
            Work::Bytes(work) => ("bytes", work),
            Work::Elements(work) => ("elements", work),
        };
        serde_json::json!({
            "family": row.family, "name": row.name, "seconds": row.seconds, unit: work, "share": row.share,
        })
    };
    println!("{:#}", serde_json::Value::from(rows.iter().map(row).collect::<Vec<_>>()));
}
