"""Convolutions: CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, CONV_3D, CONV_3D_TRANSPOSE."""

import math

import numpy as np

from builder import SAME, VALID, Quant, case, const, feed, given, given_feed, integers, out

# Name: input, kernel (height, width), output channels, padding, strides (height, width), dilations,
# activation.
SHAPES = {
    "same_3x3": ((1, 6, 5, 3), (3, 3), 4, SAME, (1, 1), (1, 1), "none"),
    "valid_3x3": ((2, 5, 6, 2), (3, 3), 3, VALID, (1, 1), (1, 1), "none"),
    "1x1": ((2, 3, 3, 8), (1, 1), 6, VALID, (1, 1), (1, 1), "none"),
    "1x1_strides": ((1, 5, 5, 4), (1, 1), 3, SAME, (2, 2), (1, 1), "none"),
    "same_strides_2": ((1, 7, 6, 3), (3, 3), 4, SAME, (2, 2), (1, 1), "relu6"),
    "valid_strides_2_1": ((1, 7, 7, 2), (3, 2), 2, VALID, (2, 1), (1, 1), "relu"),
    "same_dilations_2": ((1, 7, 7, 2), (3, 3), 3, SAME, (1, 1), (2, 2), "none"),
    "valid_dilations_1_3": ((1, 5, 8, 2), (2, 3), 2, VALID, (1, 1), (1, 3), "relu_n1_to_1"),
    "even_kernel_same": ((1, 5, 5, 1), (2, 4), 2, SAME, (1, 2), (1, 1), "none"),
    "kernel_of_image_size": ((2, 4, 3, 2), (4, 3), 5, VALID, (1, 1), (1, 1), "none"),
    "kernel_larger_than_image": ((1, 2, 2, 2), (5, 5), 2, SAME, (1, 1), (1, 1), "none"),
    "strides_larger_than_kernel": ((1, 7, 7, 2), (2, 2), 2, VALID, (3, 3), (1, 1), "none"),
    "many_channels": ((1, 2, 3, 19), (1, 2), 17, VALID, (1, 1), (1, 1), "relu"),
    "one_dimensional": ((2, 1, 9, 3), (1, 3), 4, SAME, (1, 1), (1, 1), "none"),
    "no_batch": ((0, 4, 4, 2), (3, 3), 2, SAME, (1, 1), (1, 1), "none"),
}
FEW = ("same_3x3", "1x1", "same_strides_2", "valid_dilations_1_3", "many_channels", "kernel_larger_than_image")
ACTIVATIONS = {"none": 0, "relu": 1, "relu_n1_to_1": 2, "relu6": 3, "tanh": 4}
# Quantization of inputs and results by type, and the deviation of uniformly distributed stored
# values.
INPUT = {"int8": Quant(0.04, -9), "uint8": Quant(0.04, 119), "int16": Quant(0.0002)}
ZERO = {"int8": 11, "uint8": 139, "int16": 0}
DEVIATION = {"int8": 74, "uint8": 74, "int16": 19000, "int4": 4.6, "int2": 1.1}


def channel_scales(count, base=0.01):
    """Different scales for channels, not in order."""
    return [round(base * (0.3 + ((k * 7) % 10) / 5), 6) for k in range(count)]


def result_quant(dtype, weights, scale, depth):
    """Quantization at which a few results saturate."""
    stored = math.sqrt(max(depth, 1)) * DEVIATION[dtype] * DEVIATION[weights]
    return Quant(float(np.float32(scale * stored / DEVIATION[dtype] * 1.2)), ZERO[dtype])


def quantized_operands(dtype, weights, kernel, channels, axis, depth, per_channel, bias):
    """Weights, bias, and the result's quantization of a quantized convolution."""
    source = INPUT[dtype]
    scales = channel_scales(channels) if per_channel else [0.01]
    zero = 137 if weights == "uint8" else 0
    span = {"int8": (-127, 127), "int4": (-7, 7), "uint8": (1, 255), "int2": (-1, 1)}[weights]
    operands = [const(weights, kernel, integers(*span), Quant(scales, zero, axis if per_channel else 0))]
    if bias is not None:
        bias_scales = [float(np.float32(source.scale) * np.float32(scale)) for scale in scales]
        reach = int(DEVIATION[dtype] * DEVIATION[weights] * math.sqrt(depth))
        operands.append(const(bias, (channels,), integers(-reach, reach), Quant(bias_scales, 0, 0)))
    middle = source.scale * (sum(scales) / len(scales))
    return operands, out(dtype, result_quant(dtype, weights, middle, depth))


def conv_options(padding, strides, dilations, activation, **more):
    """Members that the options of convolutions share."""
    return {
        "padding": padding,
        "strideH": strides[0],
        "strideW": strides[1],
        "dilationHFactor": dilations[0],
        "dilationWFactor": dilations[1],
        "fusedActivationFunction": ACTIVATIONS[activation],
        **more,
    }


def conv_2d():
    """CONV_2D of every type."""
    for name, (shape, kernel, channels, padding, strides, dilations, activation) in SHAPES.items():
        depth = kernel[0] * kernel[1] * shape[3]
        options = conv_options(padding, strides, dilations, activation)
        filters = (channels, *kernel, shape[3])
        operands = [feed("float32", shape), const("float32", filters), const("float32", (channels,))]
        case("CONV_2D", f"float32_{name}", operands, [out("float32")], options, summands=depth)
        for dtype, weights, per_channel, bias, few in QUANTIZED:
            if few and name not in FEW or bias is None:
                continue
            label = quantized_label(dtype, weights, per_channel, bias)
            operands, result = quantized_operands(dtype, weights, filters, channels, 0, depth, per_channel, bias)
            more = {"quantizedBiasType": 2 if bias == "int32" else 4} if dtype == "int16" and bias else {}
            operands = [feed(dtype, shape, None, INPUT[dtype]), *operands]
            kind = None if weights == dtype else f"{dtype} x {weights}"
            case("CONV_2D", f"{label}_{name}", operands, [result], {**options, **more}, kind=kind)
        if name in FEW:
            hybrid("CONV_2D", name, shape, filters, channels, 0, options, depth)
    for activation in ("relu", "relu_n1_to_1", "relu6", "tanh"):
        options = conv_options(SAME, (1, 1), (1, 1), activation)
        operands = [feed("float32", (1, 4, 4, 2)), const("float32", (3, 2, 2, 2)), const("float32", (3,))]
        case("CONV_2D", f"float32_activation_{activation}", operands, [out("float32")], options, summands=8)
        operands, result = quantized_operands("int8", "int8", (3, 2, 2, 2), 3, 0, 8, True, "int32")
        operands = [feed("int8", (1, 4, 4, 2), None, INPUT["int8"]), *operands]
        case("CONV_2D", f"int8_activation_{activation}", operands, [result], options)
    options = conv_options(SAME, (1, 1), (1, 1), "none")
    operands = [feed("float32", (1, 4, 4, 2)), feed("float32", (3, 2, 2, 2)), feed("float32", (3,))]
    case("CONV_2D", "float32_fed_weights", operands, [out("float32")], options, summands=8)
    groups()


# Input type, type of weights, per channel, type of bias, and whether only a few shapes are
# recorded.
QUANTIZED = (
    ("int8", "int8", True, "int32", False),
    ("int8", "int8", False, "int32", True),
    ("int8", "int8", True, None, True),
    ("uint8", "uint8", False, "int32", False),
    ("int16", "int8", True, "int64", False),
    ("int16", "int8", True, "int32", True),
    ("int16", "int8", True, None, True),
    ("int8", "int4", True, "int32", True),
)


def quantized_label(dtype, weights, per_channel, bias):
    """How names of quantized cases begin."""
    mixed = "" if weights == dtype else f"x{weights}"
    return f"{dtype}{mixed}_{'per_channel' if per_channel else 'per_tensor'}_{bias or 'no'}_bias"


def hybrid(op, name, shape, filters, channels, axis, options, depth):
    """Dynamic range: float inputs, integer weights. LiteRT quantizes the input at run time."""
    for weights, per_channel in (("int8", True), ("int8", False), ("int4", True)):
        if op == "DEPTHWISE_CONV_2D" and (weights == "int4" or not per_channel):
            continue  # LiteRT refuses them, or reads scales out of bounds.
        scales = channel_scales(channels) if per_channel else [0.01]
        quant = Quant(scales, 0, axis if per_channel else 0)
        span = (-7, 7) if weights == "int4" else (-127, 127)
        operands = [
            feed("float32", shape),
            const(weights, filters, integers(*span), quant),
            const("float32", (channels,)),
        ]
        label = f"float32x{weights}_{'per_channel' if per_channel else 'per_tensor'}_{name}"
        case(op, label, operands, [out("float32")], options, kind=f"float32 x {weights}", summands=depth)


def groups():
    """CONV_2D whose weights have fewer input channels."""
    for groups, inputs, channels in ((2, 4, 6), (3, 6, 3), (4, 4, 8)):
        filters = (channels, 3, 2, inputs // groups)
        options = conv_options(SAME, (1, 1), (1, 1), "none")
        depth = 6 * inputs // groups
        operands = [feed("float32", (2, 4, 4, inputs)), const("float32", filters), const("float32", (channels,))]
        case("CONV_2D", f"float32_groups_{groups}", operands, [out("float32")], options, summands=depth)
        for dtype in ("int8", "int16", "uint8"):
            weights, bias = ("uint8" if dtype == "uint8" else "int8"), ("int64" if dtype == "int16" else "int32")
            operands, result = quantized_operands(dtype, weights, filters, channels, 0, depth, dtype != "uint8", bias)
            operands = [feed(dtype, (2, 4, 4, inputs), None, INPUT[dtype]), *operands]
            case("CONV_2D", f"{dtype}_groups_{groups}", operands, [result], options)


def depthwise():
    """DEPTHWISE_CONV_2D of every type, with depth multipliers."""
    for name, (shape, kernel, _, padding, strides, dilations, activation) in SHAPES.items():
        multipliers = {"same_3x3": 1, "valid_3x3": 2, "1x1": 3, "even_kernel_same": 8}
        multiplier = multipliers.get(name, 1)
        channels = shape[3] * multiplier
        depth = kernel[0] * kernel[1]
        options = conv_options(padding, strides, dilations, activation, depthMultiplier=multiplier)
        filters = (1, *kernel, channels)
        operands = [feed("float32", shape), const("float32", filters), const("float32", (channels,))]
        case("DEPTHWISE_CONV_2D", f"float32_{name}", operands, [out("float32")], options, summands=depth)
        for dtype, weights, per_channel, bias, few in QUANTIZED:
            if few and name not in FEW:
                continue
            label = quantized_label(dtype, weights, per_channel, bias)
            operands, result = quantized_operands(dtype, weights, filters, channels, 3, depth, per_channel, bias)
            operands = [feed(dtype, shape, None, INPUT[dtype]), *operands]
            kind = None if weights == dtype else f"{dtype} x {weights}"
            case("DEPTHWISE_CONV_2D", f"{label}_{name}", operands, [result], options, kind=kind)
        if name in FEW:
            hybrid("DEPTHWISE_CONV_2D", name, shape, filters, channels, 3, options, depth)
    options = conv_options(SAME, (1, 1), (1, 1), "none", depthMultiplier=1)
    operands = [feed("float32", (1, 4, 4, 2)), const("float32", (1, 2, 2, 2))]
    case("DEPTHWISE_CONV_2D", "float32_no_bias", operands, [out("float32")], options, summands=4)


def transpose_conv():
    """TRANSPOSE_CONV. Weights are (output channels, height, width, input channels)."""
    # Output size, kernel, input size, channels in and out, padding, strides, activation.
    shapes = {
        "same_strides_1": ((1, 4, 4), (3, 3), (4, 4), 2, 3, SAME, (1, 1), "none"),
        "same_strides_2": ((2, 8, 6), (3, 3), (4, 3), 2, 3, SAME, (2, 2), "none"),
        "valid_strides_2": ((1, 7, 9), (3, 3), (3, 4), 3, 2, VALID, (2, 2), "relu"),
        "valid_strides_3_1": ((1, 8, 5), (2, 2), (3, 4), 1, 4, VALID, (3, 1), "none"),
        "even_kernel": ((1, 6, 6), (4, 2), (3, 3), 2, 2, SAME, (2, 2), "relu6"),
        "many_channels": ((1, 4, 4), (2, 2), (2, 2), 9, 8, VALID, (2, 2), "none"),
    }
    for name, ((batch, *size), kernel, inputs, depth, channels, padding, strides, activation) in shapes.items():
        options = {
            "padding": padding,
            "strideH": strides[0],
            "strideW": strides[1],
            "fusedActivationFunction": ACTIVATIONS[activation],
        }
        filters, shape = (channels, *kernel, depth), (batch, *inputs, depth)
        summands = depth * kernel[0] * kernel[1]
        sizes = given([batch, *size, channels])
        operands = [sizes, const("float32", filters), feed("float32", shape)]
        case(
            "TRANSPOSE_CONV", f"float32_{name}", operands, [out("float32")], options, kind="float32", summands=summands
        )
        operands = [*operands, const("float32", (channels,))]
        case(
            "TRANSPOSE_CONV",
            f"float32_bias_{name}",
            operands,
            [out("float32")],
            options,
            kind="float32",
            summands=summands,
        )
        for dtype, weights, per_channel, bias, _ in QUANTIZED:
            if weights == "int4":
                continue
            label = quantized_label(dtype, weights, per_channel, bias)
            operands, result = quantized_operands(
                dtype, weights, filters, channels, 0, summands // 2, per_channel, bias
            )
            operands = [sizes, operands[0], feed(dtype, shape, None, INPUT[dtype]), *operands[1:]]
            operands = [operand for operand in operands if operand is not None]
            kind = f"{dtype} quantized" if weights == dtype else f"{dtype} x {weights}"
            # Without this option, LiteRT reads any bias of int16 as int64.
            more = {"quantizedBiasType": 2 if bias == "int32" else 4} if dtype == "int16" and bias else {}
            case("TRANSPOSE_CONV", f"{label}_{name}", operands, [result], {**options, **more}, kind=kind)
    options = {"padding": SAME, "strideH": 2, "strideW": 2}
    operands = [given_feed([1, 4, 4, 3]), const("float32", (3, 3, 3, 2)), feed("float32", (1, 2, 2, 2))]
    case("TRANSPOSE_CONV", "float32_fed_output_shape", operands, [out("float32")], options, kind="float32", summands=18)


def conv_3d():
    """CONV_3D and CONV_3D_TRANSPOSE, which are float only."""
    shapes = {
        "same": ((1, 3, 4, 4, 2), (2, 3, 3), 3, SAME, (1, 1, 1), (1, 1, 1), "none"),
        "valid": ((2, 3, 4, 5, 2), (2, 2, 3), 2, VALID, (1, 1, 1), (1, 1, 1), "relu"),
        "strides": ((1, 5, 4, 6, 1), (3, 2, 2), 2, SAME, (2, 1, 2), (1, 1, 1), "relu6"),
        "dilations": ((1, 5, 5, 5, 1), (2, 2, 2), 2, VALID, (1, 1, 1), (2, 1, 3), "none"),
    }
    for name, (shape, kernel, channels, padding, strides, dilations, activation) in shapes.items():
        options = {"padding": padding, "fusedActivationFunction": ACTIVATIONS[activation]}
        for axis, stride, dilation in zip("DHW", strides, dilations):
            options |= {f"stride{axis}": stride, f"dilation{axis}Factor": dilation}
        summands = int(np.prod(kernel)) * shape[4]
        operands = [feed("float32", shape), const("float32", (*kernel, shape[4], channels))]
        case("CONV_3D", f"float32_{name}", operands, [out("float32")], options, summands=summands)
        operands = [*operands, const("float32", (channels,))]
        case("CONV_3D", f"float32_bias_{name}", operands, [out("float32")], options, summands=summands)
        if name == "dilations":
            continue
        length = lambda size, k, stride: size * stride if padding == SAME else (size - 1) * stride + k
        sizes = [length(*three) for three in zip(shape[1:4], kernel, strides)]
        operands = [
            given([shape[0], *sizes, channels]),
            const("float32", (*kernel, channels, shape[4])),
            feed("float32", shape),
        ]
        case(
            "CONV_3D_TRANSPOSE",
            f"float32_{name}",
            operands,
            [out("float32")],
            options,
            kind="float32",
            summands=summands,
        )
        operands = [*operands, const("float32", (channels,))]
        case(
            "CONV_3D_TRANSPOSE",
            f"float32_bias_{name}",
            operands,
            [out("float32")],
            options,
            kind="float32",
            summands=summands,
        )


def build():
    """Registers the cases."""
    conv_2d()
    depthwise()
    transpose_conv()
    conv_3d()
