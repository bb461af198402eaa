//! Rules rooted at `reduce` of one array whose computation is one operation.

use super::graph::Graph;
use super::{Root::Is, Rule};
use hlo::{InstructionId, Op, Opcode};
use shape::{PrimitiveType, Scalar};

pub(super) const RULES: &[Rule] = &[
    Rule { name: "reduce-of-one", root: Is(Opcode::Reduce), apply: reduce_of_one },
    Rule { name: "reduce-of-nothing", root: Is(Opcode::Reduce), apply: reduce_of_nothing },
    Rule { name: "reduce-of-reduce", root: Is(Opcode::Reduce), apply: reduce_of_reduce },
    Rule { name: "reduce-of-transpose", root: Is(Opcode::Reduce), apply: reduce_of_transpose },
];

/// `reduce(x, init) => f(broadcast(init), reshape(x))` if each element of the result has one
/// summand. Exact for every input.
fn reduce_of_one(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let &[operand, init] = graph[id].operands() else { return None };
    let op = region(graph, id)?;
    if graph.array(operand).element_count() != graph.array(id).element_count() {
        return None;
    }
    let (init, operand) = (graph.broadcast_scalar(id, init), graph.reshaped(id, operand));
    Some(graph.replacement(id, op, &[init, operand]))
}

/// `reduce(empty, init) => broadcast(init)`. Exact.
fn reduce_of_nothing(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let &[operand, init] = graph[id].operands() else { return None };
    (graph.array(operand).element_count() == 0).then(|| graph.broadcast_scalar(id, init))
}

/// `reduce(reduce(x, init), init) => reduce(x, init)` over the dimensions of both, if both use the
/// same operation, the operation may be regrouped (unlike sums and products of floats), and init is
/// neutral or idempotent. Exact for every input.
fn reduce_of_reduce(graph: &mut Graph<'_>, outer: InstructionId) -> Option<InstructionId> {
    let Op::Reduce { dimensions: q, to_apply } = graph[outer].op() else { return None };
    let (q, to_apply) = (q.clone(), *to_apply);
    let &[inner, init] = graph[outer].operands() else { return None };
    let Op::Reduce { dimensions: p, .. } = graph[inner].op() else { return None };
    let &[operand, inner_init] = graph[inner].operands() else { return None };
    if !may_regroup(region(graph, outer)?, graph.array(outer).element_type, graph.splat(init))
        || region(graph, inner)? != region(graph, outer)?
        || (init != inner_init
            && (graph.splat(init).is_none() || graph.splat(init) != graph.splat(inner_init)))
    {
        return None;
    }
    let remaining: Vec<usize> = (0..graph.array(operand).rank()).filter(|d| !p.contains(d)).collect();
    let mut dimensions: Vec<usize> = p.iter().copied().chain(q.iter().map(|&d| remaining[d])).collect();
    dimensions.sort_unstable();
    Some(graph.replacement(outer, Op::Reduce { dimensions, to_apply }, &[operand, init]))
}

/// `reduce(transpose(x)) => transpose(reduce(x))`, for results of convolutions, if the reduced
/// dimensions keep their order. Exact for every input: the same elements in the same order.
fn reduce_of_transpose(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let Op::Reduce { dimensions, to_apply } = graph[id].op() else { return None };
    let (dimensions, to_apply) = (dimensions.clone(), *to_apply);
    let &[transpose, init] = graph[id].operands() else { return None };
    let permutation = graph.sinking_permutation(transpose)?;
    let x = graph.operand(transpose);
    let moved: Vec<usize> = dimensions.iter().map(|&d| permutation[d]).collect();
    if !dimensions.is_sorted() || !moved.is_sorted() {
        return None;
    }
    // The permutation of the remaining dimensions among themselves.
    let remaining: Vec<usize> = permutation.iter().copied().filter(|p| !moved.contains(p)).collect();
    let mut ranked = remaining.clone();
    ranked.sort_unstable();
    let rest: Vec<usize> = remaining.iter().map(|p| ranked.partition_point(|r| r < p)).collect();
    Some(graph.transposed_after(id, Op::Reduce { dimensions: moved, to_apply }, &[x, init], &rest))
}

/// The region's operation, if it is an operation on two operands of the result's type.
fn region(graph: &Graph<'_>, id: InstructionId) -> Option<Op> {
    let Op::Reduce { to_apply, .. } = graph[id].op() else { return None };
    operation(*graph.regions.get(to_apply)?)
}

/// The op for an opcode that may form a region.
pub(super) fn operation(opcode: Opcode) -> Option<Op> {
    Some(match opcode {
        Opcode::Add => Op::Add {},
        Opcode::And => Op::And {},
        Opcode::Maximum => Op::Maximum {},
        Opcode::Minimum => Op::Minimum {},
        Opcode::Multiply => Op::Multiply {},
        Opcode::Or => Op::Or {},
        _ => return None,
    })
}

/// True if the result of an operation depends neither on its grouping nor on how often init takes
/// part.
fn may_regroup(op: Op, element_type: PrimitiveType, init: Option<Scalar>) -> bool {
    let neutral = |number: i64| init.is_some_and(|init| init.as_i64() == Some(number));
    match op {
        Op::And {} | Op::Or {} | Op::Maximum {} | Op::Minimum {} => true,
        Op::Add {} => element_type.is_integer() && neutral(0),
        Op::Multiply {} => element_type.is_integer() && neutral(1),
        _ => false,
    }
}
