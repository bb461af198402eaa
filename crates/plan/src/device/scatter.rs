//! Scatters on a device. Updates of one result element are combined in order, as on a processor.
//!
//! Threads walk the updates that may go to the same element, one thread for each element of a
//! window. If indices select single elements, groups own ranges of them instead: the threads of a
//! group look for the updates of its range together, and each combines those of its own elements.

use crate::collapse::Loop;
use crate::device::GroupGrid;
use crate::device::movement::{unit, units_grid};
use crate::device::teams::power_of_two_from;
use crate::fusion::Fusion;
use crate::kernel_plan::KernelPlan;
use hlo::Op;
use std::fmt;
use target::Gpu;

/// Threads of a group that owns a range.
pub const SCATTER_THREADS: i64 = 256;

/// Updates up to which a thread walks them alone.
const FEW_UPDATES: i64 = 4;

/// Updates of a thread that are read at once, at most.
const MOST_AT_ONCE: i64 = 8;

/// Numbers of updates and elements are below this.
const MAX_NUMBERS: i64 = 1 << 31;

/// Groups per multiprocessor that own ranges.
const GROUPS_PER_PROCESSOR: i64 = 2;

/// Plan of a scatter. The first steps copy the operands that do not share memory with the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScatterPlan {
    /// Bytes and bytes of a unit of each operand's copy.
    pub copies: Vec<(i64, i64)>,
    /// Dimensions of the updates that select the group or thread. Elements that differ there go to
    /// different elements of the results, or their order is free.
    pub batch: Vec<Loop>,
    /// Dimensions of the window that select the thread.
    pub window: Vec<Loop>,
    /// The ranges that groups own. Without them, threads walk the remaining dimensions.
    pub ranges: Option<RangesPlan>,
}

/// Ranges of elements that groups own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangesPlan {
    /// Dimensions of the updates that are walked in order.
    pub walked: Vec<Loop>,
    /// Dimensions of the operands that indices select, in order. Their combined index is an
    /// element's number.
    pub selected: Vec<Loop>,
    /// Number of ranges, and elements of each. The last one may be shorter.
    pub ranges: (i64, i64),
    /// Threads along the window; a power of two. The others share the elements of the range.
    pub across: i64,
    /// Updates of a thread that are read at once.
    pub each: i64,
}

fn extent(loops: &[Loop]) -> i64 {
    loops.iter().fold(1, |n: i64, l| n.saturating_mul(l.extent))
}

impl ScatterPlan {
    /// Number of parts of the window: all its elements, or groups of threads along it.
    pub fn window_parts(&self) -> i64 {
        let all = extent(&self.window);
        self.ranges.as_ref().map_or(all, |ranges| (all + ranges.across - 1) / ranges.across)
    }

    /// Number of threads, or of groups that own ranges.
    pub fn tasks(&self) -> i64 {
        let ranges = self.ranges.as_ref().map_or(1, |ranges| ranges.ranges.0);
        extent(&self.batch).saturating_mul(self.window_parts()).saturating_mul(ranges)
    }

    pub(crate) fn steps(&self) -> usize {
        self.copies.len() + 1
    }

    pub(crate) fn grid(&self, step: usize) -> GroupGrid {
        match self.copies.get(step) {
            Some((bytes, unit)) => units_grid(bytes / unit),
            None if self.ranges.is_none() => units_grid(self.tasks()),
            None => GroupGrid { groups: self.tasks().max(1).unsigned_abs(), threads: SCATTER_THREADS as u32 },
        }
    }
}

impl fmt::Display for ScatterPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.ranges {
            None => write!(f, "scatter by {} threads", self.tasks()),
            Some(ranges) => {
                let (count, each) = ranges.ranges;
                write!(
                    f,
                    "scatter by {} groups, {count} ranges of {each}, {} threads along the window",
                    self.tasks(),
                    ranges.across
                )
            }
        }
    }
}

impl RangesPlan {
    /// Number of updates that are walked.
    pub fn updates(&self) -> i64 {
        extent(&self.walked)
    }
}

/// Plans a scatter.
pub(crate) fn plan(fusion: &Fusion<'_>, gpu: Gpu) -> Option<KernelPlan<ScatterPlan>> {
    let Op::Scatter { scatter_dimension_numbers: numbers, unique_indices, .. } = fusion.root_op() else {
        return None;
    };
    let leaves = fusion.shape().leaves();
    let operands = fusion.body[fusion.root].operands();
    let sizes = leaves.first()?.1.sizes();
    let updates = fusion.body[*operands.get(leaves.len() + 1)?].shape().as_array()?.sizes();
    if sizes.contains(&0) || updates.contains(&0) {
        return None;
    }
    let copy = |bytes: i64| (bytes, unit([bytes]));
    let copies = leaves.iter().map(|(_, leaf)| copy(leaf.byte_size() as i64)).collect();
    // Several arrays may be each other's updates, so only a single one is in place.
    let may_overwrite = if fusion.shape().as_array().is_some() { vec![0] } else { Vec::new() };
    let one = |d: usize| Loop { dimension: d, extent: updates[d] };
    let (window, batch): (Vec<Loop>, Vec<Loop>) =
        (0..updates.len()).map(one).partition(|l| numbers.update_window_dims.contains(&l.dimension));
    let number = |i: usize| if i > numbers.index_vector_dim { i - 1 } else { i };
    let batching: Vec<usize> = numbers
        .scatter_indices_batching_dims
        .iter()
        .filter_map(|&i| Some(batch.get(number(i))?.dimension))
        .collect();
    let (own, walked): (Vec<Loop>, Vec<Loop>) = batch.iter().partition(|l| batching.contains(&l.dimension));
    let new = |batch: Vec<Loop>, window: Vec<Loop>, ranges: Option<RangesPlan>| {
        let plan = ScatterPlan { copies, batch, window, ranges };
        Some(KernelPlan { may_overwrite, ..KernelPlan::new(plan) })
    };
    if *unique_indices || extent(&walked) == 1 {
        return new(batch, window, None);
    }
    // The operand dimension that each window dimension spans.
    let dropped =
        |d: &usize| numbers.inserted_window_dims.contains(d) || numbers.input_batching_dims.contains(d);
    let spanned: Vec<usize> = (0..sizes.len()).filter(|d| !dropped(d)).collect();
    let selects = |d: &usize| numbers.scatter_dims_to_operand_dims.contains(d);
    // Windows at different places of a selected dimension overlap.
    let overlaps: Vec<bool> = window.iter().zip(&spanned).map(|(l, d)| selects(d) && l.extent > 1).collect();
    let selected: Vec<Loop> =
        (0..sizes.len()).filter(selects).map(|d| Loop { dimension: d, extent: sizes[d] }).collect();
    let is_large = extent(&walked).max(extent(&selected)) >= MAX_NUMBERS;
    if overlaps.contains(&true) || extent(&walked) <= FEW_UPDATES || is_large {
        let apart = window.iter().zip(&overlaps).filter(|(_, overlaps)| !**overlaps);
        let apart = apart.map(|(l, _)| *l).collect();
        return new(own, apart, None);
    }
    let across = power_of_two_from(extent(&window)).min(SCATTER_THREADS);
    let parts = (extent(&window) + across - 1) / across;
    let elements = extent(&selected);
    let groups = extent(&own).saturating_mul(parts).max(1);
    let most = GROUPS_PER_PROCESSOR * i64::from(gpu.processors);
    let ranges = ((most + groups - 1) / groups).min(elements).max(1);
    let each = (elements + ranges - 1) / ranges;
    let ranges = ((elements + each - 1) / each, each);
    let each = (extent(&walked) / SCATTER_THREADS).clamp(1, MOST_AT_ONCE);
    new(own, window, Some(RangesPlan { walked, selected, ranges, across, each }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use target::Target;

    /// Plans a scatter of sums and returns its description.
    fn described(attributes: &str, operand: &str, indices: &str, updates: &str) -> String {
        let text = format!(
            "HloModule m\nf {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}}\n\
             ENTRY main {{\n  x = f32[{operand}] parameter(0)\n  i = s32[{indices}] parameter(1)\n  \
             u = f32[{updates}] parameter(2)\n  ROOT r = f32[{operand}] scatter(x, i, u), {attributes}, \
             to_apply=f\n}}\n"
        );
        let module = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let computation = module.entry_computation();
        let fusion = Fusion::of(&module, computation, computation.root()).expect("a fusion");
        let gpu = Target::cuda("sm_80").expect("a target").gpu.expect("a device");
        plan(&fusion, gpu).expect("a plan").strategy.to_string()
    }

    #[test]
    fn work_is_divided_by_what_may_meet() {
        let elements = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, \
                        index_vector_dim=1";
        let rows = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, \
                    index_vector_dim=1";
        let windows = "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, \
                       index_vector_dim=1";
        let unique = format!("{elements}, unique_indices=true");
        let table = [
            (elements, "1000", "5000,1", "5000", "200 groups, 200 ranges of 5, 1 threads"),
            (elements, "1000", "3,1", "3", "by 1 threads"),
            (&unique, "1000", "5000,1", "5000", "by 5000 threads"),
            (rows, "500,64", "900,1", "900,64", "167 groups, 167 ranges of 3, 64 threads"),
            (rows, "500,300", "900,1", "900,300", "200 groups, 100 ranges of 5, 256 threads"),
            (rows, "500,64", "1,1", "1,64", "by 64 threads"),
            (windows, "500,64", "90,1", "90,3,64", "by 64 threads"),
            (windows, "500,64", "1,1", "1,3,64", "by 192 threads"),
        ];
        for (attributes, operand, indices, updates, words) in table {
            let described = described(attributes, operand, indices, updates);
            assert!(described.contains(words), "expected \"{words}\": {described}");
        }
    }
}
