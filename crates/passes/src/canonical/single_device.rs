//! Runs programs for many devices on one device.

use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op, OpMetadata, RawAttributes, RawValue};
use shape::{Literal, PrimitiveType, Shape};
use support::{Error, Result};

/// Replaces communication between devices by its effect on one device: one replica of one
/// partition. Collectives over a group of one return their operands, annotations of partitioners
/// and of memory spaces are dropped, and asynchronous instructions become calls. An instruction
/// that needs another device remains and has no code.
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
            // Starts whose results are no longer awaited are removed.
            for instruction in instructions.into_iter().rev() {
                let Some(op) = computation.get(instruction).map(|instruction| instruction.op()) else {
                    continue;
                };
                let is_start = matches!(op, Op::AsyncStart { .. } | Op::AsyncUpdate { .. });
                if is_start
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

/// Custom calls that return their operand and only annotate its placement.
const ANNOTATIONS: [&str; 10] = [
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

/// The instruction that has the same value on one device, if any.
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
            let is_annotation = ANNOTATIONS.contains(&custom_call_target.as_str()) && operands.len() == 1;
            is_annotation.then(|| operands[0])
        }
        _ => None,
    };
    let instruction = &computation[id];
    let value = value.filter(|&value| computation[value].shape().compatible(instruction.shape()));
    if value.is_none() && is_collective(&op) {
        let shapes: Vec<String> =
            operands.iter().map(|&operand| computation[operand].shape().to_string()).collect();
        return Err(Error::unsupported(format!(
            "'{}': {} from {} to {} requires several devices, but only one is supported",
            instruction.name(),
            op.opcode().name(),
            shapes.join(", "),
            instruction.shape()
        )));
    }
    Ok(value)
}

/// True if an instruction combines the values of a group of devices.
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

/// Adds an instruction with the metadata of another one.
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

/// The operands as a value of the given shape: the single operand or a tuple of all; `None` if
/// their shape differs.
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

/// The value that device 0 receives: its own value if the pairs say so, otherwise zeros.
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
            Err(Error::unsupported(format!(
                "'{name}' receives a value from another device, but only one device is supported"
            )))
        }
        None => {
            let scalar = shape::ArrayShape::new(array.element_type, &[]);
            let zero = Literal::from_bytes(scalar, vec![0; array.element_type.byte_size()].into());
            let literal =
                zero.ok_or_else(|| Error::internal("literal of one element has the wrong number of bytes"))?;
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

/// The tuple that a start instruction returns: its operands, its result, and context without
/// meaning.
fn started(
    computation: &mut Computation,
    id: InstructionId,
    operands: &[InstructionId],
    make: impl FnOnce(&mut Computation) -> Result<Option<InstructionId>>,
) -> Result<Option<InstructionId>> {
    let Some(shapes) = computation[id].shape().as_tuple().map(<[Shape]>::to_vec) else { return Ok(None) };
    let Some(result) = make(computation)? else { return Ok(None) };
    let inputs = of_shape(computation, id, shapes.first(), operands)?;
    let mut elements: Vec<InstructionId> = inputs.into_iter().chain([result]).collect();
    for shape in shapes.iter().skip(2) {
        elements.push(context(computation, id, shape)?);
    }
    Ok(Some(tuple(computation, id, &elements)))
}

/// A value without meaning.
fn context(computation: &mut Computation, id: InstructionId, shape: &Shape) -> Result<InstructionId> {
    if *shape != Shape::scalar(PrimitiveType::U32) {
        let name = computation[id].name();
        return Err(Error::unsupported(format!(
            "'{name}' has the unsupported shape {}",
            computation[id].shape()
        )));
    }
    let literal = Literal::scalar(0u32);
    Ok(add(computation, id, Op::Constant { literal }, shape.clone(), &[]))
}

/// An element of a tuple.
fn element(computation: &mut Computation, tuple: InstructionId, index: usize) -> Option<InstructionId> {
    let shape = computation[tuple].shape().get(&[index])?.clone();
    Some(add(computation, tuple, Op::GetTupleElement { index }, shape, &[tuple]))
}

/// `(destination, source, context)`; here both arrays are the value.
fn copied(computation: &mut Computation, id: InstructionId, operand: InstructionId) -> InstructionId {
    let literal = Literal::scalar(0u32);
    let context = add(computation, id, Op::Constant { literal }, Shape::scalar(PrimitiveType::U32), &[]);
    tuple(computation, id, &[operand, operand, context])
}

/// The call whose end an `async-done` awaits.
fn done(computation: &mut Computation, id: InstructionId) -> Option<InstructionId> {
    let mut start = computation[id].operands()[0];
    while let Op::AsyncUpdate { .. } = computation[start].op() {
        start = computation[start].operands()[0];
    }
    let Op::AsyncStart { attributes } = computation[start].op() else { return None };
    let Some(&RawValue::Computation(to_apply)) = attributes.get("calls") else { return None };
    let operands = computation[start].operands().to_vec();
    let shape = computation[id].shape().clone();
    Some(add(computation, id, Op::Call { to_apply }, shape, &operands))
}

/// The largest elements of each row, as XLA's front ends express them.
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
