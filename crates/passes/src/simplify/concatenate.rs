//! Rules rooted at `concatenate`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode, SliceDimension};
use shape::ArrayShape;

pub(super) const RULES: &[Rule] = &[
    Rule { name: "concatenate-of-one", root: Is(Opcode::Concatenate), apply: concatenate_of_one },
    Rule { name: "concatenate-of-nothing", root: Is(Opcode::Concatenate), apply: concatenate_of_nothing },
    Rule {
        name: "concatenate-of-concatenate",
        root: Is(Opcode::Concatenate),
        apply: concatenate_of_concatenate,
    },
    Rule { name: "concatenate-of-slices", root: Is(Opcode::Concatenate), apply: concatenate_of_slices },
    Rule {
        name: "concatenate-of-broadcasts",
        root: Is(Opcode::Concatenate),
        apply: concatenate_of_broadcasts,
    },
];

/// `concatenate(x) => x`. Exact for every input.
fn concatenate_of_one(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let [operand] = graph[id].operands() else { return None };
    Some(*operand)
}

/// `concatenate(x, empty) => concatenate(x)`, as long as one operand is left. Exact for every input.
fn concatenate_of_nothing(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Concatenate { dimension } = *graph[id].op() else { return None };
    let operands = graph[id].operands();
    let filled = operands.iter().copied().filter(|&o| graph.array(o).size(dimension) > 0);
    let filled: Vec<InstructionId> = filled.collect();
    if filled.is_empty() || filled.len() == operands.len() {
        return None;
    }
    Some(graph.replacement(id, Op::Concatenate { dimension }, &filled))
}

/// `concatenate(concatenate(a, b), c) => concatenate(a, b, c)` along one dimension, if nobody else reads the inner ones and
/// each is read once (else the operands could double at every step). Exact for every input.
fn concatenate_of_concatenate(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Concatenate { dimension } = *graph[id].op() else { return None };
    let mut flat = Vec::new();
    let mut changed = false;
    for &operand in graph[id].operands() {
        let is_inner =
            matches!(*graph[operand].op(), Op::Concatenate { dimension: inner } if inner == dimension);
        let reads = graph[id].operands().iter().filter(|&&o| o == operand).count();
        if is_inner && reads == 1 && graph.has_one_user(operand) {
            flat.extend(graph[operand].operands());
            changed = true;
        } else {
            flat.push(operand);
        }
    }
    changed.then(|| graph.replacement(id, Op::Concatenate { dimension }, &flat))
}

/// `concatenate(slice(x, 0:2), slice(x, 2:5)) => slice(x, 0:5)` for neighbours that continue each other. Exact for every
/// input.
fn concatenate_of_slices(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Concatenate { dimension } = *graph[id].op() else { return None };
    let operands = graph[id].operands().to_vec();
    let joined = |&at: &usize| join(graph, operands[at], operands[at + 1], dimension);
    let at = (0..operands.len() - 1).find(|at| joined(at).is_some())?;
    let (source, slice) = joined(&at)?;
    let sizes: Vec<i64> = slice.iter().map(|s| s.limit - s.start).collect();
    let shape = ArrayShape::new(graph.array(id).element_type, &sizes);
    let slice = graph.helper(id, Op::Slice { slice }, shape, &[source]);
    let operands = [&operands[..at], &[slice], &operands[at + 2..]].concat();
    Some(match operands[..] {
        [only] => only,
        _ => graph.replacement(id, Op::Concatenate { dimension }, &operands),
    })
}

/// The operand and the bounds of a slice with stride 1 that is two slices, the second behind the first.
fn join(
    graph: &Graph<'_>,
    first: InstructionId,
    second: InstructionId,
    dimension: usize,
) -> Option<(InstructionId, Vec<SliceDimension>)> {
    let (Op::Slice { slice: a }, Op::Slice { slice: b }) = (graph[first].op(), graph[second].op()) else {
        return None;
    };
    let source = graph.operand(first);
    let fits = a.iter().zip(b).enumerate().all(|(d, (a, b))| {
        let continues = if d == dimension { a.limit == b.start } else { a == b };
        continues && a.stride == 1 && b.stride == 1
    });
    if !fits || source != graph.operand(second) {
        return None;
    }
    let mut slice = a.clone();
    slice[dimension].limit = b[dimension].limit;
    Some((source, slice))
}

/// `concatenate(broadcast(a), broadcast(a)) => broadcast(a)` for one scalar a. Exact for every input.
fn concatenate_of_broadcasts(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let scalar = graph.broadcast_of_scalar(graph.operand(id))?;
    let mut operands = graph[id].operands().iter();
    let all_same = operands.all(|&operand| graph.broadcast_of_scalar(operand) == Some(scalar));
    all_same.then(|| graph.broadcast_scalar(id, scalar))
}
