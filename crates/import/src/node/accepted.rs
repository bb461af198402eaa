//! Ops whose rules are correct for arrays of bounded size.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Elementwise ops. The result has the sizes of the inputs, even if the rule returns a constant.
pub(crate) const ELEMENTWISE: &str = "\
    Abs Acos Acosh Add AddN AddV2 Angle ApproximateEqual Asin Asinh Atan Atan2 Atanh BitwiseAnd \
    BitwiseOr BitwiseXor Cast Ceil CheckNumerics ClipByValue Complex ComplexAbs Conj Cos Cosh Digamma Div \
    DivNoNan Elu EluGrad Equal Erf Erfc Erfinv Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Imag Inv \
    InvGrad Invert IsFinite IsInf IsNan LeakyRelu LeakyReluGrad LeftShift Less LessEqual Lgamma Log Log1p \
    LogicalAnd LogicalNot LogicalOr Maximum Minimum Mod Mul MulNoNan Ndtri Neg NextAfter NotEqual OnesLike Pow \
    Real RealDiv Reciprocal ReciprocalGrad Relu Relu6 Relu6Grad ReluGrad RightShift Rint Round Rsqrt RsqrtGrad \
    Select SelectV2 Selu SeluGrad Sigmoid SigmoidGrad Sign Sin Sinh Softplus SoftplusGrad Softsign SoftsignGrad \
    Sqrt SqrtGrad Square SquaredDifference Sub Tan Tanh TanhGrad TruncateDiv TruncateMod Xdivy Xlog1py Xlogy \
    ZerosLike";

/// Other ops, whose rules read true sizes where they need them.
pub(crate) const OTHERS: &str = "\
    All Any ArgMax ArgMin BatchToSpace BatchToSpaceND BatchMatMul BatchMatMulV2 BatchMatMulV3 BiasAdd BiasAddGrad BroadcastTo Concat ConcatV2 \
    ConjugateTranspose Cumprod Cumsum CumulativeLogsumexp Einsum EnsureShape ExpandDims FFT FFT2D FFT3D Fill Gather GatherNd \
    GatherV2 IFFT IFFT2D IFFT3D IRFFT IRFFT2D IRFFT3D L2Loss ListDiff LogSoftmax MatMul MatrixBandPart MatrixDiag MatrixDiagPart MatrixDiagPartV2 \
    MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3 MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3 Max Mean Min \
    NonMaxSuppression NonMaxSuppressionV2 NonMaxSuppressionV3 NonMaxSuppressionV4 NonMaxSuppressionV5 OneHot Pack \
    Pad PadV2 Prod Qr Range Rank Reshape ResourceGather Reverse ReverseV2 RFFT RFFT2D RFFT3D Roll ScatterNd SegmentMaxV2 SegmentMinV2 SegmentProdV2 SegmentSumV2 Shape \
    ShapeN Size Slice Softmax SoftmaxCrossEntropyWithLogits SpaceToBatch SpaceToBatchND SparseSoftmaxCrossEntropyWithLogits Split SplitV \
    Squeeze StridedSlice Sum Svd TensorScatterAdd TensorScatterMax TensorScatterMin TensorScatterSub \
    TensorScatterUpdate Tile TopK TopKV2 Transpose Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2 Unpack \
    UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum Where \
    OnnxArgMax OnnxArgMin OnnxAveragePool OnnxConv OnnxConvInteger OnnxDequantizeLinear OnnxDFT OnnxDynamicQuantizeLinear OnnxMsDequantizeLinear OnnxMsDynamicQuantizeLSTM OnnxMsQuantizeLinear OnnxExpand OnnxFlatten OnnxGather OnnxGatherElements OnnxGatherND OnnxGRU OnnxLogSoftmax OnnxLSTM OnnxMatMul OnnxMoveAxis OnnxReduceL1 OnnxReduceL2 OnnxReduceLogSum \
    OnnxReduceLogSumExp OnnxReduceMax OnnxReduceMean OnnxReduceMin OnnxReduceProd OnnxReduceSum OnnxReduceSumSquare \
    OnnxQuantizeLinear OnnxReshape OnnxRNN OnnxScatterElements OnnxScatterND OnnxSlice OnnxSoftmax OnnxSplit OnnxSqueeze OnnxTile \
    OnnxMaxPool OnnxNonMaxSuppression OnnxPad OnnxSTFT OnnxTopK OnnxTranspose OnnxUnsqueeze \
    TensorArrayGather TensorArrayGatherV2 TensorArrayGatherV3 TensorArrayScatter TensorArrayScatterV2 TensorArrayScatterV3 \
    TensorArrayUnpack TensorArrayWrite TensorArrayWriteV2 TensorArrayWriteV3 \
    TensorListFromTensor TensorListGather TensorListGetItem TensorListPopBack TensorListPushBack \
    TensorListSetItem TensorListStack XlaKeyValueSort XlaRemoveDynamicDimensionSize \
    XlaSetDynamicDimensionSize XlaSort XlaSvd XlaVariadicSort";

/// Ops whose rules see whole arrays if only the batch is bounded, and otherwise true sizes.
const WINDOWS: &str = "\
    AvgPool AvgPool3D Conv2D Conv2DBackpropInput Conv3D Conv3DBackpropInputV2 DepthToSpace DepthwiseConv2dNative \
    DepthwiseConv2dNativeBackpropInput MaxPool MaxPool3D MaxPoolV2 ResizeBilinear ResizeNearestNeighbor SpaceToDepth \
    OnnxConvTranspose OnnxDepthToSpace OnnxGlobalAveragePool OnnxGlobalLpPool OnnxGlobalMaxPool OnnxGroupNormalization \
    OnnxInstanceNormalization OnnxLpPool OnnxMeanVarianceNormalization OnnxResize OnnxSpaceToDepth OnnxUpsample";

type Ops = LazyLock<HashSet<&'static str>>;

/// The lists, which are asked about each node.
static ELEMENTWISE_OPS: Ops = LazyLock::new(|| ELEMENTWISE.split_whitespace().collect());
static OTHER_OPS: Ops = LazyLock::new(|| OTHERS.split_whitespace().collect());
static WINDOW_OPS: Ops = LazyLock::new(|| WINDOWS.split_whitespace().collect());

/// True if an op accepts arrays of bounded size. Ops that pass values through, such as `Identity`,
/// need not be listed.
pub(crate) fn takes_bounded(op: &str) -> bool {
    always_takes_bounded(op) || WINDOW_OPS.contains(op)
}

/// True if an op's rule sees true sizes whichever dimensions are bounded.
pub(crate) fn always_takes_bounded(op: &str) -> bool {
    keeps_input_sizes(op) || OTHER_OPS.contains(op)
}

/// True if an op's result has the broadcast sizes of its inputs.
pub(crate) fn keeps_input_sizes(op: &str) -> bool {
    ELEMENTWISE_OPS.contains(op)
}
