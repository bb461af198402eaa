"""SOFTMAX, LOG_SOFTMAX, normalizations, and conversions between types."""

import numpy as np

from builder import TYPES, Quant, bounds, case, const, feed, given_feed, integers, out, uniform

SHAPES = {
    "rank_1": (6,),
    "rank_2": (3, 5),
    "rank_3": (2, 3, 4),
    "rank_4": (1, 2, 3, 6),
    "rank_5": (2, 1, 2, 2, 3),
    "one_class": (3, 1),
    "many": (2, 70),
    "empty": (0, 4),
    "scalar": (),
}
INPUTS = {
    "int8": [Quant(0.03, 3), Quant(0.1, -128), Quant(0.004, 20)],
    "uint8": [Quant(0.03, 131), Quant(0.1, 0), Quant(0.004, 148)],
    "int16": [Quant(0.0002), Quant(0.0007), Quant(0.00002)],
}
SOFTMAX_OUT = {"int8": Quant(1 / 256, -128), "uint8": Quant(1 / 256, 0), "int16": Quant(1 / 32768)}
LOG_OUT = {"int8": Quant(16 / 256, 127), "uint8": Quant(16 / 256, 255)}
NORM_OUT = {"int8": Quant(1 / 128, 0), "uint8": Quant(1 / 128, 128)}


def softmax():
    """SOFTMAX and LOG_SOFTMAX."""
    for name, shape in SHAPES.items():
        case("SOFTMAX", f"float32_{name}", [feed("float32", shape)], [out("float32")], {"beta": 1.0})
        if shape:
            case("LOG_SOFTMAX", f"float32_{name}", [feed("float32", shape)], [out("float32")])
        for dtype, quants in INPUTS.items():
            for k, quant in enumerate(quants):
                if k and name not in ("rank_2", "many"):
                    continue
                operands = [feed(dtype, shape, None, quant)]
                case("SOFTMAX", f"{dtype}_{name}_{k}", operands, [out(dtype, SOFTMAX_OUT[dtype])], {"beta": 1.0})
                if dtype == "int8":
                    case(
                        "SOFTMAX",
                        f"int8_to_int16_{name}_{k}",
                        operands,
                        [out("int16", Quant(1 / 65536, -32768))],
                        {"beta": 1.0},
                    )
                if dtype in LOG_OUT and shape:
                    case("LOG_SOFTMAX", f"{dtype}_{name}_{k}", operands, [out(dtype, LOG_OUT[dtype])])
    for beta in (0.5, 2.0, 0.1):
        label = str(beta).replace(".", "_")
        for dtype in ("float32", "int8", "uint8", "int16"):
            quantized = dtype != "float32"
            operands = [feed(dtype, (3, 9), None, INPUTS[dtype][0] if quantized else None)]
            results = [out(dtype, SOFTMAX_OUT[dtype] if quantized else None)]
            case("SOFTMAX", f"{dtype}_beta_{label}", operands, results, {"beta": beta})
    case(
        "SOFTMAX",
        "float32_large",
        [given_feed([[1e4, -1e4, 1e4], [-500, -501, -502]], "float32")],
        [out("float32")],
        {"beta": 1.0},
    )
    case(
        "SOFTMAX",
        "float32_infinities",
        [given_feed([[np.inf, 0, 1], [-np.inf, 0, 1]], "float32")],
        [out("float32")],
        {"beta": 1.0},
    )
    case(
        "LOG_SOFTMAX",
        "float32_large",
        [given_feed([[1e4, -1e4, 1e4], [-500, -501, -502]], "float32")],
        [out("float32")],
    )
    for dtype in ("float16", "bfloat16"):
        case("SOFTMAX", f"{dtype}_rank_2", [feed(dtype, (3, 5))], [out(dtype)], {"beta": 1.0})
        case("LOG_SOFTMAX", f"{dtype}_rank_2", [feed(dtype, (3, 5))], [out(dtype)])


def normalizations():
    """L2_NORMALIZATION and LOCAL_RESPONSE_NORMALIZATION."""
    for name, shape in (("rank_1", (7,)), ("rank_2", (3, 5)), ("rank_3", (2, 2, 6)), ("rank_4", (1, 2, 3, 8))):
        case("L2_NORMALIZATION", f"float32_{name}", [feed("float32", shape)], [out("float32")])
        for dtype, result in NORM_OUT.items():
            for k, quant in enumerate(INPUTS[dtype][:2]):
                operands = [feed(dtype, shape, None, quant)]
                case("L2_NORMALIZATION", f"{dtype}_{name}_{k}", operands, [out(dtype, result)])
    case("L2_NORMALIZATION", "float32_zeros", [given_feed([[0, 0, 0], [1e-8, 0, 0]], "float32")], [out("float32")])
    case(
        "L2_NORMALIZATION",
        "float32_activation_relu",
        [feed("float32", (2, 4))],
        [out("float32")],
        {"fusedActivationFunction": 1},
    )
    for dtype, zero in (("int8", 3), ("uint8", 131)):
        operands = [given_feed(np.full((2, 4), zero), dtype, quant=Quant(0.1, zero))]
        case("L2_NORMALIZATION", f"{dtype}_zeros", operands, [out(dtype, NORM_OUT[dtype])])
    for radius, bias, alpha, beta in (
        (2, 1.0, 1.0, 0.5),
        (20, 9.0, 4.0, 0.5),
        (1, 2.0, 0.1, 0.75),
        (0, 1.0, 1.0, 1.0),
        (5, 1.0, 1e-4, 0.75),
    ):
        options = {"radius": radius, "bias": bias, "alpha": alpha, "beta": beta}
        name = f"float32_radius_{radius}_beta_{beta}".replace(".", "_")
        # The reference kernel omits the last channel of each window, unlike TensorFlow.
        operands = [feed("float32", (2, 2, 3, 7))]
        case("LOCAL_RESPONSE_NORMALIZATION", name, operands, [out("float32")], options, kernels="optimized")


def quantize():
    """QUANTIZE from floats and from integers."""
    scales = {
        "int8": [Quant(0.05, 3), Quant(0.0078125, -128), Quant(1.3, 127)],
        "uint8": [Quant(0.05, 131), Quant(0.0078125, 0), Quant(1.3, 255)],
        "int16": [Quant(0.0003, 0), Quant(2.0**-12, 0), Quant(0.01, 0)],
        "int32": [Quant(1e-6, 0), Quant(0.01, 0)],
        "int4": [Quant(0.4, 0), Quant(0.3, 1)],
    }
    special = [0.0, -0.0, 0.025, 0.075, -0.025, 0.125, 1e9, -1e9, 6.4, -6.4, 1e-9, 0.05, 0.15, 1.95, 3.9]
    for dtype, quants in scales.items():
        for k, quant in enumerate(quants):
            operands = [feed("float32", (4, 16), lambda g, s: g.normal(size=s) * 5)]
            case("QUANTIZE", f"float32_to_{dtype}_{k}", operands, [out(dtype, quant)], kind=f"float32 to {dtype}")
            case(
                "QUANTIZE",
                f"float32_to_{dtype}_ties_{k}",
                [given_feed(special, "float32")],
                [out(dtype, quant)],
                kind=f"float32 to {dtype}",
            )
    for name, shape in (("rank_0", ()), ("rank_5", (2, 1, 2, 1, 3)), ("empty", (0, 3))):
        case(
            "QUANTIZE",
            f"float32_to_int8_{name}",
            [feed("float32", shape)],
            [out("int8", scales["int8"][0])],
            kind="float32 to int8",
        )
    for dtype in ("int8", "uint8", "int16"):
        for axis in (0, 1, 3):
            per_channel = Quant(
                [0.05, 0.013, 0.2],
                [3, -7, 0] if dtype == "int8" else ([131, 7, 250] if dtype == "uint8" else [0, 0, 0]),
                axis,
            )
            operands = [feed("float32", (3, 3, 2, 3), lambda g, s: g.normal(size=s) * 3)]
            case(
                "QUANTIZE",
                f"float32_to_{dtype}_per_channel_axis_{axis}",
                operands,
                [out(dtype, per_channel)],
                kind=f"float32 to {dtype}",
            )
    for dtype in ("float16", "bfloat16"):
        case(
            "QUANTIZE",
            f"{dtype}_to_int8",
            [feed(dtype, (3, 4))],
            [out("int8", Quant(0.05, 3))],
            kind=f"{dtype} to int8",
        )
    for source in ("int8", "uint8", "int16", "int32"):
        for target in ("int8", "uint8", "int16", "int32"):
            for k, quant in enumerate(scales[source][:2]):
                low, high = bounds(source)
                values = (
                    np.arange(low, high + 1)
                    if source in ("int8", "uint8")
                    else np.concatenate([[low, high, -1, 0, 1], np.linspace(low, high, 250)])
                )
                result = scales[target][k]
                if source == target:
                    result = Quant(result.scale * 1.7, result.zero)
                operands = [
                    given_feed(np.clip(values.round(), low, high).astype(np.int64).astype(source), source, quant=quant)
                ]
                case(
                    "QUANTIZE",
                    f"{source}_to_{target}_{k}",
                    operands,
                    [out(target, result)],
                    kind=f"{source} to {target}",
                )
    for source, target, shift in (("int8", "uint8", 128), ("uint8", "int8", -128)):
        quant = scales[source][0]
        operands = [given_feed(np.arange(256) - (128 if source == "int8" else 0), source, quant=quant)]
        case(
            "QUANTIZE",
            f"{source}_to_{target}_same_scale",
            operands,
            [out(target, Quant(quant.scale, quant.zero + shift))],
            kind=f"{source} to {target}",
        )


def dequantize():
    """DEQUANTIZE to floats."""
    for dtype in ("int8", "uint8", "int16"):
        for k, quant in enumerate(INPUTS[dtype]):
            for constant in (False, True):
                make = const if constant else feed
                operands = [make(dtype, (5, 13), None, quant)]
                name = f"{dtype}_{'constant_' if constant else ''}{k}"
                case("DEQUANTIZE", name, operands, [out("float32")], kind=f"{dtype} to float32")
    for name, shape in (("rank_0", ()), ("rank_5", (2, 1, 2, 1, 3)), ("empty", (0, 3))):
        case(
            "DEQUANTIZE",
            f"int8_{name}",
            [feed("int8", shape, None, INPUTS["int8"][0])],
            [out("float32")],
            kind="int8 to float32",
        )
    for dtype in ("float16", "bfloat16"):
        for make, label in ((feed, "fed"), (const, "constant")):
            case("DEQUANTIZE", f"{dtype}_{label}", [make(dtype, (3, 5))], [out("float32")], kind=f"{dtype} to float32")
        case(
            "DEQUANTIZE",
            f"{dtype}_special_values",
            [given_feed([np.inf, -np.inf, 6e-8, -0.0, 65504], dtype)],
            [out("float32")],
            kind=f"{dtype} to float32",
        )
    for dtype in ("int8", "uint8", "int4", "int2"):
        for axis in (0, 1, 2):
            zeros = [3, 0, 11] if dtype in ("int8", "uint8") else [0, 0, 0]
            operands = [const(dtype, (3, 3, 3), None, Quant([0.05, 0.013, 0.2], zeros, axis))]
            case(
                "DEQUANTIZE", f"{dtype}_per_channel_axis_{axis}", operands, [out("float32")], kind=f"{dtype} to float32"
            )
    for dtype in ("int4", "int2", "uint4"):
        case(
            "DEQUANTIZE",
            f"{dtype}_constant",
            [const(dtype, (2, 3, 2), None, Quant(0.3, 0))],
            [out("float32")],
            kind=f"{dtype} to float32",
        )
        case(
            "DEQUANTIZE",
            f"{dtype}_constant_odd_size",
            [const(dtype, (3, 5), None, Quant(0.3, 0))],
            [out("float32")],
            kind=f"{dtype} to float32",
        )
    case(
        "DEQUANTIZE",
        "int32_constant",
        [const("int32", (3, 4), integers(-1000, 1000), Quant(0.01, 0))],
        [out("float32")],
        kind="int32 to float32",
    )
    case(
        "DEQUANTIZE",
        "int8_to_float16",
        [feed("int8", (3, 4), None, INPUTS["int8"][0])],
        [out("float16")],
        kind="int8 to float16",
    )


def cast():
    """CAST between all pairs of types."""
    types = (
        "float32",
        "float16",
        "bfloat16",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "bool",
        "complex64",
    )
    numbers = [0, 1, 2, 3, 100, 127, 1.5, 2.5, 3.99]
    signed = [-1, -2, -100, -128, -0.5, -1.5, -3.99]
    for source in (*types, "int4"):
        for target in types:
            if source == target:
                continue
            values = list(numbers)
            if source[0] != "u" and source != "bool" and target[0] != "u":
                values += signed
            if source == "bool":
                values = [True, False, True]
            if source == "int4":
                values = [-8, -1, 0, 7, 3, 2]
            make = const if source == "int4" else feed
            operands = [make(source, (len(values),), values)]
            options = {"inDataType": TYPES[source], "outDataType": TYPES[target]}
            case("CAST", f"{source}_to_{target}", operands, [out(target)], options, kind=f"{source} to {target}")
    for source, target, values in (
        ("int32", "int8", [128, 255, 256, -129, 1000]),
        ("int64", "int32", [2**31, -(2**31) - 1, 2**40 + 5]),
        ("int32", "uint8", [-1, 256, 300]),
        ("int32", "float32", [2**24 + 1, -(2**31), 2**31 - 1]),
        ("int16", "uint8", [-1, 256, 300]),
        ("float32", "bool", [0.0, -0.0, 0.3, np.nan, -2]),
        ("float32", "float16", [70000, -70000, 1e-8, 2049.0, np.nan]),
        ("float32", "int32", [3e9, -3e9, 1e20, -1e20, np.inf, -np.inf]),
        ("float32", "uint8", [255.0, 254.9]),
    ):
        options = {"inDataType": TYPES[source], "outDataType": TYPES[target]}
        case(
            "CAST",
            f"{source}_to_{target}_extremes",
            [given_feed(values, source)],
            [out(target)],
            options,
            kind=f"{source} to {target}",
        )
    case(
        "CAST",
        "int32_to_float32_rank_0",
        [feed("int32", ())],
        [out("float32")],
        {"inDataType": 2, "outDataType": 0},
        kind="int32 to float32",
    )
    case(
        "CAST",
        "int32_to_float32_empty",
        [feed("int32", (2, 0))],
        [out("float32")],
        {"inDataType": 2, "outDataType": 0},
        kind="int32 to float32",
    )


def fake_quant():
    """FAKE_QUANT."""
    for bits in (2, 4, 8, 16):
        for narrow in (False, True):
            for k, (low, high) in enumerate(((-3.0, 3.0), (-1.1, 4.7), (0.0, 6.0), (0.5, 2.0))):
                options = {"min": low, "max": high, "numBits": bits, "narrowRange": narrow}
                name = f"float32_bits_{bits}{'_narrow' if narrow else ''}_{k}"
                case("FAKE_QUANT", name, [feed("float32", (3, 9), uniform(-5, 7))], [out("float32")], options)


def build():
    """Registers the cases."""
    softmax()
    normalizations()
    quantize()
    dequantize()
    cast()
    fake_quant()
