//! The attributes in the first line of a module's text.

use super::super::annotations_text::{frontend_attributes_text, original_array_text};
use super::super::messages::{
    HloComputationProto, HloModuleProto, OriginalArrayMessage, OriginalValueRecoveryProto, ShapeProto,
};
use super::super::shape_text::shape_text;
use super::super::text_form::{INFALLIBLE, escape, list};
use super::module_text;
use std::fmt::Write;
use support::{Error, Result};

/// `, is_scheduled=true, entry_computation_layout={(f32[2]{0})->f32[2]{0}}`: all attributes that
/// text supports. `entry` is the number of the entry.
pub(super) fn header_text(message: &HloModuleProto, entry: i64) -> Result<String> {
    let mut text = String::new();
    if message.schedule.is_some() {
        text.push_str(", is_scheduled=true");
    }
    aliases(message, &mut text);
    let entry = message.computations.iter().find(|computation| computation.id == entry);
    entry_layout(message, entry, &mut text)?;
    if let Some(frontend) = message.frontend_attributes.as_ref().filter(|frontend| !frontend.map.is_empty()) {
        write!(text, ", frontend_attributes={}", frontend_attributes_text(frontend)).expect(INFALLIBLE);
    }
    if let Some(table) = &message.original_value_recovery_table
        && !table.entries.is_empty()
    {
        text.push_str(", origin_recovery_table={\n");
        for entry in &table.entries {
            recovery(entry, &mut text)?;
        }
        text.push('}');
    }
    Ok(text)
}

/// Writes results that use parameters' memory, and parameters that donate theirs.
fn aliases(message: &HloModuleProto, text: &mut String) {
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
    if let Some(donor) = message.buffer_donor.as_ref().filter(|donor| !donor.entries.is_empty()) {
        let entries = donor.entries.iter();
        let entries = entries
            .map(|entry| format!("({}, {{{}}})", entry.parameter_number, list(&entry.parameter_shape_index)));
        let entries: Vec<String> = entries.collect();
        write!(text, ", buffer_donor={{ {} }}", entries.join(", ")).expect(INFALLIBLE);
    }
}

/// Writes the layouts that callers see, unless they equal those of the parameters and the root.
fn entry_layout(
    message: &HloModuleProto,
    entry: Option<&HloComputationProto>,
    text: &mut String,
) -> Result<()> {
    let (Some(host), Some(entry)) = (&message.host_program_shape, entry) else { return Ok(()) };
    let Some(result) = &host.result else { return Ok(()) };
    let texts = |shapes: &mut dyn Iterator<Item = &ShapeProto>| -> Result<Vec<String>> {
        shapes.map(|shape| shape_text(shape, 0)).collect()
    };
    let host_texts = texts(&mut host.parameters.iter().chain([result]))?;
    let mut parameters: Vec<_> =
        entry.instructions.iter().filter(|instruction| instruction.opcode == "parameter").collect();
    parameters.sort_by_key(|parameter| parameter.parameter_number);
    let root = entry.instructions.iter().find(|instruction| instruction.id == entry.root_id);
    let entry_texts = texts(&mut parameters.into_iter().chain(root).filter_map(|own| own.shape.as_ref()))?;
    if host_texts != entry_texts {
        let (result, parameters) = host_texts.split_last().expect("expected at least the result");
        let parameters = parameters.join(", ");
        write!(text, ", entry_computation_layout={{({parameters})->{result}}}").expect(INFALLIBLE);
    }
    Ok(())
}

/// Writes the computation of a value that a pass removed from one that remains: either a module, or
/// they are equal.
fn recovery(entry: &OriginalValueRecoveryProto, text: &mut String) -> Result<()> {
    let array =
        |array: &Option<OriginalArrayMessage>| array.as_ref().map(original_array_text).unwrap_or_default();
    let (old, new) = (array(&entry.old_original_array), array(&entry.new_original_array));
    write!(text, "  {{{old}}} : {{{new}}}").expect(INFALLIBLE);
    if let Some(module) = &entry.recovery_module {
        if module.original_value_recovery_table.is_some() {
            return Err(Error::unsupported("nested modules that recover values are not supported"));
        }
        let mut constants = Vec::new();
        let inner = module_text(module, &mut constants)?;
        if !constants.is_empty() {
            return Err(Error::unsupported("a module that recovers values from constants is not supported"));
        }
        // Skips the first line, which is not part of the table.
        let inner = inner.split_once('\n').map_or("", |(_, computations)| computations);
        let lines: Vec<String> = inner.lines().map(|line| escape(line.as_bytes())).collect();
        write!(text, ",\n  \"{}\"", lines.join("\n")).expect(INFALLIBLE);
    }
    text.push('\n');
    Ok(())
}
