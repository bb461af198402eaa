//! Profiles of programs on a device, from the driver's times of kernels and copies, and the
//! device's peak rates.

use crate::Progress;
use crate::fill::{Fill, Random};
use crate::kernels::{Kernel, kernels, kind, nodes};
use crate::peak::Peak;
use crate::profile_options::ProfileOptions;
use compiler::{
    Compiled, Device, DeviceOperation, DeviceRecord, Executable, NoObserver, compile_module, host,
    in_process_options,
};
use hlo::Module;
use shape::Literal;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use support::{Error, Result};
use trace::{Bar, Lane, Report, Roof};

/// Elements of the arrays with which peaks are measured. A copy of 64 MiB exceeds every cache.
const COPIED: i64 = 16 << 20;
const COMPUTED: i64 = 1 << 20;

/// Multiply-adds for each element in the measurement of arithmetic.
const MULTIPLY_ADDS: usize = 256;

/// Runs for each peak.
const PEAK_RUNS: usize = 8;

/// Runs a program on its device, and reports on one run in the middle of all runs by time.
///
/// Errors: as for a run; `internal` if the program does not run on a device.
pub fn profile_device(
    compiled: &Compiled,
    arguments: &[Literal],
    device: &Device,
    options: &ProfileOptions,
    progress: &mut Progress<'_>,
) -> Result<Report> {
    let executable = Executable::load(compiled)?;
    let mut session = executable.session(arguments)?;
    session.run()?;
    let not_on_device = || Error::internal("the profiled program does not run on a device");
    session.device().ok_or_else(not_on_device)?.set_profiled(true)?;
    let mut runs: Vec<Vec<DeviceRecord>> = Vec::new();
    for step in 0..options.steps {
        progress("running", step as usize, options.steps as usize);
        session.run()?;
        runs.push(session.device().ok_or_else(not_on_device)?.take_records());
    }
    let note = session.device().ok_or_else(not_on_device)?.profile_note();
    let source = if note.is_empty() { note } else { format!("; times of events, since {note}") };
    runs.sort_by_key(|records| span(records));
    let records = runs.swap_remove(runs.len() / 2);
    let info = device.info()?;
    let peak = options.peak.then(|| device_peak(device)).transpose()?;
    Ok(Report {
        title: options.title.clone(),
        subtitle: format!(
            "the median of {} runs, {:.1} us on the device; {}{source}",
            options.steps,
            span(&records) as f64 / 1e3,
            info.name
        ),
        step: span(&records) as f64,
        lanes: lanes(&records),
        kernels: rows(&compiled.module, &records),
        peak: peak.map(|peak| Roof { flops: peak.flops, bytes: peak.bytes }),
        memory: Vec::new(),
    })
}

/// Returns the time from the first start to the last end in nanoseconds.
fn span(records: &[DeviceRecord]) -> u64 {
    let start = records.iter().map(|record| record.start).min().unwrap_or(0);
    records.iter().map(|record| record.end).max().unwrap_or(0).saturating_sub(start)
}

/// Returns a lane for each stream with its kernels, and one with its copies.
fn lanes(records: &[DeviceRecord]) -> Vec<Lane> {
    let mut lanes: BTreeMap<(usize, bool), Vec<Bar>> = BTreeMap::new();
    let mut streams: Vec<u64> = Vec::new();
    for record in records {
        let stream = streams.iter().position(|&known| known == record.stream).unwrap_or_else(|| {
            streams.push(record.stream);
            streams.len() - 1
        });
        let is_kernel = record.operation == DeviceOperation::Launch;
        lanes.entry((stream, !is_kernel)).or_default().push(Bar {
            name: title(record),
            kind: operation(record).to_owned(),
            start: record.start as f64,
            duration: (record.end - record.start) as f64,
            detail: detail(record),
        });
    }
    let name = |stream: usize, is_copy: bool| {
        let what = if is_copy { "copies" } else { "kernels" };
        format!("stream {stream}, {what}")
    };
    lanes.into_iter().map(|((stream, copy), bars)| Lane { name: name(stream, copy), bars }).collect()
}

fn title(record: &DeviceRecord) -> String {
    if record.label.is_empty() { record.name.clone() } else { record.label.clone() }
}

const fn operation(record: &DeviceRecord) -> &'static str {
    match record.operation {
        DeviceOperation::Launch => "kernel",
        DeviceOperation::CopyIn => "copy to the device",
        DeviceOperation::CopyOut => "copy from the device",
        DeviceOperation::Copy => "copy",
        DeviceOperation::Fill => "fill",
    }
}

fn detail(record: &DeviceRecord) -> String {
    let mut text = record.name.clone();
    if record.bytes > 0 {
        let seconds = (record.end - record.start).max(1) as f64 * 1e-9;
        let _ = write!(text, ": {} bytes, {:.1} GB/s", record.bytes, record.bytes as f64 / seconds / 1e9);
    }
    text
}

/// Returns a row for each kernel and each kind of copy, with the time of all its launches.
fn rows(module: &Module, records: &[DeviceRecord]) -> Vec<trace::Kernel> {
    let known: Vec<Kernel> = kernels(module);
    let mut rows: BTreeMap<String, trace::Kernel> = BTreeMap::new();
    for record in records {
        let name = title(record);
        let row = rows.entry(name.clone()).or_insert_with(|| {
            let kernel = instruction(module, &known, &name);
            trace::Kernel {
                kind: kernel.map_or(operation(record), |kernel| kind(module, kernel)).to_owned(),
                node: kernel.and_then(|kernel| nodes(module, kernel).into_iter().next()).unwrap_or_default(),
                name,
                duration: 0.0,
                flops: 0.0,
                bytes: 0.0,
            }
        });
        row.duration += (record.end - record.start) as f64;
        row.flops += 2.0 * record.operations as f64;
        row.bytes += record.bytes as f64;
    }
    rows.into_values().collect()
}

/// Returns the kernel whose instruction a label begins with.
fn instruction(module: &Module, known: &[Kernel], label: &str) -> Option<Kernel> {
    let name = |kernel: &Kernel| module[kernel.computation][kernel.instruction].name();
    let begins = |kernel: &&Kernel| {
        label.strip_prefix(name(kernel)).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    known.iter().filter(begins).max_by_key(|kernel| name(kernel).len()).copied()
}

/// Measures the peak rates of a device with kernels of the same code generator: a copy of an array,
/// and multiply-adds in registers.
pub fn device_peak(device: &Device) -> Result<Peak> {
    let copy = format!(
        "HloModule copy\nENTRY e {{\n  x = f32[{COPIED}] parameter(0)\n  ROOT y = f32[{COPIED}] negate(x)\n}}\n"
    );
    let mut arithmetic = format!(
        "HloModule arithmetic\nENTRY e {{\n  x = f32[{COMPUTED}] parameter(0)\n  f = f32[] parameter(1)\n  \
         s0 = f32[{COMPUTED}] broadcast(f), dimensions={{}}\n  v0 = f32[{COMPUTED}] add(x, s0)\n"
    );
    for k in 1..=MULTIPLY_ADDS {
        let root = if k == MULTIPLY_ADDS { "ROOT " } else { "" };
        let _ = writeln!(arithmetic, "  p{k} = f32[{COMPUTED}] multiply(v{}, s0)", k - 1);
        let _ = writeln!(arithmetic, "  {root}v{k} = f32[{COMPUTED}] add(p{k}, x)");
    }
    arithmetic.push_str("}\n");
    let operations = COMPUTED as f64 * MULTIPLY_ADDS as f64 * 2.0;
    Ok(Peak {
        threads: 1,
        flops: operations / fastest(device, &arithmetic)?,
        bytes: 8.0 * COPIED as f64 / fastest(device, &copy)?,
    })
}

/// Returns the shortest time of a module's kernels in seconds.
fn fastest(device: &Device, text: &str) -> Result<f64> {
    let options = in_process_options(host("")?).on_device(device.clone())?;
    let compiled = compile_module(hlo::parse(text)?, &options, &mut NoObserver)?;
    let executable = Executable::load(&compiled)?;
    let array = |argument: &hlo::Argument| Fill::Random.array(&argument.shape, &mut Random::new(0));
    let arguments: Vec<Literal> =
        executable.interface().arguments().iter().map(array).collect::<Result<_>>()?;
    let mut session = executable.session(&arguments)?;
    session.run()?;
    let mut best = f64::INFINITY;
    let missing = || Error::internal("the measured program does not run on a device");
    session.device().ok_or_else(missing)?.set_profiled(true)?;
    for _ in 0..PEAK_RUNS {
        session.run()?;
        let records = session.device().ok_or_else(missing)?.take_records();
        let launches = records.iter().filter(|record| record.operation == DeviceOperation::Launch);
        let time: u64 = launches.map(|record| record.end - record.start).sum();
        best = best.min(time.max(1) as f64 * 1e-9);
    }
    Ok(best)
}
