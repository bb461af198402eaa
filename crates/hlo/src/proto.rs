//! HLO as protocol buffers: `xla.HloModuleProto`, and `xla.HloSnapshot`, which
//! `--out_session_module` writes.
//!
//! The written bytes are a function of the module alone. Messages are converted to text before they
//! are parsed.

mod annotations_text;
mod attributes_text;
mod data_messages;
mod dimensions;
mod from_text;
mod instruction;
mod instruction_messages;
mod literal;
mod messages;
mod module_text;
mod pbtxt;
mod pbtxt_tables;
mod read;
mod read_literal;
mod read_module;
mod shape_text;
mod text_form;

pub use read::{
    convolution_dimension_numbers_from_bytes, dot_dimension_numbers_from_bytes,
    gather_dimension_numbers_from_bytes, scatter_dimension_numbers_from_bytes,
};

pub use read_module::{is_hlo_proto, read_hlo_proto};

use crate::computation::Computation;
use crate::ids::{ComputationId, InstructionId};
use crate::module::{AliasKind, Module};
use crate::opcode::Op;
use crate::text::{computation_order, instruction_order, sanitize};
use crate::xla_types::check_xla_types;
use messages::{
    AliasEntryProto, HloComputationProto, HloInputOutputAliasProto, HloModuleProto, HloProto,
    HloScheduleProto, HloSnapshot, InstructionSequenceProto, LayoutProto, ProgramShapeProto, ShapeProto,
};
use prost::Message;
use shape::{ArrayShape, Dimension, Literal, Shape};
use std::collections::{BTreeMap, BTreeSet};
use support::Result;

/// Returns the module as a serialized `xla.HloModuleProto`. An error names an instruction that only
/// text can represent.
pub fn to_hlo_module_proto_bytes(module: &Module) -> Result<Vec<u8>> {
    Ok(module_proto(module)?.encode_to_vec())
}

/// Wraps a serialized `xla.HloModuleProto` in an `xla.HloProto`, the format of XLA's dump files.
pub fn in_hlo_proto(module: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(module.len() + 12);
    prost::encoding::bytes::encode(1, &module.to_vec(), &mut bytes);
    bytes
}

/// Like [`to_hlo_module_proto_bytes`], for a module whose instructions are scheduled in their
/// order.
pub fn to_scheduled_hlo_module_proto_bytes(module: &Module) -> Result<Vec<u8>> {
    let mut proto = module_proto(module)?;
    proto.schedule = Some(schedule(&proto));
    Ok(proto.encode_to_vec())
}

/// Returns the instructions of each computation in their order.
fn schedule(module: &HloModuleProto) -> HloScheduleProto {
    let sequences = module.computations.iter().filter(|computation| !computation.is_fusion_computation);
    let sequences = sequences.map(|computation| {
        let instruction_ids = computation.instructions.iter().map(|instruction| instruction.id).collect();
        (computation.id, InstructionSequenceProto { instruction_ids })
    });
    HloScheduleProto { sequences: sequences.collect() }
}

/// Returns the module as an `xla.HloModuleProto` in protocol buffers' text format.
pub fn to_hlo_module_proto_text(module: &Module) -> Result<String> {
    pbtxt::module_text(&to_hlo_module_proto_bytes(module)?)
}

/// Returns the module as a serialized `xla.HloSnapshot` without arguments and result.
pub fn to_hlo_snapshot_bytes(module: &Module) -> Result<Vec<u8>> {
    to_hlo_snapshot_bytes_with(module, &[])
}

/// Like [`to_hlo_snapshot_bytes`], with arguments for the entry, so that XLA's tools can replay it.
pub fn to_hlo_snapshot_bytes_with(module: &Module, arguments: &[Literal]) -> Result<Vec<u8>> {
    let hlo = HloProto { hlo_module: Some(module_proto(module)?) };
    let arguments = arguments.iter().map(literal::proto).collect();
    Ok(HloSnapshot { hlo: Some(hlo), arguments, ..HloSnapshot::default() }.encode_to_vec())
}

/// Numbers and names that are unique in the module, as XLA requires.
struct Numbers {
    computations: BTreeMap<ComputationId, i64>,
    instructions: BTreeMap<(ComputationId, InstructionId), (i64, String)>,
}

fn number(module: &Module, order: &[ComputationId]) -> Numbers {
    let mut numbers = Numbers { computations: BTreeMap::new(), instructions: BTreeMap::new() };
    let mut names = UniqueNames::default();
    for (i, &computation) in order.iter().enumerate() {
        numbers.computations.insert(computation, i as i64 + 1);
        for instruction in instruction_order(&module[computation]) {
            let name = names.take(&sanitize(module[computation][instruction].name()));
            let number = numbers.instructions.len() as i64 + 1;
            numbers.instructions.insert((computation, instruction), (number, name));
        }
    }
    numbers
}

/// Names generated like XLA's `NameUniquer` does: the number after the last period is incremented
/// if the name is taken, and a name without a number counts as 0.
#[derive(Default)]
struct UniqueNames(BTreeMap<String, TakenNumbers>);

#[derive(Default)]
struct TakenNumbers {
    taken: BTreeSet<i64>,
    next: i64,
}

impl UniqueNames {
    fn take(&mut self, wish: &str) -> String {
        let parts = wish.rsplit_once('.').filter(|(stem, _)| !stem.is_empty());
        let parts = parts.and_then(|(stem, number)| Some((stem, number.parse::<i64>().ok()?)));
        let (stem, number) = parts.unwrap_or((wish, 0));
        let TakenNumbers { taken, next } = self.0.entry(stem.to_owned()).or_default();
        let number = if taken.insert(number) {
            number
        } else {
            while !taken.insert(*next) {
                *next += 1;
            }
            *next
        };
        if number == 0 && parts.is_none() { stem.to_owned() } else { format!("{stem}.{number}") }
    }
}

fn module_proto(module: &Module) -> Result<HloModuleProto> {
    check_xla_types(module)?;
    let order = computation_order(module);
    let numbers = number(module, &order);
    let mut taken = UniqueNames::default();
    let name = |&id: &ComputationId| (id, taken.take(&sanitize(module[id].name())));
    let names: BTreeMap<ComputationId, String> = order.iter().map(name).collect();
    let fusion_bodies: BTreeSet<ComputationId> = order
        .iter()
        .flat_map(|&id| module[id].instructions())
        .filter_map(|(_, instruction)| match instruction.op() {
            Op::Fusion { calls, .. } => Some(*calls),
            _ => None,
        })
        .collect();
    let mut computations = Vec::with_capacity(order.len());
    for &id in &order {
        let computation = &module[id];
        let mut instructions = Vec::new();
        for instruction in instruction_order(computation) {
            instructions.push(instruction::proto(module, id, instruction, &numbers)?);
        }
        computations.push(HloComputationProto {
            name: names[&id].clone(),
            instructions,
            program_shape: Some(program_shape(computation, id, &numbers)?),
            id: numbers.computations[&id],
            root_id: numbers.instructions[&(id, computation.root())].0,
            is_fusion_computation: fusion_bodies.contains(&id),
            execution_thread: match computation.execution_thread() {
                "" => MAIN_THREAD.to_owned(),
                thread => thread.to_owned(),
            },
        });
    }
    let entry = module.entry();
    let mut message = HloModuleProto {
        name: sanitize(module.name()),
        entry_computation_name: names[&entry].clone(),
        computations,
        host_program_shape: Some(program_shape(&module[entry], entry, &numbers)?),
        id: 0,
        entry_computation_id: numbers.computations[&entry],
        schedule: None,
        input_output_alias: alias_proto(module),
        ..HloModuleProto::default()
    };
    for (name, text) in module.attributes() {
        from_text::header::fill(&mut message, name, text)
            .map_err(|e| e.context(format_args!("the module's attribute '{name}'")))?;
    }
    Ok(message)
}

fn alias_proto(module: &Module) -> Option<HloInputOutputAliasProto> {
    let entries = module.input_output_alias().iter().map(|alias| AliasEntryProto {
        output_shape_index: signed(&alias.output_index),
        parameter_number: alias.parameter_number as i64,
        parameter_shape_index: signed(&alias.parameter_index),
        kind: match alias.kind {
            AliasKind::May => 1,
            AliasKind::Must => 2,
        },
    });
    (!module.input_output_alias().is_empty()).then(|| HloInputOutputAliasProto { entries: entries.collect() })
}

fn program_shape(
    computation: &Computation,
    id: ComputationId,
    numbers: &Numbers,
) -> Result<ProgramShapeProto> {
    let shape = |instruction| shape_proto(computation[instruction].shape());
    Ok(ProgramShapeProto {
        parameters: computation.parameters().iter().map(|&p| shape(p)).collect::<Result<_>>()?,
        result: Some(shape(computation.root())?),
        parameter_names: computation
            .parameters()
            .iter()
            .map(|&parameter| numbers.instructions[&(id, parameter)].1.clone())
            .collect(),
    })
}

/// `xla.PrimitiveType`'s numbers for shapes that are not arrays.
const TUPLE: i32 = 13;
const TOKEN: i32 = 17;

/// The thread of computations without an explicit one.
const MAIN_THREAD: &str = "main";

/// Returns the shape's message. An error names the part of a layout that only text can represent.
fn shape_proto(shape: &Shape) -> Result<ShapeProto> {
    Ok(match shape {
        Shape::Array(array) => array_proto(array)?,
        Shape::Tuple(elements) => tuple_proto(elements.iter().map(shape_proto).collect::<Result<_>>()?),
        Shape::Token => ShapeProto { element_type: TOKEN, ..ShapeProto::default() },
    })
}

fn tuple_proto(tuple_shapes: Vec<ShapeProto>) -> ShapeProto {
    ShapeProto { element_type: TUPLE, tuple_shapes, ..ShapeProto::default() }
}

fn array_proto(array: &ArrayShape) -> Result<ShapeProto> {
    let mut message = row_major(array);
    let (Some(layout), Some(stated)) = (&mut message.layout, &array.layout) else { return Ok(message) };
    layout.minor_to_major = signed(&stated.minor_to_major);
    let carried = stated.carried();
    from_text::layout::fill(layout, &carried.text)?;
    Ok(if carried.is_buffer {
        ShapeProto { element_type: shape_text::BUFFER, tuple_shapes: vec![message], ..ShapeProto::default() }
    } else {
        message
    })
}

/// Returns the message of a row-major array.
fn row_major(array: &ArrayShape) -> ShapeProto {
    let minor_to_major = (0..array.rank() as i64).rev().collect();
    let size = |dimension: &Dimension| match *dimension {
        Dimension::UNBOUNDED => shape_text::UNBOUNDED,
        Dimension { size, .. } => size,
    };
    ShapeProto {
        element_type: array.element_type as i32,
        dimensions: array.dimensions.iter().map(size).collect(),
        tuple_shapes: Vec::new(),
        layout: Some(LayoutProto { minor_to_major, ..LayoutProto::default() }),
        is_dynamic_dimension: array.dimensions.iter().map(|dimension| dimension.is_dynamic).collect(),
    }
}

fn signed(values: &[usize]) -> Vec<i64> {
    values.iter().map(|&value| value as i64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn the_smallest_module_has_the_expected_bytes() {
        let module =
            parse("HloModule m\nENTRY e {\n  ROOT p = f32[2] parameter(0)\n}\n").expect("a valid text");
        let bytes =
            to_hlo_module_proto_bytes(&module).expect("expected a module that a message can represent");
        // f32[2]{0}: element_type 2: 11, dimensions 3: [2], layout 5: {1: [0]},
        // is_dynamic_dimension 6: [0].
        let shape = [0x10, 11, 0x1a, 1, 2, 0x2a, 3, 0x0a, 1, 0, 0x32, 1, 0];
        let mut instruction = vec![0x0a, 1, b'p', 0x12, 9];
        instruction.extend(b"parameter");
        instruction.extend([0x1a, 13]);
        instruction.extend(shape);
        // id, field 35: 1.
        instruction.extend([0x98, 0x02, 1]);
        let mut program_shape = vec![0x0a, 13];
        program_shape.extend(shape);
        program_shape.extend([0x12, 13]);
        program_shape.extend(shape);
        program_shape.extend([0x1a, 1, b'p']);
        let mut computation = vec![0x0a, 1, b'e', 0x12, instruction.len() as u8];
        computation.extend(&instruction);
        computation.extend([0x22, program_shape.len() as u8]);
        computation.extend(&program_shape);
        computation.extend([0x28, 1, 0x30, 1, 0x42, 4]);
        computation.extend(b"main");
        let mut expected = vec![0x0a, 1, b'm', 0x12, 1, b'e', 0x1a, computation.len() as u8];
        expected.extend(&computation);
        expected.extend([0x22, program_shape.len() as u8]);
        expected.extend(&program_shape);
        expected.extend([0x30, 1]);
        assert_eq!(bytes, expected);
        let snapshot = to_hlo_snapshot_bytes(&module).expect("the same");
        assert_eq!(expected.len(), 127);
        assert_eq!(snapshot[..5], [0x0a, 0x81, 0x01, 0x0a, 127], "129 bytes of hlo, 127 of hlo_module");
        assert_eq!(snapshot[5..], expected);
    }

    #[test]
    fn errors_name_parts_that_only_text_can_represent() {
        let error_of = |attribute: &str| {
            let text = format!("HloModule m\nENTRY e {{\n  ROOT r = f32[2] parameter(0), {attribute}\n}}\n");
            let module = parse(&text).expect("a valid text");
            to_hlo_module_proto_bytes(&module).expect_err("expected an error").message().to_owned()
        };
        let mesh = error_of("sharding={mesh['x'=2], [{'x'}]}");
        assert_eq!(mesh, "instruction 'r': a sharding with 'mesh' is only supported as text");
        let metadata = error_of("metadata={op_name=\"a\" stack_frame_id=3}");
        assert_eq!(
            metadata,
            "instruction 'r': the field 'stack_frame_id' of metadata is only supported as text"
        );
    }

    #[test]
    fn an_unbounded_size_has_xlas_number() {
        let text = "HloModule m\nENTRY e {\n  ROOT p = f32[?,<=3] parameter(0)\n}\n";
        let message =
            module_proto(&parse(text).expect("a valid text")).expect("expected a field for everything");
        let shape = message.computations[0].instructions[0].shape.as_ref().expect("a shape");
        assert_eq!(shape.dimensions, [i64::MIN, 3]);
        assert_eq!(shape.is_dynamic_dimension, [true, true]);
    }

    #[test]
    fn taken_names_continue_from_their_number() {
        let mut names = UniqueNames::default();
        let wishes =
            ["gte.1", "gte.1", "gte", "gte", "add", "add", "add.2", "a.b", "a.b", ".5", "x.007", "x.7"];
        let expected =
            ["gte.1", "gte.0", "gte.2", "gte.3", "add", "add.1", "add.2", "a.b", "a.b.1", ".5", "x.7", "x.0"];
        assert_eq!(wishes.map(|wish| names.take(wish)), expected);
    }
}
