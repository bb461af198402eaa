//! Time spent in the instructions of a cluster.

use crate::lock::lock;
use compiler::{Compiled, ProfileCounter};
use hlo::PrintOptions;
use std::sync::Mutex;
use std::time::Duration;
use support::Result;
use trace::Instruction;

/// Counters of a cluster's code, summed over all runs so far.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterProfile {
    /// Node that the cluster was first compiled for.
    pub node: String,
    /// Meaning of each counter: the whole run first, then instructions.
    pub counters: Vec<ProfileCounter>,
    /// Counter values, in ticks of the processor's clock.
    pub ticks: Vec<i64>,
    /// Number of runs.
    pub runs: u64,
    /// Total time of these runs.
    pub time: Duration,
}

/// A cluster whose code has counters.
#[derive(Debug)]
pub(crate) struct Profile {
    node: String,
    compiled: Compiled,
    total: Mutex<Total>,
}

/// Sums over all runs.
#[derive(Clone, Debug)]
struct Total {
    ticks: Vec<i64>,
    runs: u64,
    time: Duration,
}

/// Kernel statistics for traces and profiles.
#[derive(Debug)]
pub(crate) struct KernelCounts {
    /// Simple arithmetic operations and bytes moved in one run.
    pub(crate) flops: u64,
    pub(crate) moved_bytes: u64,
    /// Counters of the kernel's code, if any.
    pub(crate) profile: Option<Profile>,
}

/// Time span in nanoseconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

impl Profile {
    pub(crate) fn new(node: &str, compiled: Compiled) -> Self {
        let total = Total { ticks: vec![0; compiled.code.counters.len()], runs: 0, time: Duration::ZERO };
        Self { node: node.to_owned(), compiled, total: Mutex::new(total) }
    }

    /// Adds the counters of a run.
    pub(crate) fn add(&self, ticks: &[i64], time: Duration) {
        let total = &mut *lock(&self.total);
        total.ticks.iter_mut().zip(ticks).for_each(|(sum, &ticks)| *sum = sum.saturating_add(ticks));
        total.runs += 1;
        total.time += time;
    }

    pub(crate) fn total(&self) -> ClusterProfile {
        let Total { ticks, runs, time } = lock(&self.total).clone();
        ClusterProfile {
            node: self.node.clone(),
            counters: self.compiled.code.counters.clone(),
            ticks,
            runs,
            time,
        }
    }

    /// Instructions of a run during a span, with their counters.
    pub(crate) fn instructions(&self, ticks: &[i64], Span { begin, end }: Span) -> Result<Vec<Instruction>> {
        let module = &self.compiled.module;
        let texts = hlo::text::instruction_texts(module, PrintOptions::short());
        let spans = self.compiled.spans(ticks)?;
        // The counters sum to slightly less than the total, which also includes the entry's own
        // work.
        let counted = spans.iter().map(|span| span.end).fold(0.0, f64::max);
        let whole = ticks.first().map_or(0.0, |&ticks| ticks as f64).max(counted);
        let tick = end.saturating_sub(begin) as f64 / whole.max(1.0);
        let instructions = spans.into_iter().filter(|span| span.end > span.start).filter_map(|span| {
            let text = texts.get(&(span.computation, span.instruction))?;
            let name = text.split_once(" = ").map_or(text.as_str(), |(name, _)| name);
            let counter = self.compiled.code.counters.get(span.counter?)?;
            Some(Instruction {
                name: name.to_owned(),
                kind: compiler::kind(module, span.computation, span.instruction).to_owned(),
                text: text.clone(),
                depth: span.depth,
                start: begin as f64 + tick * span.start,
                end: begin as f64 + tick * span.end,
                flops: counter.flops,
                bytes: counter.bytes,
            })
        });
        Ok(instructions.collect())
    }
}
