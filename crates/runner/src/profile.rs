//! Profiles a whole program by instruction, and builds a report page.

use crate::Progress;
use crate::device_profile::profile_device;
use crate::kernels::{Kernel, kind, nodes};
use crate::peak::measure_peak;
use crate::profile_options::ProfileOptions;
use buffers::{Allocation, Slice};
use compiler::{Compiled, Counter, Executable, Span};
use hlo::{InstructionId, Module, PrintOptions};
use shape::Literal;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use support::{Error, Result};
use target::Target;
use trace::{Bar, Lane, Report, Roof, Series};

/// Runs a program that was compiled with `is_profiled`, and reports on the average run. The
/// timeline's bars follow the order of the schedule and have the measured lengths. Bars of a loop's
/// body are below the loop, each as long as all its iterations together.
pub fn profile(
    compiled: &Compiled,
    arguments: &[Literal],
    target: &Target,
    options: &ProfileOptions,
    progress: &mut Progress<'_>,
) -> Result<Report> {
    if let Some(device) = &compiled.open_device {
        return profile_device(compiled, arguments, device, options, progress);
    }
    let executable = Executable::load(compiled)?;
    let mut session = executable.session(arguments)?;
    session.set_threads(options.threads)?;
    session.run()?;
    let before = session.profile_counters().to_vec();
    let mut time = Duration::ZERO;
    for step in 0..options.steps {
        progress("running", step as usize, options.steps as usize);
        let start = Instant::now();
        session.run()?;
        time += start.elapsed();
    }
    let ticks: Vec<i64> =
        session.profile_counters().iter().zip(&before).map(|(now, then)| now - then).collect();
    let total = ticks.first().copied().filter(|&total| total > 0);
    let total = total.ok_or_else(|| Error::internal("expected a nonzero counter in the profiled program"))?;
    let step = time.as_secs_f64() * 1e9 / options.steps as f64;
    let mut layout = Layout::new(compiled, &ticks, step / total as f64)?;
    layout.bars();
    let peak = options.peak.then(|| measure_peak(target, options.threads)).transpose()?;
    Ok(Report {
        title: options.title.clone(),
        subtitle: format!(
            "average of {} runs, {} each; {}; {}",
            options.steps,
            terminal::seconds(step / 1e9),
            if options.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", options.threads) },
            target.triple.as_str()
        ),
        step,
        kernels: layout.kernels(),
        memory: layout.memory(step),
        lanes: layout.lanes,
        peak: peak.map(|peak| Roof { flops: peak.flops, bytes: peak.bytes }),
    })
}

/// Loops nested deeper share a lane.
const MAX_LANES: usize = 16;

/// The instructions on the timeline of a run.
struct Layout<'a> {
    compiled: &'a Compiled,
    /// Time of each instruction in nanoseconds.
    durations: BTreeMap<Kernel, f64>,
    texts: BTreeMap<Kernel, String>,
    schedule: buffers::Schedule,
    lanes: Vec<Lane>,
    /// Times in nanoseconds, measured from the start of the run.
    spans: Vec<Span>,
}

impl<'a> Layout<'a> {
    fn new(compiled: &'a Compiled, ticks: &[i64], tick: f64) -> Result<Self> {
        let module = &compiled.module;
        let counted = compiled.code.counted.iter().zip(ticks);
        let durations = counted.filter_map(|(counter, &ticks)| match *counter {
            Counter::Total => None,
            Counter::Instruction(computation, instruction) => {
                Some((Kernel { computation, instruction }, tick * ticks as f64))
            }
        });
        let texts = hlo::text::instruction_texts(module, PrintOptions::short()).into_iter();
        let texts =
            texts.map(|((computation, instruction), text)| (Kernel { computation, instruction }, text));
        let spans = compiled.spans(ticks)?.into_iter();
        Ok(Self {
            compiled,
            durations: durations.collect(),
            texts: texts.collect(),
            schedule: buffers::schedule(module, &compiled.code.plan),
            lanes: Vec::new(),
            spans: spans
                .map(|span| Span { start: tick * span.start, end: tick * span.end, ..span })
                .collect(),
        })
    }

    fn module(&self) -> &'a Module {
        &self.compiled.module
    }

    /// Creates a bar for each instruction with a nonzero time.
    fn bars(&mut self) {
        for span in std::mem::take(&mut self.spans) {
            if span.end > span.start {
                let kernel = Kernel { computation: span.computation, instruction: span.instruction };
                self.bar(kernel, span.depth, span.start, span.end - span.start);
            }
            self.spans.push(span);
        }
    }

    fn bar(&mut self, kernel: Kernel, depth: usize, start: f64, duration: f64) {
        let depth = depth.min(MAX_LANES);
        while self.lanes.len() <= depth {
            let name = if self.lanes.is_empty() { "entry".to_owned() } else { "in control flow".to_owned() };
            self.lanes.push(Lane { name, bars: Vec::new() });
        }
        let (name, kind) = self.words(kernel);
        let node = self.node(kernel);
        let detail = if node.is_empty() {
            self.texts[&kernel].clone()
        } else {
            format!("{node}: {}", self.texts[&kernel])
        };
        let bar = Bar { name, kind, start, duration, detail };
        // Instructions of a body precede the one that calls it, whose bar is above theirs.
        let bars = &mut self.lanes[depth].bars;
        let at = bars.partition_point(|other| other.start < start);
        bars.insert(at, bar);
    }

    /// Returns the name and kind of an instruction. Outside the entry, the computation's name is a
    /// prefix.
    fn words(&self, kernel: Kernel) -> (String, String) {
        let text = &self.texts[&kernel];
        let mut name = text.split_once(" = ").map_or(text.as_str(), |(name, _)| name).to_owned();
        if kernel.computation != self.module().entry() {
            name = format!("{}/{name}", self.module()[kernel.computation].name());
        }
        (name, kind(self.module(), kernel).to_owned())
    }

    fn node(&self, kernel: Kernel) -> String {
        nodes(self.module(), kernel).into_iter().next().unwrap_or_default()
    }

    /// Returns a row for each instruction with a nonzero time.
    fn kernels(&self) -> Vec<trace::Kernel> {
        let counters = self.compiled.code.counted.iter().zip(&self.compiled.code.counters);
        let rows = counters.filter_map(|(counted, counter)| {
            let &Counter::Instruction(computation, instruction) = counted else { return None };
            let kernel = Kernel { computation, instruction };
            let duration = self.durations.get(&kernel).copied().filter(|&duration| duration > 0.0)?;
            let (name, kind) = self.words(kernel);
            let (flops, bytes) = (counter.flops as f64, counter.bytes as f64);
            Some(trace::Kernel { name, kind, node: self.node(kernel), duration, flops, bytes })
        });
        rows.collect()
    }

    /// Returns the live bytes of the temporary block while the entry's instructions run, and the
    /// size of the block.
    fn memory(&self, step: f64) -> Vec<Series> {
        let module = self.module();
        let entry = module.entry();
        let assignment = &self.compiled.code.assignment;
        let Some(sequence) = self.schedule.sequences.get(&entry) else { return Vec::new() };
        let position: BTreeMap<InstructionId, usize> =
            sequence.iter().enumerate().map(|(p, &i)| (i, p)).collect();
        // A slice is live from the first to the last instruction that names it, as result or
        // operand.
        let mut alive: BTreeMap<Slice, (usize, usize)> = BTreeMap::new();
        for ((computation, instruction, _), &slice) in &assignment.slices {
            let (true, Some(&position_of_definition)) = (*computation == entry, position.get(instruction))
            else {
                continue;
            };
            if slice.allocation != Allocation::Temps || slice.size == 0 {
                continue;
            }
            let users = module[entry][*instruction].users();
            let last = users
                .iter()
                .filter_map(|user| position.get(user))
                .copied()
                .max()
                .unwrap_or(position_of_definition);
            let span = alive.entry(slice).or_insert((position_of_definition, last));
            *span = (span.0.min(position_of_definition), span.1.max(last));
        }
        let scratch =
            |id: &InstructionId| assignment.scratch.get(&(entry, *id)).map_or(0, |slice| slice.size);
        let entered = self.spans.iter().filter(|span| span.computation == entry);
        let starts: BTreeMap<InstructionId, f64> =
            entered.map(|span| (span.instruction, span.start)).collect();
        let points = sequence.iter().enumerate().map(|(now, id)| {
            let live = alive.iter().filter(|(_, (from, to))| (*from..=*to).contains(&now));
            let bytes: u64 = union(live.map(|(slice, _)| (slice.offset, slice.size))) + scratch(id);
            (starts.get(id).copied().unwrap_or_default(), bytes as f64)
        });
        let block = vec![(0.0, assignment.temps_size as f64), (step, assignment.temps_size as f64)];
        vec![
            Series { name: "temporary block".to_owned(), points: block },
            Series { name: "live buffers".to_owned(), points: points.collect() },
        ]
    }
}

/// Returns the number of bytes that the ranges cover together.
pub(crate) fn union(ranges: impl Iterator<Item = (u64, u64)>) -> u64 {
    let mut ranges: Vec<(u64, u64)> = ranges.map(|(offset, size)| (offset, offset + size)).collect();
    ranges.sort_unstable();
    let (mut covered, mut end) = (0, 0);
    for (start, to) in ranges {
        covered += to.saturating_sub(start.max(end));
        end = end.max(to);
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_and_overlap_count_once() {
        assert_eq!(union([(10, 5), (0, 4), (12, 8), (20, 1)].into_iter()), 4 + 11);
        assert_eq!(union(std::iter::empty()), 0);
    }
}
