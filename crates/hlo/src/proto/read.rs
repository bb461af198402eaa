//! Dimension numbers in TensorFlow graphs: serialized messages of `xla_data.proto`.
//!
//! This module only checks that the numbers are not negative; shape inference checks them against
//! the operands.

use super::messages::{
    ConvolutionDimensionNumbersProto, DotDimensionNumbersProto, GatherDimensionNumbersProto,
    ScatterDimensionNumbersProto,
};
use crate::attributes::{
    ConvolutionDimensionNumbers, DotDimensionNumbers, GatherDimensionNumbers, ScatterDimensionNumbers,
};
use prost::Message;
use support::{Error, Result};

/// Decodes a serialized `xla.ConvolutionDimensionNumbers`. An error states why the bytes are
/// invalid.
pub fn convolution_dimension_numbers_from_bytes(bytes: &[u8]) -> Result<ConvolutionDimensionNumbers> {
    let proto: ConvolutionDimensionNumbersProto = decode(bytes)?;
    Ok(ConvolutionDimensionNumbers {
        input_batch_dimension: dimension(proto.input_batch_dimension)?,
        input_feature_dimension: dimension(proto.input_feature_dimension)?,
        input_spatial_dimensions: dimensions(&proto.input_spatial_dimensions)?,
        kernel_input_feature_dimension: dimension(proto.kernel_input_feature_dimension)?,
        kernel_output_feature_dimension: dimension(proto.kernel_output_feature_dimension)?,
        kernel_spatial_dimensions: dimensions(&proto.kernel_spatial_dimensions)?,
        output_batch_dimension: dimension(proto.output_batch_dimension)?,
        output_feature_dimension: dimension(proto.output_feature_dimension)?,
        output_spatial_dimensions: dimensions(&proto.output_spatial_dimensions)?,
    })
}

/// Decodes a serialized `xla.DotDimensionNumbers`. An error states why the bytes are invalid.
pub fn dot_dimension_numbers_from_bytes(bytes: &[u8]) -> Result<DotDimensionNumbers> {
    let proto: DotDimensionNumbersProto = decode(bytes)?;
    Ok(DotDimensionNumbers {
        lhs_batch_dims: dimensions(&proto.lhs_batch_dimensions)?,
        lhs_contracting_dims: dimensions(&proto.lhs_contracting_dimensions)?,
        rhs_batch_dims: dimensions(&proto.rhs_batch_dimensions)?,
        rhs_contracting_dims: dimensions(&proto.rhs_contracting_dimensions)?,
    })
}

/// Decodes a serialized `xla.GatherDimensionNumbers`. An error states why the bytes are invalid.
pub fn gather_dimension_numbers_from_bytes(bytes: &[u8]) -> Result<GatherDimensionNumbers> {
    let proto: GatherDimensionNumbersProto = decode(bytes)?;
    Ok(GatherDimensionNumbers {
        offset_dims: dimensions(&proto.offset_dims)?,
        collapsed_slice_dims: dimensions(&proto.collapsed_slice_dims)?,
        start_index_map: dimensions(&proto.start_index_map)?,
        operand_batching_dims: dimensions(&proto.operand_batching_dims)?,
        start_indices_batching_dims: dimensions(&proto.start_indices_batching_dims)?,
        index_vector_dim: dimension(proto.index_vector_dim)?,
    })
}

/// Decodes a serialized `xla.ScatterDimensionNumbers`. An error states why the bytes are invalid.
pub fn scatter_dimension_numbers_from_bytes(bytes: &[u8]) -> Result<ScatterDimensionNumbers> {
    let proto: ScatterDimensionNumbersProto = decode(bytes)?;
    Ok(ScatterDimensionNumbers {
        update_window_dims: dimensions(&proto.update_window_dims)?,
        inserted_window_dims: dimensions(&proto.inserted_window_dims)?,
        scatter_dims_to_operand_dims: dimensions(&proto.scatter_dims_to_operand_dims)?,
        input_batching_dims: dimensions(&proto.input_batching_dims)?,
        scatter_indices_batching_dims: dimensions(&proto.scatter_indices_batching_dims)?,
        index_vector_dim: dimension(proto.index_vector_dim)?,
    })
}

fn decode<M: Message + Default>(bytes: &[u8]) -> Result<M> {
    M::decode(bytes).map_err(|e| Error::invalid(e.to_string()))
}

fn dimension(number: i64) -> Result<usize> {
    usize::try_from(number).map_err(|_| Error::invalid(format!("a dimension number is negative: {number}")))
}

fn dimensions(numbers: &[i64]) -> Result<Vec<usize>> {
    numbers.iter().map(|&number| dimension(number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_and_single_numbers_are_read() {
        // Fields 1 to 3 are packed, as protoc writes them; field 4 is a number.
        let numbers =
            scatter_dimension_numbers_from_bytes(b"\n\x01\x01\x12\x01\0\x1a\x01\0 \x01").expect("valid");
        assert_eq!(numbers.update_window_dims, [1]);
        assert_eq!(numbers.inserted_window_dims, [0]);
        assert_eq!(numbers.scatter_dims_to_operand_dims, [0]);
        assert_eq!(numbers.index_vector_dim, 1);
        // Not packed: field 1 twice.
        let numbers = dot_dimension_numbers_from_bytes(&[8, 2, 8, 1, 0x22, 1, 0]).expect("valid");
        assert_eq!(numbers.lhs_contracting_dims, [2, 1]);
        assert_eq!(numbers.rhs_batch_dims, [0]);
    }

    #[test]
    fn negative_numbers_and_noise_are_rejected() {
        let minus_one = [0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        let error = gather_dimension_numbers_from_bytes(&minus_one).expect_err("expected an error");
        assert_eq!(error.message(), "a dimension number is negative: -1");
        assert!(gather_dimension_numbers_from_bytes(b"\xff\xff").is_err());
    }
}
