//! Converts steps of a session to a report: the timeline of one step, and average times of nodes
//! and instructions.

use crate::collector::Collector;
use crate::execution::Execution;
use crate::gpu;
use crate::lanes::lanes;
use crate::report::{Bar, Kernel, Lane, Report, Series};
use std::collections::BTreeMap;

/// Creates the report of several steps. The timeline and the memory are those of the step with the
/// median duration, and kernel times are averages over all steps. A node with counted instructions
/// has a row for each instruction, and one for the rest of its time. `step` is the measured time of
/// a step in nanoseconds.
pub fn step_report(title: &str, subtitle: &str, step: f64, steps: Vec<Vec<Execution>>) -> Report {
    let kernels = kernels(&steps);
    let mut by_length: Vec<(u64, Vec<Execution>)> =
        steps.into_iter().map(|step| (span(&step).1 - span(&step).0, step)).collect();
    by_length.sort_by_key(|(length, _)| *length);
    let middle = by_length.len() / 2;
    let shown = by_length.into_iter().nth(middle).map(|(_, step)| step).unwrap_or_default();
    let memory = memory(&shown);
    Report {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        step,
        lanes: timeline(shown),
        kernels,
        peak: None,
        memory,
    }
}

/// Start of the first node of a step and end of the last.
fn span(step: &[Execution]) -> (u64, u64) {
    let begin = step.iter().map(|execution| execution.start).min().unwrap_or(0);
    let end = step.iter().map(|execution| execution.end).max().unwrap_or(0);
    (begin, end.max(begin))
}

/// Lanes of the nodes of each device, each followed by the lanes of the nodes' instructions.
fn timeline(mut step: Vec<Execution>) -> Vec<Lane> {
    step.sort_by(|a, b| (a.start, &a.name).cmp(&(b.start, &b.name)));
    let (begin, _) = span(&step);
    let since = |time: f64| time - begin as f64;
    let collector = Collector::default();
    step.iter().for_each(|execution| {
        collector.record(Execution {
            instructions: Vec::new(),
            gpu_events: Vec::new(),
            outputs: Vec::new(),
            ..execution.clone()
        });
    });
    let mut rows: BTreeMap<(String, usize, usize), Vec<Bar>> = BTreeMap::new();
    for device in collector.finish().dev_stats {
        let nodes = step.iter().filter(|execution| execution.device == device.device);
        for (execution, lane) in nodes.zip(lanes(&device)) {
            let bar = Bar {
                name: execution.name.clone(),
                kind: execution.op.clone(),
                start: since(execution.start as f64),
                duration: execution.end.saturating_sub(execution.start) as f64,
                detail: format!("{}({})", execution.op, execution.inputs.join(", ")),
            };
            rows.entry((device.device.clone(), lane, 0)).or_default().push(bar);
            for instruction in &execution.instructions {
                let bar = Bar {
                    name: instruction.name.clone(),
                    kind: instruction.kind.clone(),
                    start: since(instruction.start),
                    duration: instruction.end - instruction.start,
                    detail: instruction.text.clone(),
                };
                rows.entry((device.device.clone(), lane, 1 + instruction.depth)).or_default().push(bar);
            }
        }
    }
    for (execution, event) in step.iter().flat_map(|e| e.gpu_events.iter().map(move |event| (e, event))) {
        // A lane for kernels and one for copies. Runs that overlap share them.
        let device = gpu::lane_name(execution, event);
        rows.entry((device, 0, 0)).or_default().push(Bar {
            name: gpu::title(execution, event),
            kind: event.kind.copy().unwrap_or("kernel").to_owned(),
            start: since(event.start as f64),
            duration: event.end.saturating_sub(event.start) as f64,
            detail: gpu::detail(execution, event),
        });
    }
    rows.into_iter()
        .map(|((device, lane, depth), mut bars)| {
            bars.sort_by(|a, b| a.start.total_cmp(&b.start));
            let short = device.rsplit("/device:").next().unwrap_or(&device);
            let name = match depth {
                _ if gpu::is_lane(&device) => short.to_owned(),
                0 => format!("{short}, lane {lane}"),
                _ => format!("{short}, lane {lane}: inside"),
            };
            Lane { name, bars }
        })
        .collect()
}

/// Average time of every node and instruction per step.
fn kernels(steps: &[Vec<Execution>]) -> Vec<Kernel> {
    let mut rows: BTreeMap<(String, String), Kernel> = BTreeMap::new();
    let mut add = |name: &str, kind: &str, node: &str, duration: f64, flops: u64, bytes: u64| {
        let row = rows.entry((node.to_owned(), name.to_owned())).or_insert_with(|| Kernel {
            name: name.to_owned(),
            kind: kind.to_owned(),
            node: node.to_owned(),
            ..Kernel::default()
        });
        let share = |number: f64| number / steps.len() as f64;
        row.duration += share(duration);
        row.flops += share(flops as f64);
        row.bytes += share(bytes as f64);
    };
    for execution in steps.iter().flatten() {
        let whole = execution.end.saturating_sub(execution.start) as f64;
        if !execution.gpu_events.is_empty() {
            // Copies are rows of their own, because kernels of one node are not to blame for them.
            let mut inside = 0.0;
            for event in &execution.gpu_events {
                let duration = event.end.saturating_sub(event.start) as f64;
                inside += duration;
                let (name, kind) = (gpu::title(execution, event), event.kind.copy().unwrap_or("kernel"));
                add(&name, kind, &execution.name, duration, event.flops, event.bytes);
            }
            add(&execution.name, &execution.op, &execution.name, (whole - inside).max(0.0), 0, 0);
            continue;
        }
        if execution.instructions.is_empty() {
            add(
                &execution.name,
                &execution.op,
                &execution.name,
                whole,
                execution.flops,
                execution.moved_bytes,
            );
            continue;
        }
        // The time of a loop is attributed to its instructions.
        let is_leaf = |kind: &str| !matches!(kind, "while" | "conditional");
        let mut inside = 0.0;
        for instruction in execution.instructions.iter().filter(|i| is_leaf(&i.kind)) {
            let duration = instruction.end - instruction.start;
            inside += duration;
            let (name, kind) = (&instruction.name, &instruction.kind);
            add(name, kind, &execution.name, duration, instruction.flops, instruction.bytes);
        }
        add(&execution.name, &execution.op, &execution.name, (whole - inside).max(0.0), 0, 0);
    }
    rows.into_values().collect()
}

/// Creation time, time of the last use, and bytes of a tensor.
type Life = (u64, u64, u64);

/// Memory held by tensors from their creation to their last use. Memory shared by several tensors
/// counts once.
fn memory(step: &[Execution]) -> Vec<Series> {
    let (begin, end) = span(step);
    let mut last_use: BTreeMap<&str, u64> = BTreeMap::new();
    for execution in step {
        for input in &execution.inputs {
            let until = last_use.entry(input.trim_start_matches('^')).or_default();
            *until = execution.end.max(*until);
        }
    }
    let mut places: BTreeMap<(&str, u64), Vec<Life>> = BTreeMap::new();
    for execution in step {
        for output in execution.outputs.iter().filter(|output| output.bytes > 0) {
            let name = match output.slot {
                0 => execution.name.clone(),
                slot => format!("{}:{slot}", execution.name),
            };
            let until = last_use.get(name.as_str()).copied().unwrap_or(execution.end);
            let lives = places.entry((output.allocator, output.address)).or_default();
            lives.push((execution.kernel_start, until.max(execution.kernel_start), output.bytes));
        }
    }
    let mut changes: BTreeMap<&str, Vec<(u64, i64)>> = BTreeMap::new();
    for ((allocator, _), mut lives) in places {
        lives.sort_unstable();
        // Merge tensors that share memory while their lifetimes overlap. A later tensor at the same
        // address counts on its own.
        let mut merged: Vec<Life> = Vec::new();
        for (from, until, bytes) in lives {
            match merged.last_mut().filter(|last| from < last.1) {
                Some(last) => *last = (last.0, last.1.max(until), last.2.max(bytes)),
                None => merged.push((from, until, bytes)),
            }
        }
        let changes = changes.entry(allocator).or_default();
        for (from, until, bytes) in merged {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            changes.extend([(from, bytes), (until, -bytes)]);
        }
    }
    let series = changes.into_iter().map(|(allocator, mut changes)| {
        // Deallocations sort before allocations at the same time.
        changes.sort_unstable();
        let mut held = 0i64;
        let mut points = vec![(0.0, 0.0)];
        for (time, change) in changes {
            held = held.saturating_add(change);
            points.push((time.saturating_sub(begin) as f64, held as f64));
        }
        points.push((end.saturating_sub(begin) as f64, held as f64));
        Series { name: format!("tensors in {allocator}"), points }
    });
    series.collect()
}
