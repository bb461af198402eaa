//! Converts modules from messages to text, except for the values of constants.

mod header;

use super::attributes_text::attributes;
use super::messages::{HloComputationProto, HloInstructionProto, HloModuleProto, InstructionSequenceProto};
use super::read_literal::read_literal;
use super::shape_text::{read_shape, shape_text};
use super::text_form::{INFALLIBLE, Names, Shapes, escape};
use crate::text::{depth_first, sanitize};
use header::header_text;
use shape::{Literal, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use support::{Error, Result};

/// Placeholder for a constant in the text.
const PLACEHOLDER: &str = "pred[] constant(false)";

/// A constant and the instruction that is its placeholder.
pub(super) struct Constant {
    pub(super) computation: String,
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) literal: Literal,
}

pub(super) fn module_text(message: &HloModuleProto, constants: &mut Vec<Constant>) -> Result<String> {
    let names = computation_names(message);
    let entry = match message.entry_computation_id {
        0 => message.computations.iter().find(|c| c.name == message.entry_computation_name).map(|c| c.id),
        id => Some(id),
    };
    let entry = entry.filter(|id| names.contains_key(id));
    let entry = entry.ok_or_else(|| Error::invalid("missing entry computation of the module"))?;
    if names.len() != message.computations.len() {
        return Err(Error::invalid("two computations have the same number"));
    }
    let mut text = format!("HloModule {}{}\n", sanitize(&message.name), header_text(message, entry)?);
    for computation in computation_order(message) {
        let is_entry = computation.id == entry;
        let schedule = message.schedule.as_ref();
        let sequence = schedule.and_then(|schedule| schedule.sequences.get(&computation.id));
        let instructions = in_order(computation, sequence)?;
        computation_text(&mut text, computation, &instructions, &names, is_entry, constants)?;
    }
    Ok(text)
}

/// Returns the instructions of a computation in the order of its schedule, if it has one.
/// Otherwise, the order is that of their numbers, in which XLA assumes they were added, with
/// operands first.
fn in_order<'m>(
    computation: &'m HloComputationProto,
    sequence: Option<&InstructionSequenceProto>,
) -> Result<Vec<&'m HloInstructionProto>> {
    let name = &computation.name;
    let by_id: BTreeMap<i64, &HloInstructionProto> =
        computation.instructions.iter().map(|instruction| (instruction.id, instruction)).collect();
    if by_id.len() != computation.instructions.len() {
        return Err(Error::invalid(format!("two instructions of computation '{name}' have the same number")));
    }
    let Some(sequence) = sequence else {
        let exists = |id: &i64| by_id.contains_key(id);
        let ids = depth_first(by_id.keys().copied(), |id| {
            let needs = by_id[&id].operand_ids.iter().chain(&by_id[&id].control_predecessor_ids);
            needs.copied().filter(exists).collect()
        });
        return Ok(ids.iter().map(|id| by_id[id]).collect());
    };
    let scheduled: BTreeSet<i64> = sequence.instruction_ids.iter().copied().collect();
    if sequence.instruction_ids.len() != by_id.len() || !scheduled.iter().eq(by_id.keys()) {
        return Err(Error::invalid(format!(
            "the schedule of computation '{name}' does not match its instructions"
        )));
    }
    Ok(sequence.instruction_ids.iter().map(|id| by_id[id]).collect())
}

/// Returns the computations in the order of their numbers, with callees first.
fn computation_order(message: &HloModuleProto) -> Vec<&HloComputationProto> {
    let by_id: BTreeMap<i64, &HloComputationProto> =
        message.computations.iter().map(|computation| (computation.id, computation)).collect();
    let ids = depth_first(by_id.keys().copied(), |id| {
        let callees = by_id[&id].instructions.iter().flat_map(|caller| &caller.called_computation_ids);
        callees.copied().filter(|callee| by_id.contains_key(callee)).collect()
    });
    ids.iter().map(|id| by_id[id]).collect()
}

fn computation_names(message: &HloModuleProto) -> Names {
    let names = message.computations.iter().map(|computation| (computation.id, computation.name.as_str()));
    unique_names(names)
}

fn unique_names<'n>(originals: impl Iterator<Item = (i64, &'n str)>) -> Names {
    let mut taken = BTreeSet::new();
    let mut names = Names::new();
    for (id, name) in originals {
        let mut name = sanitize(name);
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
                    "constant '{}' has shape {shape}, but its value has shape {}",
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
        let thread = escape(computation.execution_thread.as_bytes());
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
    let shape = shape.ok_or_else(|| Error::invalid("missing shape"))?;
    let operand = |id: &i64| {
        let name = names.get(id);
        name.cloned().ok_or_else(|| Error::invalid(format!("operand {id} is not in its computation")))
    };
    let name = &names[&instruction.id];
    let operands: Vec<String> = instruction.operand_ids.iter().map(operand).collect::<Result<_>>()?;
    let is_opcode = !instruction.opcode.is_empty()
        && instruction
            .opcode
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-' || byte.is_ascii_digit());
    if !is_opcode {
        return Err(Error::invalid(format!("'{}' is not an opcode", instruction.opcode.escape_debug())));
    }
    let attributes = attributes(instruction, names, computations, shapes)?;
    match instruction.opcode.as_str() {
        "constant" => Ok(format!("{name} = {PLACEHOLDER}{attributes}")),
        "parameter" => {
            Ok(format!("{name} = {shape} parameter({}){attributes}", instruction.parameter_number))
        }
        opcode => Ok(format!("{name} = {shape} {opcode}({}){attributes}", operands.join(", "))),
    }
}
