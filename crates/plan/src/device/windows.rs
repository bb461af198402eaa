//! Windowed reductions on a device: a thread for each result, or a team of threads for each running
//! total.

use crate::collapse::Loop;
use crate::device::GroupGrid;
use crate::device::teams::{Teams, power_of_two_from, power_of_two_to};
use crate::fusion::Fusion;
use crate::kernel_plan::KernelPlan;
use crate::reduction::reduce_window::{self, ReduceWindowPlan, WindowWalk};
use hlo::Op;
use std::fmt;
use support::Result;
use target::{Gpu, Target};

/// Threads of a workgroup.
const THREADS: u32 = 128;

/// Number of results beyond which threads stride over them.
const MAX_RESULTS: i64 = 1 << 24;

/// Fewest elements of a thread's part of a running total.
const MIN_PART: i64 = 4;

/// Plan of a running total by teams. Each thread sums a part, the team sums the parts, and each
/// thread then computes the results of its part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanPlan {
    /// The dimension along which the total runs.
    pub dimension: usize,
    /// The loops over the other dimensions, outermost first.
    pub others: Vec<Loop>,
    /// A team for each combination of indices of the other dimensions.
    pub teams: Teams,
    /// Number of elements, and of results.
    pub size: i64,
    /// Number of results.
    pub count: i64,
    /// Number of elements in the window of the result that is computed first, before clamping to
    /// the array. It may be negative or exceed the size.
    pub held: i64,
    /// True if the total runs from the last result to the first.
    pub is_backward: bool,
    /// True if the computation is one operation on one array of real numbers.
    pub is_operation: bool,
}

/// Plan of a windowed reduction on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowsPlan {
    /// A thread for each result; the number of results.
    Each(ReduceWindowPlan, i64),
    /// A team for each running total.
    Scan(ScanPlan),
}

impl WindowsPlan {
    pub(crate) fn grid(&self) -> GroupGrid {
        match self {
            Self::Each(_, 1) => GroupGrid { groups: 1, threads: 1 },
            Self::Each(_, results) => GroupGrid {
                groups: results.min(&MAX_RESULTS).unsigned_abs().div_ceil(THREADS.into()),
                threads: THREADS,
            },
            Self::Scan(plan) => plan.teams.grid(1),
        }
    }
}

impl fmt::Display for WindowsPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Each(..) => f.write_str("windowed reduction by threads"),
            Self::Scan(plan) => write!(f, "running totals by teams: {}", plan.teams),
        }
    }
}

/// Plans a windowed reduction. Returns `None` for running totals of windows that also extend along
/// other dimensions.
pub(crate) fn plan(
    fusion: &Fusion<'_>,
    gpu: Gpu,
    target: &Target,
) -> Result<Option<KernelPlan<WindowsPlan>>> {
    let Op::ReduceWindow { window, .. } = fusion.root_op() else { return Ok(None) };
    let plan = reduce_window::plan(fusion, target)?.strategy;
    let input = fusion.body[fusion.body[fusion.root].operands()[0]].shape().expect_array();
    let leaves = fusion.shape().leaves();
    let Some((_, result)) = leaves.first() else { return Ok(None) };
    let (sizes, counts) = (input.sizes(), result.sizes());
    let results = counts.iter().fold(1i64, |n, &count| n.saturating_mul(count));
    if results == 0 || sizes.contains(&0) {
        return Ok(None);
    }
    let running = plan.dimensions.iter().position(|walk| matches!(walk, WindowWalk::Running { .. }));
    let Some(dimension) = running else {
        let walk = |walk: &WindowWalk| match walk {
            WindowWalk::Segments(segments) if segments.len() != 1 => WindowWalk::Bounded,
            other => other.clone(),
        };
        let dimensions = plan.dimensions.iter().map(walk).collect();
        let each = ReduceWindowPlan { dimensions, lanes: 1, vectors: 1, task_dimension: None, ..plan };
        let plan = WindowsPlan::Each(each, results);
        return Ok(Some(KernelPlan { tasks: results, ..KernelPlan::new(plan) }));
    };
    if window.running_dimension(&sizes, &counts).is_none() {
        return Ok(None);
    }
    let is_backward = plan.dimensions[dimension] == WindowWalk::Running { is_backward: true };
    let w = &window.dimensions[dimension];
    let (size, count) = (sizes[dimension], counts[dimension]);
    // Forward, result 0 contains the elements below its window's end. Backward, the last result
    // contains those from its window's start on.
    let held = if is_backward {
        size.saturating_add(w.padding_low).saturating_sub(count - 1)
    } else {
        w.size.saturating_sub(w.padding_low)
    };
    let others: Vec<Loop> = (0..counts.len())
        .filter(|&d| d != dimension && counts[d] != 1)
        .map(|d| Loop { dimension: d, extent: counts[d] })
        .collect();
    let is_row = others.iter().all(|l| l.dimension < dimension);
    let teams = teams(results / count, size, is_row, gpu);
    let is_operation = plan.is_operation && !result.element_type.is_complex();
    let scan = ScanPlan { dimension, others, teams, size, count, held, is_backward, is_operation };
    Ok(Some(KernelPlan::new(WindowsPlan::Scan(scan))))
}

fn teams(count: i64, size: i64, is_row: bool, gpu: Gpu) -> Teams {
    let most = power_of_two_to(size / MIN_PART);
    if is_row {
        let is_many = count.saturating_mul(64) >= i64::from(gpu.processors) * 1024;
        let size = most.min(if is_many { 64 } else { 512 });
        let per_group = (i64::from(THREADS) / size).max(1).min(power_of_two_from(count));
        return Teams { count, per_group, size, is_across: false };
    }
    let per_group = power_of_two_from(count).min(32);
    Teams { count, per_group, size: most.min(256 / per_group), is_across: true }
}
