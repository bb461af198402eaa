//! Rules rooted at `dynamic-slice` and `dynamic-update-slice`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode, SliceDimension};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "dynamic-slice-at-constant",
        root: Is(Opcode::DynamicSlice),
        apply: dynamic_slice_at_constant,
    },
    Rule {
        name: "dynamic-slice-of-everything",
        root: Is(Opcode::DynamicSlice),
        apply: dynamic_slice_of_everything,
    },
    Rule {
        name: "dynamic-slice-of-broadcast",
        root: Is(Opcode::DynamicSlice),
        apply: dynamic_slice_of_broadcast,
    },
    Rule {
        name: "dynamic-slice-of-written",
        root: Is(Opcode::DynamicSlice),
        apply: dynamic_slice_of_written,
    },
    Rule {
        name: "dynamic-update-slice-of-everything",
        root: Is(Opcode::DynamicUpdateSlice),
        apply: dynamic_update_slice_of_everything,
    },
];

/// `dynamic-slice(x, constants...) => slice(x)`, with starts clamped so that the slice lies within
/// x. Exact for every input.
fn dynamic_slice_at_constant(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::DynamicSlice { dynamic_slice_sizes } = graph[id].op() else { return None };
    let (&operand, starts) = graph[id].operands().split_first()?;
    let sizes = graph.array(operand).sizes();
    if starts.len() != sizes.len() {
        return None;
    }
    let mut slice = Vec::with_capacity(sizes.len());
    for ((&start, size), extent) in starts.iter().zip(sizes).zip(dynamic_slice_sizes) {
        // A start that exceeds i64 exceeds every size.
        let start = graph.splat(start)?.as_i64().unwrap_or(i64::MAX).clamp(0, size - extent);
        slice.push(SliceDimension { start, limit: start + extent, stride: 1 });
    }
    Some(graph.replacement(id, Op::Slice { slice }, &[operand]))
}

/// `dynamic-slice(x, starts...) => x` if it covers all of x, because starts are then clamped to 0.
/// Exact for every input.
fn dynamic_slice_of_everything(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let operand = graph.operand(id);
    (graph[operand].shape() == graph[id].shape()).then_some(operand)
}

/// `dynamic-update-slice(x, update, starts...) => update` if it covers all of x. Exact for every
/// input.
fn dynamic_update_slice_of_everything(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let update = *graph[id].operands().get(1)?;
    (graph[update].shape() == graph[id].shape()).then_some(update)
}

/// `dynamic-slice(broadcast(x)) => broadcast(x)` if it covers every dimension of x completely.
/// Exact for every input.
fn dynamic_slice_of_broadcast(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let broadcast = graph.operand(id);
    let Op::Broadcast { dimensions } = graph[broadcast].op() else { return None };
    let (whole, slice) = (graph.array(broadcast), graph.array(id));
    if !dimensions.iter().all(|&d| whole.size(d) == slice.size(d)) {
        return None;
    }
    let op = Op::Broadcast { dimensions: dimensions.clone() };
    let source = graph.operand(broadcast);
    Some(graph.replacement(id, op, &[source]))
}

/// `dynamic-slice(dynamic-update-slice(x, update, starts...), starts...) => update` if it has the
/// update's shape: both clamp their starts alike. Exact for every input.
fn dynamic_slice_of_written(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let updated = graph.operand(id);
    let (Op::DynamicUpdateSlice {}, &[_, update, ref starts @ ..]) =
        (graph[updated].op(), graph[updated].operands())
    else {
        return None;
    };
    let is_same = graph[id].operands()[1..] == *starts && graph[update].shape() == graph[id].shape();
    is_same.then_some(update)
}
