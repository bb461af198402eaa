//! Rules rooted at `dot`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{DotDimensionNumbers, InstructionId, Op, Opcode};

pub(super) const RULES: &[Rule] =
    &[Rule { name: "dot-of-transpose", root: Is(Opcode::Dot), apply: dot_of_transpose }];

/// `dot(transpose(x), y) => dot(x, y)` with other dimension numbers, and likewise for y, as long as
/// the dimensions that are neither batch nor contracting keep their order. Exact for every input:
/// the same products in the same order.
fn dot_of_transpose(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Dot { dot_dimension_numbers: numbers } = graph[id].op() else { return None };
    let mut numbers = numbers.clone();
    let mut operands = graph[id].operands().to_vec();
    for (side, operand) in operands.iter_mut().enumerate() {
        let Op::Transpose { dimensions } = graph[*operand].op() else { continue };
        let free: Vec<usize> = free_dimensions(&numbers, side, dimensions.len());
        if !free.iter().map(|&d| dimensions[d]).is_sorted() {
            continue;
        }
        let (batch, contracting) = side_numbers(&mut numbers, side);
        batch.iter_mut().chain(contracting).for_each(|d| *d = dimensions[*d]);
        *operand = graph[*operand].operands()[0];
    }
    if operands == graph[id].operands() {
        return None;
    }
    Some(graph.replacement(id, Op::Dot { dot_dimension_numbers: numbers }, &operands))
}

fn side_numbers(numbers: &mut DotDimensionNumbers, side: usize) -> (&mut Vec<usize>, &mut Vec<usize>) {
    match side {
        0 => (&mut numbers.lhs_batch_dims, &mut numbers.lhs_contracting_dims),
        _ => (&mut numbers.rhs_batch_dims, &mut numbers.rhs_contracting_dims),
    }
}

/// The dimensions of an operand that become rows or columns of the result.
fn free_dimensions(numbers: &DotDimensionNumbers, side: usize, rank: usize) -> Vec<usize> {
    let (batch, contracting) = match side {
        0 => (&numbers.lhs_batch_dims, &numbers.lhs_contracting_dims),
        _ => (&numbers.rhs_batch_dims, &numbers.rhs_contracting_dims),
    };
    (0..rank).filter(|d| !batch.contains(d) && !contracting.contains(d)).collect()
}
