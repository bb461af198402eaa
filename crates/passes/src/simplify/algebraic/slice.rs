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
    Rule { name: "slice-of-dot", root: Is(Opcode::Slice), apply: slice_of_dot },
];

/// `slice(x) => x` if it covers all of x. Exact for every input.
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
        // The start of an empty slice may lie beyond the operand; any start is valid.
        let start = if size == 0 { inner.start } else { start };
        let limit = if size == 0 { start } else { start + (size - 1) * stride + 1 };
        slice.push(SliceDimension { start, limit, stride: if size > 1 { stride } else { 1 } });
    }
    let operand = graph.operand(inner);
    Some(graph.replacement(outer, Op::Slice { slice }, &[operand]))
}

/// `slice(concatenate(a, b)) => slice(b)` if it reads elements of one operand only. Exact for every
/// input.
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

/// `slice(broadcast(x)) => broadcast(x)` if it covers every dimension of x completely, otherwise
/// `=> broadcast(slice(x))`. Exact for every input.
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

/// `slice(dot(x, y)) => dot(slice(x), slice(y))` if the dot has no other user: unused rows of x and
/// columns of y are then not multiplied. Not along batch dimensions. Exact for every input: the
/// same products in the same order.
fn slice_of_dot(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Slice { slice } = graph[id].op() else { return None };
    let dot = graph.operand(id);
    let Op::Dot { dot_dimension_numbers: numbers } = graph[dot].op() else { return None };
    let selected = |d: usize| (slice[d].limit - slice[d].start, slice[d].stride);
    let is_whole = |d: usize| selected(d) == (graph.array(dot).size(d), 1);
    let batch = numbers.lhs_batch_dims.len();
    if !graph.has_one_user(dot) || !(0..batch).all(is_whole) || graph.array(id).element_count() == 0 {
        return None;
    }
    let (slice, numbers) = (slice.clone(), numbers.clone());
    let mut operands = graph[dot].operands().to_vec();
    let mut place = batch;
    for (side, operand) in operands.iter_mut().enumerate() {
        let (own_batch, contracting) = match side {
            0 => (&numbers.lhs_batch_dims, &numbers.lhs_contracting_dims),
            _ => (&numbers.rhs_batch_dims, &numbers.rhs_contracting_dims),
        };
        let shape = graph.array(*operand).clone();
        let mut sizes = shape.sizes();
        let all = |&limit: &i64| SliceDimension { start: 0, limit, stride: 1 };
        let mut own: Vec<SliceDimension> = sizes.iter().map(all).collect();
        for d in (0..sizes.len()).filter(|d| !own_batch.contains(d) && !contracting.contains(d)) {
            own[d] = slice[place];
            sizes[d] = graph.array(id).size(place);
            place += 1;
        }
        if sizes != shape.sizes() {
            let shape = ArrayShape::new(shape.element_type, &sizes);
            *operand = graph.helper(id, Op::Slice { slice: own }, shape, &[*operand]);
        }
    }
    Some(graph.replacement(id, Op::Dot { dot_dimension_numbers: numbers }, &operands))
}
