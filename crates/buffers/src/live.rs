//! Liveness for reports: which value is live while which kernel runs.

use crate::timeline::Timeline;
use crate::values::Values;
use crate::{Leaf, Schedule};
use hlo::{ComputationId, InstructionId, Module};
use plan::ModulePlan;

/// The kernels of a run in order, and when each value is live.
#[derive(Clone, Debug, Default)]
pub struct Liveness {
    /// Instructions with code or memory of their own, in the order of the code.
    pub moments: Vec<(ComputationId, InstructionId)>,
    /// For each value, the first and the last moment of each interval in which it is live.
    pub values: Vec<(Leaf, Vec<(usize, usize)>)>,
}

/// Returns when each value of a scheduled module is live.
pub fn liveness(module: &Module, plan: &ModulePlan, schedule: &Schedule) -> Liveness {
    let values = Values::new(module, plan);
    let timeline = Timeline::new(module, &values, schedule);
    let mut ticks: Vec<(usize, (ComputationId, InstructionId))> = timeline
        .positions
        .iter()
        .filter(|((computation, instruction), _)| !values.is_alias(*computation, *instruction))
        .map(|(&place, &tick)| (tick, place))
        .collect();
    ticks.sort_unstable();
    let mut all = Vec::new();
    for (leaf, intervals) in &timeline.intervals {
        let moments = intervals.iter().filter_map(|interval| {
            let first = ticks.partition_point(|(tick, _)| *tick < interval.begin);
            let after = ticks.partition_point(|(tick, _)| *tick <= interval.end);
            (first < after).then(|| (first, after - 1))
        });
        all.push((leaf.clone(), moments.collect()));
    }
    Liveness { moments: ticks.into_iter().map(|(_, place)| place).collect(), values: all }
}
