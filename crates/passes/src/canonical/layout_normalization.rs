//! Makes arrays row-major.

use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op};
use shape::{ArrayShape, Shape};
use support::{Error, Result};

/// Makes all arrays row-major and drops annotations for other compilers. The only opcode that
/// depends on a layout is `bitcast`, which reads the elements in memory order; it becomes a
/// `bitcast` between transposes. Copies of tuples are removed.
pub struct LayoutNormalization;

impl Pass for LayoutNormalization {
    fn name(&self) -> &'static str {
        "layout-normalization"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = Changed::from(!module.attributes().is_empty());
        module.set_attributes(Vec::new());
        let ids: Vec<_> = module.computations().map(|(id, _)| id).collect();
        for id in ids {
            let computation = module.computation_mut(id);
            let instructions: Vec<InstructionId> = computation.instructions().map(|(id, _)| id).collect();
            for &instruction in &instructions {
                let is_rewritten =
                    normalize_bitcast(computation, instruction)? || drop_tuple_copy(computation, instruction);
                changed = changed.or(is_rewritten.into());
            }
            // Layouts are dropped last, because a bitcast needs its operand's layout.
            for instruction in instructions {
                let is_there = computation.get(instruction).is_some();
                changed = changed.or((is_there && strip(computation, instruction)).into());
            }
        }
        Ok(changed)
    }
}

/// Drops the layouts of an instruction's shape and its annotations. Returns true if there were any.
fn strip(computation: &mut Computation, id: InstructionId) -> bool {
    let has_layout = computation[id].shape().leaves().iter().any(|(_, array)| array.layout.is_some());
    if has_layout {
        let shape = without_layouts(computation[id].shape());
        computation.set_shape(id, shape);
    }
    let carries = computation[id].annotations().is_some();
    if carries {
        computation.set_annotations(id, None);
    }
    has_layout || carries
}

fn without_layouts(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) => Shape::Array(row_major(array)),
        Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(without_layouts).collect()),
        Shape::Token => Shape::Token,
    }
}

fn row_major(array: &ArrayShape) -> ArrayShape {
    ArrayShape { layout: None, ..array.clone() }
}

/// The dimensions from the slowest to the fastest.
fn major_to_minor(array: &ArrayShape) -> Vec<usize> {
    match &array.layout {
        Some(layout) => layout.minor_to_major.iter().rev().copied().collect(),
        None => (0..array.rank()).collect(),
    }
}

/// The array with its dimensions in memory order.
fn in_memory(array: &ArrayShape, order: &[usize]) -> ArrayShape {
    let dimensions = order.iter().map(|&dimension| array.dimensions[dimension]).collect();
    ArrayShape { dimensions, layout: None, ..array.clone() }
}

/// Replaces the copy of a tuple, which only changes layouts, by the tuple. Returns true if it did.
fn drop_tuple_copy(computation: &mut Computation, id: InstructionId) -> bool {
    let Some(Op::Copy {}) = computation.get(id).map(|instruction| instruction.op()) else { return false };
    let operand = computation[id].operands()[0];
    if computation[id].shape().as_tuple().is_none() {
        return false;
    }
    computation.replace_all_uses(id, operand);
    computation.remove(id);
    true
}

/// Rewrites a bitcast from or to an array that is not row-major. Returns true if it did.
fn normalize_bitcast(computation: &mut Computation, id: InstructionId) -> Result<bool> {
    let Op::Bitcast {} = computation[id].op() else { return Ok(false) };
    let operand = computation[id].operands()[0];
    let (from, to) = (computation[operand].shape().clone(), computation[id].shape().clone());
    let (Shape::Array(from), Shape::Array(to)) = (from, to) else { return Ok(false) };
    if from.is_row_major() && to.is_row_major() {
        return Ok(false);
    }
    if !from.is_static() || !to.is_static() {
        let name = computation[id].name();
        return Err(Error::unsupported(format!(
            "bitcast '{name}' of {from} to {to}, whose sizes are dynamic"
        )));
    }
    let metadata = computation[id].metadata().clone();
    let (before, after) = (major_to_minor(&from), major_to_minor(&to));
    let mut value = operand;
    if !from.is_row_major() {
        let shape = Shape::Array(in_memory(&from, &before));
        value = computation.add("", Op::Transpose { dimensions: before }, shape, &[value], metadata.clone());
    }
    let shape = Shape::Array(in_memory(&to, &after));
    value = computation.add("", Op::Bitcast {}, shape, &[value], metadata.clone());
    if !to.is_row_major() {
        let mut dimensions = vec![0; after.len()];
        after.iter().enumerate().for_each(|(place, &dimension)| dimensions[dimension] = place);
        let shape = Shape::Array(row_major(&to));
        value = computation.add("", Op::Transpose { dimensions }, shape, &[value], metadata);
    }
    computation.replace_all_uses(id, value);
    computation.remove(id);
    Ok(true)
}
