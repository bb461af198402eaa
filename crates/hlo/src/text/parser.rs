//! Modules: `HloModule name, attributes`, then computations, callees first.

use super::attribute::read_list;
use super::attribute_list::read_attributes;
use super::computation::ComputationParser;
use super::lexer::{Lexer, Token};
use super::literal::Zeros;
use crate::ids::ComputationId;
use crate::module::{AliasKind, BoundedDimension, InputOutputAlias, Module, SizeParameter};
use crate::opcode::Opcode;
use shape::ShapeIndex;
use std::collections::BTreeMap;
use support::Result;

/// Attributes of a module that are only passed through.
const ATTRIBUTES: [&str; 13] = [
    "alias_passthrough_params",
    "allow_spmd_sharding_propagation_to_output",
    "allow_spmd_sharding_propagation_to_parameters",
    "buffer_donor",
    "config",
    "entry_computation_layout",
    "frontend_attributes",
    "is_scheduled",
    "num_partitions",
    "origin_recovery_table",
    "replica_count",
    "result_accuracy",
    "stack_frames",
];

/// The state of the parser of a module.
pub(super) struct ModuleParser<'t> {
    pub(super) text: &'t str,
    pub(super) module: Module,
    /// The computations by their names in the text.
    pub(super) computations: BTreeMap<String, ComputationId>,
    pub(super) opcodes: BTreeMap<&'static str, Opcode>,
    /// Number of parts of the module's shapes so far.
    pub(super) shape_parts: usize,
    /// Elements that the text elides.
    pub(super) zeros: Zeros,
}

/// Reads a module. Takes time and memory in proportion to the text, for any input, except for the
/// zeros that replace elided elements of constants.
///
/// The verifier is not run. An error message starts with the line: `7: unknown operand 'y'`.
pub fn parse(text: &str) -> Result<Module> {
    let mut lexer = Lexer::new(text, 0);
    if !lexer.eat(Token::Word("HloModule")) {
        return Err(lexer.expected("'HloModule'"));
    }
    let mut module = Module::new(lexer.expect_name("the module's name")?);
    read_header(&mut lexer, text, &mut module)?;
    let mut parser = ModuleParser {
        text,
        module,
        computations: BTreeMap::new(),
        opcodes: Opcode::ALL.iter().map(|opcode| (opcode.name(), *opcode)).collect(),
        shape_parts: 0,
        zeros: Zeros::default(),
    };
    let mut entry = None;
    let mut last = None;
    while lexer.peek() != Token::End {
        let start = lexer.start();
        let (id, is_entry) = ComputationParser::new(&mut parser, &mut lexer, 0).computation()?;
        if is_entry && entry.replace(id).is_some() {
            return Err(lexer.error_at(start, "duplicate ENTRY"));
        }
        last = Some(id);
    }
    let entry = entry.or(last).ok_or_else(|| lexer.error("the module has no computations"))?;
    parser.module.set_entry(entry);
    Ok(parser.module)
}

/// Reads the attributes in the module's first line.
fn read_header<'t>(lexer: &mut Lexer<'t>, text: &'t str, module: &mut Module) -> Result<()> {
    let mut attributes = Vec::new();
    for attribute in read_attributes(lexer, text)? {
        let mut value = lexer.part(attribute.value.clone());
        if attribute.name == "input_output_alias" {
            module.set_input_output_alias(read_list(&mut value, read_alias)?);
            value.expect_end()?;
        } else if attribute.name == "bounded_dimensions" {
            module.set_bounded_dimensions(read_list(&mut value, read_bounded_dimension)?);
            value.expect_end()?;
        } else if attribute.name == "size_parameters" {
            module.set_size_parameters(read_list(&mut value, read_size_parameter)?);
            value.expect_end()?;
        } else if ATTRIBUTES.contains(&attribute.name) {
            attributes.push((attribute.name.to_owned(), text[attribute.value].to_owned()));
        } else {
            let message = format!("unknown attribute '{}' of the module", attribute.name);
            return Err(lexer.error_at(attribute.name_start, &message));
        }
    }
    module.set_attributes(attributes);
    Ok(())
}
/// `{0, 1}: (2, {}, must-alias)`.
fn read_alias(lexer: &mut Lexer<'_>) -> Result<InputOutputAlias> {
    let output_index = read_shape_index(lexer)?;
    lexer.expect_symbol(':')?;
    lexer.expect_symbol('(')?;
    let parameter_number = lexer.expect_integer("a parameter's number")?;
    lexer.expect_symbol(',')?;
    let parameter_index = read_shape_index(lexer)?;
    let mut kind = AliasKind::May;
    if lexer.eat_symbol(',') {
        kind = match lexer.peek() {
            Token::Word("must-alias") => AliasKind::Must,
            Token::Word("may-alias") => AliasKind::May,
            _ => return Err(lexer.expected("may-alias or must-alias")),
        };
        lexer.take();
    }
    lexer.expect_symbol(')')?;
    Ok(InputOutputAlias { output_index, parameter_number, parameter_index, kind })
}

/// `(2, 0)`: a result and its dimension.
fn read_bounded_dimension(lexer: &mut Lexer<'_>) -> Result<BoundedDimension> {
    lexer.expect_symbol('(')?;
    let result = lexer.expect_integer("a result's number")?;
    lexer.expect_symbol(',')?;
    let dimension = lexer.expect_integer("a dimension")?;
    lexer.expect_symbol(')')?;
    Ok(BoundedDimension { result, dimension })
}

/// `(2, 1, 64)`: a parameter, and the smallest and the largest size.
fn read_size_parameter(lexer: &mut Lexer<'_>) -> Result<SizeParameter> {
    lexer.expect_symbol('(')?;
    let parameter = lexer.expect_integer("a parameter's number")?;
    lexer.expect_symbol(',')?;
    let low = lexer.expect_integer("the smallest size")?;
    lexer.expect_symbol(',')?;
    let high = lexer.expect_integer("the largest size")?;
    lexer.expect_symbol(')')?;
    Ok(SizeParameter { parameter, low, high })
}

fn read_shape_index(lexer: &mut Lexer<'_>) -> Result<ShapeIndex> {
    read_list(lexer, |lexer| lexer.expect_integer("the number of a tuple's element"))
}
