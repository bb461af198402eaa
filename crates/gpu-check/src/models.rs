//! Measures models: the time of a run with arrays in host memory, and the time of its kernels.

use crate::{names, read};
use device::{Device, Operation, Program};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use support::Result;

/// Time for the runs of one model.
const BUDGET: Duration = Duration::from_secs(2);

/// Runs before the measurement.
const WARM_UP: usize = 3;

/// Runs whose kernels are recorded.
const PROFILED: usize = 5;

/// Measures the chosen models of a folder.
pub(crate) fn run(folder: &Path, device: &Device, is_chosen: &dyn Fn(&str) -> bool) -> Result<Vec<Value>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let chosen = names(folder, "device")?.into_iter().filter(|name| is_chosen(name));
    Ok(chosen
        .map(|name| {
            let value = one(folder, &name, device)
                .unwrap_or_else(|error| json!({ "model": name, "error": error.to_string() }));
            println!("{value}");
            value
        })
        .collect())
}

fn one(folder: &Path, name: &str, device: &Device) -> Result<Value> {
    let file = |extension: &str| folder.join(format!("{name}.{extension}"));
    let program = Program::new(&read(&file("device"))?, &read(&file("constants"))?)?;
    let mut loaded = program.load(device)?;
    let mut arguments: Vec<Vec<u8>> = program.arguments().iter().map(|&bytes| random(bytes)).collect();
    for _ in 0..WARM_UP {
        loaded.run(&mut arguments)?;
    }
    let (start, mut times) = (Instant::now(), Vec::new());
    while start.elapsed() < BUDGET && times.len() < 10_000 {
        let run = Instant::now();
        loaded.run(&mut arguments)?;
        times.push(run.elapsed().as_secs_f64());
    }
    loaded.instance().set_profiled(true)?;
    let mut kernel_times = Vec::new();
    let mut kernels: Vec<Value> = Vec::new();
    for _ in 0..PROFILED {
        loaded.run(&mut arguments)?;
        let records = loaded.instance().take_records();
        let launches = records.iter().filter(|record| record.operation == Operation::Launch);
        let first = launches.clone().map(|record| record.start).min().unwrap_or(0);
        let last = launches.clone().map(|record| record.end).max().unwrap_or(0);
        kernel_times.push((last - first) as f64 * 1e-9);
        kernels = launches
            .map(|record| {
                json!({
                    "kernel": record.name,
                    "label": record.label,
                    "ns": record.end - record.start,
                    "bytes": record.bytes,
                    "operations": record.operations,
                })
            })
            .collect();
    }
    Ok(json!({
        "model": name,
        "no_cupti": loaded.instance().profile_note(),
        "runs": times.len(),
        "run_s": median(&mut times),
        "kernels_s": median(&mut kernel_times),
        "kernels": kernels,
    }))
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(0.0)
}

/// Returns bytes that are small positive numbers in every floating-point type.
fn random(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    // The exponent of f32, and the upper half of f64's, is that of 0.25 to 0.5.
    let word = |random: u64| (0x3e80_0000 | (random as u32 & 0x007f_ffff)).to_le_bytes();
    (0..bytes.div_ceil(4)).flat_map(|_| word(next())).take(bytes).collect()
}
