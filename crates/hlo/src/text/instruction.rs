//! Instructions: `ROOT name = shape opcode(operands), attributes`.

use super::attribute::{AttributeReader, read_list};
use super::attribute_list::{RawAttribute, read_attributes, value_range};
use super::computation::{ComputationParser, Pending};
use super::escape::{unescape, write_quoted};
use super::lexer::{Lexer, Token};
use super::literal::read_literal;
use super::payload::parse_attributes;
use super::shape::{fits, read_shape, shape_is_next};
use crate::annotations::Annotations;
use crate::attributes::{ComparisonType, RawAttributes, RawValue};
use crate::computation::Computation;
use crate::ids::ComputationId;
use crate::infer::infer_shape;
use crate::instruction::OpMetadata;
use crate::opcode::{Op, Opcode, Traits};
use shape::{ArrayShape, Layout, PrimitiveType, Shape};
use std::collections::BTreeMap;
use support::Result;

/// Maximum nesting depth of instructions written as operands.
const MAX_NESTING: usize = 64;

/// Attributes that any instruction can have for other machines and other passes.
const SHARED: [&str; 6] =
    ["backend_config", "frontend_attributes", "origin", "parameter_replication", "sharding", "statistics"];

/// Attributes that are kept as annotations if the opcode's payload does not include them.
const ANNOTATIONS: [&str; 7] = [
    "algorithm",
    "async_execution_thread",
    "inferred_dimension",
    "is_composite",
    "operand_precision",
    "output_to_operand_aliasing",
    "result_accuracy",
];

/// Attributes of `custom-call` that describe its calling convention in another compiler.
const CUSTOM_CALL_ATTRIBUTES: [&str; 13] = [
    "api_version",
    "batch_group_count",
    "called_computations",
    "dim_labels",
    "feature_group_count",
    "literal",
    "operand_layout_constraints",
    "operand_precision",
    "output_to_operand_aliasing",
    "padding_type",
    "schedule",
    "to_apply",
    "window",
];

/// Attributes whose value can be a complete computation.
const COMPUTATIONS: [&str; 8] =
    ["body", "calls", "condition", "false_computation", "scatter", "select", "to_apply", "true_computation"];

/// The part of an instruction after the `=`.
pub(super) struct RightHandSide {
    pub(super) op: Op,
    pub(super) shape: Shape,
    pub(super) operands: Vec<usize>,
    pub(super) metadata: OpMetadata,
    pub(super) annotations: Option<Annotations>,
    /// Instructions that must run earlier, as positions like the operands.
    pub(super) predecessors: Vec<usize>,
}

/// The part of an instruction before its attributes.
struct Head<'t> {
    start: Lexer<'t>,
    /// The shape, if the text states it.
    declared: Option<Shape>,
    opcode: Opcode,
    /// `negate-start` is an `async-start` that calls a computation of one `negate`.
    wrapped: Option<Opcode>,
    /// The payload of opcodes that write it between the parentheses.
    payload: Option<Op>,
    operands: Vec<usize>,
    is_elided: bool,
}

/// The values of the attributes.
struct Parsed {
    op: Op,
    metadata: OpMetadata,
    annotations: Annotations,
    predecessors: Vec<usize>,
    /// The thread on which an asynchronous instruction runs.
    thread: String,
}

impl<'t> ComputationParser<'_, 't> {
    /// Reads the part of an instruction after the `=`. A nested instruction has no attributes,
    /// because the comma belongs to the outer operands.
    pub(super) fn right_hand_side(&mut self, depth: usize) -> Result<RightHandSide> {
        let mut head = self.head(depth)?;
        let mut parsed = self.attributes(&mut head, depth)?;
        if let (Op::Map { dimensions, .. }, Some(&operand)) = (&mut parsed.op, head.operands.first())
            && dimensions.is_empty()
        {
            let rank = self.pending[operand].right.shape.as_array().map_or(0, |array| array.rank());
            dimensions.extend(0..rank);
        }
        if head.wrapped.is_some() && head.opcode == Opcode::AsyncStart {
            parsed.op = self.wrap(&head, &parsed)?;
        }
        let shape = match head.declared {
            Some(_) if head.opcode == Opcode::Send && !head.operands.is_empty() => {
                self.send_shape(&head.operands)
            }
            // The result is a token, regardless of the text.
            Some(_) if matches!(head.opcode, Opcode::Outfeed | Opcode::SendDone) => Shape::Token,
            Some(shape) => shape,
            None => self.infer(&head.start, &parsed.op, &head.operands)?,
        };
        self.count_shape(&head.start, &shape)?;
        let has_annotations = parsed.annotations != Annotations::default() || !parsed.predecessors.is_empty();
        Ok(RightHandSide {
            op: parsed.op,
            shape,
            operands: head.operands,
            metadata: parsed.metadata,
            annotations: has_annotations.then_some(parsed.annotations),
            predecessors: parsed.predecessors,
        })
    }

    /// Reads shape, opcode, and operands.
    fn head(&mut self, depth: usize) -> Result<Head<'t>> {
        let start = self.lexer.clone();
        let declared = if shape_is_next(self.lexer) { Some(read_shape(self.lexer)?) } else { None };
        let name = self.lexer.expect_word("an opcode")?;
        let Some((opcode, wrapped)) = self.opcode(name) else {
            return Err(start.error(&format!("unknown opcode '{name}'")));
        };
        self.lexer.expect_symbol('(')?;
        let elided_before = self.context.zeros.elided;
        let mut operands = Vec::new();
        let payload = match (opcode, &declared) {
            (Opcode::Parameter, _) => {
                Some(Op::Parameter { number: self.lexer.expect_integer("the parameter's number")? })
            }
            (Opcode::Constant, Some(shape)) => {
                Some(Op::Constant { literal: read_literal(self.lexer, shape, &mut self.context.zeros)? })
            }
            (Opcode::Constant, None) => return Err(start.error("missing shape of a constant")),
            _ => {
                operands = self.operands(depth)?;
                None
            }
        };
        if payload.is_some() {
            self.lexer.expect_symbol(')')?;
        }
        let is_elided = self.context.zeros.elided != elided_before;
        Ok(Head { start, declared, opcode, wrapped, payload, operands, is_elided })
    }

    /// Returns the opcode with a name, and the one that an asynchronous name wraps.
    fn opcode(&self, name: &str) -> Option<(Opcode, Option<Opcode>)> {
        let opcodes = &self.context.opcodes;
        if let Some(&opcode) = opcodes.get(name) {
            return Some((opcode, None));
        }
        let steps =
            [("-start", Opcode::AsyncStart), ("-update", Opcode::AsyncUpdate), ("-done", Opcode::AsyncDone)];
        steps.iter().find_map(|&(suffix, step)| Some((step, Some(*opcodes.get(name.strip_suffix(suffix)?)?))))
    }

    /// Reads the attributes.
    fn attributes(&mut self, head: &mut Head<'t>, depth: usize) -> Result<Parsed> {
        let text = self.context.text;
        let attributes = if depth == 0 { read_attributes(self.lexer, text)? } else { Vec::new() };
        let inline = self.inline_computations(&attributes)?;
        let mut reader = AttributeReader {
            text,
            lexer: head.start.clone(),
            attributes,
            module: &self.context.module,
            computations: &self.context.computations,
            inline: &inline,
        };
        let predecessors = read_predecessors(&mut reader, &self.names)?;
        let mut annotations = Annotations { is_elided: head.is_elided, ..Annotations::default() };
        let metadata = read_metadata(&mut reader, &mut annotations.metadata)?;
        let is_payload = |name: &str| head.opcode == Opcode::CustomCall && name == "backend_config";
        carry(&mut reader, &mut annotations, |name| SHARED.contains(&name) && !is_payload(name));
        let thread = match head.wrapped {
            Some(_) => reader.field("async_execution_thread", &[String::new()])?,
            None => String::new(),
        };
        let op = match (head.payload.take(), head.wrapped) {
            (Some(op), _) => op,
            (None, Some(wrapped)) if head.opcode == Opcode::AsyncStart => {
                parse_attributes(wrapped, &mut reader)?
            }
            (None, _) => parse_attributes(head.opcode, &mut reader)?,
        };
        if let Op::Compare { comparison_type: ComparisonType::Default, .. } = op {
            // The type follows from the operands, but is printed if the text states it explicitly.
            reader.attributes.iter_mut().filter(|a| a.name == "type").for_each(|a| a.is_used = false);
            carry(&mut reader, &mut annotations, |name| name == "type");
        }
        carry(&mut reader, &mut annotations, |name| ANNOTATIONS.contains(&name));
        reject_unknown(&reader, &op)?;
        Ok(Parsed { op, metadata, annotations, predecessors, thread })
    }

    /// Reads the computations written in place of names, by their start positions.
    fn inline_computations(
        &mut self,
        attributes: &[RawAttribute<'_>],
    ) -> Result<BTreeMap<usize, ComputationId>> {
        let mut inline = BTreeMap::new();
        for attribute in attributes {
            let is_inline = self.context.text[attribute.value.clone()].starts_with('{');
            if is_inline && COMPUTATIONS.contains(&attribute.name) {
                inline.insert(attribute.value.start, self.inline_computation(attribute.value.clone())?);
            }
        }
        Ok(inline)
    }

    /// Adds the computation that an instruction such as `negate-start` implies; returns the
    /// `async-start` that calls it.
    fn wrap(&mut self, head: &Head<'_>, parsed: &Parsed) -> Result<Op> {
        let Some([_, result, ..]) = head.declared.as_ref().and_then(Shape::as_tuple) else {
            return Err(head
                .start
                .error("expected the shape ((operands), result, state) of an asynchronous start"));
        };
        let mut computation = Computation::new("async_wrapped");
        let mut parameters = Vec::new();
        for (number, &operand) in head.operands.iter().enumerate() {
            let shape = self.pending[operand].right.shape.clone();
            let op = Op::Parameter { number };
            parameters.push(computation.add("async_param", op, shape, &[], OpMetadata::default()));
        }
        let root = computation.add(
            "async_op",
            parsed.op.clone(),
            result.clone(),
            &parameters,
            parsed.metadata.clone(),
        );
        let mut annotations = parsed.annotations.clone();
        if let Op::CustomCall { .. } = parsed.op {
            annotations.attributes.retain(|(name, _)| name != "backend_config");
        }
        computation.set_annotations(root, (annotations != Annotations::default()).then_some(annotations));
        computation.set_root(root);
        computation.set_execution_thread(parsed.thread.as_str());
        let mut attributes = RawAttributes::default();
        if !parsed.thread.is_empty() {
            let mut quoted = String::new();
            write_quoted(&parsed.thread, &mut quoted);
            attributes.push("async_execution_thread", RawValue::Text(quoted));
        }
        attributes.push("calls", RawValue::Computation(self.context.module.add_computation(computation)));
        Ok(Op::AsyncStart { attributes })
    }

    /// Infers the shape, with the layout from XLA's shape inference.
    fn infer(&self, start: &Lexer<'_>, op: &Op, operands: &[usize]) -> Result<Shape> {
        let module = &self.context.module;
        let shapes: Vec<&Shape> =
            operands.iter().map(|&operand| &self.pending[operand].right.shape).collect();
        let shape = infer_shape(module, op, &shapes, None).map_err(|error| start.error(error.message()))?;
        let root = |callee: ComputationId| module[callee][module[callee].root()].shape().clone();
        Ok(match op {
            Op::While { .. } => shapes[0].clone(),
            Op::Call { to_apply: callee } | Op::Fusion { calls: callee, .. } => root(*callee),
            Op::Conditional { branch_computations } => {
                branch_computations.first().map_or(shape, |&c| root(c))
            }
            Op::Transpose { dimensions } => transpose_layout(shape, shapes[0], dimensions),
            Op::Select {} => with_layout_of(shape, shapes[1]),
            _ if op.opcode().traits().contains(Traits::ELEMENTWISE) => with_layout_of(shape, shapes[0]),
            _ => shape,
        })
    }

    /// Returns the shape of a `send`, regardless of the text: its first operand, a context, and a
    /// token.
    fn send_shape(&self, operands: &[usize]) -> Shape {
        let operand = self.pending[operands[0]].right.shape.clone();
        Shape::Tuple(vec![operand, Shape::scalar(PrimitiveType::U32), Shape::Token])
    }

    /// Reads operands up to the closing parenthesis: names, names preceded by their shapes, or
    /// nested instructions.
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
        let declared = if shape_is_next(self.lexer) { Some(read_shape(self.lexer)?) } else { None };
        let is_nested =
            matches!(self.lexer.peek(), Token::Word(_)) && self.lexer.peek_second() == Token::Symbol('(');
        if is_nested {
            if depth == MAX_NESTING {
                return Err(start.error(&format!("instructions nest deeper than {MAX_NESTING} levels")));
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
        match declared {
            Some(declared) if !fits(&declared, shape) => {
                Err(start
                    .error(&format!("operand '{name}' is declared as {declared}, but has shape {shape}")))
            }
            _ => Ok(operand),
        }
    }
}

/// Returns the shape with the layout of another.
fn with_layout_of(shape: Shape, other: &Shape) -> Shape {
    match (shape, other) {
        (Shape::Array(array), Shape::Array(other)) if array.rank() == other.rank() => {
            Shape::Array(ArrayShape { layout: other.layout.clone(), ..array })
        }
        (shape, _) => shape,
    }
}

/// Returns the shape of a transpose with a layout that keeps the elements in place.
fn transpose_layout(shape: Shape, operand: &Shape, dimensions: &[usize]) -> Shape {
    let (Shape::Array(array), Shape::Array(operand)) = (&shape, operand) else { return shape };
    let row_major = || (0..operand.rank()).rev().collect::<Vec<usize>>().into();
    let layout = operand.layout.clone().unwrap_or_else(row_major);
    let place = |dimension: &usize| dimensions.iter().position(|d| d == dimension).unwrap_or_default();
    let minor_to_major = layout.minor_to_major.iter().map(place).collect();
    Shape::Array(ArrayShape { layout: Some(Layout { minor_to_major, ..layout }), ..array.clone() })
}

/// Moves attributes to the annotations.
fn carry(
    reader: &mut AttributeReader<'_, '_>,
    annotations: &mut Annotations,
    is_annotation: impl Fn(&str) -> bool,
) {
    let text = reader.text;
    for attribute in reader.attributes.iter_mut().filter(|a| !a.is_used && is_annotation(a.name)) {
        attribute.is_used = true;
        annotations.attributes.push((attribute.name.to_owned(), text[attribute.value.clone()].to_owned()));
    }
}

/// `control-predecessors={a, b}`: instructions of the same computation, as positions.
fn read_predecessors(
    reader: &mut AttributeReader<'_, '_>,
    names: &BTreeMap<&str, usize>,
) -> Result<Vec<usize>> {
    let Some(mut lexer) = reader.value("control-predecessors") else { return Ok(Vec::new()) };
    read_list(&mut lexer, |lexer| {
        let at = lexer.start();
        let name = lexer.expect_name("the name of an instruction")?;
        names.get(name).copied().ok_or_else(|| lexer.error_at(at, &format!("unknown instruction '{name}'")))
    })
}

fn reject_unknown(reader: &AttributeReader<'_, '_>, op: &Op) -> Result<()> {
    let name = op.opcode().name();
    if let Some(attribute) = reader.attributes.iter().find(|attribute| !attribute.is_used) {
        let message = format!("unknown attribute '{}' of {name}", attribute.name);
        return Err(reader.lexer.error_at(attribute.name_start, &message));
    }
    if let Op::CustomCall { attributes, .. } = op
        && let Some((attribute, _)) =
            attributes.iter().find(|(name, _)| !CUSTOM_CALL_ATTRIBUTES.contains(name))
    {
        return Err(reader.lexer.error(&format!("unknown attribute '{attribute}' of {name}")));
    }
    Ok(())
}

/// `metadata={op_type="MatMul" op_name="dense/MatMul" source_file="a.py" source_line=3}`; other
/// fields are kept as text.
fn read_metadata(reader: &mut AttributeReader<'_, '_>, rest: &mut String) -> Result<OpMetadata> {
    let mut metadata = OpMetadata::default();
    let text = reader.text;
    let Some(mut lexer) = reader.value("metadata") else { return Ok(metadata) };
    lexer.expect_symbol('{')?;
    while !lexer.eat_symbol('}') {
        let start = lexer.start();
        let name = lexer.expect_name("a field of the metadata")?;
        if lexer.peek() != Token::Symbol('=') {
            return Err(lexer.expected("'='"));
        }
        let range = value_range(text, lexer.start() + 1);
        let mut value = lexer.part(range.clone());
        let string = || match value.peek() {
            Token::Quoted(inside) => {
                unescape(inside).ok_or_else(|| value.error("invalid escape in a string"))
            }
            _ => Err(value.expected("a quoted string")),
        };
        match name {
            "op_type" => metadata.op_type = string()?,
            "op_name" => metadata.op_name = string()?,
            "source_file" => metadata.source_file = string()?,
            "source_line" => metadata.source_line = value.expect_integer("a line number")?,
            _ => {
                rest.push_str(if rest.is_empty() { "" } else { " " });
                rest.push_str(&text[start..range.end]);
            }
        }
        lexer.skip_to(range.end);
        lexer.eat_symbol(',');
    }
    Ok(metadata)
}
