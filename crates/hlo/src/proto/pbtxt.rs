//! Protocol buffers' text format: written from the bytes of the binary one, by tables of what each field is.

use shape::PrimitiveType;
use std::fmt::Write as _;
use support::{Error, Result};

/// What a field holds.
#[derive(Clone, Copy)]
enum Kind {
    Signed,
    Unsigned,
    Bool,
    Float,
    Double,
    /// A string, or bytes.
    Bytes,
    /// `xla.PrimitiveType`, by name.
    ElementType,
    Message(&'static Fields),
}

use Kind::{Bool, Bytes, Double, ElementType, Float, Message, Signed, Unsigned};

/// Number, name and kind of each field of a message.
struct Fields(&'static [(u32, &'static str, Kind)]);

static HLO_MODULE: Fields = Fields(&[
    (1, "name", Bytes),
    (2, "entry_computation_name", Bytes),
    (3, "computations", Message(&HLO_COMPUTATION)),
    (4, "host_program_shape", Message(&PROGRAM_SHAPE)),
    (5, "id", Signed),
    (6, "entry_computation_id", Signed),
    (7, "schedule", Message(&HLO_SCHEDULE)),
    (8, "input_output_alias", Message(&HLO_INPUT_OUTPUT_ALIAS)),
    (18, "buffer_donor", Message(&HLO_BUFFER_DONOR)),
    (19, "frontend_attributes", Message(&FRONTEND_ATTRIBUTES)),
    (20, "original_value_recovery_table", Message(&RECOVERY_TABLE)),
]);
static HLO_BUFFER_DONOR: Fields = Fields(&[(1, "entries", Message(&BUFFER_DONOR_ENTRY))]);
static BUFFER_DONOR_ENTRY: Fields =
    Fields(&[(1, "parameter_number", Signed), (2, "parameter_shape_index", Signed)]);
static FRONTEND_ATTRIBUTES: Fields = Fields(&[(1, "map", Message(&FRONTEND_ATTRIBUTE))]);
static FRONTEND_ATTRIBUTE: Fields = Fields(&[(1, "key", Bytes), (2, "value", Bytes)]);
static RECOVERY_TABLE: Fields = Fields(&[(1, "entries", Message(&RECOVERY_ENTRY))]);
static RECOVERY_ENTRY: Fields = Fields(&[
    (1, "old_original_array", Message(&ORIGINAL_ARRAY)),
    (2, "new_original_array", Message(&ORIGINAL_ARRAY)),
    (3, "recovery_module", Message(&HLO_MODULE)),
]);
static ORIGINAL_ARRAY: Fields = Fields(&[(1, "instruction_name", Bytes), (2, "shape_index", Signed)]);
static HLO_SCHEDULE: Fields = Fields(&[(1, "sequences", Message(&SEQUENCE_ENTRY))]);
static SEQUENCE_ENTRY: Fields = Fields(&[(1, "key", Signed), (2, "value", Message(&INSTRUCTION_SEQUENCE))]);
static INSTRUCTION_SEQUENCE: Fields = Fields(&[(1, "instruction_ids", Signed)]);
static HLO_INPUT_OUTPUT_ALIAS: Fields = Fields(&[(1, "entries", Message(&ALIAS_ENTRY))]);
static ALIAS_ENTRY: Fields = Fields(&[
    (1, "output_shape_index", Signed),
    (2, "parameter_number", Signed),
    (3, "parameter_shape_index", Signed),
    (4, "kind", Signed),
]);
static HLO_COMPUTATION: Fields = Fields(&[
    (1, "name", Bytes),
    (2, "instructions", Message(&HLO_INSTRUCTION)),
    (4, "program_shape", Message(&PROGRAM_SHAPE)),
    (5, "id", Signed),
    (6, "root_id", Signed),
    (7, "is_fusion_computation", Bool),
    (8, "execution_thread", Bytes),
]);
static HLO_INSTRUCTION: Fields = Fields(&[
    (1, "name", Bytes),
    (2, "opcode", Bytes),
    (3, "shape", Message(&SHAPE)),
    (7, "metadata", Message(&OP_METADATA)),
    (8, "literal", Message(&LITERAL)),
    (9, "parameter_number", Signed),
    (11, "fusion_kind", Bytes),
    (13, "tuple_index", Signed),
    (14, "dimensions", Signed),
    (15, "window", Message(&WINDOW)),
    (16, "convolution_dimension_numbers", Message(&CONVOLUTION_DIMENSION_NUMBERS)),
    (17, "slice_dimensions", Message(&SLICE_DIMENSIONS)),
    (18, "exponent_bits", Signed),
    (19, "mantissa_bits", Signed),
    (20, "dynamic_slice_sizes", Signed),
    (21, "padding_config", Message(&PADDING_CONFIG)),
    (23, "distribution", Signed),
    (24, "epsilon", Float),
    (25, "feature_index", Signed),
    (28, "custom_call_target", Bytes),
    (30, "dot_dimension_numbers", Message(&DOT_DIMENSION_NUMBERS)),
    (31, "fft_type", Signed),
    (32, "fft_length", Signed),
    (33, "gather_dimension_numbers", Message(&GATHER_DIMENSION_NUMBERS)),
    (34, "gather_slice_sizes", Signed),
    (35, "id", Signed),
    (36, "operand_ids", Signed),
    (38, "called_computation_ids", Signed),
    (43, "backend_config", Bytes),
    (48, "scatter_dimension_numbers", Message(&SCATTER_DIMENSION_NUMBERS)),
    (50, "feature_group_count", Signed),
    (58, "batch_group_count", Signed),
    (59, "triangular_solve_options", Message(&TRIANGULAR_SOLVE_OPTIONS)),
    (60, "is_stable", Bool),
    (62, "cholesky_options", Message(&CHOLESKY_OPTIONS)),
    (63, "comparison_direction", Bytes),
    (65, "custom_call_has_side_effect", Bool),
    (66, "delta", Signed),
    (67, "indices_are_sorted", Bool),
    (69, "unique_indices", Bool),
    (70, "rng_algorithm", Signed),
    (72, "comparison_type", Bytes),
    (77, "custom_call_api_version", Signed),
    (81, "k", Signed),
    (85, "largest", Bool),
]);
static SLICE_DIMENSIONS: Fields =
    Fields(&[(1, "start", Signed), (2, "limit", Signed), (3, "stride", Signed)]);
static OP_METADATA: Fields = Fields(&[
    (1, "op_type", Bytes),
    (2, "op_name", Bytes),
    (3, "source_file", Bytes),
    (4, "source_line", Signed),
    (5, "profile_type", Signed),
    (12, "deduplicated_name", Bytes),
    (16, "scheduling_name", Bytes),
    (17, "source_end_line", Signed),
    (18, "source_column", Signed),
    (19, "source_end_column", Signed),
]);
static SHAPE: Fields = Fields(&[
    (2, "element_type", ElementType),
    (3, "dimensions", Signed),
    (4, "tuple_shapes", Message(&SHAPE)),
    (5, "layout", Message(&LAYOUT)),
    (6, "is_dynamic_dimension", Bool),
]);
static LAYOUT: Fields = Fields(&[
    (1, "minor_to_major", Signed),
    (6, "tiles", Message(&TILE)),
    (7, "element_size_in_bits", Signed),
    (8, "memory_space", Signed),
    (10, "physical_shape", Message(&SHAPE)),
    (11, "index_primitive_type", ElementType),
    (12, "pointer_primitive_type", ElementType),
    (15, "dynamic_shape_metadata_prefix_bytes", Signed),
    (16, "tail_padding_alignment_in_elements", Signed),
    (17, "split_configs", Message(&SPLIT_CONFIG)),
]);
static TILE: Fields = Fields(&[(1, "dimensions", Signed)]);
static SPLIT_CONFIG: Fields = Fields(&[(1, "dimension", Signed), (2, "split_indices", Signed)]);
static PROGRAM_SHAPE: Fields = Fields(&[
    (1, "parameters", Message(&SHAPE)),
    (2, "result", Message(&SHAPE)),
    (3, "parameter_names", Bytes),
]);
static LITERAL: Fields = Fields(&[
    (1, "shape", Message(&SHAPE)),
    (2, "preds", Bool),
    (3, "u8s", Bytes),
    (4, "s32s", Signed),
    (5, "s64s", Signed),
    (6, "u32s", Unsigned),
    (7, "u64s", Unsigned),
    (8, "f32s", Float),
    (9, "f64s", Double),
    (10, "tuple_literals", Message(&LITERAL)),
    (11, "f16s", Bytes),
    (12, "c64s", Float),
    (13, "bf16s", Bytes),
    (15, "s8s", Bytes),
    (16, "u16s", Bytes),
    (17, "s16s", Bytes),
    (18, "c128s", Double),
    (19, "f8e5m2s", Bytes),
    (20, "f8e4m3fns", Bytes),
    (21, "s4s", Bytes),
    (22, "u4s", Bytes),
    (23, "f8e4m3b11fnuzs", Bytes),
    (24, "f8e5m2fnuzs", Bytes),
    (25, "f8e4m3fnuzs", Bytes),
    (26, "s2s", Bytes),
    (27, "u2s", Bytes),
    (28, "f8e4m3s", Bytes),
    (29, "f8e3m4s", Bytes),
    (30, "s1s", Bytes),
    (31, "u1s", Bytes),
    (32, "f4e2m1fns", Bytes),
    (33, "f8e8m0fnus", Bytes),
]);
static WINDOW: Fields = Fields(&[(1, "dimensions", Message(&WINDOW_DIMENSION))]);
static WINDOW_DIMENSION: Fields = Fields(&[
    (1, "size", Signed),
    (2, "stride", Signed),
    (3, "padding_low", Signed),
    (4, "padding_high", Signed),
    (5, "window_dilation", Signed),
    (6, "base_dilation", Signed),
    (7, "window_reversal", Bool),
]);
static CONVOLUTION_DIMENSION_NUMBERS: Fields = Fields(&[
    (3, "kernel_input_feature_dimension", Signed),
    (4, "kernel_output_feature_dimension", Signed),
    (6, "kernel_spatial_dimensions", Signed),
    (7, "input_batch_dimension", Signed),
    (8, "input_feature_dimension", Signed),
    (9, "output_batch_dimension", Signed),
    (10, "output_feature_dimension", Signed),
    (11, "input_spatial_dimensions", Signed),
    (12, "output_spatial_dimensions", Signed),
]);
static DOT_DIMENSION_NUMBERS: Fields = Fields(&[
    (1, "lhs_contracting_dimensions", Signed),
    (2, "rhs_contracting_dimensions", Signed),
    (3, "lhs_batch_dimensions", Signed),
    (4, "rhs_batch_dimensions", Signed),
]);
static GATHER_DIMENSION_NUMBERS: Fields = Fields(&[
    (1, "offset_dims", Signed),
    (2, "collapsed_slice_dims", Signed),
    (3, "start_index_map", Signed),
    (4, "index_vector_dim", Signed),
    (5, "operand_batching_dims", Signed),
    (6, "start_indices_batching_dims", Signed),
]);
static SCATTER_DIMENSION_NUMBERS: Fields = Fields(&[
    (1, "update_window_dims", Signed),
    (2, "inserted_window_dims", Signed),
    (3, "scatter_dims_to_operand_dims", Signed),
    (4, "index_vector_dim", Signed),
    (5, "input_batching_dims", Signed),
    (6, "scatter_indices_batching_dims", Signed),
]);
static PADDING_CONFIG: Fields = Fields(&[(1, "dimensions", Message(&PADDING_CONFIG_DIMENSION))]);
static PADDING_CONFIG_DIMENSION: Fields = Fields(&[
    (1, "edge_padding_low", Signed),
    (2, "edge_padding_high", Signed),
    (3, "interior_padding", Signed),
]);
static TRIANGULAR_SOLVE_OPTIONS: Fields = Fields(&[
    (1, "left_side", Bool),
    (2, "lower", Bool),
    (3, "unit_diagonal", Bool),
    (4, "transpose_a", Signed),
]);
static CHOLESKY_OPTIONS: Fields = Fields(&[(1, "lower", Bool)]);

/// The text of a serialized `xla.HloModuleProto`.
pub(super) fn module_text(bytes: &[u8]) -> Result<String> {
    let mut out = String::new();
    message(bytes, &HLO_MODULE, 0, &mut out)
        .ok_or_else(|| Error::internal("a message that does not read back"))?;
    Ok(out)
}

/// Appends a message's fields, one to a line; `None` if the bytes are not those of one.
fn message(mut bytes: &[u8], fields: &Fields, level: usize, out: &mut String) -> Option<()> {
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let (number, wire) = ((key >> 3) as u32, key & 7);
        let &(_, name, kind) = fields.0.iter().find(|(field, ..)| *field == number)?;
        let indent = "  ".repeat(level);
        match (wire, kind) {
            (2, Message(below)) => {
                let content = block(&mut bytes)?;
                let _ = writeln!(out, "{indent}{name} {{");
                message(content, below, level + 1, out)?;
                let _ = writeln!(out, "{indent}}}");
            }
            (2, Bytes) => {
                let text = escaped(block(&mut bytes)?);
                let _ = writeln!(out, "{indent}{name}: \"{text}\"");
            }
            // Numbers of a list, one behind the other.
            (2, _) => {
                let mut packed = block(&mut bytes)?;
                while !packed.is_empty() {
                    let value = scalar(&mut packed, kind)?;
                    let _ = writeln!(out, "{indent}{name}: {value}");
                }
            }
            _ => {
                let value = scalar(&mut bytes, kind)?;
                let _ = writeln!(out, "{indent}{name}: {value}");
            }
        }
    }
    Some(())
}

fn scalar(bytes: &mut &[u8], kind: Kind) -> Option<String> {
    Some(match kind {
        Signed => (varint(bytes)? as i64).to_string(),
        Unsigned => varint(bytes)?.to_string(),
        Bool => (varint(bytes)? != 0).to_string(),
        Float => number(f32::from_le_bytes(*take::<4>(bytes)?)),
        Double => number(f64::from_le_bytes(*take::<8>(bytes)?)),
        ElementType => element_type(varint(bytes)?),
        Bytes | Message(_) => return None,
    })
}

/// A float as the text format reads it.
fn number(value: impl Into<f64> + std::fmt::LowerExp) -> String {
    let text = format!("{value:e}");
    let wide: f64 = value.into();
    if wide.is_nan() {
        "nan".to_owned()
    } else if wide.is_infinite() {
        if wide > 0.0 { "inf" } else { "-inf" }.to_owned()
    } else {
        text
    }
}

fn element_type(value: u64) -> String {
    match i32::try_from(value) {
        Ok(super::TUPLE) => "TUPLE".to_owned(),
        Ok(super::TOKEN) => "TOKEN".to_owned(),
        _ => match PrimitiveType::ALL.iter().find(|known| **known as u64 == value) {
            Some(known) => known.name().to_uppercase(),
            None => value.to_string(),
        },
    }
}

fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend(['\\', byte.into()]),
            0x20..0x7f => out.push(byte.into()),
            _ => {
                let _ = write!(out, "\\{byte:03o}");
            }
        }
    }
    out
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn take<'b, const N: usize>(bytes: &mut &'b [u8]) -> Option<&'b [u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(taken)
}

fn block<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = usize::try_from(varint(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of the messages in a source file, with their numbers: each struct's name and its fields.
    fn messages(source: &str) -> Vec<(&str, Vec<(&str, &str)>)> {
        let mut found: Vec<(&str, Vec<(&str, &str)>)> = Vec::new();
        let mut number = None;
        for line in source.lines() {
            if let Some(name) = line.strip_prefix("pub struct ") {
                found.push((name.trim_end_matches(" {"), Vec::new()));
            } else if let Some(tag) = line.split("tag = \"").nth(1) {
                number = tag.split('"').next();
            } else if let (Some(field), Some((_, fields))) = (line.strip_prefix("    pub "), found.last_mut())
            {
                let name = field.split(':').next().expect("a name");
                fields.push((name, number.take().expect("a number before the field")));
            }
        }
        found
    }

    /// Every field has a row, name and number; of instructions every field that is written.
    #[test]
    fn the_tables_have_every_field() {
        let all = messages(include_str!("messages.rs"));
        let read_whole = all.into_iter().filter(|(name, _)| !["HloSnapshot", "HloProto"].contains(name));
        let mut wanted: Vec<(&str, &str)> = read_whole.flat_map(|(_, fields)| fields).collect();
        let writer = include_str!("instruction.rs");
        let is_written = |name: &str| {
            writer.contains(&format!("message.{name} = ")) || writer.contains(&format!("\n        {name}: "))
        };
        let instruction = messages(include_str!("instruction_messages.rs")).remove(0).1;
        wanted.extend(instruction.into_iter().filter(|(name, _)| is_written(name)));
        assert!(wanted.len() > 130, "{} fields", wanted.len());
        let table = include_str!("pbtxt.rs");
        for (name, number) in wanted {
            let row = format!("({number}, \"{name}\", ");
            assert!(table.contains(&row), "no row {row}");
        }
    }

    #[test]
    fn a_module_is_fields_by_name() {
        let text = "HloModule m\nENTRY e {\n  ROOT c = f32[2] constant({-1.5, inf})\n}\n";
        let module = crate::parse(text).expect("a module");
        let text = crate::proto::to_hlo_module_proto_text(&module).expect("messages");
        assert!(text.starts_with("name: \"m\"\nentry_computation_name: \"e\"\ncomputations {\n"), "{text}");
        for line in
            ["      f32s: -1.5e0\n      f32s: inf\n", "        element_type: F32\n        dimensions: 2\n"]
        {
            assert!(text.contains(line), "{text}");
        }
        assert_eq!(escaped(b"a\"\\\n"), "a\\\"\\\\\\012");
    }
}
