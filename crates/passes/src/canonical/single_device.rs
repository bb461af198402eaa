//! Programs of many devices, on one.

use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op, OpMetadata, RawAttributes, RawValue};
use shape::{Literal, PrimitiveType, Shape};
use support::{Error, Result};

/// Replaces what devices say to each other by what it means where there is one device: one replica of one partition.
/// Collectives of a group of one give what they take, marks of partitioners and of memory spaces are dropped, and asynchronous
/// instructions are calls. What needs another device stays, and has no code.
pub struct SingleDevice;

impl Pass for SingleDevice {
    fn name(&self) -> &'static str {
        "single-device"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = Changed::No;
        let ids: Vec<_> = module.computations().map(|(id, _)| id).collect();
        for id in ids {
            let computation = module.computation_mut(id);
            let instructions: Vec<InstructionId> = computation.instructions().map(|(id, _)| id).collect();
            for &instruction in &instructions {
                let Some(value) = replacement(computation, instruction)? else { continue };
                computation.replace_all_uses(instruction, value);
                computation.remove(instruction);
                changed = Changed::Yes;
            }
            // What was begun is waited for no more.
            for instruction in instructions.into_iter().rev() {
                let Some(op) = computation.get(instruction).map(|instruction| instruction.op()) else {
                    continue;
                };
                let is_begun = matches!(op, Op::AsyncStart { .. } | Op::AsyncUpdate { .. });
                if is_begun
                    && computation[instruction].users().is_empty()
                    && computation.root() != instruction
                {
                    computation.remove(instruction);
                    changed = Changed::Yes;
                }
            }
        }
        Ok(changed)
    }
}

/// Custom calls that say where a value lies, and give it.
const MARKS: [&str; 10] = [
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "ShardBarrierFrom",
    "ShardBarrierTo",
    "Sharding",
    "annotate_device_placement",
    "xla.sdy.FuncResultSharding",
];

/// The value that an instruction has on one device, if that is another instruction's.
fn replacement(computation: &mut Computation, id: InstructionId) -> Result<Option<InstructionId>> {
    let op = computation[id].op().clone();
    let operands = computation[id].operands().to_vec();
    let value = match &op {
        Op::AllReduce { .. }
        | Op::AllReduceStart { .. }
        | Op::AllGather { .. }
        | Op::AllToAll { .. }
        | Op::CollectiveBroadcast { .. }
        | Op::ReduceScatter { .. } => (!operands.is_empty()).then(|| tuple(computation, id, &operands)),
        Op::CollectivePermute { attributes } => permuted(computation, id, attributes, &operands)?,
        Op::AllGatherStart { .. } => {
            let shape = computation[id].shape().get(&[1]).cloned();
            started(computation, id, &operands, |c| of_shape(c, id, shape.as_ref(), &operands))?
        }
        Op::CollectivePermuteStart { attributes } if operands.len() == 1 => {
            started(computation, id, &operands, |c| permuted(c, id, attributes, &operands))?
        }
        Op::AllReduceDone { .. } | Op::Domain { .. } => Some(operands[0]),
        Op::AllGatherDone { .. } | Op::CollectivePermuteDone { .. } => element(computation, operands[0], 1),
        Op::CopyStart { .. } => Some(copied(computation, id, operands[0])),
        Op::CopyDone { .. } => element(computation, operands[0], 0),
        Op::AsyncDone { .. } => done(computation, id),
        Op::CustomCall { custom_call_target, .. } if custom_call_target == "TopK" => {
            top_k(computation, id, &operands)
        }
        Op::CustomCall { custom_call_target, .. } => {
            let is_mark = MARKS.contains(&custom_call_target.as_str()) && operands.len() == 1;
            is_mark.then(|| operands[0])
        }
        _ => None,
    };
    let instruction = &computation[id];
    let value = value.filter(|&value| computation[value].shape().compatible(instruction.shape()));
    if value.is_none() && is_collective(&op) {
        let shapes: Vec<String> =
            operands.iter().map(|&operand| computation[operand].shape().to_string()).collect();
        return Err(Error::unsupported(format!(
            "'{}': {} makes {} of {}, which takes several devices; there is one",
            instruction.name(),
            op.opcode().name(),
            instruction.shape(),
            shapes.join(", ")
        )));
    }
    Ok(value)
}

/// Whether an instruction gathers what a group of devices has.
fn is_collective(op: &Op) -> bool {
    matches!(
        op,
        Op::AllGather { .. }
            | Op::AllGatherStart { .. }
            | Op::AllReduce { .. }
            | Op::AllReduceStart { .. }
            | Op::AllToAll { .. }
            | Op::CollectiveBroadcast { .. }
            | Op::CollectivePermute { .. }
            | Op::CollectivePermuteStart { .. }
            | Op::ReduceScatter { .. }
    )
}

/// Adds an instruction beside another.
fn add(
    computation: &mut Computation,
    like: InstructionId,
    op: Op,
    shape: Shape,
    operands: &[InstructionId],
) -> InstructionId {
    let metadata: OpMetadata = computation[like].metadata().clone();
    computation.add("", op, shape, operands, metadata)
}

fn tuple(computation: &mut Computation, like: InstructionId, elements: &[InstructionId]) -> InstructionId {
    if let &[element] = elements
        && computation[like].shape().as_tuple().is_none()
    {
        return element;
    }
    let shape = Shape::Tuple(elements.iter().map(|&element| computation[element].shape().clone()).collect());
    add(computation, like, Op::Tuple {}, shape, elements)
}

/// The operands as a value of a shape: the one, or a tuple of all; `None` if that is not theirs.
fn of_shape(
    computation: &mut Computation,
    id: InstructionId,
    shape: Option<&Shape>,
    operands: &[InstructionId],
) -> Result<Option<InstructionId>> {
    let value = match (operands, shape) {
        (_, None) | ([], _) => return Ok(None),
        (&[operand], Some(Shape::Array(_))) => operand,
        (_, Some(_)) => {
            let shapes = operands.iter().map(|&operand| computation[operand].shape().clone()).collect();
            add(computation, id, Op::Tuple {}, Shape::Tuple(shapes), operands)
        }
    };
    let fits = shape.is_some_and(|shape| computation[value].shape().compatible(shape));
    Ok(fits.then_some(value))
}

/// What device 0 is sent: its own value if the pairs say so, else zeros.
fn permuted(
    computation: &mut Computation,
    id: InstructionId,
    attributes: &RawAttributes,
    operands: &[InstructionId],
) -> Result<Option<InstructionId>> {
    let pairs = attributes.text("source_target_pairs").unwrap_or_default();
    let numbers = pairs.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
    let numbers: Vec<u64> = numbers.map(|word| word.parse().unwrap_or(u64::MAX)).collect();
    let &[operand] = operands else { return Ok(None) };
    let Shape::Array(array) = computation[operand].shape().clone() else { return Ok(None) };
    match numbers.chunks_exact(2).find(|pair| pair[1] == 0) {
        Some([0, _]) => Ok(Some(operand)),
        Some(_) => {
            let name = computation[id].name();
            Err(Error::unsupported(format!("'{name}' takes what another device sends; there is one device")))
        }
        None => {
            let scalar = shape::ArrayShape::new(array.element_type, &[]);
            let zero = Literal::from_bytes(scalar, vec![0; array.element_type.byte_size()].into());
            let literal = zero.ok_or_else(|| Error::internal("as many bytes as one element has"))?;
            let shape = literal.shape();
            let zero = add(computation, id, Op::Constant { literal }, shape, &[]);
            Ok(Some(add(
                computation,
                id,
                Op::Broadcast { dimensions: Vec::new() },
                Shape::Array(array),
                &[zero],
            )))
        }
    }
}

/// The tuple that a start makes: what it took, what it makes, and what has no meaning.
fn started(
    computation: &mut Computation,
    id: InstructionId,
    operands: &[InstructionId],
    make: impl FnOnce(&mut Computation) -> Result<Option<InstructionId>>,
) -> Result<Option<InstructionId>> {
    let Some(shapes) = computation[id].shape().as_tuple().map(<[Shape]>::to_vec) else { return Ok(None) };
    let Some(made) = make(computation)? else { return Ok(None) };
    let taken = of_shape(computation, id, shapes.first(), operands)?;
    let mut elements: Vec<InstructionId> = taken.into_iter().chain([made]).collect();
    for shape in shapes.iter().skip(2) {
        elements.push(context(computation, id, shape)?);
    }
    Ok(Some(tuple(computation, id, &elements)))
}

/// A value without a meaning.
fn context(computation: &mut Computation, id: InstructionId, shape: &Shape) -> Result<InstructionId> {
    if *shape != Shape::scalar(PrimitiveType::U32) {
        let name = computation[id].name();
        return Err(Error::unsupported(format!("'{name}' makes {}", computation[id].shape())));
    }
    let literal = Literal::scalar(0u32);
    Ok(add(computation, id, Op::Constant { literal }, shape.clone(), &[]))
}

/// An element of a tuple.
fn element(computation: &mut Computation, of: InstructionId, index: usize) -> Option<InstructionId> {
    let shape = computation[of].shape().get(&[index])?.clone();
    Some(add(computation, of, Op::GetTupleElement { index }, shape, &[of]))
}

/// `(destination, source, context)`: here both are the value.
fn copied(computation: &mut Computation, id: InstructionId, operand: InstructionId) -> InstructionId {
    let literal = Literal::scalar(0u32);
    let context = add(computation, id, Op::Constant { literal }, Shape::scalar(PrimitiveType::U32), &[]);
    tuple(computation, id, &[operand, operand, context])
}

/// The call that an `async-done` waits for.
fn done(computation: &mut Computation, id: InstructionId) -> Option<InstructionId> {
    let mut at = computation[id].operands()[0];
    while let Op::AsyncUpdate { .. } = computation[at].op() {
        at = computation[at].operands()[0];
    }
    let Op::AsyncStart { attributes } = computation[at].op() else { return None };
    let Some(&RawValue::Computation(to_apply)) = attributes.get("calls") else { return None };
    let operands = computation[at].operands().to_vec();
    let shape = computation[id].shape().clone();
    Some(add(computation, id, Op::Call { to_apply }, shape, &operands))
}

/// The largest elements of each row, as XLA's front ends spell it.
fn top_k(
    computation: &mut Computation,
    id: InstructionId,
    operands: &[InstructionId],
) -> Option<InstructionId> {
    let &[operand] = operands else { return None };
    let values = computation[id].shape().get(&[0])?.as_array()?;
    let k = values.dimensions.last()?.size;
    let shape = computation[id].shape().clone();
    Some(add(computation, id, Op::TopK { k, largest: true }, shape, &[operand]))
}
