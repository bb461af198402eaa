//! Instructions as `xla.HloInstructionProto`.

use super::dimensions::*;
use super::from_text::attribute;
use super::messages::*;
use super::{Numbers, literal, shape_proto, signed};
use crate::attributes::*;
use crate::ids::{ComputationId, InstructionId};
use crate::instruction::{Instruction, OpMetadata};
use crate::module::Module;
use crate::opcode::Op;
use crate::{calling_ops, movement_ops, numeric_ops};
use support::Result;

/// The interface version of a custom call whose text states none: the original one, which predates
/// versions.
const API_VERSION_ORIGINAL: i32 = 1;

/// Returns the instruction's message.
pub(super) fn proto(
    module: &Module,
    computation: ComputationId,
    id: InstructionId,
    numbers: &Numbers,
) -> Result<HloInstructionProto> {
    let instruction = &module[computation][id];
    let (number, name) = &numbers.instructions[&(computation, id)];
    let operands = instruction.operands().iter();
    let annotations = instruction.annotations();
    let predecessors = annotations.map_or(&[][..], |a| &a.control_predecessors);
    let predecessors = predecessors.iter().filter_map(|&id| numbers.instructions.get(&(computation, id)));
    let mut message = HloInstructionProto {
        name: name.clone(),
        opcode: instruction.opcode().name().to_owned(),
        metadata: metadata_proto(instruction.metadata()),
        id: *number,
        operand_ids: operands.map(|&operand| numbers.instructions[&(computation, operand)].0).collect(),
        control_predecessor_ids: predecessors.map(|(number, _)| *number).collect(),
        called_computation_ids: called_computations(instruction.op())
            .iter()
            .map(|id| numbers.computations[id])
            .collect(),
        ..HloInstructionProto::default()
    };
    let result = fill_all(&mut message, instruction);
    result.map_err(|e| e.context(format_args!("instruction '{}'", instruction.name())))?;
    // If the text does not state the shape, XLA's parser uses that of the sent operand.
    if let (Op::Outfeed { .. }, Some(&operand), None) =
        (instruction.op(), instruction.operands().first(), &message.outfeed_shape)
    {
        message.outfeed_shape = Some(shape_proto(module[computation][operand].shape())?);
    }
    Ok(message)
}

/// Sets the fields that depend only on the instruction.
fn fill_all(message: &mut HloInstructionProto, instruction: &Instruction) -> Result<()> {
    message.shape = Some(shape_proto(instruction.shape())?);
    fill(message, instruction.op());
    if let Op::Constant { literal } = instruction.op() {
        message.literal = Some(literal::with_layout(literal, instruction.shape()));
    }
    for (name, value) in instruction.op().raw_attributes().into_iter().flat_map(RawAttributes::iter) {
        if let RawValue::Text(text) = value {
            attribute::fill(message, name, text)?;
        }
    }
    let Some(annotations) = instruction.annotations() else { return Ok(()) };
    for (name, text) in &annotations.attributes {
        attribute::fill(message, name, text)?;
    }
    if !annotations.metadata.is_empty() {
        attribute::fill_metadata(message.metadata.get_or_insert_default(), &annotations.metadata)?;
    }
    Ok(())
}

/// Returns the called computations in the order of XLA's instruction, which differs for `while`.
fn called_computations(op: &Op) -> Vec<ComputationId> {
    match op {
        Op::While { condition, body } => vec![*body, *condition],
        _ => op.called_computations(),
    }
}

fn metadata_proto(metadata: &OpMetadata) -> Option<OpMetadataProto> {
    (*metadata != OpMetadata::default()).then(|| OpMetadataProto {
        op_type: metadata.op_type.clone(),
        op_name: metadata.op_name.clone(),
        source_file: metadata.source_file.clone(),
        source_line: i32::try_from(metadata.source_line).unwrap_or(i32::MAX),
        ..OpMetadataProto::default()
    })
}

/// Sets the fields of the payload, except for those that are stored as text.
fn fill(message: &mut HloInstructionProto, op: &Op) {
    match op {
        Op::Compare { direction, comparison_type } => {
            message.comparison_direction = format!("{direction:?}").to_uppercase();
            if *comparison_type == ComparisonType::TotalOrder {
                message.comparison_type = "TOTALORDER".to_owned();
            }
        }
        Op::ReducePrecision { exponent_bits, mantissa_bits } => {
            message.exponent_bits = *exponent_bits as i32;
            message.mantissa_bits = *mantissa_bits as i32;
        }
        Op::GetTupleElement { index } => message.tuple_index = *index as i64,
        Op::Parameter { number } => message.parameter_number = *number as i64,
        movement_ops!() => fill_movement(message, op),
        calling_ops!() => fill_calling(message, op),
        numeric_ops!() => fill_numeric(message, op),
        _ => {}
    }
}

fn fill_movement(message: &mut HloInstructionProto, op: &Op) {
    match op {
        Op::Broadcast { dimensions } | Op::Reverse { dimensions } | Op::Transpose { dimensions } => {
            message.dimensions = signed(dimensions);
        }
        Op::Concatenate { dimension }
        | Op::GetDimensionSize { dimension }
        | Op::SetDimensionSize { dimension }
        | Op::Iota { iota_dimension: dimension } => message.dimensions = vec![*dimension as i64],
        Op::DynamicSlice { dynamic_slice_sizes } => message.dynamic_slice_sizes = dynamic_slice_sizes.clone(),
        Op::Gather { gather_dimension_numbers, slice_sizes, indices_are_sorted } => {
            message.gather_dimension_numbers = Some(gather_proto(gather_dimension_numbers));
            message.gather_slice_sizes = slice_sizes.clone();
            message.indices_are_sorted = *indices_are_sorted;
        }
        Op::Pad { padding } => message.padding_config = Some(padding_proto(padding)),
        Op::Slice { slice } => message.slice_dimensions = slice.iter().map(slice_proto).collect(),
        _ => {}
    }
}

fn fill_calling(message: &mut HloInstructionProto, op: &Op) {
    match op {
        Op::Map { dimensions, .. } | Op::Reduce { dimensions, .. } => message.dimensions = signed(dimensions),
        Op::Sort { dimension, is_stable, .. } => {
            message.dimensions = vec![*dimension as i64];
            message.is_stable = *is_stable;
        }
        Op::CustomCall { custom_call_target, backend_config, custom_call_has_side_effect, .. } => {
            message.custom_call_target = custom_call_target.clone();
            message.backend_config = backend_config.clone().into_bytes();
            message.custom_call_has_side_effect = *custom_call_has_side_effect;
            message.custom_call_api_version = API_VERSION_ORIGINAL;
        }
        Op::Fusion { xla_kind, .. } => message.fusion_kind = format!("k{xla_kind:?}"),
        Op::ReduceWindow { window, .. } | Op::SelectAndScatter { window, .. } => {
            message.window = Some(window_proto(window));
        }
        Op::Scatter { scatter_dimension_numbers, indices_are_sorted, unique_indices, .. } => {
            message.scatter_dimension_numbers = Some(scatter_proto(scatter_dimension_numbers));
            message.indices_are_sorted = *indices_are_sorted;
            message.unique_indices = *unique_indices;
        }
        _ => {}
    }
}

fn fill_numeric(message: &mut HloInstructionProto, op: &Op) {
    match op {
        Op::BatchNormGrad { epsilon, feature_index }
        | Op::BatchNormInference { epsilon, feature_index }
        | Op::BatchNormTraining { epsilon, feature_index } => {
            message.epsilon = *epsilon;
            message.feature_index = *feature_index as i64;
        }
        Op::Cholesky { lower } => message.cholesky_options = Some(CholeskyOptionsProto { lower: *lower }),
        Op::Convolution { window, dim_labels, feature_group_count, batch_group_count } => {
            message.window = Some(window_proto(window));
            message.convolution_dimension_numbers = Some(convolution_proto(dim_labels));
            message.feature_group_count = *feature_group_count;
            message.batch_group_count = *batch_group_count;
        }
        Op::Dot { dot_dimension_numbers: numbers } => {
            message.dot_dimension_numbers = Some(DotDimensionNumbersProto {
                lhs_contracting_dimensions: signed(&numbers.lhs_contracting_dims),
                rhs_contracting_dimensions: signed(&numbers.rhs_contracting_dims),
                lhs_batch_dimensions: signed(&numbers.lhs_batch_dims),
                rhs_batch_dimensions: signed(&numbers.rhs_batch_dims),
            });
        }
        Op::Fft { fft_type, fft_length } => {
            message.fft_type = *fft_type as i32;
            message.fft_length = fft_length.clone();
        }
        Op::Rng { distribution } => {
            message.distribution = match distribution {
                RandomDistribution::Uniform => 1,
                RandomDistribution::Normal => 2,
            };
        }
        Op::RngBitGenerator { algorithm } => message.rng_algorithm = *algorithm as i32,
        Op::RngGetAndUpdateState { delta } => message.delta = *delta,
        Op::TopK { k, largest } => {
            message.k = *k;
            message.largest = *largest;
        }
        Op::TriangularSolve { left_side, lower, unit_diagonal, transpose_a } => {
            message.triangular_solve_options = Some(TriangularSolveOptionsProto {
                left_side: *left_side,
                lower: *lower,
                unit_diagonal: *unit_diagonal,
                transpose_a: *transpose_a as i32 + 1,
            });
        }
        _ => {}
    }
}
