"""Tolerances of floating-point results, the only table of them.

Integers and booleans are exact, or within one quantization step where LiteRT's kernels differ from each other. `case`
multiplies the absolute tolerance of a sum by the number of its summands.
"""

PLAIN = 1e-6
ELEMENTARY = 1e-5

# Ops whose float kernels evaluate elementary functions, or divide by sums of them.
ELEMENTARY_OPS = {
    "ATAN2", "COS", "ELU", "EXP", "GELU", "HARD_SWISH", "L2_NORMALIZATION", "L2_POOL_2D",
    "LOCAL_RESPONSE_NORMALIZATION", "LOG", "LOGISTIC", "LOG_SOFTMAX", "POW", "RSQRT", "SIN", "SOFTMAX", "SQRT", "TANH",
    "COMPLEX_ABS", "RFFT2D",
    "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM", "RNN", "UNIDIRECTIONAL_SEQUENCE_RNN",
    "BIDIRECTIONAL_SEQUENCE_RNN", "SVDF", "RANDOM_STANDARD_NORMAL",
}  # fmt: skip

# Ops that move values, choose among them, or round them. Their results are exact.
EXACT_OPS = {
    "ABS", "BATCH_TO_SPACE_ND", "BITCAST", "BROADCAST_TO", "CAST", "CEIL", "CONCATENATION", "DENSIFY", "DEPTH_TO_SPACE",
    "DILATE", "DYNAMIC_UPDATE_SLICE", "EXPAND_DIMS", "FILL", "FLOOR", "GATHER", "GATHER_ND", "IMAG", "MATRIX_DIAG",
    "MATRIX_SET_DIAG", "MAXIMUM", "MAX_POOL_2D", "MINIMUM", "MIRROR_PAD", "NEG", "ONE_HOT", "PACK", "PAD", "PADV2",
    "REAL", "REDUCE_MAX", "REDUCE_MIN", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "RESHAPE",
    "RESIZE_NEAREST_NEIGHBOR", "REVERSE_SEQUENCE", "REVERSE_V2", "ROUND", "SELECT", "SELECT_V2", "SIGN", "SLICE",
    "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH", "SPARSE_TO_DENSE", "SPLIT", "SPLIT_V", "SQUEEZE", "STABLEHLO_GATHER",
    "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM", "STABLEHLO_PAD", "STRIDED_SLICE", "TILE", "TOPK_V2", "TRANSPOSE",
    "UNIQUE", "UNPACK", "UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN", "ZEROS_LIKE",
}  # fmt: skip

# (atol, rtol) where the reference kernel deviates from the exact result, with the reason.
SPECIAL = {}

# Half a unit in the last place, times four for a chain of operations.
NARROW = {"float16": 2e-3, "bfloat16": 1.6e-2}


def tolerance(op, types):
    """Absolute and relative tolerance of an op's results in a model with these types."""
    if op in SPECIAL:
        return SPECIAL[op][:2]
    if op in EXACT_OPS:
        return 0, 0
    for dtype, error in NARROW.items():
        if dtype in types and op not in ("DEQUANTIZE", "FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D"):
            return error, error
    error = ELEMENTARY if op in ELEMENTARY_OPS else PLAIN
    return error, error
