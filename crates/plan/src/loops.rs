//! Loop nests over a result.

pub(crate) mod device;

use crate::collapse::{self, Loop};
use crate::fusion::Fusion;
use crate::in_place::overwritable;
use crate::kernel_plan::KernelPlan;
use crate::tasks::{self, Work};
use hlo::{Op, Traits};
use shape::Shape;
use support::{Error, Result};
use target::Target;

/// Parameters of a loop nest over a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopPlan {
    /// Elements of the innermost dimension computed at once; 1 means a scalar loop.
    pub lanes: u32,
    /// The loops, outermost first; vectors run along the innermost one.
    pub loops: Vec<Loop>,
    /// Index of an outer loop along which operands are contiguous while the innermost loop strides
    /// through them. Squares of both loops are read by rows of this loop and transposed in
    /// registers.
    pub transposed: Option<usize>,
    /// True if all operands have the result's dimensions or are broadcast scalars, so that one loop
    /// over the elements in memory order suffices.
    pub is_flat: bool,
    /// Number of parts into which each loop is divided; the tasks are all combinations of parts.
    pub cuts: Vec<i64>,
}

impl LoopPlan {
    /// Number of whole steps of each loop. The last step also includes the remainder.
    pub fn steps(&self) -> Vec<i64> {
        self.loops.iter().enumerate().map(|(number, l)| l.extent / self.step(number)).collect()
    }

    /// Number of indices per step of a loop.
    pub fn step(&self, number: usize) -> i64 {
        let is_wide = number + 1 == self.loops.len() || self.transposed == Some(number);
        if is_wide { i64::from(self.lanes) } else { 1 }
    }

    /// The nesting order of the loops: the two that form the squares come last.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.loops.len()).collect();
        if let Some(number) = self.transposed {
            let across = order.remove(number);
            order.insert(order.len().saturating_sub(1), across);
        }
        order
    }
}

/// Plans a body whose root is neither a contraction nor a reduction.
pub(crate) fn plan(fusion: &Fusion<'_>, target: &Target) -> Result<KernelPlan<LoopPlan>> {
    let Shape::Array(result) = fusion.shape() else {
        return Err(Error::unsupported(format!(
            "result {} of a loop nest; expected one array",
            fusion.shape()
        )));
    };
    for id in fusion.instructions() {
        check_fusible(fusion.body[id].op())?;
    }
    let is_flat = is_flat(fusion);
    let sizes = result.sizes();
    let nest = collapse::nest(fusion, &[fusion.root], &sizes, &vec![false; sizes.len()])?;
    let lanes = match target.gpu {
        Some(_) => device::lanes(fusion, &nest, result.element_count()),
        None => lanes(fusion, target).max(lanes_of_parts(fusion, target)),
    };
    let lanes = largest_fitting(lanes, nest.loops.last().map_or(1, |l| l.extent));
    let transposed = nest
        .across
        .iter()
        .filter(|l| {
            target.gpu.is_none()
                && lanes > 1
                && l.extent >= i64::from(lanes)
                && is_transposable(fusion, lanes)
        })
        .find_map(|l| nest.loops.iter().position(|other| other == l));
    let may_overwrite = overwritable(fusion);
    let mut plan = LoopPlan { lanes, loops: nest.loops, transposed, is_flat, cuts: Vec::new() };
    plan.cuts = tasks::cut(Work::of_elements(fusion, result.element_count()).tasks(target), &plan.steps());
    let tasks = tasks::count(&plan.cuts);
    Ok(KernelPlan { tasks, may_overwrite, ..KernelPlan::new(plan) })
}

/// Upper bound of the values computed in one square. Its rows are computed one after another in
/// straight-line code.
const MAX_SQUARE_VALUES: usize = 256;

/// True if a body may be computed in squares. It must be short, and for elements inside the result,
/// its reads must stay inside the operands for the whole square.
fn is_transposable(fusion: &Fusion<'_>, lanes: u32) -> bool {
    let instructions = fusion.instructions();
    instructions.len() * lanes as usize <= MAX_SQUARE_VALUES
        && instructions.iter().all(|&id| {
            let op = fusion.body[id].op();
            let is_cheap = !crate::tasks::is_transcendental(op) && !matches!(op, Op::Remainder {});
            let is_plain = op.is_elementwise()
                || matches!(
                    op,
                    Op::Broadcast { .. }
                        | Op::Transpose { .. }
                        | Op::Reshape {}
                        | Op::Bitcast {}
                        | Op::Slice { .. }
                        | Op::Constant { .. }
                        | Op::Iota { .. }
                );
            is_cheap && is_plain
        })
}

/// Fails for an op that cannot be computed element by element inside a loop nest.
pub(crate) fn check_fusible(op: &Op) -> Result<()> {
    if op.is_fusible() {
        return Ok(());
    }
    Err(Error::unsupported(format!("opcode {}", op.opcode().name())))
}

/// Vector width for the widest element type in the body; complex bodies are scalar.
pub(crate) fn lanes(fusion: &Fusion<'_>, target: &Target) -> u32 {
    let mut bytes = 1;
    for id in fusion.instructions() {
        for shape in std::iter::once(id).chain(fusion.body[id].operands().iter().copied()) {
            for (_, leaf) in fusion.body[shape].shape().leaves() {
                if leaf.element_type.is_complex() {
                    return 1;
                }
                // Narrow floats are widened for arithmetic.
                let floor = if leaf.element_type.is_floating_point() { 4 } else { 1 };
                bytes = bytes.max(leaf.element_type.byte_size()).max(floor);
            }
        }
    }
    target.lanes(bytes)
}

/// Vector width for bodies of arithmetic on complex numbers that are read and written in memory
/// order; 1 for others.
pub(crate) fn lanes_of_parts(fusion: &Fusion<'_>, target: &Target) -> u32 {
    let mut bytes = 1;
    for id in fusion.instructions() {
        let instruction = &fusion.body[id];
        let operands = instruction.operands().iter().map(|&o| fusion.body[o].shape());
        let mut touches_complex = false;
        for (_, leaf) in operands.chain([instruction.shape()]).flat_map(Shape::leaves) {
            let part = leaf.element_type.real_part();
            touches_complex |= leaf.element_type.is_complex();
            bytes = bytes.max(part.byte_size()).max(if part.is_floating_point() { 4 } else { 1 });
        }
        let is_plain = match instruction.op() {
            Op::Slice { slice } => slice.iter().all(|d| d.stride == 1),
            op => matches!(
                op,
                Op::Add {}
                    | Op::Broadcast { .. }
                    | Op::Complex {}
                    | Op::Constant { .. }
                    | Op::Convert {}
                    | Op::Imag {}
                    | Op::Multiply {}
                    | Op::Negate {}
                    | Op::Real {}
                    | Op::Reshape {}
                    | Op::Select {}
                    | Op::Subtract {}
            ),
        };
        if touches_complex && !is_plain {
            return 1;
        }
    }
    target.lanes(bytes)
}

/// The largest power of two that is at most `lanes` and `size`.
pub(crate) fn largest_fitting(lanes: u32, size: i64) -> u32 {
    let mut width = lanes;
    while width > 1 && i64::from(width) > size {
        width /= 2;
    }
    width
}

/// True if every instruction works element by element on the result's dimensions, or yields the
/// same value everywhere.
fn is_flat(fusion: &Fusion<'_>) -> bool {
    let Some(result) = fusion.shape().as_array() else { return false };
    fusion.instructions().into_iter().all(|id| {
        let instruction = &fusion.body[id];
        let same = |shape: &Shape| shape.as_array().is_some_and(|s| s.sizes() == result.sizes());
        let is_scalar = |shape: &Shape| shape.as_array().is_some_and(|s| s.rank() == 0);
        let operand_shape = |k: usize| fusion.body[instruction.operands()[k]].shape();
        match instruction.op() {
            Op::Broadcast { .. } => is_scalar(operand_shape(0)),
            Op::Constant { .. } => is_scalar(instruction.shape()),
            Op::Reshape {} | Op::Bitcast {} => false,
            Op::Clamp {} => same(instruction.shape()) || is_scalar(instruction.shape()),
            op if op.opcode().traits().contains(Traits::ELEMENTWISE) => {
                let fits = |shape: &Shape| same(shape) || is_scalar(shape);
                fits(instruction.shape()) && (0..instruction.operands().len()).all(|k| fits(operand_shape(k)))
            }
            _ => false,
        }
    })
}
