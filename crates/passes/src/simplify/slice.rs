//! Rules rooted at `slice`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode, SliceDimension};
use shape::ArrayShape;

pub(super) const RULES: &[Rule] = &[
    Rule { name: "slice-of-everything", root: Is(Opcode::Slice), apply: slice_of_everything },
    Rule { name: "slice-of-slice", root: Is(Opcode::Slice), apply: slice_of_slice },
    Rule { name: "slice-of-concatenate", root: Is(Opcode::Slice), apply: slice_of_concatenate },
    Rule { name: "slice-of-broadcast", root: Is(Opcode::Slice), apply: slice_of_broadcast },
];

/// `slice(x) => x` if it takes all of x. Exact for every input.
fn slice_of_everything(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let operand = graph.operand(id);
    (graph[operand].shape() == graph[id].shape()).then_some(operand)
}

/// `slice(slice(x)) => slice(x)`. Exact for every input.
fn slice_of_slice(graph: &mut Graph<'_>, outer: InstructionId) -> Option<InstructionId> {
    let Op::Slice { slice: outer_slice } = graph[outer].op() else { return None };
    let inner = graph.operand(outer);
    let Op::Slice { slice: inner_slice } = graph[inner].op() else { return None };
    let sizes = graph.array(outer).sizes();
    let mut slice = Vec::with_capacity(sizes.len());
    for ((outer, inner), size) in outer_slice.iter().zip(inner_slice).zip(sizes) {
        let stride = outer.stride.checked_mul(inner.stride)?;
        let start = inner.start + outer.start * inner.stride;
        // Of nothing the start may lie beyond the operand; any place will do.
        let start = if size == 0 { inner.start } else { start };
        let limit = if size == 0 { start } else { start + (size - 1) * stride + 1 };
        slice.push(SliceDimension { start, limit, stride: if size > 1 { stride } else { 1 } });
    }
    let operand = graph.operand(inner);
    Some(graph.replacement(outer, Op::Slice { slice }, &[operand]))
}

/// `slice(concatenate(a, b)) => slice(b)` if it takes elements of one operand only. Exact for every input.
fn slice_of_concatenate(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Slice { slice } = graph[id].op() else { return None };
    let concatenate = graph.operand(id);
    let Op::Concatenate { dimension } = *graph[concatenate].op() else { return None };
    let mut slice = slice.clone();
    let SliceDimension { start, stride, .. } = slice[dimension];
    let last = start + (graph.array(id).size(dimension) - 1) * stride;
    let mut offset = 0;
    for &operand in graph[concatenate].operands() {
        let size = graph.array(operand).size(dimension);
        if start >= offset && last >= start && last < offset + size {
            slice[dimension] = SliceDimension { start: start - offset, limit: last - offset + 1, stride };
            return Some(graph.replacement(id, Op::Slice { slice }, &[operand]));
        }
        offset += size;
    }
    None
}

/// `slice(broadcast(x)) => broadcast(x)` if every dimension of x is taken whole, `=> broadcast(slice(x))` else. Exact for
/// every input.
fn slice_of_broadcast(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Slice { slice } = graph[id].op() else { return None };
    let broadcast = graph.operand(id);
    let Op::Broadcast { dimensions } = graph[broadcast].op() else { return None };
    let dimensions = dimensions.clone();
    let mut operand = graph.operand(broadcast);
    let result = graph.array(id);
    let sizes: Vec<i64> = dimensions.iter().map(|&d| result.size(d)).collect();
    if sizes != graph.array(operand).sizes() {
        let slice = dimensions.iter().map(|&d| slice[d]).collect();
        let shape = ArrayShape::new(result.element_type, &sizes);
        operand = graph.helper(id, Op::Slice { slice }, shape, &[operand]);
    }
    Some(graph.replacement(id, Op::Broadcast { dimensions }, &[operand]))
}
