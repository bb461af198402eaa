//! Copies on a device: concatenations and slice updates, with a thread for each unit of memory.

use crate::collapse;
use crate::device::GroupGrid;
use crate::fusion::{Fusion, Position};
use crate::in_place::updated;
use crate::kernel_plan::KernelPlan;
use crate::loops::{LoopPlan, check_fusible};
use crate::tasks;
use hlo::Op;
use std::fmt;
use support::Result;

/// Threads of a workgroup.
const THREADS: u32 = 128;

/// Operands that one kernel concatenates.
pub const MAX_CONCATENATED: usize = 64;

/// Bytes of the largest unit.
const MAX_UNIT: i64 = 16;

/// Number of tasks of a nest beyond which threads stride over them.
const MAX_TASKS: i64 = 1 << 24;

/// Plan of a concatenation. Each step copies some operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyPlan {
    /// Bytes of a unit.
    pub unit: i64,
    /// Number of rows: the product of the dimensions before the concatenated one.
    pub rows: i64,
    /// Units of a row of each operand.
    pub units: Vec<i64>,
}

impl CopyPlan {
    /// Units that a step copies: those of a row, and all.
    pub fn step_units(&self, first: usize) -> (i64, i64) {
        let end = self.units.len().min(first + MAX_CONCATENATED);
        let row: i64 = self.units.iter().take(end).skip(first).sum();
        (row, row * self.rows)
    }

    pub(crate) fn grid(&self, first: usize) -> GroupGrid {
        units_grid(self.step_units(first).1)
    }
}

impl fmt::Display for CopyPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "concatenation in units of {} bytes", self.unit)
    }
}

/// Plan of a slice update. The first step copies the operand, unless the result is in its memory;
/// the second one writes the update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdatePlan {
    /// Bytes of the array and of a unit of its copy.
    pub bytes: (i64, i64),
    /// The nest over the update.
    pub nest: LoopPlan,
}

impl UpdatePlan {
    pub(crate) fn grid(&self, step: usize) -> GroupGrid {
        match step {
            0 => units_grid(self.bytes.0 / self.bytes.1),
            _ => units_grid(tasks::count(&self.nest.cuts).min(MAX_TASKS)),
        }
    }
}

impl fmt::Display for UpdatePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slice update, copy in units of {} bytes", self.bytes.1)
    }
}

/// A grid with a thread for each unit.
fn units_grid(units: i64) -> GroupGrid {
    GroupGrid { groups: units.max(1).unsigned_abs().div_ceil(THREADS.into()), threads: THREADS }
}

/// The largest unit of which all these sizes are multiples.
fn unit(sizes: impl IntoIterator<Item = i64>) -> i64 {
    let mut unit = MAX_UNIT;
    for size in sizes {
        while size % unit != 0 {
            unit /= 2;
        }
    }
    unit
}

/// Plans a concatenation.
pub(crate) fn concatenation(fusion: &Fusion<'_>) -> Option<KernelPlan<CopyPlan>> {
    let Op::Concatenate { dimension } = fusion.root_op() else { return None };
    let operands = fusion.body[fusion.root].operands();
    let sizes = fusion.shape().as_array()?.sizes();
    let rows = sizes[..*dimension].iter().product();
    let mut bytes = Vec::with_capacity(operands.len());
    for &operand in operands {
        let shape = fusion.body[operand].shape().as_array()?;
        let elements: i64 = shape.sizes()[*dimension..].iter().product();
        bytes.push(elements * shape.element_type.byte_size() as i64);
    }
    let unit = unit(bytes.iter().copied());
    let units = bytes.iter().map(|bytes| bytes / unit).collect();
    Some(KernelPlan::new(CopyPlan { unit, rows, units }))
}

/// Plans a slice update.
pub(crate) fn update(fusion: &Fusion<'_>) -> Result<Option<KernelPlan<UpdatePlan>>> {
    let Op::DynamicUpdateSlice {} = fusion.root_op() else { return Ok(None) };
    let operands = fusion.body[fusion.root].operands();
    if fusion.position(operands[0]) == Position::Inside {
        return Ok(None);
    }
    for id in fusion.instructions().into_iter().filter(|&id| id != fusion.root) {
        check_fusible(fusion.body[id].op())?;
    }
    let is_single = fusion.instructions().len() == 1;
    let may_overwrite = if is_single { vec![0] } else { updated(fusion).into_iter().collect() };
    let sizes = fusion.body[operands[1]].shape().expect_array().sizes();
    let bytes = fusion.shape().byte_size() as i64;
    if sizes.contains(&0) || bytes == 0 {
        return Ok(None);
    }
    let nest = collapse::nest(fusion, &[fusion.root], &sizes, &vec![false; sizes.len()])?;
    let cuts: Vec<i64> = nest.loops.iter().map(|l| l.extent).collect();
    let tasks = tasks::count(&cuts);
    let nest = LoopPlan { lanes: 1, loops: nest.loops, transposed: None, is_flat: false, cuts };
    let plan = UpdatePlan { bytes: (bytes, unit([bytes])), nest };
    Ok(Some(KernelPlan { tasks, may_overwrite, ..KernelPlan::new(plan) }))
}
