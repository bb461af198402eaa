//! Modules: `HloModule name, attributes`, then computations, callees first.

use super::attribute::read_list;
use super::computation::ComputationParser;
use super::instruction::read_attributes;
use super::lexer::{Lexer, Token};
use crate::module::{AliasKind, BoundedDimension, InputOutputAlias, Module};
use crate::opcode::Opcode;
use shape::ShapeIndex;
use std::collections::BTreeMap;
use support::Result;

/// Attributes of a module that mean nothing here.
const IGNORED: [&str; 12] = [
    "alias_passthrough_params",
    "allow_spmd_sharding_propagation_to_output",
    "allow_spmd_sharding_propagation_to_parameters",
    "buffer_donor",
    "entry_computation_layout",
    "frontend_attributes",
    "is_scheduled",
    "num_partitions",
    "origin_recovery_table",
    "replica_count",
    "config",
    "stack_frames",
];

/// Reads a module. Takes time and memory in proportion to the text, whatever it says.
///
/// The verifier is not run. An error's message starts with the line: `7: unknown operand 'y'`.
pub fn parse(text: &str) -> Result<Module> {
    let mut lexer = Lexer::new(text, 0);
    if !lexer.eat(Token::Word("HloModule")) {
        return Err(lexer.expected("'HloModule'"));
    }
    let mut module = Module::new(lexer.expect_name("the module's name")?);
    let attributes = read_attributes(&mut lexer, text)?;
    for attribute in &attributes {
        let mut value = lexer.part(attribute.value.clone());
        if attribute.name == "input_output_alias" {
            module.set_input_output_alias(read_list(&mut value, read_alias)?);
            value.expect_end()?;
        } else if attribute.name == "bounded_dimensions" {
            module.set_bounded_dimensions(read_list(&mut value, read_bounded_dimension)?);
            value.expect_end()?;
        } else if !IGNORED.contains(&attribute.name) {
            let message = format!("unknown attribute '{}' of the module", attribute.name);
            return Err(lexer.error_at(attribute.name_start, &message));
        }
    }
    let opcodes: BTreeMap<&str, Opcode> = Opcode::ALL.iter().map(|opcode| (opcode.name(), *opcode)).collect();
    let mut computations = BTreeMap::new();
    let mut shape_parts = 0;
    let mut entry = None;
    let mut last = None;
    while lexer.peek() != Token::End {
        let start = lexer.start();
        let parser = ComputationParser {
            text,
            lexer: &mut lexer,
            module: &module,
            computations: &computations,
            opcodes: &opcodes,
            names: BTreeMap::new(),
            pending: Vec::new(),
            shape_parts: &mut shape_parts,
        };
        let (computation, is_entry) = parser.computation()?;
        let name = computation.name().to_owned();
        let id = module.add_computation(computation);
        computations.insert(name, id);
        if is_entry && entry.replace(id).is_some() {
            return Err(lexer.error_at(start, "there is another ENTRY"));
        }
        last = Some(id);
    }
    let entry = entry.or(last).ok_or_else(|| lexer.error("the module has no computation"))?;
    module.set_entry(entry);
    Ok(module)
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

fn read_shape_index(lexer: &mut Lexer<'_>) -> Result<ShapeIndex> {
    read_list(lexer, |lexer| lexer.expect_integer("the number of a tuple's element"))
}
