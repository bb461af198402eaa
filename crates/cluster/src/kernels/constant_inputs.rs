//! The inputs whose values XLA's programs are compiled for.

/// The names of the input arguments of an op that XLA wants as constants when it compiles.
pub fn compile_time_constant_inputs(op: &str) -> &'static [&'static str] {
    match op {
        "RngReadAndSkip" | "StochasticCastToInt" => &["alg"],
        "StatelessRandomNormalV2"
        | "StatelessRandomUniformFullIntV2"
        | "StatelessRandomUniformIntV2"
        | "StatelessRandomUniformV2"
        | "StatelessTruncatedNormalV2" => &["alg", "shape"],
        "RngSkip" => &["algorithm"],
        "StatefulStandardNormalV2"
        | "StatefulTruncatedNormal"
        | "StatefulUniform"
        | "StatefulUniformFullInt"
        | "StatefulUniformInt"
        | "XlaRngBitGenerator" => &["algorithm", "shape"],
        "ConcatV2"
        | "Cumprod"
        | "Cumsum"
        | "CumulativeLogsumexp"
        | "GatherV2"
        | "ReverseV2"
        | "Roll"
        | "UniqueV2" => &["axis"],
        "XlaReduceWindow" => {
            &["base_dilations", "padding", "window_dilations", "window_dimensions", "window_strides"]
        }
        "StridedSliceGrad" => &["begin", "end", "shape", "strides"],
        "ResourceStridedSliceAssign" | "StridedSlice" | "TensorStridedSliceUpdate" => {
            &["begin", "end", "strides"]
        }
        "Slice" => &["begin", "size"],
        "BatchToSpaceND" => &["block_shape", "crops"],
        "SpaceToBatchND" => &["block_shape", "paddings"],
        "XlaSetBound" => &["bound"],
        "XlaBroadcastHelper" => &["broadcast_dims"],
        "Concat" => &["concat_dim"],
        "ConcatOffset" => &["concat_dim", "shape"],
        "BatchToSpace" => &["crops"],
        "Range" => &["delta", "limit", "start"],
        "OneHot" => &["depth"],
        "ExpandDims" => &["dim"],
        "XlaRemoveDynamicDimensionSize" | "XlaSetDynamicDimensionSize" => &["dim_index"],
        "ArgMax" | "ArgMin" | "XlaVariadicSort" => &["dimension"],
        "Fill" | "Reverse" => &["dims"],
        "TensorListFromTensor" => &["element_shape"],
        "TensorListSplit" => &["element_shape", "lengths"],
        "EmptyTensorList" => &["element_shape", "max_num_elements"],
        "TensorListReserve" => &["element_shape", "num_elements"],
        "XlaConv" | "XlaConvV2" => {
            &["feature_group_count", "lhs_dilation", "padding", "rhs_dilation", "window_strides"]
        }
        "IRFFT" | "IRFFT2D" | "IRFFT3D" | "RFFT" | "RFFT2D" | "RFFT3D" => &["fft_length"],
        "Conv2DBackpropFilter" | "Conv3DBackpropFilterV2" | "DepthwiseConv2dNativeBackpropFilter" => {
            &["filter_sizes"]
        }
        "CollectiveAssignGroupV2" | "XlaAllReduce" => &["group_assignment"],
        "XlaReduceScatter" => &["group_assignment", "scatter_dimension"],
        "CollectiveReduceV2" => &["group_key", "group_size"],
        "_FusedConv2D" => &["host_args"],
        "DynamicStitch" | "ParallelDynamicStitch" => &["indices"],
        "UniformRequantize" => &["input_scales", "input_zero_points", "output_scales", "output_zero_points"],
        "Conv2DBackpropInput" | "Conv3DBackpropInputV2" | "DepthwiseConv2dNativeBackpropInput" => {
            &["input_sizes"]
        }
        "InTopKV2" | "MatrixSetDiagV2" | "MatrixSetDiagV3" | "TopKV2" => &["k"],
        "MatrixDiagV2" | "MatrixDiagV3" => &["k", "num_cols", "num_rows", "padding_value"],
        "MatrixDiagPartV2" | "MatrixDiagPartV3" => &["k", "padding_value"],
        "MaxPoolGradGradV2" | "MaxPoolGradV2" | "MaxPoolV2" => &["ksize", "strides"],
        "TensorArraySplitV3" => &["lengths"],
        "UniformQuantizedAdd" | "UniformQuantizedConvolution" | "UniformQuantizedDot" => &[
            "lhs_scales",
            "lhs_zero_points",
            "output_scales",
            "output_zero_points",
            "rhs_scales",
            "rhs_zero_points",
        ],
        "NonMaxSuppressionV3" | "NonMaxSuppressionV4" => &["max_output_size"],
        "StackV2" => &["max_size"],
        "Tile" => &["multiples"],
        "LinSpace" => &["num"],
        "Multinomial" | "StatelessMultinomial" => &["num_samples"],
        "SegmentMaxV2"
        | "SegmentMinV2"
        | "SegmentProdV2"
        | "SegmentSumV2"
        | "UnsortedSegmentMax"
        | "UnsortedSegmentMin"
        | "UnsortedSegmentProd"
        | "UnsortedSegmentSum" => &["num_segments"],
        "AvgPool3DGrad" | "AvgPoolGrad" => &["orig_input_shape"],
        "SparseToDense" => &["output_shape"],
        "XlaSelectAndScatter" => &["padding", "window_dimensions", "window_strides"],
        "XlaPad" => &["padding_high", "padding_interior", "padding_low"],
        "MirrorPad" | "MirrorPadGrad" | "Pad" | "PadV2" | "SpaceToBatch" => &["paddings"],
        "ConjugateTranspose" | "Transpose" => &["perm"],
        "All" | "Any" | "Max" | "Mean" | "Min" | "Prod" | "Sum" => &["reduction_indices"],
        "BroadcastArgs" | "BroadcastGradientArgs" => &["s0", "s1"],
        "UniformDequantize" | "UniformQuantize" | "UniformQuantizedClipByValue" => &["scales", "zero_points"],
        "BroadcastTo"
        | "Empty"
        | "ParameterizedTruncatedNormal"
        | "RandomStandardNormal"
        | "RandomUniform"
        | "RandomUniformInt"
        | "Reshape"
        | "ScatterNd"
        | "StatelessParameterizedTruncatedNormal"
        | "StatelessRandomNormal"
        | "StatelessRandomUniform"
        | "StatelessRandomUniformFullInt"
        | "StatelessRandomUniformInt"
        | "StatelessTruncatedNormal"
        | "TruncatedNormal" => &["shape"],
        "Bincount" | "DenseBincount" | "ResizeBilinear" | "ResizeNearestNeighbor" | "TensorArrayV3" => {
            &["size"]
        }
        "XlaDynamicSlice" => &["size_indices"],
        "SplitV" => &["size_splits", "split_dim"],
        "XlaGather" => &["slice_sizes"],
        "Split" => &["split_dim"],
        "ListDiff" => &["x", "y"],
        _ => &[],
    }
}
