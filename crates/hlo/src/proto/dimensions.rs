//! Windows, paddings, and dimension numbers as messages.

use super::messages::*;
use super::signed;
use crate::attributes::*;

pub(super) fn slice_proto(slice: &SliceDimension) -> SliceDimensionsProto {
    SliceDimensionsProto { start: slice.start, limit: slice.limit, stride: slice.stride }
}

pub(super) fn window_proto(window: &Window) -> WindowProto {
    let dimensions = window.dimensions.iter().map(|dimension| WindowDimensionProto {
        size: dimension.size,
        stride: dimension.stride,
        padding_low: dimension.padding_low,
        padding_high: dimension.padding_high,
        window_dilation: dimension.window_dilation,
        base_dilation: dimension.base_dilation,
        window_reversal: dimension.window_reversal,
    });
    WindowProto { dimensions: dimensions.collect() }
}

pub(super) fn padding_proto(padding: &PaddingConfig) -> PaddingConfigProto {
    let dimensions = padding.dimensions.iter().map(|dimension| PaddingConfigDimensionProto {
        edge_padding_low: dimension.edge_padding_low,
        edge_padding_high: dimension.edge_padding_high,
        interior_padding: dimension.interior_padding,
    });
    PaddingConfigProto { dimensions: dimensions.collect() }
}

pub(super) fn convolution_proto(labels: &ConvolutionDimensionNumbers) -> ConvolutionDimensionNumbersProto {
    ConvolutionDimensionNumbersProto {
        kernel_input_feature_dimension: labels.kernel_input_feature_dimension as i64,
        kernel_output_feature_dimension: labels.kernel_output_feature_dimension as i64,
        kernel_spatial_dimensions: signed(&labels.kernel_spatial_dimensions),
        input_batch_dimension: labels.input_batch_dimension as i64,
        input_feature_dimension: labels.input_feature_dimension as i64,
        output_batch_dimension: labels.output_batch_dimension as i64,
        output_feature_dimension: labels.output_feature_dimension as i64,
        input_spatial_dimensions: signed(&labels.input_spatial_dimensions),
        output_spatial_dimensions: signed(&labels.output_spatial_dimensions),
    }
}

pub(super) fn gather_proto(numbers: &GatherDimensionNumbers) -> GatherDimensionNumbersProto {
    GatherDimensionNumbersProto {
        offset_dims: signed(&numbers.offset_dims),
        collapsed_slice_dims: signed(&numbers.collapsed_slice_dims),
        start_index_map: signed(&numbers.start_index_map),
        index_vector_dim: numbers.index_vector_dim as i64,
        operand_batching_dims: signed(&numbers.operand_batching_dims),
        start_indices_batching_dims: signed(&numbers.start_indices_batching_dims),
    }
}

pub(super) fn scatter_proto(numbers: &ScatterDimensionNumbers) -> ScatterDimensionNumbersProto {
    ScatterDimensionNumbersProto {
        update_window_dims: signed(&numbers.update_window_dims),
        inserted_window_dims: signed(&numbers.inserted_window_dims),
        scatter_dims_to_operand_dims: signed(&numbers.scatter_dims_to_operand_dims),
        index_vector_dim: numbers.index_vector_dim as i64,
        input_batching_dims: signed(&numbers.input_batching_dims),
        scatter_indices_batching_dims: signed(&numbers.scatter_indices_batching_dims),
    }
}
