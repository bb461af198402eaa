"""Elementwise ops on quantized integers."""

import numpy as np

from builder import Quant, bounds, case, const, feed, given_feed, integers, out
from float_elementwise import ARITHMETIC, BROADCASTS, COMPARISONS

EIGHT = ("int8", "uint8")
TYPES = ("int8", "uint8", "int16")
# Scales and zero points of an input. int16 has no zero point.
INPUTS = {
    "int8": [Quant(0.05, 3), Quant(0.0234375, -128), Quant(0.11, 93)],
    "uint8": [Quant(0.05, 131), Quant(0.0234375, 0), Quant(0.11, 221)],
    "int16": [Quant(0.00025), Quant(2.0**-12), Quant(0.0011)],
}
# Fixed quantization of results in [0, 1) and [-1, 1).
UNIT = {"int8": Quant(1 / 256, -128), "uint8": Quant(1 / 256, 0), "int16": Quant(1 / 32768)}
SIGNED_UNIT = {"int8": Quant(1 / 128, 0), "uint8": Quant(1 / 128, 128), "int16": Quant(1 / 32768)}
# Ops with a scale of results relative to that of inputs.
UNARY = {
    "ABS": ({}, 1.3),
    "ELU": ({}, 0.9),
    "EXP": ({}, 4.0),
    "GELU": ({}, 1.1),
    "GELU_APPROXIMATE": ({"approximate": True}, 1.1),
    "HARD_SWISH": ({}, 0.8),
    "LEAKY_RELU": ({"alpha": 0.3}, 0.9),
    "LOG": ({}, 0.3),
    "RELU": ({}, 0.7),
    "RELU6": ({}, 0.7),
    "RELU_0_TO_1": ({}, 0.2),
    "RELU_N1_TO_1": ({}, 0.2),
    "RSQRT": ({}, 0.5),
    "SQRT": ({}, 0.3),
}


def sweep(dtype):
    """All values of an 8-bit type, or the ends and 300 values of a 16-bit one."""
    low, high = bounds(dtype)
    if dtype != "int16":
        return lambda generator, shape: np.arange(low, high + 1)
    ends = [low, low + 1, -1, 0, 1, high - 1, high]
    return lambda generator, shape: np.concatenate([ends, generator.integers(low, high, 300, endpoint=True)])


def sweep_shape(dtype):
    """Shape of `sweep`'s values."""
    return (1, 307) if dtype == "int16" else (4, 64)


def zero_for(dtype, k):
    """An odd zero point for results."""
    return {"int8": (-5, 17, -127), "uint8": (121, 3, 249), "int16": (0, 0, 0)}[dtype][k % 3]


def non_negative(dtype, zero):
    """Stored values of real numbers that are not negative, for roots and logarithms."""
    high = bounds(dtype)[1]
    return lambda generator, shape: np.linspace(zero + 1, high, int(np.prod(shape))).round()


def unary():
    """Ops of one operand. Roots and logarithms refuse negative numbers."""
    for key, (options, ratio) in UNARY.items():
        op = key.removesuffix("_APPROXIMATE")
        prefix = "approximate_" if op != key else ""
        for dtype in TYPES:
            for k, quant in enumerate(INPUTS[dtype]):
                values = sweep(dtype)
                if op in ("LOG", "SQRT", "RSQRT"):
                    if quant.zero == bounds(dtype)[1]:
                        continue
                    values = non_negative(dtype, quant.zero)
                shape = sweep_shape(dtype)
                result = Quant(quant.scale * ratio, zero_for(dtype, k))
                name = f"{dtype}_quantized_{prefix}{k}"
                case(op, name, [feed(dtype, shape, values, quant)], [out(dtype, result)], options)
                if k == 0:
                    name = f"{dtype}_quantized_{prefix}same_scale"
                    case(op, name, [feed(dtype, shape, values, quant)], [out(dtype, quant)], options)
    for dtype in TYPES:
        for k, quant in enumerate(INPUTS[dtype]):
            argument = feed(dtype, sweep_shape(dtype), sweep(dtype), quant)
            case("LOGISTIC", f"{dtype}_quantized_{k}", [argument], [out(dtype, UNIT[dtype])])
            case("TANH", f"{dtype}_quantized_{k}", [argument], [out(dtype, SIGNED_UNIT[dtype])])
    for power in (-10, -11, -13, -15):
        argument = feed("int16", sweep_shape("int16"), sweep("int16"), Quant(2.0**power))
        case("LOGISTIC", f"int16_quantized_power_{-power}", [argument], [out("int16", UNIT["int16"])])
        case("TANH", f"int16_quantized_power_{-power}", [argument], [out("int16", SIGNED_UNIT["int16"])])
    for alpha in (0.0, 1.5, -0.7):
        for dtype in TYPES:
            argument = feed(dtype, sweep_shape(dtype), sweep(dtype), INPUTS[dtype][0])
            result = Quant(INPUTS[dtype][0].scale * 1.1, zero_for(dtype, 1))
            name = f"{dtype}_quantized_alpha_{alpha}".replace(".", "_").replace("-", "minus_")
            case("LEAKY_RELU", name, [argument], [out(dtype, result)], {"alpha": alpha})


def prelu():
    """PRELU with quantized slopes."""
    for dtype in EIGHT:
        middle = 0 if dtype == "int8" else 128
        for name, shape, slope in (
            ("channels", (2, 3, 3, 4), (1, 1, 4)),
            ("same", (3, 7), (3, 7)),
            ("scalar", (5, 8), (1,)),
        ):
            slopes = const(dtype, slope, None, Quant(0.01, middle + 9))
            argument = feed(dtype, shape, None, Quant(0.04, middle - 13))
            case("PRELU", f"{dtype}_quantized_{name}", [argument, slopes], [out(dtype, Quant(0.06, middle + 21))])


def result_scale(op, left, right):
    """A scale at which a few results saturate."""
    if op == "MUL":
        return left * right * 70
    if op == "DIV":
        return left / right / 20
    return (left + right) * 0.8


def quotient_values(dtype, zero):
    """Stored numerators and denominators. int16 quotients near zero overflow a shift in LiteRT."""
    if dtype == "int16":
        signs = lambda values: lambda generator, shape: values(generator, shape) * generator.choice([-1, 1], shape)
        return signs(integers(8000, 32767)), signs(integers(3000, 32767))
    low, high = bounds(dtype)
    other = low if zero != low else low + 1

    def denominators(generator, shape):
        values = generator.integers(low, high, shape)
        return np.where(values == zero, other, values)

    return None, denominators


def binary():
    """Arithmetic, with every activation and several pairs of scales."""
    pairs = {
        "int8": [
            (Quant(0.05, 3), Quant(0.07, -11)),
            (Quant(0.003, -128), Quant(0.09, 37)),
            (Quant(0.02, 0), Quant(0.02, 0)),
        ],
        "uint8": [
            (Quant(0.05, 131), Quant(0.07, 117)),
            (Quant(0.003, 0), Quant(0.09, 165)),
            (Quant(0.02, 128), Quant(0.02, 128)),
        ],
        "int16": [(Quant(0.0003), Quant(0.00011)), (Quant(2.0**-11), Quant(2.0**-12)), (Quant(0.0004), Quant(0.00001))],
    }
    for op in ARITHMETIC:
        for dtype in TYPES:
            for k, (left, right) in enumerate(pairs[dtype]):
                scale = result_scale(op, left.scale, right.scale) * (200 if dtype == "int16" and op == "MUL" else 1)
                result = Quant(scale, zero_for(dtype, k))
                numerator, values = quotient_values(dtype, right.zero) if op == "DIV" else (None, None)
                names = ("same", "both")
                if k == 0 and op in ("ADD", "MUL"):
                    names = BROADCASTS if dtype == "int8" else ("same", "both", "row", "scalar_left", "rank_5")
                for name in names:
                    a, b = BROADCASTS[name]
                    if name in ("same", "both"):
                        a, b = (*a[:-1], 9), (*b[:-1], 9 if b[-1] > 1 else 1)
                    operands = [feed(dtype, a, numerator, left), feed(dtype, b, values, right)]
                    case(op, f"{dtype}_quantized_{name}_{k}", operands, [out(dtype, result)])
                for activation, code in (("relu", 1), ("relu_n1_to_1", 2), ("relu6", 3)):
                    operands = [feed(dtype, (4, 9), numerator, left), feed(dtype, (4, 9), values, right)]
                    options = {"fusedActivationFunction": code}
                    case(op, f"{dtype}_quantized_{activation}_{k}", operands, [out(dtype, result)], options)
            left, right = pairs[dtype][0]
            low = bounds(dtype)[0]
            values = integers(low, right.zero - 1) if op == "DIV" else None
            operands = [feed(dtype, (2, 9), None, left), const(dtype, (9,), values, right)]
            result = Quant(
                result_scale(op, left.scale, right.scale) * (200 if dtype == "int16" and op == "MUL" else 1),
                zero_for(dtype, 0),
            )
            case(op, f"{dtype}_quantized_constant_right", operands, [out(dtype, result)])
    for op in ("ADD", "SUB"):
        for pot in (False, True):
            for k, powers in enumerate(((-12, -12, -11), (-11, -13, -11), (-13, -11, -10))):
                a, b, c = (Quant(2.0**power) for power in powers)
                name = f"int16_quantized_{'power' if pot else 'general'}_scales_{k}"
                operands = [feed("int16", (3, 9), None, a), feed("int16", (3, 9), None, b)]
                case(op, name, operands, [out("int16", c)], {"potScaleInt16": pot})
    for k, dtype in enumerate(("int8", "uint8", "int32")):
        operands = [feed("int16", (3, 9), None, Quant(2.0**-15)), feed("int16", (3, 9), None, Quant(2.0**-15))]
        result = Quant(2.0**-7, (-3, 125, 0)[k]) if dtype != "int32" else None
        case("MUL", f"int16_quantized_to_{dtype}", operands, [out(dtype, result)])


def same_scale():
    """Ops whose operands share a scale."""
    for op in ("MAXIMUM", "MINIMUM"):
        for dtype in TYPES:
            quant = INPUTS[dtype][0]
            for name in ("same", "row", "both", "rank_5"):
                a, b = BROADCASTS[name]
                operands = [feed(dtype, a, None, quant), feed(dtype, b, None, quant)]
                case(op, f"{dtype}_quantized_{name}", operands, [out(dtype, quant)])


def different_scales():
    """Squared differences and comparisons."""
    for dtype in TYPES:
        middle = {"int8": 0, "uint8": 128, "int16": 0}[dtype]
        odd = 0 if dtype == "int16" else 7
        left, right = Quant(0.05, middle + odd), Quant(0.04, middle - odd)
        close = integers(middle - 6, middle + 6)
        for name in ("same", "row", "both", "scalar_right", "rank_5"):
            a, b = BROADCASTS[name]
            operands = [feed(dtype, a, None, left), feed(dtype, b, None, right)]
            case("SQUARED_DIFFERENCE", f"{dtype}_quantized_{name}", operands, [out(dtype, Quant(0.3, middle - odd))])
            for op in COMPARISONS:
                operands = [feed(dtype, a, close, left), feed(dtype, b, close, right)]
                case(op, f"{dtype}_quantized_{name}", operands, [out("bool")])
        for op in COMPARISONS:
            operands = [feed(dtype, (4, 8), close, left), feed(dtype, (4, 8), close, left)]
            case(op, f"{dtype}_quantized_same_scale", operands, [out("bool")])
    sixteen = [given_feed([0, 5, -5, 32767, -32768], "int16", quant=Quant(1e-3)) for _ in range(2)]
    case("SQUARED_DIFFERENCE", "int16_quantized_extremes", sixteen, [out("int16", Quant(1e-3))])


def build():
    """Registers the cases."""
    unary()
    prelu()
    binary()
    same_scale()
    different_scales()
