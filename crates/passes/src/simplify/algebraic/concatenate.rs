//! Rules rooted at `concatenate`.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode};
use shape::ArrayShape;
use std::collections::BTreeMap;

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
    Rule {
        name: "concatenate-of-transposes",
        root: Is(Opcode::Concatenate),
        apply: concatenate_of_transposes,
    },
];

/// `concatenate(x) => x`. Exact for every input.
fn concatenate_of_one(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let [operand] = graph[id].operands() else { return None };
    Some(*operand)
}

/// `concatenate(x, empty) => concatenate(x)`, as long as one operand remains. Exact for every
/// input.
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

/// `concatenate(concatenate(a, b), c) => concatenate(a, b, c)` along one dimension, if the inner
/// ones have no other user and each is read once (otherwise the operands could double at every
/// step). Exact for every input.
fn concatenate_of_concatenate(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Concatenate { dimension } = *graph[id].op() else { return None };
    let is_inner = |operand: InstructionId| matches!(*graph[operand].op(), Op::Concatenate { dimension: inner } if inner == dimension);
    let mut reads: BTreeMap<InstructionId, usize> = BTreeMap::new();
    for &operand in graph[id].operands().iter().filter(|&&operand| is_inner(operand)) {
        *reads.entry(operand).or_default() += 1;
    }
    let mut flat = Vec::new();
    let mut changed = false;
    for &operand in graph[id].operands() {
        if reads.get(&operand) == Some(&1) && graph.has_one_user(operand) {
            flat.extend(graph[operand].operands());
            changed = true;
        } else {
            flat.push(operand);
        }
    }
    changed.then(|| graph.replacement(id, Op::Concatenate { dimension }, &flat))
}

/// `concatenate(slice(x, 0:2), slice(x, 2:5)) => slice(x, 0:5)` for adjacent slices. Exact for
/// every input.
fn concatenate_of_slices(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Concatenate { dimension } = *graph[id].op() else { return None };
    let old = graph[id].operands().to_vec();
    let mut operands = Vec::new();
    let mut begin = 0;
    while begin < old.len() {
        let continues = |&next: &usize| joins(graph, old[next - 1], old[next], dimension);
        let end = (begin + 1..old.len()).take_while(continues).last().map_or(begin + 1, |last| last + 1);
        operands.push(match (graph[old[begin]].op(), graph[old[end - 1]].op()) {
            (Op::Slice { slice }, Op::Slice { slice: last }) if end - begin > 1 => {
                let (mut slice, source) = (slice.clone(), graph.operand(old[begin]));
                slice[dimension].limit = last[dimension].limit;
                let sizes: Vec<i64> = slice.iter().map(|s| s.limit - s.start).collect();
                let shape = ArrayShape::new(graph.array(id).element_type, &sizes);
                graph.helper(id, Op::Slice { slice }, shape, &[source])
            }
            _ => old[begin],
        });
        begin = end;
    }
    if operands.len() == old.len() {
        return None;
    }
    Some(match operands[..] {
        [only] => only,
        _ => graph.replacement(id, Op::Concatenate { dimension }, &operands),
    })
}

/// True if two slices with stride 1 of one array form a larger one, with the second after the
/// first.
fn joins(graph: &Graph<'_>, first: InstructionId, second: InstructionId, dimension: usize) -> bool {
    let (Op::Slice { slice: a }, Op::Slice { slice: b }) = (graph[first].op(), graph[second].op()) else {
        return false;
    };
    let fits = a.iter().zip(b).enumerate().all(|(d, (a, b))| {
        let continues = if d == dimension { a.limit == b.start } else { a == b };
        continues && a.stride == 1 && b.stride == 1
    });
    fits && graph.operand(first) == graph.operand(second)
}

/// `concatenate(broadcast(a), broadcast(a)) => broadcast(a)` for one scalar a. Exact for every
/// input.
fn concatenate_of_broadcasts(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let scalar = graph.broadcast_of_scalar(graph.operand(id))?;
    let mut operands = graph[id].operands().iter();
    let all_same = operands.all(|&operand| graph.broadcast_of_scalar(operand) == Some(scalar));
    all_same.then(|| graph.broadcast_scalar(id, scalar))
}

/// `concatenate(transpose(x, p), transpose(y, p)) => transpose(concatenate(x, y), p)`, for results
/// of convolutions. Exact for every input.
fn concatenate_of_transposes(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Concatenate { dimension } = *graph[id].op() else { return None };
    let operands = graph[id].operands().to_vec();
    let permutation = graph.sinking_permutation(*operands.first()?)?;
    let is_alike = |&o: &InstructionId| matches!(graph[o].op(), Op::Transpose { dimensions } if *dimensions == permutation);
    if !operands.iter().all(is_alike) {
        return None;
    }
    let sources: Vec<InstructionId> = operands.iter().map(|&o| graph.operand(o)).collect();
    let op = Op::Concatenate { dimension: permutation[dimension] };
    Some(graph.transposed_after(id, op, &sources, &permutation))
}
