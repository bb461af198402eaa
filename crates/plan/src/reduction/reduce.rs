//! Reductions.

use crate::collapse::{self, Loop};
use crate::fusion::Fusion;
use crate::kernel_plan::KernelPlan;
use crate::loops;
use crate::tasks::{self, Work};
use hlo::{Op, is_associative};
use support::{Error, Result};
use target::Target;

/// Loop structure of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceKind {
    /// The innermost dimensions are reduced. Vectors of accumulators run along the row and are
    /// combined at its end.
    Row,
    /// The innermost dimension is kept: each lane accumulates its own column.
    Column,
    /// One element after another: for several operands, complex numbers, or a computation of more
    /// than one operation.
    Scalar,
}

/// Plan of a reduction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReducePlan {
    /// Loop structure.
    pub kind: ReduceKind,
    /// The loops over the operands' dimensions, outermost first. No loop covers both kept and
    /// reduced dimensions.
    pub loops: Vec<Loop>,
    /// Elements per vector.
    pub lanes: u32,
    /// Independent vector accumulators per row.
    pub accumulators: u32,
    /// Number of parts into which each loop is divided for tasks; 1 for loops over reduced
    /// dimensions, so that no sum depends on the tasks.
    pub cuts: Vec<i64>,
}

/// Number of column vectors that a column reduction sums at once: enough to use whole cache lines
/// and to hide the latency.
pub(crate) const COLUMN_VECTORS: i64 = 8;

impl ReducePlan {
    /// Number of columns that a column reduction sums at once, out of `extent` columns.
    pub fn column_block(&self, extent: i64) -> i64 {
        let lanes = i64::from(self.lanes);
        (extent / lanes).clamp(1, COLUMN_VECTORS) * lanes
    }

    /// Number of whole steps of a loop. The last step also includes the remainder.
    pub fn steps(&self, number: usize) -> i64 {
        self.loops[number].extent / self.step(number)
    }

    /// Number of indices per step of a loop.
    pub fn step(&self, number: usize) -> i64 {
        match self.kind {
            ReduceKind::Column if number + 1 == self.loops.len() => {
                self.column_block(self.loops[number].extent)
            }
            _ => 1,
        }
    }
}

/// Plans a body whose root is a reduction.
pub(crate) fn plan(fusion: &Fusion<'_>, target: &Target) -> Result<KernelPlan<ReducePlan>> {
    let Op::Reduce { dimensions, to_apply } = fusion.root_op() else {
        return Err(Error::internal("expected a reduction as the root"));
    };
    for id in fusion.instructions().into_iter().filter(|&id| id != fusion.root) {
        loops::check_fusible(fusion.body[id].op())?;
    }
    let operand = fusion.body[fusion.body[fusion.root].operands()[0]].shape().expect_array();
    let lanes = loops::lanes(fusion, target);
    let (sizes, inputs) = (operand.sizes(), fusion.shape().leaves().len());
    let is_reduced: Vec<bool> = (0..sizes.len()).map(|d| dimensions.contains(&d)).collect();
    let inputs = &fusion.body[fusion.root].operands()[..inputs];
    let loops = collapse::nest(fusion, inputs, &sizes, &is_reduced)?.loops;
    let (innermost, innermost_size) =
        (loops.last().map(|l| l.dimension), loops.last().map_or(1, |l| l.extent));
    let is_simple = fusion.shape().as_array().is_some() && is_associative(&fusion.module[*to_apply]);
    let kind = if !is_simple || lanes == 1 {
        ReduceKind::Scalar
    } else if innermost.is_some_and(|d| dimensions.contains(&d)) {
        ReduceKind::Row
    } else {
        ReduceKind::Column
    };
    let lanes = match kind {
        ReduceKind::Scalar => 1,
        _ if innermost_size < i64::from(lanes) => 1.max(prev_power_of_two(innermost_size, lanes)),
        _ => lanes,
    };
    let accumulators = match kind {
        ReduceKind::Row if innermost_size >= i64::from(lanes) * 8 => 4,
        ReduceKind::Row if innermost_size >= i64::from(lanes) * 2 => 2,
        _ => 1,
    };
    let mut plan = ReducePlan { kind, loops, lanes, accumulators, cuts: Vec::new() };
    let limit = |l: &Loop| if is_reduced[l.dimension] { 1 } else { i64::MAX };
    let units: Vec<i64> = plan.loops.iter().enumerate().map(|(k, l)| limit(l).min(plan.steps(k))).collect();
    // A reduction of no elements only fills the result with initial values, in one task.
    let elements = operand.element_count();
    let tasks = if elements > 0 { Work::of_elements(fusion, elements).tasks(target) } else { 1 };
    plan.cuts = tasks::cut(tasks, &units);
    let tasks = tasks::count(&plan.cuts);
    Ok(KernelPlan { tasks, ..KernelPlan::new(plan) })
}

fn prev_power_of_two(size: i64, lanes: u32) -> u32 {
    let mut width = lanes;
    while width > 1 && i64::from(width) > size {
        width /= 2;
    }
    width
}
