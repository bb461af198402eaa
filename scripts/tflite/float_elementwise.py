"""Elementwise ops on floats, plain integers, and booleans."""

import numpy as np

from builder import case, const, feed, given_feed, integers, out, uniform

FLOATS = ("float32", "float16", "bfloat16", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SPECIAL = [
    0.0,
    -0.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-40,
    -1e-40,
    3.4e38,
    -3.4e38,
    0.5,
    -0.5,
    1.5,
    -1.5,
    2.5,
    -2.5,
    88.8,
    -88.8,
    1e-5,
    6.0,
    1.0,
]
# Ops with their values and options.
UNARY = {
    "ABS": (None, {}),
    "CEIL": (uniform(-4, 4), {}),
    "COS": (uniform(-9, 9), {}),
    "ELU": (uniform(-4, 4), {}),
    "EXP": (uniform(-5, 5), {}),
    "FLOOR": (uniform(-4, 4), {}),
    "GELU": (uniform(-4, 4), {}),
    "HARD_SWISH": (uniform(-5, 5), {}),
    "LEAKY_RELU": (uniform(-5, 5), {"alpha": 0.2}),
    "LOG": (uniform(0.01, 9), {}),
    "LOGISTIC": (uniform(-8, 8), {}),
    "NEG": (None, {}),
    "RELU": (uniform(-5, 5), {}),
    "RELU6": (uniform(-9, 9), {}),
    "RELU_0_TO_1": (uniform(-2, 2), {}),
    "RELU_N1_TO_1": (uniform(-2, 2), {}),
    "ROUND": (uniform(-4, 4), {}),
    "RSQRT": (uniform(0.01, 9), {}),
    "SIGN": (None, {}),
    "SIN": (uniform(-9, 9), {}),
    "SQRT": (uniform(0, 9), {}),
    "SQUARE": (None, {}),
    "TANH": (uniform(-4, 4), {}),
    "ZEROS_LIKE": (None, {}),
}
SHAPES = {
    "rank_0": (),
    "rank_1": (7,),
    "rank_2": (3, 5),
    "rank_4": (1, 2, 3, 5),
    "rank_5": (2, 1, 3, 2, 2),
    "rank_6": (1, 2, 1, 3, 2, 2),
    "size_1": (1, 1),
    "empty": (2, 0, 3),
}
BROADCASTS = {
    "same": ((2, 3, 4), (2, 3, 4)),
    "scalar_right": ((2, 3, 4), ()),
    "scalar_left": ((), (2, 3)),
    "scalars": ((), ()),
    "one_element": ((3, 4), (1,)),
    "row": ((2, 3, 4), (4,)),
    "column": ((3, 4), (3, 1)),
    "both": ((2, 1, 4), (1, 3, 1)),
    "rank_4_channels": ((2, 3, 2, 5), (1, 1, 1, 5)),
    "rank_4_middle": ((2, 3, 4, 2), (2, 1, 4, 1)),
    "rank_5": ((2, 1, 3, 2, 2), (1, 2, 3, 1, 2)),
    "rank_6": ((1, 2, 1, 2, 3, 2), (2, 1, 2, 1, 3, 1)),
    "empty": ((0, 3), (1, 3)),
}
FEW = ("same", "row", "both", "scalar_right", "rank_5")
ARITHMETIC = ("ADD", "SUB", "MUL", "DIV")
BINARY = (*ARITHMETIC, "MAXIMUM", "MINIMUM", "POW", "SQUARED_DIFFERENCE", "FLOOR_DIV", "FLOOR_MOD", "ATAN2")
COMPARISONS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
# Narrow integers that ops accept without quantization. Elsewhere LiteRT reads a scale of 0 or
# aborts.
NARROW = {
    **dict.fromkeys(
        ("MAXIMUM", "MINIMUM", "FLOOR_DIV", "FLOOR_MOD", "NEG", "ZEROS_LIKE", "SIGN"), ("int8", "int16", "uint8")
    ),
    **dict.fromkeys(("ADD", "MUL", *COMPARISONS), ("int16",)),
}


def plain_integers(op):
    """Integer types to try without quantization."""
    return (*NARROW.get(op, ()), "int32", "int64", "uint32", "uint64")


def unary():
    """Ops of one operand."""
    for op, (values, options) in UNARY.items():
        for shape_name, shape in SHAPES.items():
            case(op, f"float32_{shape_name}", [feed("float32", shape, values)], [out("float32")], options)
        special = [v for v in SPECIAL if not (op in ("SIN", "COS") and abs(v) > 1e9)]
        case(op, "float32_special_values", [given_feed(special, "float32")], [out("float32")], options)
        case(op, "float32_constant_operand", [const("float32", (2, 3), values)], [out("float32")], options)
        for dtype in (*FLOATS[1:], *plain_integers(op)):
            chosen = values if dtype in FLOATS else None
            case(op, f"{dtype}_rank_2", [feed(dtype, (3, 5), chosen)], [out(dtype)], options)
    for dtype in ("int32", "int64", "int16"):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        for op in ("ABS", "NEG", "SQUARE", "SIGN"):
            case(op, f"{dtype}_extremes", [given_feed([low, low + 1, -1, 0, 1, high], dtype)], [out(dtype)])
    case(
        "GELU",
        "float32_approximate",
        [feed("float32", (4, 6), uniform(-4, 4))],
        [out("float32")],
        {"approximate": True},
    )
    case(
        "GELU",
        "float32_approximate_special_values",
        [given_feed(SPECIAL, "float32")],
        [out("float32")],
        {"approximate": True},
    )
    for alpha in (0.0, -0.5, 1.0, 2.5):
        name = f"float32_alpha_{alpha}".replace(".", "_").replace("-", "minus_")
        case("LEAKY_RELU", name, [feed("float32", (3, 4))], [out("float32")], {"alpha": alpha})
    for shape_name, shape in SHAPES.items():
        case("LOGICAL_NOT", f"bool_{shape_name}", [feed("bool", shape)], [out("bool")])
    for op in ("REAL", "IMAG", "COMPLEX_ABS"):
        for complex_type, real in (("complex64", "float32"), ("complex128", "float64")):
            for shape_name in ("rank_0", "rank_2", "rank_5", "empty"):
                case(op, f"{complex_type}_{shape_name}", [feed(complex_type, SHAPES[shape_name])], [out(real)])


def prelu():
    """PRELU, whose slopes broadcast."""
    shapes = {
        "channels": ((2, 3, 3, 4), (1, 1, 4)),
        "same": ((2, 3), (2, 3)),
        "scalar": ((2, 3, 4), (1,)),
        "vector": ((2, 5), (5,)),
        "broadcast_both": ((2, 3, 1, 2), (1, 4, 2)),
    }
    for name, (shape, slope) in shapes.items():
        case("PRELU", f"float32_{name}", [feed("float32", shape), const("float32", slope)], [out("float32")])


def operands(op, dtype):
    """Random values of both operands in the domain of the op."""
    if op == "POW":
        return (integers(1, 4), integers(0, 5)) if dtype in INTEGERS else (uniform(0.1, 3), uniform(-3, 3))
    if op in ("DIV", "FLOOR_DIV", "FLOOR_MOD"):
        if dtype[0] == "u":
            return integers(0, 40), integers(1, 7)
        positive = integers(1, 7) if dtype in INTEGERS else uniform(0.3, 5)
        signed = lambda generator, shape: positive(generator, shape) * generator.choice([-1, 1], shape)
        return (integers(-40, 40) if dtype in INTEGERS else uniform(-9, 9)), signed
    return None, None


def binary():
    """Ops of two operands."""
    for op in BINARY:
        for dtype in (*FLOATS, *plain_integers(op)):
            left, right = operands(op, dtype)
            names = BROADCASTS if dtype == "float32" else FEW if dtype in ("int32", "int64") else ("same", "row")
            if op == "ATAN2":
                names = ("same", "scalars") if dtype in FLOATS else ()  # It does not broadcast.
            for name in names:
                a, b = BROADCASTS[name]
                case(op, f"{dtype}_{name}", [feed(dtype, a, left), feed(dtype, b, right)], [out(dtype)])
    for op in ARITHMETIC:
        values = operands(op, "float32")[1]
        for activation, code in (("relu", 1), ("relu_n1_to_1", 2), ("relu6", 3), ("tanh", 4)):
            for name in ("same", "both"):
                a, b = BROADCASTS[name]
                pair = [feed("float32", a, uniform(-9, 9)), feed("float32", b, values)]
                case(op, f"float32_{name}_{activation}", pair, [out("float32")], {"fusedActivationFunction": code})
        pair = [feed("int32", (3, 4), integers(-20, 20)), feed("int32", (4,), operands(op, "int32")[1])]
        case(op, "int32_relu6", pair, [out("int32")], {"fusedActivationFunction": 3})
        pair = [feed("float32", (2, 4)), const("float32", (4,), values, name="model/dense/kernel;model/dense/bias")]
        case(op, "float32_constant_right", pair, [out("float32")])
        pair = [const("float32", (2, 1)), feed("float32", (1, 3), values)]
        case(op, "float32_constant_left", pair, [out("float32")])
    for op in ("ADD", "SUB", "MUL"):
        pair = [given_feed([2**31 - 1, -(2**31), 5, -7]), given_feed([1, -1, 2**31 - 1, 2**30])]
        case(op, "int32_overflow", pair, [out("int32")])
    for op in (
        "MAXIMUM",
        "MINIMUM",
        "ADD",
        "MUL",
        "DIV",
        "POW",
        "ATAN2",
        "SQUARED_DIFFERENCE",
        "FLOOR_DIV",
        "FLOOR_MOD",
    ):
        numbers = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -2.5]
        pair = [given_feed(np.repeat(numbers, 7), "float32"), given_feed(np.tile(numbers, 7), "float32")]
        case(op, "float32_special_values", pair, [out("float32")])


def comparisons():
    """Comparisons and logic."""
    for op in COMPARISONS:
        for dtype in (*FLOATS, *plain_integers(op), "bool"):
            values = integers(0, 1) if dtype == "bool" else integers(0, 3)
            for name in BROADCASTS if dtype == "float32" else FEW[:3]:
                a, b = BROADCASTS[name]
                case(op, f"{dtype}_{name}", [feed(dtype, a, values), feed(dtype, b, values)], [out("bool")])
        numbers = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]
        pair = [given_feed(np.repeat(numbers, 6), "float32"), given_feed(np.tile(numbers, 6), "float32")]
        case(op, "float32_special_values", pair, [out("bool")])
    for op in ("LOGICAL_AND", "LOGICAL_OR"):
        for name, (a, b) in BROADCASTS.items():
            case(op, f"bool_{name}", [feed("bool", a), feed("bool", b)], [out("bool")])


def bits():
    """Ops on bits of integers."""
    for dtype in (*INTEGERS, "bool"):
        for name in ("same", "row", "both", "scalars"):
            a, b = BROADCASTS[name]
            case("BITWISE_XOR", f"{dtype}_{name}", [feed(dtype, a), feed(dtype, b)], [out(dtype)])
            if dtype != "bool":
                values = integers(0, 100) if dtype[0] == "u" else integers(-100, 100)
                pair = [feed(dtype, a, values), feed(dtype, b, integers(0, 5))]
                case("RIGHT_SHIFT", f"{dtype}_{name}", pair, [out(dtype)])
    pair = [given_feed([-8, -1, 7, 100]), given_feed([31, 40, -1, 33])]
    case("RIGHT_SHIFT", "int32_count_out_of_range", pair, [out("int32")])
    types = {
        1: ("int8", "uint8", "bool"),
        2: ("int16", "uint16", "float16", "bfloat16"),
        4: ("int32", "uint32", "float32"),
        8: ("int64", "float64", "complex64"),
    }
    for group in types.values():
        for source in group:
            for target in group:
                if source != target and "bool" not in (source, target):
                    case("BITCAST", f"{source}_to_{target}", [feed(source, (2, 3))], [out(target)])
    for source, target in (("int32", "int8"), ("float32", "uint8"), ("int64", "int32"), ("float32", "int16")):
        wide, narrow = np.dtype(source).itemsize, np.dtype(target).itemsize
        shape = (2, 3, wide // narrow)
        case("BITCAST", f"{source}_to_smaller_{target}", [feed(source, (2, 3))], [out(target)])
        case("BITCAST", f"{target}_to_larger_{source}", [feed(target, shape)], [out(source)])


def add_n():
    """ADD_N."""
    for dtype in ("float32", "int32", "float16", "int64"):
        for count in (1, 2, 5):
            case("ADD_N", f"{dtype}_{count}", [feed(dtype, (2, 3)) for _ in range(count)], [out(dtype)])
    case("ADD_N", "float32_rank_0", [feed("float32", ()) for _ in range(3)], [out("float32")], summands=3)


def build():
    """Registers the cases."""
    unary()
    prelu()
    binary()
    comparisons()
    bits()
    add_n()
