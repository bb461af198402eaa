//! Reductions on a device: a team of threads for each result. Results of very many elements are
//! reduced in parts by several workgroups, and a second step combines the parts in order.

use crate::collapse::{self, Loop};
use crate::device::GroupGrid;
use crate::device::teams::{Teams, power_of_two_from};
use crate::fusion::Fusion;
use crate::kernel_plan::KernelPlan;
use crate::loops;
use hlo::{Op, is_associative};
use shape::ArrayShape;
use std::fmt;
use support::Result;
use target::Gpu;

/// Bytes that a thread loads at once.
const LOAD_BYTES: i64 = 16;

/// Fewer elements than this are not divided into parts.
const MIN_ELEMENTS: i64 = 1 << 15;

/// Upper bound of the parts.
const MAX_PARTS: i64 = 1024;

/// Columns from which on a thread alone reduces a short column.
const MANY_COLUMNS: i64 = 1 << 16;

/// Length of a short column.
const SHORT_COLUMN: i64 = 64;

/// Plan of a reduction by teams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamReducePlan {
    /// The loops over kept dimensions, outermost first. Their combined index is the team's number.
    pub kept: Vec<Loop>,
    /// The loops over reduced dimensions, outermost first.
    pub reduced: Vec<Loop>,
    /// The teams of the first step.
    pub teams: Teams,
    /// True if the computation is one operation on one array of real numbers. Its order is free;
    /// all others keep the order of the elements.
    pub is_operation: bool,
    /// Elements per load.
    pub lanes: u32,
    /// Loads of a thread before it combines any of them.
    pub unroll: u32,
    /// Number of parts of each team's elements, a workgroup for each.
    pub parts: i64,
    /// Elements of a part, if the order is free; the last part may be shorter.
    pub part: i64,
    /// The teams of the second step, which combines the parts.
    pub second: Teams,
}

impl TeamReducePlan {
    /// Number of elements that each team reduces.
    pub fn length(&self) -> i64 {
        self.reduced.iter().map(|l| l.extent).product()
    }

    /// Number of steps.
    pub(crate) fn steps(&self) -> usize {
        if self.parts > 1 { 2 } else { 1 }
    }

    /// The grid of a step.
    pub(crate) fn grid(&self, step: usize) -> GroupGrid {
        if step == 0 { self.teams.grid(self.parts) } else { self.second.grid(1) }
    }
}

impl fmt::Display for TeamReducePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reduction by teams: {}, {} lanes, {} loads", self.teams, self.lanes, self.unroll)?;
        if self.parts > 1 { write!(f, ", {} parts", self.parts) } else { Ok(()) }
    }
}

/// Bytes of an accumulator in memory. Narrow floats accumulate in 32 bits.
fn accumulator_bytes(shape: &ArrayShape) -> i64 {
    let bytes = shape.element_type.byte_size() as i64;
    if shape.element_type.is_floating_point() { bytes.max(4) } else { bytes }
}

/// Plans a body whose root is a reduction. Returns `None` if nothing is reduced.
pub(crate) fn plan(fusion: &Fusion<'_>, gpu: Gpu) -> Result<Option<KernelPlan<TeamReducePlan>>> {
    let Op::Reduce { dimensions, to_apply } = fusion.root_op() else { return Ok(None) };
    for id in fusion.instructions().into_iter().filter(|&id| id != fusion.root) {
        loops::check_fusible(fusion.body[id].op())?;
    }
    let leaves = fusion.shape().leaves();
    let inputs = &fusion.body[fusion.root].operands()[..leaves.len()];
    let Some(&first) = inputs.first() else { return Ok(None) };
    let sizes = fusion.body[first].shape().expect_array().sizes();
    let is_reduced: Vec<bool> = (0..sizes.len()).map(|d| dimensions.contains(&d)).collect();
    let all = collapse::nest(fusion, inputs, &sizes, &is_reduced)?.loops;
    let is_row = all.last().is_some_and(|l| is_reduced[l.dimension]);
    let (reduced, kept): (Vec<Loop>, Vec<Loop>) = all.iter().partition(|l| is_reduced[l.dimension]);
    let extent = |loops: &[Loop]| loops.iter().fold(1i64, |n, l| n.saturating_mul(l.extent));
    let (count, length) = (extent(&kept), extent(&reduced));
    if sizes.contains(&0) || length <= 1 || count.checked_mul(length).is_none_or(|n| n > 1 << 40) {
        return Ok(None);
    }
    let is_operation = fusion.shape().as_array().is_some_and(|s| !s.element_type.is_complex())
        && is_associative(&fusion.module[*to_apply]);
    let innermost = if is_row { reduced.last().map_or(1, |l| l.extent) } else { 1 };
    let lanes = if is_operation { lanes(fusion, innermost) } else { 1 };
    let processors = i64::from(gpu.processors);
    let teams = if is_row {
        Teams::of_rows(count, length / lanes, processors)
    } else if count >= MANY_COLUMNS && length <= SHORT_COLUMN {
        return Ok(None);
    } else {
        Teams::of_columns(count, length)
    };
    let each = length / lanes / teams.size;
    let unroll = if is_operation { each.clamp(1, if lanes > 4 { 2 } else { 4 }) } else { 1 };
    let (parts, part) = parts(&teams, length, teams.size * lanes * unroll, processors);
    let second = {
        let per_group = power_of_two_from(count).min(32);
        Teams {
            count,
            per_group,
            size: power_of_two_from((parts + 3) / 4).min(256 / per_group),
            is_across: true,
        }
    };
    let bytes: i64 = leaves.iter().map(|(_, leaf)| accumulator_bytes(leaf)).sum();
    let scratch_bytes = if parts > 1 { (bytes * count * parts) as u64 + 32 * leaves.len() as u64 } else { 0 };
    let plan = TeamReducePlan {
        kept,
        reduced,
        teams,
        is_operation,
        lanes: lanes as u32,
        unroll: unroll as u32,
        parts,
        part,
        second,
    };
    Ok(Some(KernelPlan { scratch_bytes, ..KernelPlan::new(plan) }))
}

/// Number of parts into which a team's `length` elements are divided, in units of `round` elements,
/// and the size of a part.
fn parts(teams: &Teams, length: i64, round: i64, processors: i64) -> (i64, i64) {
    let groups = teams.groups();
    if groups >= 2 * processors || teams.count.saturating_mul(length) < MIN_ELEMENTS {
        return (1, length);
    }
    let wanted = (4 * processors + groups - 1) / groups;
    let parts = wanted.min(length / (2 * round)).min(MAX_PARTS);
    if parts < 2 {
        return (1, length);
    }
    let rounds = (length + round - 1) / round;
    let part = (rounds + parts - 1) / parts * round;
    ((length + part - 1) / part, part)
}

/// Elements that a thread loads at once from rows of this length: all elements of the body fit into
/// one load, and rows consist of whole loads.
pub(super) fn lanes(fusion: &Fusion<'_>, innermost: i64) -> i64 {
    let mut bytes = 2;
    for id in fusion.instructions() {
        for shape in std::iter::once(id).chain(fusion.body[id].operands().iter().copied()) {
            for (_, leaf) in fusion.body[shape].shape().leaves() {
                if leaf.element_type.is_complex() {
                    return 1;
                }
                bytes = bytes.max(leaf.element_type.byte_size() as i64);
            }
        }
    }
    let mut lanes = LOAD_BYTES / bytes;
    while lanes > 1 && innermost % lanes != 0 {
        lanes /= 2;
    }
    lanes.max(1)
}
