//! Rules rooted at `transpose`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{DotDimensionNumbers, InstructionId, Op, Opcode};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "transpose-of-transpose", root: Is(Opcode::Transpose), apply: transpose_of_transpose },
    Rule {
        name: "transpose-that-moves-nothing",
        root: Is(Opcode::Transpose),
        apply: transpose_that_moves_nothing,
    },
    Rule { name: "transpose-of-broadcast", root: Is(Opcode::Transpose), apply: transpose_of_broadcast },
    Rule { name: "transpose-of-dot", root: Is(Opcode::Transpose), apply: transpose_of_dot },
];

/// `transpose(transpose(x, p), q) => transpose(x, p[q])`. Exact for every input: moves data only.
fn transpose_of_transpose(graph: &mut Graph<'_>, outer: InstructionId) -> Option<InstructionId> {
    let Op::Transpose { dimensions: q } = graph[outer].op() else { return None };
    let inner = graph[outer].operands()[0];
    let Op::Transpose { dimensions: p } = graph[inner].op() else { return None };
    let dimensions = q.iter().map(|&d| p[d]).collect();
    let operand = graph[inner].operands()[0];
    Some(graph.replacement(outer, Op::Transpose { dimensions }, &[operand]))
}

/// `transpose(x) => reshape(x)` if only dimensions of size 1 move, `=> x` if none does. Exact for
/// every input.
fn transpose_that_moves_nothing(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Transpose { dimensions } = graph[id].op() else { return None };
    let operand = graph[id].operands()[0];
    if dimensions.iter().copied().eq(0..dimensions.len()) {
        return Some(operand);
    }
    let shape = graph[operand].shape().as_array()?;
    let moved: Vec<usize> = dimensions.iter().copied().filter(|&d| shape.size(d) != 1).collect();
    if !moved.is_sorted() || !shape.is_static() {
        return None;
    }
    Some(graph.replacement(id, Op::Reshape {}, &[operand]))
}

/// `transpose(broadcast(x, d), p) => broadcast(x, the positions of d in p)`, if they keep their
/// order. Exact for every input.
fn transpose_of_broadcast(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Transpose { dimensions: permutation } = graph[id].op() else { return None };
    let broadcast = graph.operand(id);
    let Op::Broadcast { dimensions } = graph[broadcast].op() else { return None };
    let place = |d: &usize| permutation.iter().position(|p| p == d);
    let dimensions: Vec<usize> = dimensions.iter().map(place).collect::<Option<_>>()?;
    if !dimensions.is_sorted() {
        return None;
    }
    let operand = graph.operand(broadcast);
    Some(graph.replacement(id, Op::Broadcast { dimensions }, &[operand]))
}

/// `transpose(dot(x, y)) => dot(y, x)` if it puts the columns before the rows and the dot has no
/// other user. Exact for every input: the same products in the same order.
fn transpose_of_dot(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Transpose { dimensions: permutation } = graph[id].op() else { return None };
    let dot = graph.operand(id);
    let Op::Dot { dot_dimension_numbers: numbers } = graph[dot].op() else { return None };
    let &[lhs, rhs] = graph[dot].operands() else { return None };
    let batch = numbers.lhs_batch_dims.len();
    let rows = graph.array(lhs).rank() - batch - numbers.lhs_contracting_dims.len();
    let rank = graph.array(dot).rank();
    let swapped = (0..batch).chain(batch + rows..rank).chain(batch..batch + rows);
    if !permutation.iter().copied().eq(swapped) || !graph.has_one_user(dot) {
        return None;
    }
    let numbers = DotDimensionNumbers {
        lhs_batch_dims: numbers.rhs_batch_dims.clone(),
        lhs_contracting_dims: numbers.rhs_contracting_dims.clone(),
        rhs_batch_dims: numbers.lhs_batch_dims.clone(),
        rhs_contracting_dims: numbers.lhs_contracting_dims.clone(),
    };
    Some(graph.replacement(id, Op::Dot { dot_dimension_numbers: numbers }, &[rhs, lhs]))
}
