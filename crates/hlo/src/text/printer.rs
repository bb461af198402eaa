//! The printer.

use super::attribute::{AttributePrinter, write_list};
use super::escape::write_quoted;
use super::literal::write_literal;
use super::names::{computation_names, instruction_names, sanitize};
use super::payload;
use crate::computation::Computation;
use crate::ids::{ComputationId, InstructionId};
use crate::instruction::{Instruction, OpMetadata};
use crate::module::{AliasKind, Module};
use crate::opcode::Op;
use shape::Shape;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const INFALLIBLE: &str = "writing to a string cannot fail";

/// Maximum number of elements of a constant in a short text.
const SHORT: usize = 10;

/// Options for [`print()`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintOptions {
    /// Print the layouts of shapes.
    pub layouts: bool,
    /// Print `{...}` for constants with more elements. Such a text cannot be read back.
    pub max_constant_elements: usize,
    /// Print metadata and annotations of instructions.
    pub metadata: bool,
}

impl Default for PrintOptions {
    /// Prints everything.
    fn default() -> Self {
        Self { layouts: true, max_constant_elements: usize::MAX, metadata: true }
    }
}

impl PrintOptions {
    /// Options for a human reader: no layouts, no metadata, no large constants.
    pub fn short() -> Self {
        Self { layouts: false, max_constant_elements: SHORT, metadata: false }
    }
}

/// Returns the module as HLO text: callees before callers, the entry last, operands before users.
pub fn print(module: &Module, options: PrintOptions) -> String {
    let mut out = format!("HloModule {}", sanitize(module.name()));
    print_aliases(module, &mut out);
    print_bounded_dimensions(module, &mut out);
    print_size_parameters(module, &mut out);
    if options.metadata {
        print_attributes(module.attributes(), &mut out);
    }
    out.push('\n');
    let names = computation_names(module);
    for id in computation_order(module) {
        out.push('\n');
        let is_entry = module.entry_if_set() == Some(id);
        out.push_str(if is_entry { "ENTRY " } else { "" });
        out.push_str(&names[&id]);
        out.push_str(" {\n");
        print_instructions(&module[id], &names, options, &mut out);
        out.push('}');
        if !module[id].execution_thread().is_empty() {
            out.push_str(", execution_thread=");
            write_quoted(module[id].execution_thread(), &mut out);
        }
        out.push('\n');
    }
    out
}

/// Writes attributes that are only passed through.
fn print_attributes(attributes: &[(String, String)], out: &mut String) {
    for (name, text) in attributes {
        write!(out, ", {name}={text}").expect(INFALLIBLE);
    }
}

fn print_aliases(module: &Module, out: &mut String) {
    if module.input_output_alias().is_empty() {
        return;
    }
    out.push_str(", input_output_alias={ ");
    for (i, alias) in module.input_output_alias().iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        write_list(&alias.output_index, out);
        write!(out, ": ({}, ", alias.parameter_number).expect(INFALLIBLE);
        write_list(&alias.parameter_index, out);
        out.push_str(match alias.kind {
            AliasKind::May => ", may-alias)",
            AliasKind::Must => ", must-alias)",
        });
    }
    out.push_str(" }");
}

fn print_bounded_dimensions(module: &Module, out: &mut String) {
    if module.bounded_dimensions().is_empty() {
        return;
    }
    let pairs: Vec<String> = module
        .bounded_dimensions()
        .iter()
        .map(|bounded| format!("({}, {})", bounded.result, bounded.dimension))
        .collect();
    write!(out, ", bounded_dimensions={{ {} }}", pairs.join(", ")).expect(INFALLIBLE);
}

fn print_size_parameters(module: &Module, out: &mut String) {
    if module.size_parameters().is_empty() {
        return;
    }
    let triples: Vec<String> = module
        .size_parameters()
        .iter()
        .map(|size| format!("({}, {}, {})", size.parameter, size.low, size.high))
        .collect();
    write!(out, ", size_parameters={{ {} }}", triples.join(", ")).expect(INFALLIBLE);
}

/// Returns all computations in the order in which they were added, except that callees precede
/// their callers: first those that the entry reaches or that precede it, then the entry, then the
/// rest. All are printed, because attributes that are kept as text can name computations that
/// nothing else calls.
pub(crate) fn computation_order(module: &Module) -> Vec<ComputationId> {
    let entry = module.entry_if_set().filter(|&entry| module.get(entry).is_some());
    let needs = |id: ComputationId| -> Vec<ComputationId> {
        let callees = module[id].instructions().flat_map(|(_, i)| i.op().called_computations());
        callees.filter(|&callee| module.get(callee).is_some()).collect()
    };
    let reachable: BTreeSet<ComputationId> = depth_first(entry.into_iter(), needs).into_iter().collect();
    let is_before = |id: &ComputationId| reachable.contains(id) || entry.is_none_or(|entry| *id < entry);
    let others = module.computations().map(|(id, _)| id).filter(|&id| Some(id) != entry);
    let (before, after): (Vec<_>, Vec<_>) = others.partition(is_before);
    depth_first(before.into_iter().chain(entry).chain(after), needs)
}

/// Returns all live instructions in the order in which they were added, except that operands
/// precede their users.
pub fn instruction_order(computation: &Computation) -> Vec<InstructionId> {
    let ids = computation.instructions().map(|(id, _)| id);
    depth_first(ids, |id| {
        let instruction = &computation[id];
        let predecessors =
            instruction.annotations().map_or(&[][..], |annotations| &annotations.control_predecessors);
        let predecessors = predecessors.iter().filter(|&&id| computation.get(id).is_some());
        instruction.operands().iter().chain(predecessors).copied().collect()
    })
}

/// Returns all reachable items, each after the items that it needs, otherwise in the order of
/// `starts`.
pub(crate) fn depth_first<Id: Copy + Ord>(
    starts: impl Iterator<Item = Id>,
    needs: impl Fn(Id) -> Vec<Id>,
) -> Vec<Id> {
    let mut order = Vec::new();
    let mut seen = BTreeSet::new();
    for start in starts {
        let mut stack: Vec<(Id, std::vec::IntoIter<Id>)> = Vec::new();
        if seen.insert(start) {
            stack.push((start, needs(start).into_iter()));
        }
        while let Some((id, rest)) = stack.last_mut() {
            match rest.next() {
                Some(next) if seen.insert(next) => stack.push((next, needs(next).into_iter())),
                Some(_) => {}
                None => {
                    order.push(*id);
                    stack.pop();
                }
            }
        }
    }
    order
}

/// Returns the line that [`print()`] writes for each instruction, without indentation and `ROOT`.
pub fn instruction_texts(
    module: &Module,
    options: PrintOptions,
) -> BTreeMap<(ComputationId, InstructionId), String> {
    let computations = computation_names(module);
    let mut texts = BTreeMap::new();
    for (computation_id, computation) in module.computations() {
        let names = instruction_names(computation);
        for (id, _) in computation.instructions() {
            let mut text = String::new();
            print_instruction(
                computation,
                id,
                Names { instructions: &names, computations: &computations },
                options,
                &mut text,
            );
            texts.insert((computation_id, id), text);
        }
    }
    texts
}

fn print_instructions(
    computation: &Computation,
    computations: &BTreeMap<ComputationId, String>,
    options: PrintOptions,
    out: &mut String,
) {
    let names = instruction_names(computation);
    for id in instruction_order(computation) {
        out.push_str(if computation.root_if_set() == Some(id) { "  ROOT " } else { "  " });
        print_instruction(computation, id, Names { instructions: &names, computations }, options, out);
        out.push('\n');
    }
}

/// Printable names.
#[derive(Clone, Copy)]
struct Names<'n> {
    instructions: &'n BTreeMap<InstructionId, String>,
    computations: &'n BTreeMap<ComputationId, String>,
}

fn print_instruction(
    computation: &Computation,
    id: InstructionId,
    Names { instructions: names, computations }: Names<'_>,
    options: PrintOptions,
    out: &mut String,
) {
    let instruction = &computation[id];
    write!(out, "{} = ", names[&id]).expect(INFALLIBLE);
    print_shape(instruction.shape(), options, out);
    write!(out, " {}(", instruction.opcode().name()).expect(INFALLIBLE);
    print_operands(instruction, names, options, out);
    out.push(')');
    if !matches!(instruction.op(), Op::Parameter { .. } | Op::Constant { .. }) {
        let first = instruction.operands().first().map(|&operand| computation[operand].shape());
        let first_operand = first.and_then(Shape::as_array).map(|array| array.element_type);
        payload::print_attributes(
            instruction.op(),
            &mut AttributePrinter { out, computations, first_operand },
        );
        // XLA's parser requires the dimensions unless a scalar is broadcast, although the module is
        // invalid in that case.
        if let (Op::Broadcast { dimensions }, Some(array)) =
            (instruction.op(), first.and_then(Shape::as_array))
            && dimensions.is_empty()
            && array.rank() > 0
        {
            out.push_str(", dimensions={}");
        }
    }
    if options.metadata {
        print_annotations(computation, instruction, names, out);
        print_metadata(instruction, out);
    }
}

/// Writes the annotations of an instruction, except for metadata fields.
fn print_annotations(
    computation: &Computation,
    instruction: &Instruction,
    names: &BTreeMap<InstructionId, String>,
    out: &mut String,
) {
    let Some(annotations) = instruction.annotations() else { return };
    print_attributes(&annotations.attributes, out);
    let predecessors = annotations.control_predecessors.iter().filter(|&&id| computation.get(id).is_some());
    let predecessors: Vec<&str> = predecessors.map(|id| names[id].as_str()).collect();
    if !predecessors.is_empty() {
        out.push_str(", control-predecessors=");
        write_list(&predecessors, out);
    }
}

fn print_shape(shape: &Shape, options: PrintOptions, out: &mut String) {
    match shape {
        Shape::Array(array) if !options.layouts && array.layout.is_some() => {
            let plain = shape::ArrayShape { layout: None, ..array.clone() };
            write!(out, "{plain}").expect(INFALLIBLE);
        }
        Shape::Tuple(elements) => {
            out.push('(');
            for (i, element) in elements.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                print_shape(element, options, out);
            }
            out.push(')');
        }
        Shape::Array(_) | Shape::Token => write!(out, "{shape}").expect(INFALLIBLE),
    }
}

fn print_operands(
    instruction: &Instruction,
    names: &BTreeMap<InstructionId, String>,
    options: PrintOptions,
    out: &mut String,
) {
    match instruction.op() {
        Op::Parameter { number } => write!(out, "{number}").expect(INFALLIBLE),
        Op::Constant { literal } => {
            // Elided elements are zeros, and are elided again if there are many.
            let is_elided = instruction.annotations().is_some_and(|annotations| annotations.is_elided);
            let limit = if is_elided { SHORT } else { usize::MAX };
            write_literal(literal, limit.min(options.max_constant_elements), out);
        }
        _ => {
            let operands: Vec<&str> = instruction.operands().iter().map(|id| &names[id][..]).collect();
            out.push_str(&operands.join(", "));
        }
    }
}

fn print_metadata(instruction: &Instruction, out: &mut String) {
    let metadata = instruction.metadata();
    let rest = instruction.annotations().map_or("", |annotations| &annotations.metadata);
    if *metadata == OpMetadata::default() && rest.is_empty() {
        return;
    }
    out.push_str(", metadata={");
    let mut blank = "";
    let fields = [
        ("op_type", &metadata.op_type),
        ("op_name", &metadata.op_name),
        ("source_file", &metadata.source_file),
    ];
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
        write!(out, "{blank}{name}=").expect(INFALLIBLE);
        write_quoted(value, out);
        blank = " ";
    }
    if metadata.source_line != 0 {
        write!(out, "{blank}source_line={}", metadata.source_line).expect(INFALLIBLE);
        blank = " ";
    }
    if !rest.is_empty() {
        write!(out, "{blank}{rest}").expect(INFALLIBLE);
    }
    out.push('}');
}
