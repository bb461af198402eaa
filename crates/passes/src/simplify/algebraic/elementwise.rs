//! Rules rooted at any elementwise instruction.

use super::graph::Graph;
use super::{Root, Rule};
use hlo::{InstructionId, Op, Opcode, Traits};
use shape::ArrayShape;

pub(super) const RULES: &[Rule] = &[
    Rule { name: "elementwise-of-broadcasts", root: Root::Elementwise, apply: elementwise_of_broadcasts },
    Rule { name: "elementwise-of-reshapes", root: Root::Elementwise, apply: elementwise_of_reshapes },
    Rule { name: "elementwise-of-transposes", root: Root::Elementwise, apply: elementwise_of_transposes },
    Rule { name: "clamp-of-transpose", root: Root::Is(Opcode::Clamp), apply: elementwise_of_transposes },
];

/// `f(broadcast(x, d), broadcast(y, d)) => broadcast(f(x, y), d)`, where other operands may be
/// broadcast scalars; f then computes fewer elements. Only if x and y are scalars, or if f costs
/// more than a pass over x. Exact for every input.
fn elementwise_of_broadcasts(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let shared = shared_broadcast(graph, id)?;
    let Op::Broadcast { dimensions } = graph[shared].op() else { return None };
    let dimensions = dimensions.clone();
    let small = graph.array(graph.operand(shared)).clone();
    let pays = small.rank() == 0 || is_expensive(graph[id].op());
    if !pays || small.element_count() >= graph.array(id).element_count() {
        return None;
    }
    let operands = graph[id].operands().to_vec();
    let mut narrowed = Vec::with_capacity(operands.len());
    for operand in operands {
        let source = graph.operand(operand);
        let needs_broadcast = graph.array(source).rank() < small.rank();
        narrowed.push(if needs_broadcast { filled_like(graph, id, source, &small) } else { source });
    }
    let shape = small.with_element_type(graph.array(id).element_type);
    let op = graph[id].op().clone();
    let result = graph.helper(id, op, shape, &narrowed);
    Some(graph.replacement(id, Op::Broadcast { dimensions }, &[result]))
}

/// The broadcast whose dimensions all others share, if all operands are broadcasts. The others may
/// be broadcast scalars.
fn shared_broadcast(graph: &Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let operands = graph[id].operands();
    let result = graph.array(id).sizes();
    let source = |o: InstructionId| matches!(graph[o].op(), Op::Broadcast { .. }).then(|| graph.operand(o));
    let mut widest = *operands.first()?;
    for &operand in operands {
        let rank = graph.array(source(operand)?).rank();
        if graph.array(operand).sizes() != result {
            return None;
        }
        if rank > graph.array(source(widest)?).rank() {
            widest = operand;
        }
    }
    let fits = |&o: &InstructionId| {
        source(o).is_some_and(|s| graph.array(s).rank() == 0) || graph[o].op() == graph[widest].op()
    };
    operands.iter().all(fits).then_some(widest)
}

/// True if an op takes many cycles per element.
fn is_expensive(op: &Op) -> bool {
    !matches!(
        op,
        Op::Abs {}
            | Op::Add {}
            | Op::And {}
            | Op::Ceil {}
            | Op::Compare { .. }
            | Op::Complex {}
            | Op::Convert {}
            | Op::Copy {}
            | Op::Floor {}
            | Op::Imag {}
            | Op::IsFinite {}
            | Op::Maximum {}
            | Op::Minimum {}
            | Op::Multiply {}
            | Op::Negate {}
            | Op::Not {}
            | Op::Or {}
            | Op::Real {}
            | Op::Select {}
            | Op::ShiftLeft {}
            | Op::ShiftRightArithmetic {}
            | Op::ShiftRightLogical {}
            | Op::Subtract {}
            | Op::Xor {}
    )
}

/// A scalar broadcast to other dimensions.
fn filled_like(
    graph: &mut Graph<'_>,
    id: InstructionId,
    scalar: InstructionId,
    like: &ArrayShape,
) -> InstructionId {
    let shape = like.with_element_type(graph.array(scalar).element_type);
    graph.helper(id, Op::Broadcast { dimensions: Vec::new() }, shape, &[scalar])
}

/// `f(reshape(x), reshape(y)) => reshape(f(x, y))`, where other operands may be broadcast scalars,
/// if x comes from an instruction that f can be fused with and the reshapes have no other user.
/// Exact for every input.
fn elementwise_of_reshapes(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let operands = graph[id].operands().to_vec();
    let result = graph.array(id).clone();
    let mut inner: Option<ArrayShape> = None;
    let mut enables_fusion = false;
    for &operand in &operands {
        if graph.array(operand).sizes() != result.sizes() {
            return None;
        }
        if graph.broadcast_of_scalar(operand).is_some() {
            continue;
        }
        let Op::Reshape {} = graph[operand].op() else { return None };
        let source = graph.operand(operand);
        let shape = graph.array(source).clone();
        if !graph.has_one_user(operand) || inner.as_ref().is_some_and(|i| i.sizes() != shape.sizes()) {
            return None;
        }
        let traits = graph[source].opcode().traits();
        enables_fusion |= matches!(graph[source].op(), Op::Dot { .. } | Op::Convolution { .. })
            || traits.contains(Traits::ELEMENTWISE);
        inner = Some(shape);
    }
    let inner = inner.filter(|_| enables_fusion)?;
    let mut moved = Vec::with_capacity(operands.len());
    for operand in operands {
        moved.push(match graph.broadcast_of_scalar(operand) {
            Some(scalar) if inner.rank() > 0 => filled_like(graph, id, scalar, &inner),
            Some(scalar) => scalar,
            None => graph.operand(operand),
        });
    }
    let op = graph[id].op().clone();
    let computed = graph.helper(id, op, inner.with_element_type(result.element_type), &moved);
    Some(graph.replacement(id, Op::Reshape {}, &[computed]))
}

/// `f(transpose(x, p), transpose(y, p)) => transpose(f(x, y), p)`, for results of convolutions.
/// Broadcasts and constants among the operands are brought into the order of x. Exact for every
/// input.
fn elementwise_of_transposes(graph: &mut Graph<'_>, id: InstructionId) -> Option<InstructionId> {
    let operands = graph[id].operands().to_vec();
    let is_transpose = |o: InstructionId| matches!(graph[o].op(), Op::Transpose { .. });
    let permutation =
        operands.iter().copied().filter(|&o| is_transpose(o)).find_map(|o| graph.sinking_permutation(o))?;
    let fits = |&o: &InstructionId| match graph[o].op() {
        Op::Transpose { dimensions } => *dimensions == permutation,
        Op::Constant { .. } => true,
        _ if graph.array(o).rank() == 0 => true,
        Op::Broadcast { dimensions } => untransposed_dimensions(dimensions, &permutation).is_sorted(),
        _ => false,
    };
    if !operands.iter().all(fits) {
        return None;
    }
    let mut moved = Vec::with_capacity(operands.len());
    for operand in operands {
        let shape = graph.array(operand).clone();
        moved.push(match graph[operand].op() {
            Op::Transpose { .. } => graph.operand(operand),
            // The scalars of select and clamp.
            _ if shape.rank() == 0 => operand,
            Op::Broadcast { dimensions } => {
                let dimensions = untransposed_dimensions(dimensions, &permutation);
                let shape = graph.untransposed(&shape, &permutation);
                let source = graph.operand(operand);
                graph.helper(id, Op::Broadcast { dimensions }, shape, &[source])
            }
            _ => {
                let mut dimensions = vec![0; permutation.len()];
                permutation.iter().enumerate().for_each(|(d, &p)| dimensions[p] = d);
                let shape = graph.untransposed(&shape, &permutation);
                graph.helper(id, Op::Transpose { dimensions }, shape, &[operand])
            }
        });
    }
    let op = graph[id].op().clone();
    Some(graph.transposed_after(id, op, &moved, &permutation))
}

/// The positions that dimensions of a transposed array have in its operand.
fn untransposed_dimensions(dimensions: &[usize], permutation: &[usize]) -> Vec<usize> {
    dimensions.iter().map(|&d| permutation[d]).collect()
}
