//! Rules rooted at `gather`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode, SliceDimension};
use shape::{ArrayShape, PrimitiveType, Scalar};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "gather-of-nothing", root: Is(Opcode::Gather), apply: gather_of_nothing },
    Rule {
        name: "gather-of-one-constant-slice",
        root: Is(Opcode::Gather),
        apply: gather_of_one_constant_slice,
    },
];

/// `gather(x, indices) => 0` if x has no elements. A slice without elements can still become an
/// element of the result if its empty dimension is dropped; the value of such an element is
/// undefined. 0 is the evaluator's value.
fn gather_of_nothing(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let operand = *graph[id].operands().first()?;
    if graph.array(operand).element_count() > 0 || graph.array(id).element_count() == 0 {
        return None;
    }
    let zero = match graph.array(id).element_type {
        PrimitiveType::Pred => Scalar::Pred(false),
        t if t.is_signed_integer() => Scalar::Signed(0),
        t if t.is_integer() => Scalar::Unsigned(0),
        t if t.is_complex() => Scalar::Complex(0.0, 0.0),
        _ => Scalar::Float(0.0),
    };
    Some(graph.filled(id, zero))
}

/// `gather(x, constant index) => reshape(slice(x))` if it reads a single slice; the start is
/// clamped so that the slice lies within x. Exact for every input.
fn gather_of_one_constant_slice(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Gather { gather_dimension_numbers: numbers, slice_sizes, .. } = graph[id].op() else {
        return None;
    };
    let &[operand, indices] = graph[id].operands() else { return None };
    let Op::Constant { literal } = graph[indices].op() else { return None };
    let shape = graph.array(operand).clone();
    let starts = literal.scalars().map(|scalar| scalar.as_i64().unwrap_or(i64::MAX));
    let starts: Vec<i64> = starts.take(numbers.start_index_map.len() + 1).collect();
    let is_single = starts.len() == numbers.start_index_map.len()
        && numbers.operand_batching_dims.is_empty()
        && numbers.offset_dims.is_sorted()
        && slice_sizes.iter().product::<i64>() == graph.array(id).element_count();
    if !is_single {
        return None;
    }
    let mut slice: Vec<SliceDimension> =
        slice_sizes.iter().map(|&limit| SliceDimension { start: 0, limit, stride: 1 }).collect();
    for (&d, start) in numbers.start_index_map.iter().zip(starts) {
        let start = start.clamp(0, shape.size(d) - slice_sizes[d]);
        slice[d] = SliceDimension { start, limit: start + slice_sizes[d], stride: 1 };
    }
    let sliced = ArrayShape::new(shape.element_type, slice_sizes);
    let slice = graph.helper(id, Op::Slice { slice }, sliced, &[operand]);
    Some(graph.reshaped(id, slice))
}
