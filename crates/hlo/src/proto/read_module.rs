//! Modules from `xla.HloModuleProto`, `xla.HloProto` and `xla.HloSnapshot`.
//!
//! A message becomes text and the text is parsed: so there is one place that knows what an opcode may carry, and what
//! only text carries is read, too. Constants do not go through text: an instruction holds each one's place.

use super::attributes_text::attributes;
use super::messages::{HloComputationProto, HloInstructionProto, HloModuleProto, HloProto, HloSnapshot};
use super::read_literal::read_literal;
use super::shape_text::{read_shape, shape_text};
use crate::Op;
use crate::module::Module;
use crate::text::{parse, sanitized};
use prost::Message;
use prost::encoding::decode_varint;
use shape::{Literal, PrimitiveType, Shape};
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
struct Constant {
    computation: String,
    name: String,
    shape: Shape,
    literal: Literal,
}

fn module_text(message: &HloModuleProto, constants: &mut Vec<Constant>) -> Result<String> {
    let names = computation_names(message);
    let entry = match message.entry_computation_id {
        0 => message.computations.iter().find(|c| c.name == message.entry_computation_name).map(|c| c.id),
        id => Some(id),
    };
    let entry = entry.filter(|id| names.contains_key(id));
    let entry = entry.ok_or_else(|| Error::invalid("the module's entry computation lacks"))?;
    let mut text = format!("HloModule {}", sanitized(&message.name));
    if let Some(alias) = message.input_output_alias.as_ref().filter(|alias| !alias.entries.is_empty()) {
        let entries = alias.entries.iter().map(|entry| {
            let kind = if entry.kind == 2 { "must-alias" } else { "may-alias" };
            format!(
                "{{{}}}: ({}, {{{}}}, {kind})",
                list(&entry.output_shape_index),
                entry.parameter_number,
                list(&entry.parameter_shape_index)
            )
        });
        let entries: Vec<String> = entries.collect();
        write!(text, ", input_output_alias={{ {} }}", entries.join(", ")).expect(INFALLIBLE);
    }
    text.push('\n');
    for computation in &message.computations {
        let is_entry = computation.id == entry;
        computation_text(&mut text, computation, &names, is_entry, constants)?;
    }
    Ok(text)
}

pub(super) const INFALLIBLE: &str = "a string takes everything";

/// Numbers with commas between.
pub(super) fn list<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

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
    computations: &Names,
    is_entry: bool,
    constants: &mut Vec<Constant>,
) -> Result<()> {
    let name = &computations[&computation.id];
    let instructions = &computation.instructions;
    let names =
        unique_names(instructions.iter().map(|instruction| (instruction.id, instruction.name.as_str())));
    if names.len() != instructions.len() {
        return Err(Error::invalid(format!("computation '{name}' has two instructions of one number")));
    }
    let is_pred = |instruction: &&HloInstructionProto| {
        instruction.shape.as_ref().is_some_and(|shape| shape.element_type == PrimitiveType::Pred as i32)
    };
    let preds: BTreeSet<i64> =
        instructions.iter().filter(is_pred).map(|instruction| instruction.id).collect();
    writeln!(text, "\n{}{name} {{", if is_entry { "ENTRY " } else { "" }).expect(INFALLIBLE);
    for instruction in instructions {
        let line = instruction_text(instruction, &names, computations, &preds)
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
    text.push_str("}\n");
    Ok(())
}

/// `name = shape opcode(operands), attributes`.
fn instruction_text(
    instruction: &HloInstructionProto,
    names: &Names,
    computations: &Names,
    preds: &BTreeSet<i64>,
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
    let takes_pred = instruction.operand_ids.first().is_some_and(|id| preds.contains(id));
    let attributes = attributes(instruction, names, computations, takes_pred)?;
    match instruction.opcode.as_str() {
        "constant" => Ok(format!("{name} = {CONSTANT_PLACE}{attributes}")),
        "parameter" => {
            Ok(format!("{name} = {shape} parameter({}){attributes}", instruction.parameter_number))
        }
        opcode => Ok(format!("{name} = {shape} {opcode}({}){attributes}", operands.join(", "))),
    }
}
