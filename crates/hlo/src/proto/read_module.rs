//! Modules from `xla.HloModuleProto`, `xla.HloProto` and `xla.HloSnapshot`.
//!
//! A message becomes text and the text is parsed: so there is one place that knows what an opcode may carry, and what
//! only text carries is read, too. Constants do not go through text: an instruction holds each one's place.

use super::attributes_text::attributes;
use super::carried_text::escaped;
use super::header_text::header_text;
use super::messages::{
    HloComputationProto, HloInstructionProto, HloModuleProto, HloProto, HloSnapshot,
    InstructionSequenceProto, ShapeProto,
};
use super::read_literal::read_literal;
use super::shape_text::{read_shape, shape_text};
use crate::Op;
use crate::module::Module;
use crate::text::{depth_first, parse, sanitized};
use prost::Message;
use prost::encoding::decode_varint;
use shape::{Literal, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use support::{Error, Result};

/// What stands for a constant while the rest is text.
const CONSTANT_PLACE: &str = "pred[] constant(false)";

/// Whether bytes are one of the messages that [`read_hlo_proto`] reads.
pub fn is_hlo_proto(bytes: &[u8]) -> bool {
    bytes.first() == Some(&0x0a) && module_message(bytes).is_some()
}

/// The module of a serialized `xla.HloModuleProto`, `xla.HloProto` or `xla.HloSnapshot`, and the arguments that a
/// snapshot holds. The module is not verified.
pub fn read_hlo_proto(bytes: &[u8]) -> Result<(Module, Vec<Literal>)> {
    let Some((message, arguments)) = module_message(bytes) else {
        return Err(Error::invalid("the bytes are no HloModuleProto, HloProto or HloSnapshot"));
    };
    let mut constants = Vec::new();
    let text = module_text(&message, &mut constants)?;
    let mut module = parse(&text)?;
    let ids: BTreeMap<String, _> =
        module.computations().map(|(id, computation)| (computation.name().to_owned(), id)).collect();
    for Constant { computation, name, shape, literal } in constants {
        let lost = || Error::internal(format!("constant '{name}' lost its place"));
        let computation = module.computation_mut(*ids.get(&computation).ok_or_else(lost)?);
        let id = computation.find(&name).ok_or_else(lost)?;
        computation.set_op(id, Op::Constant { literal });
        computation.set_shape(id, shape);
    }
    let arguments = arguments.iter().map(read_literal).collect::<Result<_>>()?;
    Ok((module, arguments))
}

/// The module's message, whichever it is in, with the snapshot's arguments.
fn module_message(bytes: &[u8]) -> Option<(HloModuleProto, Vec<super::messages::LiteralProto>)> {
    let is_module = |module: &HloModuleProto| {
        let instructions = module.computations.iter().flat_map(|computation| &computation.instructions);
        let mut instructions = instructions.peekable();
        instructions.peek().is_some() && instructions.all(|instruction| !instruction.opcode.is_empty())
    };
    if instruction_count(bytes) > bytes.len() / LEAST_INSTRUCTION {
        return None;
    }
    if let Ok(snapshot) = HloSnapshot::decode(bytes)
        && let Some(module) = snapshot.hlo.and_then(|hlo| hlo.hlo_module).filter(is_module)
    {
        return Some((module, snapshot.arguments));
    }
    if let Ok(HloProto { hlo_module: Some(module) }) = HloProto::decode(bytes)
        && is_module(&module)
    {
        return Some((module, Vec::new()));
    }
    HloModuleProto::decode(bytes).ok().filter(is_module).map(|module| (module, Vec::new()))
}

/// The fewest bytes of an instruction: name, opcode, shape and number. In memory it takes a hundred times as many, so that
/// empty ones would fill it.
const LEAST_INSTRUCTION: usize = 12;

/// How many instructions a message holds, whichever it is.
fn instruction_count(bytes: &[u8]) -> usize {
    let of_module = |module: &[u8]| -> usize {
        entries(module, 3).map(|computation| entries(computation, 2).count()).sum()
    };
    let of_hlo = |hlo: &[u8]| entries(hlo, 1).map(of_module).sum::<usize>();
    let of_snapshot = entries(bytes, 1).map(of_hlo).sum::<usize>();
    of_snapshot.max(of_hlo(bytes)).max(of_module(bytes))
}

/// The messages in a field of a message, up to where it is none.
fn entries(mut bytes: &[u8], field: u64) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        loop {
            let key = decode_varint(&mut bytes).ok()?;
            let skipped = match key & 7 {
                0 => {
                    decode_varint(&mut bytes).ok()?;
                    0
                }
                1 => 8,
                5 => 4,
                2 => usize::try_from(decode_varint(&mut bytes).ok()?).ok()?,
                _ => return None,
            };
            let (value, rest) = bytes.split_at_checked(skipped)?;
            bytes = rest;
            if key == field << 3 | 2 {
                return Some(value);
            }
        }
    })
}

/// A constant, and the instruction that holds its place.
pub(super) struct Constant {
    computation: String,
    name: String,
    shape: Shape,
    literal: Literal,
}

pub(super) fn module_text(message: &HloModuleProto, constants: &mut Vec<Constant>) -> Result<String> {
    let names = computation_names(message);
    let entry = match message.entry_computation_id {
        0 => message.computations.iter().find(|c| c.name == message.entry_computation_name).map(|c| c.id),
        id => Some(id),
    };
    let entry = entry.filter(|id| names.contains_key(id));
    let entry = entry.ok_or_else(|| Error::invalid("the module's entry computation lacks"))?;
    if names.len() != message.computations.len() {
        return Err(Error::invalid("two computations have one number"));
    }
    let mut text = format!("HloModule {}{}\n", sanitized(&message.name), header_text(message, entry)?);
    for computation in computation_order(message) {
        let is_entry = computation.id == entry;
        let schedule = message.schedule.as_ref();
        let sequence = schedule.and_then(|schedule| schedule.sequences.get(&computation.id));
        let instructions = in_order(computation, sequence)?;
        computation_text(&mut text, computation, &instructions, &names, is_entry, constants)?;
    }
    Ok(text)
}

/// The instructions of a computation, in the order of its schedule if it has one. Else in that of their numbers, which XLA
/// takes for the order in which they were added, operands first.
fn in_order<'m>(
    computation: &'m HloComputationProto,
    sequence: Option<&InstructionSequenceProto>,
) -> Result<Vec<&'m HloInstructionProto>> {
    let name = &computation.name;
    let by_id: BTreeMap<i64, &HloInstructionProto> =
        computation.instructions.iter().map(|instruction| (instruction.id, instruction)).collect();
    if by_id.len() != computation.instructions.len() {
        return Err(Error::invalid(format!("computation '{name}' has two instructions of one number")));
    }
    let Some(sequence) = sequence else {
        let known = |id: &i64| by_id.contains_key(id);
        let ids = depth_first(by_id.keys().copied(), |id| {
            let before = by_id[&id].operand_ids.iter().chain(&by_id[&id].control_predecessor_ids);
            before.copied().filter(known).collect()
        });
        return Ok(ids.iter().map(|id| by_id[id]).collect());
    };
    let scheduled: BTreeSet<i64> = sequence.instruction_ids.iter().copied().collect();
    if sequence.instruction_ids.len() != by_id.len() || !scheduled.iter().eq(by_id.keys()) {
        return Err(Error::invalid(format!("the schedule of computation '{name}' is not its instructions")));
    }
    Ok(sequence.instruction_ids.iter().map(|id| by_id[id]).collect())
}

/// The computations in the order of their numbers, callees first.
fn computation_order(message: &HloModuleProto) -> Vec<&HloComputationProto> {
    let by_id: BTreeMap<i64, &HloComputationProto> =
        message.computations.iter().map(|computation| (computation.id, computation)).collect();
    let ids = depth_first(by_id.keys().copied(), |id| {
        let called = by_id[&id].instructions.iter().flat_map(|caller| &caller.called_computation_ids);
        called.copied().filter(|callee| by_id.contains_key(callee)).collect()
    });
    ids.iter().map(|id| by_id[id]).collect()
}

pub(super) const INFALLIBLE: &str = "a string takes everything";

/// Numbers with commas between.
pub(super) fn list<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The shapes of a computation's instructions, by number.
pub(super) type Shapes<'m> = BTreeMap<i64, &'m ShapeProto>;

/// Computations by number, each with a name of its own.
pub(super) type Names = BTreeMap<i64, String>;

fn computation_names(message: &HloModuleProto) -> Names {
    let named = message.computations.iter().map(|computation| (computation.id, computation.name.as_str()));
    unique_names(named)
}

fn unique_names<'n>(named: impl Iterator<Item = (i64, &'n str)>) -> Names {
    let mut taken = BTreeSet::new();
    let mut names = Names::new();
    for (id, name) in named {
        let mut name = sanitized(name);
        if name.is_empty() || !taken.insert(name.clone()) {
            name = format!("{name}.id{id}");
            while !taken.insert(name.clone()) {
                name.push('_');
            }
        }
        names.insert(id, name);
    }
    names
}

fn computation_text(
    text: &mut String,
    computation: &HloComputationProto,
    instructions: &[&HloInstructionProto],
    computations: &Names,
    is_entry: bool,
    constants: &mut Vec<Constant>,
) -> Result<()> {
    let name = &computations[&computation.id];
    let names =
        unique_names(instructions.iter().map(|instruction| (instruction.id, instruction.name.as_str())));
    let shapes: Shapes<'_> = instructions
        .iter()
        .filter_map(|instruction| Some((instruction.id, instruction.shape.as_ref()?)))
        .collect();
    writeln!(text, "\n{}{name} {{", if is_entry { "ENTRY " } else { "" }).expect(INFALLIBLE);
    for instruction in instructions {
        let line = instruction_text(instruction, &names, computations, &shapes)
            .map_err(|error| error.context(format!("instruction '{}'", instruction.name)))?;
        let root = if instruction.id == computation.root_id { "ROOT " } else { "" };
        writeln!(text, "  {root}{line}").expect(INFALLIBLE);
        if instruction.opcode == "constant" {
            let literal = instruction.literal.as_ref().map(read_literal).transpose();
            let literal =
                literal.map_err(|error| error.context(format!("constant '{}'", instruction.name)))?;
            let literal = literal
                .ok_or_else(|| Error::invalid(format!("constant '{}' has no value", instruction.name)))?;
            let shape = instruction.shape.as_ref().map(read_shape).transpose()?.unwrap_or(Shape::Token);
            if shape.leaves().into_iter().map(|(_, array)| array.sizes()).ne(literal
                .shape()
                .leaves()
                .into_iter()
                .map(|(_, array)| array.sizes()))
            {
                return Err(Error::invalid(format!(
                    "constant '{}' is {shape}, its value {}",
                    instruction.name,
                    literal.shape()
                )));
            }
            let (computation, name) = (name.clone(), names[&instruction.id].clone());
            constants.push(Constant { computation, name, shape, literal });
        }
    }
    text.push('}');
    if !matches!(computation.execution_thread.as_str(), "" | "main") {
        let thread = escaped(computation.execution_thread.as_bytes());
        write!(text, ", execution_thread=\"{thread}\"").expect(INFALLIBLE);
    }
    text.push('\n');
    Ok(())
}

/// `name = shape opcode(operands), attributes`.
fn instruction_text(
    instruction: &HloInstructionProto,
    names: &Names,
    computations: &Names,
    shapes: &Shapes<'_>,
) -> Result<String> {
    let shape = instruction.shape.as_ref().map(|shape| shape_text(shape, 0)).transpose()?;
    let shape = shape.ok_or_else(|| Error::invalid("it has no shape"))?;
    let operand = |id: &i64| {
        let name = names.get(id);
        name.cloned().ok_or_else(|| Error::invalid(format!("operand {id} is not in its computation")))
    };
    let name = &names[&instruction.id];
    let operands: Vec<String> = instruction.operand_ids.iter().map(operand).collect::<Result<_>>()?;
    let known = !instruction.opcode.is_empty()
        && instruction
            .opcode
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte.is_ascii_digit());
    if !known {
        return Err(Error::invalid(format!("'{}' is no opcode", instruction.opcode.escape_debug())));
    }
    let attributes = attributes(instruction, names, computations, shapes)?;
    match instruction.opcode.as_str() {
        "constant" => Ok(format!("{name} = {CONSTANT_PLACE}{attributes}")),
        "parameter" => {
            Ok(format!("{name} = {shape} parameter({}){attributes}", instruction.parameter_number))
        }
        opcode => Ok(format!("{name} = {shape} {opcode}({}){attributes}", operands.join(", "))),
    }
}
