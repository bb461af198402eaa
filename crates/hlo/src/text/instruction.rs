//! Instructions: `ROOT name = shape opcode(operands), attributes`.

use super::attribute::{AttributeReader, RawAttribute};
use super::computation::{ComputationParser, Pending};
use super::escape::unescape;
use super::lexer::{Lexer, Token};
use super::literal::read_literal;
use super::shape::{read_shape, shape_is_next};
use crate::infer::infer_shape;
use crate::instruction::OpMetadata;
use crate::opcode::{Op, Opcode};
use shape::Shape;
use std::collections::BTreeSet;
use support::Result;

/// How deep instructions may nest as operands of each other.
const MAX_NESTING: usize = 64;

/// Attributes that any instruction may have and that mean nothing here: hints for other machines and other passes.
const IGNORED: [&str; 12] = [
    "algorithm",
    "backend_config",
    "control-predecessors",
    "frontend_attributes",
    "inferred_dimension",
    "is_composite",
    "operand_precision",
    "origin",
    "output_to_operand_aliasing",
    "parameter_replication",
    "result_accuracy",
    "sharding",
];

/// Attributes of `custom-call` that say how another compiler is to call it.
const IGNORED_OF_CUSTOM_CALL: [&str; 12] = [
    "api_version",
    "batch_group_count",
    "called_computations",
    "dim_labels",
    "feature_group_count",
    "literal",
    "operand_layout_constraints",
    "operand_precision",
    "padding_type",
    "schedule",
    "to_apply",
    "window",
];

/// What stands behind a name's `=`.
pub(super) struct RightHandSide {
    pub(super) op: Op,
    pub(super) shape: Shape,
    pub(super) operands: Vec<usize>,
    pub(super) metadata: OpMetadata,
}

impl<'t> ComputationParser<'_, 't> {
    /// Reads what stands behind a name's `=`. A nested one has no attributes: the comma belongs to the outer operands.
    pub(super) fn right_hand_side(&mut self, depth: usize) -> Result<RightHandSide> {
        let start = self.lexer.clone();
        let written = if shape_is_next(self.lexer) { Some(read_shape(self.lexer)?) } else { None };
        let name = self.lexer.expect_word("an opcode")?;
        let Some(&opcode) = self.opcodes.get(name) else {
            return Err(start.error(&format!("unknown opcode '{name}'")));
        };
        self.lexer.expect_symbol('(')?;
        let mut operands = Vec::new();
        let mut payload = None;
        match (opcode, &written) {
            (Opcode::Parameter, _) => {
                payload =
                    Some(Op::Parameter { number: self.lexer.expect_integer("the parameter's number")? });
            }
            (Opcode::Constant, Some(shape)) => {
                payload = Some(Op::Constant { literal: read_literal(self.lexer, shape)? });
            }
            (Opcode::Constant, None) => return Err(start.error("a constant needs its shape")),
            _ => operands = self.operands(depth)?,
        }
        if payload.is_some() {
            self.lexer.expect_symbol(')')?;
        }
        let attributes = if depth == 0 { read_attributes(self.lexer, self.text)? } else { Vec::new() };
        let mut reader = AttributeReader {
            text: self.text,
            lexer: start.clone(),
            attributes,
            computations: self.computations,
        };
        let metadata = read_metadata(&mut reader)?;
        let mut op = match payload {
            Some(op) => op,
            None => Op::parse_attributes(opcode, &mut reader)?,
        };
        refuse_unknown(&reader, opcode)?;
        if let (Op::Map { dimensions, .. }, Some(&operand)) = (&mut op, operands.first())
            && dimensions.is_empty()
        {
            let rank = self.pending[operand].right.shape.as_array().map_or(0, |array| array.rank());
            dimensions.extend(0..rank);
        }
        let shape = match written {
            Some(shape) => shape,
            None => self.inferred(&start, &op, &operands)?,
        };
        self.count_shape(&start, &shape)?;
        Ok(RightHandSide { op, shape, operands, metadata })
    }

    fn inferred(&self, start: &Lexer<'_>, op: &Op, operands: &[usize]) -> Result<Shape> {
        let shapes: Vec<&Shape> =
            operands.iter().map(|&operand| &self.pending[operand].right.shape).collect();
        infer_shape(self.module, op, &shapes, None).map_err(|error| start.error(error.message()))
    }

    /// Reads operands up to the closing parenthesis: names, names behind their shapes, or nested instructions.
    fn operands(&mut self, depth: usize) -> Result<Vec<usize>> {
        let mut operands = Vec::new();
        while !self.lexer.eat_symbol(')') {
            if !operands.is_empty() {
                self.lexer.expect_symbol(',')?;
            }
            operands.push(self.operand(depth)?);
        }
        Ok(operands)
    }

    fn operand(&mut self, depth: usize) -> Result<usize> {
        let start = self.lexer.clone();
        let written = if shape_is_next(self.lexer) { Some(read_shape(self.lexer)?) } else { None };
        let is_nested =
            matches!(self.lexer.peek(), Token::Word(_)) && self.lexer.peek_second() == Token::Symbol('(');
        if is_nested {
            if depth == MAX_NESTING {
                return Err(start.error(&format!("instructions nest deeper than {MAX_NESTING}")));
            }
            let position = start.start();
            *self.lexer = start;
            let right = self.right_hand_side(depth + 1)?;
            let name = format!("{}.anon", right.op.opcode().name());
            self.pending.push(Pending { position, name, right });
            return Ok(self.pending.len() - 1);
        }
        let at = self.lexer.start();
        let name = self.lexer.expect_name("an operand")?;
        let Some(&operand) = self.names.get(name) else {
            return Err(self.lexer.error_at(at, &format!("unknown operand '{name}'")));
        };
        let shape = &self.pending[operand].right.shape;
        match written {
            Some(written) if !written.compatible(shape) => {
                Err(start.error(&format!("operand '{name}' is written as {written}, but is {shape}")))
            }
            _ => Ok(operand),
        }
    }
}

/// Reads `, name=value` as often as it comes.
pub(super) fn read_attributes<'t>(lexer: &mut Lexer<'t>, text: &'t str) -> Result<Vec<RawAttribute<'t>>> {
    let mut attributes: Vec<RawAttribute<'t>> = Vec::new();
    let mut names = BTreeSet::new();
    while lexer.eat_symbol(',') {
        let name_start = lexer.start();
        let name = lexer.expect_name("the name of an attribute")?;
        if !names.insert(name) {
            return Err(lexer.error_at(name_start, &format!("the attribute '{name}' is there twice")));
        }
        if lexer.peek() != Token::Symbol('=') {
            return Err(lexer.expected("'='"));
        }
        let value = value_range(text, lexer.start() + 1);
        lexer.skip_to(value.end);
        attributes.push(RawAttribute { name, name_start, value, taken: false });
    }
    Ok(attributes)
}

/// Where the value that follows `from` lies: up to the first blank or comma that is in no bracket and no string.
fn value_range(text: &str, from: usize) -> std::ops::Range<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    let start = at;
    let mut depth = 0usize;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at += 1;
                while bytes.get(at).is_some_and(|&b| b != b'"') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at += text.get(at + 2..).and_then(|rest| rest.find("*/")).map_or(1, |end| end + 3);
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') && depth == 0 => break,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => break,
            b')' | b']' | b'}' => depth -= 1,
            b',' if depth == 0 => break,
            _ if depth == 0 && byte.is_ascii_whitespace() => break,
            _ => {}
        }
        at += 1;
    }
    // A string or a comment that does not end may lead beyond the text or into a character.
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    start..at
}

fn refuse_unknown(reader: &AttributeReader<'_, '_>, opcode: Opcode) -> Result<()> {
    let known = |name: &str| {
        IGNORED.contains(&name) || (opcode == Opcode::CustomCall && IGNORED_OF_CUSTOM_CALL.contains(&name))
    };
    match reader.attributes.iter().find(|attribute| !attribute.taken && !known(attribute.name)) {
        Some(attribute) => {
            let message = format!("unknown attribute '{}' of {}", attribute.name, opcode.name());
            Err(reader.lexer.error_at(attribute.name_start, &message))
        }
        None => Ok(()),
    }
}

/// `metadata={op_type="MatMul" op_name="dense/MatMul" source_file="a.py" source_line=3}`; other fields are skipped.
fn read_metadata(reader: &mut AttributeReader<'_, '_>) -> Result<OpMetadata> {
    let mut metadata = OpMetadata::default();
    let text = reader.text;
    let Some(mut lexer) = reader.value("metadata") else { return Ok(metadata) };
    lexer.expect_symbol('{')?;
    while !lexer.eat_symbol('}') {
        let name = lexer.expect_name("a field of the metadata")?;
        if lexer.peek() != Token::Symbol('=') {
            return Err(lexer.expected("'='"));
        }
        let range = value_range(text, lexer.start() + 1);
        let mut value = lexer.part(range.clone());
        let string = || match value.peek() {
            Token::Quoted(inside) => {
                unescape(inside).ok_or_else(|| value.error("the string has an escape that is none"))
            }
            _ => Err(value.expected("a quoted string")),
        };
        match name {
            "op_type" => metadata.op_type = string()?,
            "op_name" => metadata.op_name = string()?,
            "source_file" => metadata.source_file = string()?,
            "source_line" => metadata.source_line = value.expect_integer("a line number")?,
            _ => {}
        }
        lexer.skip_to(range.end);
        lexer.eat_symbol(',');
    }
    Ok(metadata)
}
