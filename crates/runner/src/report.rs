//! Collects the figures of a program for a report.

use crate::Progress;
use crate::difference::Difference;
use crate::kernels::{Kernel, kind, nodes, scheduled};
use crate::latency::Latency;
use crate::peak::{Probe, measure_peak};
use crate::verify::KernelCheck;
use ::report::{
    Accuracy, Buffer, Constant, Cost, Layer, Moment, Peak, Report, ResultError, Sizes, Source, Time,
};
use buffers::{Allocation, Slice};
use compiler::{Compiled, CountedCode, Counter, Executable};
use hlo::{Interface, Module, Op, Role};
use shape::{Literal, PrimitiveType};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};
use target::Target;

/// Bound of the listed constants.
const MAX_CONSTANTS: usize = 500;

/// Bound of the recorded counters of all runs.
const MAX_TICKS: usize = 1 << 22;

/// Options of the measurements for a report.
#[derive(Clone, Copy, Debug)]
pub struct ReportOptions {
    /// Approximate duration of each measurement in seconds.
    pub seconds: f64,
    /// Number of threads.
    pub threads: usize,
    /// True to measure the machine's peak.
    pub peak: bool,
}

/// Collects what the compilation knows: layers with modeled times, sizes, and memory.
pub fn report(name: &str, compiled: &Compiled, interface: &Interface, target: &Target) -> Report {
    let mut report = Report::new(name, "model");
    report.target = [target.triple.as_str(), &target.cpu].join(" ").trim().to_owned();
    report.sizes = sizes(compiled, interface);
    let all = scheduled(compiled);
    report.layers = all.iter().map(|&kernel| layer(compiled, kernel, target)).collect();
    let modeled: f64 = report.layers.iter().filter_map(|layer| layer.seconds).sum();
    report.time = Some(Time { source: Source::Modeled, seconds: modeled, p90: None, runs: 0, threads: 1 });
    memory(&mut report, compiled, &all);
    constants(&mut report, compiled, &all);
    report.summarize();
    report
}

/// Replaces the modeled times by measured ones.
pub fn measure_report(
    report: &mut Report,
    compiled: &Compiled,
    counted: &CountedCode,
    arguments: &[Literal],
    target: &Target,
    options: &ReportOptions,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let executable = Executable::load(compiled)?;
    let mut session = executable.session(arguments)?;
    session.set_threads(options.threads)?;
    progress("measuring runs", 0, 2);
    let latency = Latency::measure(options.seconds, || session.run())?;
    let executable = Executable::load_counted(compiled, counted)?;
    let mut session = executable.session(arguments)?;
    session.set_threads(options.threads)?;
    let mut snapshots = vec![session.profile_counters().to_vec()];
    progress("measuring layers", 1, 2);
    let whole = Latency::measure(options.seconds, || {
        session.run()?;
        if snapshots.len() * snapshots[0].len() < MAX_TICKS {
            snapshots.push(session.profile_counters().to_vec());
        }
        Ok(())
    })?;
    let ticks = medians(&snapshots);
    let total = ticks.first().copied().filter(|&total| total > 0);
    let total = total.ok_or_else(|| Error::internal("expected a nonzero counter in the profiled program"))?;
    let step = whole.p50 / total as f64;
    let mut times = BTreeMap::new();
    for (counter, &ticks) in counted.counted.iter().zip(&ticks) {
        if let Counter::Instruction(computation, instruction) = *counter {
            times.insert(Kernel { computation, instruction }, ticks as f64 * step);
        }
    }
    report.time = Some(Time {
        source: Source::Measured,
        seconds: latency.p50,
        p90: Some(latency.p90),
        runs: latency.runs,
        threads: options.threads,
    });
    if options.peak {
        let peak = measure_peak(target, options.threads)?;
        let has_bytes =
            target.byte_products.is_some() && report.layers.iter().any(|layer| is_narrow(&layer.precision));
        let bytes = has_bytes.then(|| Probe::bytes(target)?.best(options.threads, 600)).transpose()?;
        report.peak = Some(Peak { flops: peak.flops, byte_operations: bytes, bytes: peak.bytes });
    }
    for (layer, kernel) in report.layers.iter_mut().zip(scheduled(compiled)) {
        layer.seconds = times.get(&kernel).copied();
        let peak = report.peak.and_then(|peak| {
            if is_narrow(&layer.precision) { peak.byte_operations } else { Some(peak.flops) }
        });
        layer.share_of_peak = match (layer.seconds, peak) {
            (Some(time), Some(peak)) if time > 0.0 => Some(layer.flops as f64 / time / peak),
            _ => None,
        };
    }
    Ok(())
}

/// For each counter, the median of a run's ticks. Unlike their sum, it says little about other work
/// on the machine that interrupted a few runs.
fn medians(snapshots: &[Vec<i64>]) -> Vec<i64> {
    let counters = snapshots.first().map_or(0, Vec::len);
    let median = |counter: usize| {
        let runs = snapshots.windows(2).map(|pair| pair[1][counter] - pair[0][counter]);
        let mut ticks: Vec<i64> = runs.collect();
        let middle = ticks.len() / 2;
        if ticks.is_empty() { 0 } else { *ticks.select_nth_unstable(middle).1 }
    };
    (0..counters).map(median).collect()
}

/// Adds the agreement of each kernel with the evaluator.
pub fn add_accuracy(report: &mut Report, checks: &[KernelCheck]) {
    let checks: BTreeMap<&str, _> = checks.iter().map(|check| (check.name.as_str(), check)).collect();
    for layer in &mut report.layers {
        let Some(check) = checks.get(layer.name.as_str()) else { continue };
        layer.not_compared = check.skipped.clone();
        layer.accuracy = check.worst.as_ref().map(|(input, worst)| Accuracy {
            input: (*input).to_owned(),
            max_ulp: worst.max_ulp,
            max_relative: finite(worst.max_relative),
            share_of_limit: finite(worst.share_of_limit),
        });
    }
}

/// Adds the distance of each result from the evaluator's on the module as imported.
pub fn add_result_errors(
    report: &mut Report,
    imported: &Module,
    names: &[String],
    compiled: &Compiled,
    arguments: &[Literal],
) -> Result<()> {
    let have = Executable::load(compiled)?.run_whole(arguments)?;
    let want = match evaluator::evaluate(imported, arguments)? {
        Literal::Tuple(elements) => elements,
        array => vec![array],
    };
    for ((have, want), name) in have.iter().zip(&want).zip(names) {
        let mut sums = Difference::default();
        for (have, want) in have.scalars().zip(want.scalars()) {
            if let (Some(have), Some(want)) = (have.as_f64(), want.as_f64()) {
                sums.include(have, want);
            }
        }
        report.results.push(ResultError {
            name: name.clone(),
            largest: finite(sums.largest),
            relative: finite(sums.relative()),
            magnitude: finite(sums.magnitude),
        });
    }
    Ok(())
}

/// JSON has no infinity.
fn finite(number: f64) -> f64 {
    if number.is_finite() { number } else { f64::MAX }
}

fn is_narrow(precision: &str) -> bool {
    precision.starts_with("s8") || precision.starts_with("u8")
}

fn sizes(compiled: &Compiled, interface: &Interface) -> Sizes {
    let arguments = |role: Role| {
        let of_role = interface.arguments().iter().filter(move |argument| argument.role == role);
        of_role.map(|argument| argument.shape.byte_size()).fold(0, u64::saturating_add)
    };
    let results = interface.results().iter().filter(|result| result.alias.is_none());
    let output = &compiled.code.output;
    Sizes {
        code: output.functions.iter().map(|function| function.bytes).sum(),
        constants: compiled.constants.size,
        arena: compiled.code.assignment.temps_size,
        scratch: compiled.code.assignment.worker_scratch_size,
        stack: output.stack_bytes,
        feeds: arguments(Role::Feed),
        variables: arguments(Role::Variable),
        results: results.map(|result| result.shape.byte_size()).fold(0, u64::saturating_add),
    }
}

fn layer(compiled: &Compiled, kernel: Kernel, target: &Target) -> Layer {
    let module = &compiled.module;
    let (computation, id) = (&module[kernel.computation], kernel.instruction);
    let instruction = &computation[id];
    let runs = hlo::analysis::executions(module).get(&kernel.computation).copied().flatten();
    let cost = kernel.cost(module) * runs.unwrap_or(1);
    let plan = compiled.code.plan.computations.get(&kernel.computation);
    let plan = plan.and_then(|plan| plan.instructions.get(&id));
    let rationale = compiler::tuning::rationale(module, computation, id, target, &compiled.plan_options);
    let candidates = rationale.iter().flat_map(|rationale| &rationale.candidates);
    let costs = candidates.clone().filter_map(|considered| {
        let cost = considered.cost?;
        let (candidate, unit) = (considered.candidate.to_string(), cost.unit.to_owned());
        Some(Cost { candidate, cost: finite(cost.amount), unit })
    });
    let reason = match (plan.map(|plan| plan.tuned), &rationale) {
        (None, _) => "no plan".to_owned(),
        (Some(Some(chosen)), _) => format!("named by the tuning file: {chosen}"),
        (Some(None), None) => "follows from the kind of kernel, without candidates".to_owned(),
        (Some(None), Some(rationale)) => rationale.reason.clone(),
    };
    let in_entry = kernel.computation == module.entry();
    let nodes = nodes(module, kernel);
    Layer {
        name: instruction.name().to_owned(),
        kind: kind(module, kernel).to_owned(),
        node: nodes.first().cloned().unwrap_or_default(),
        nodes,
        group: if in_entry { String::new() } else { computation.name().to_owned() },
        shape: instruction.shape().to_string(),
        precision: precision(module, kernel),
        flops: cost.flops,
        transcendentals: cost.transcendentals,
        bytes: cost.bytes(),
        runs,
        seconds: plan.map(|plan| plan.work.nanoseconds() as f64 * 1e-9 * runs.unwrap_or(1) as f64),
        code_bytes: code_bytes(compiled, kernel),
        weight_bytes: constant_slices(compiled, kernel).iter().map(|slice| slice.size).sum(),
        strategy: plan.map(ToString::to_string).unwrap_or_default(),
        reason,
        candidates: candidates.clone().map(|considered| considered.candidate.to_string()).collect(),
        costs: costs.collect(),
        ..Layer::default()
    }
}

/// Element types of the operands and the result of the main operation, such as `s8 x s8 -> s32`.
fn precision(module: &Module, kernel: Kernel) -> String {
    let instruction = &module[kernel.computation][kernel.instruction];
    let (body, id) = match *instruction.op() {
        Op::Fusion { kind, calls, .. } => (&module[calls], kind.hero().unwrap_or(module[calls].root())),
        _ => (&module[kernel.computation], kernel.instruction),
    };
    let element = |id| body[id].shape().leaves().first().map(|(_, leaf): &(_, _)| leaf.element_type);
    let mut operands: Vec<PrimitiveType> =
        body[id].operands().iter().filter_map(|&operand| element(operand)).collect();
    operands.dedup();
    let result: Vec<PrimitiveType> = element(id).into_iter().collect();
    let words =
        |types: &[PrimitiveType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
    if operands.is_empty() || operands == result {
        return words(&result);
    }
    format!("{} -> {}", words(&operands), words(&result))
}

/// Size of the functions whose symbols have the kernel's name.
fn code_bytes(compiled: &Compiled, kernel: Kernel) -> Option<u64> {
    let wish = compiler::kernel_name(&compiled.module, kernel.computation, kernel.instruction);
    let is_own = |symbol: &str| {
        let Some((_, name)) = symbol.split_once('.') else { return false };
        match name.strip_prefix(wish.as_str()) {
            Some("") => true,
            Some(rest) => rest.strip_prefix('.').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit())),
            None => false,
        }
    };
    let own = compiled.code.output.functions.iter().filter(|function| is_own(&function.name));
    let sizes: Vec<u64> = own.map(|function| function.bytes).collect();
    (!sizes.is_empty()).then(|| sizes.iter().sum())
}

/// Distinct constants that a kernel reads.
fn constant_slices(compiled: &Compiled, kernel: Kernel) -> BTreeSet<Slice> {
    let assignment = &compiled.code.assignment;
    let Kernel { computation, instruction } = kernel;
    let mut slices = BTreeSet::new();
    let plan = compiled.code.plan.computations.get(&computation);
    let packed = plan.and_then(|plan| plan.instructions.get(&instruction)).map(|plan| &plan.packed);
    let replaced: BTreeSet<usize> =
        packed.into_iter().flatten().filter_map(|constant| constant.operand).collect();
    for position in 0..packed.map_or(0, Vec::len) {
        slices.extend(assignment.packed.get(&(computation, instruction, position)).copied());
    }
    for (number, &operand) in compiled.module[computation][instruction].operands().iter().enumerate() {
        if !replaced.contains(&number) {
            let leaf = (computation, operand, Vec::new());
            slices.extend(assignment.slices.get(&leaf).copied());
        }
    }
    slices.retain(|slice| slice.allocation == Allocation::Constants);
    slices
}

/// Adds the moments of a run and the buffers that are live at each.
fn memory(report: &mut Report, compiled: &Compiled, all: &[Kernel]) {
    let (module, assignment) = (&compiled.module, &compiled.code.assignment);
    let schedule = buffers::schedule(module, &compiled.code.plan);
    let liveness = buffers::liveness(module, &compiled.code.plan, &schedule);
    let number: BTreeMap<Kernel, usize> = all.iter().enumerate().map(|(k, &kernel)| (kernel, k)).collect();
    let node = |kernel| nodes(module, kernel).into_iter().next().unwrap_or_default();
    for (leaf, live) in liveness.values {
        let Some(slice) = assignment.slices.get(&leaf) else { continue };
        if slice.allocation != Allocation::Temps || slice.size == 0 || live.is_empty() {
            continue;
        }
        let (computation, instruction, index) = leaf;
        let value = &module[computation][instruction];
        report.buffers.push(Buffer {
            name: value.name().to_owned(),
            node: node(Kernel { computation, instruction }),
            shape: value.shape().get(&index).map(ToString::to_string).unwrap_or_default(),
            offset: slice.offset,
            bytes: slice.size,
            live,
        });
    }
    for (now, &(computation, instruction)) in liveness.moments.iter().enumerate() {
        let kernel = Kernel { computation, instruction };
        let name = module[computation][instruction].name();
        if let Some(slice) = assignment.scratch.get(&(computation, instruction)) {
            report.buffers.push(Buffer {
                name: format!("scratch of {name}"),
                node: node(kernel),
                shape: String::new(),
                offset: slice.offset,
                bytes: slice.size,
                live: vec![(now, now)],
            });
        }
        let layer = number.get(&kernel).copied();
        report.moments.push(Moment { layer, name: name.to_owned(), bytes: 0 });
    }
    let mut ranges: Vec<Vec<(u64, u64)>> = vec![Vec::new(); report.moments.len()];
    for buffer in &report.buffers {
        for &(from, to) in &buffer.live {
            ranges[from..=to].iter_mut().for_each(|live| live.push((buffer.offset, buffer.bytes)));
        }
    }
    for (moment, live) in report.moments.iter_mut().zip(ranges) {
        moment.bytes = crate::profile::union(live.into_iter());
    }
}

/// Adds the largest constants.
fn constants(report: &mut Report, compiled: &Compiled, all: &[Kernel]) {
    let (module, assignment) = (&compiled.module, &compiled.code.assignment);
    let mut readers: BTreeMap<Slice, Vec<usize>> = BTreeMap::new();
    for (number, &kernel) in all.iter().enumerate() {
        for slice in constant_slices(compiled, kernel) {
            readers.entry(slice).or_default().push(number);
        }
    }
    let mut named: BTreeMap<Slice, Constant> = BTreeMap::new();
    for ((computation, instruction, _), slice) in &assignment.packed {
        let kernel = Kernel { computation: *computation, instruction: *instruction };
        named.entry(*slice).or_insert_with(|| Constant {
            name: module[*computation][*instruction].name().to_owned(),
            node: nodes(module, kernel).into_iter().next().unwrap_or_default(),
            shape: "packed".to_owned(),
            bytes: slice.size,
            layers: readers.get(slice).cloned().unwrap_or_default(),
        });
    }
    for ((computation, instruction, index), slice) in &assignment.slices {
        let value = &module[*computation][*instruction];
        if slice.allocation == Allocation::Constants && matches!(value.op(), Op::Constant { .. }) {
            named.entry(*slice).or_insert_with(|| Constant {
                name: value.name().to_owned(),
                node: value.metadata().op_name.clone(),
                shape: value.shape().get(index).map(ToString::to_string).unwrap_or_default(),
                bytes: slice.size,
                layers: readers.get(slice).cloned().unwrap_or_default(),
            });
        }
    }
    report.constants = named.into_values().collect();
    report.constants.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    report.constants.truncate(MAX_CONSTANTS);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_run_does_not_count() {
        // Two counters over five runs: 10 and 3 ticks each, but one run was interrupted.
        let ticks = [[10, 3], [10, 3], [9010, 9003], [11, 3], [10, 4]];
        let mut snapshots = vec![vec![500, 70]];
        for run in ticks {
            let last = &snapshots[snapshots.len() - 1];
            snapshots.push(vec![last[0] + run[0], last[1] + run[1]]);
        }
        assert_eq!(medians(&snapshots), [10, 3]);
        assert_eq!(medians(&snapshots[..1]), [0, 0]);
    }
}
