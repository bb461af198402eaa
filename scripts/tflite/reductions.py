"""Reductions, ARG_MAX and ARG_MIN, cumulative sums, segments, and windows."""

import numpy as np

from builder import Quant, case, feed, given, given_feed, integers, out, uniform

REDUCERS = ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN")
# Shape, axes, keep dimensions.
SHAPES = {
    "last_axis": ((2, 3, 4), [2], False),
    "first_axis_keep": ((3, 4), [0], True),
    "negative_axes": ((2, 3, 4), [-1, -3], False),
    "spatial": ((2, 3, 4, 5), [1, 2], False),
    "spatial_keep": ((1, 4, 3, 6), [1, 2], True),
    "all_axes": ((2, 3, 2), [0, 1, 2], False),
    "all_axes_keep": ((2, 3, 2), [0, 1, 2], True),
    "no_axes": ((2, 3), [], False),
    "repeated_axes": ((2, 3, 4), [1, 1, -2], False),
    "middle_axes_rank_5": ((2, 2, 3, 1, 2), [1, 3], False),
    "alternate_axes_rank_6": ((2, 1, 2, 3, 1, 2), [0, 2, 4], True),
    "one_element": ((1, 1), [1], False),
    "rank_1": ((9,), [0], False),
    "rank_1_keep": ((9,), [0], True),
    "empty_reduced": ((2, 0, 3), [1], False),
    "empty_kept": ((0, 3), [1], False),
}
FEW = ("last_axis", "negative_axes", "spatial_keep", "all_axes", "middle_axes_rank_5")
QUANT = {"int8": Quant(0.05, 3), "uint8": Quant(0.05, 131), "int16": Quant(0.0003)}
OTHER = {"int8": Quant(0.08, -9), "uint8": Quant(0.08, 119), "int16": Quant(0.0005)}


def reducers():
    """Reductions of floats and of integers."""
    for op in REDUCERS:
        for name, (shape, axes, keep) in SHAPES.items():
            options = {"keepDims": keep}
            values = uniform(0.5, 1.5) if op == "REDUCE_PROD" else None
            size = int(np.prod(shape))
            case(
                op,
                f"float32_{name}",
                [feed("float32", shape, values), given(axes)],
                [out("float32")],
                options,
                kind="float32",
                summands=size,
            )
            few = name in FEW
            for dtype in ("int32", "int64") if few else ():
                bounded = integers(-3, 3) if op == "REDUCE_PROD" else None
                case(
                    op, f"{dtype}_{name}", [feed(dtype, shape, bounded), given(axes)], [out(dtype)], options, kind=dtype
                )
            degenerate = name in ("empty_reduced", "no_axes") and op in ("REDUCE_MAX", "REDUCE_MIN")
            for dtype in QUANT if few or degenerate or name in ("spatial", "first_axis_keep") else ():
                if op == "REDUCE_PROD" and dtype == "uint8":
                    continue
                # The reference kernel reads the bytes of int8 and int16 as uint8.
                kernels = "optimized" if op == "SUM" and dtype != "uint8" else "reference"
                same = [feed(dtype, shape, None, QUANT[dtype]), given(axes)]
                case(
                    op,
                    f"{dtype}_quantized_{name}",
                    same,
                    [out(dtype, QUANT[dtype])],
                    options,
                    kind=f"{dtype} quantized",
                    kernels=kernels,
                )
                if op in ("MEAN", "SUM", "REDUCE_PROD"):
                    scale = OTHER[dtype].scale * {"MEAN": 1, "SUM": 3, "REDUCE_PROD": 9}[op]
                    results = [out(dtype, Quant(scale, OTHER[dtype].zero))]
                    case(
                        op,
                        f"{dtype}_requantized_{name}",
                        same,
                        results,
                        options,
                        kind=f"{dtype} quantized",
                        kernels=kernels,
                    )
        axes = given_feed([1])
        case(op, "float32_fed_axes", [feed("float32", (2, 3)), axes], [out("float32")], kind="float32", summands=3)
        case(
            op, "float32_scalar_axis", [feed("float32", (2, 3)), given(1)], [out("float32")], kind="float32", summands=3
        )
        case(op, "float32_rank_0", [feed("float32", ()), given([])], [out("float32")], kind="float32")
        case(
            op,
            "float32_many",
            [feed("float32", (3, 201), uniform(0.9, 1.1)), given([1])],
            [out("float32")],
            kind="float32",
            summands=201,
            rtol=2e-5,
        )
        narrow = ("int8", "uint8", "int16") if op in ("REDUCE_MAX", "REDUCE_MIN") else ()
        for dtype in ("float16", "bfloat16", *narrow):
            case(op, f"{dtype}_plain", [feed(dtype, (2, 5)), given([1])], [out(dtype)], kind=dtype)
    for op in ("REDUCE_MAX", "REDUCE_MIN", "SUM", "MEAN"):
        numbers = [[np.nan, 1, 2], [1, np.nan, 2], [np.inf, -np.inf, 0], [-np.inf, -1, -2], [-0.0, 0.0, -0.0]]
        case(
            op, "float32_special_values", [given_feed(numbers, "float32"), given([1])], [out("float32")], kind="float32"
        )
    for op in ("REDUCE_ANY", "REDUCE_ALL"):
        for name, (shape, axes, keep) in SHAPES.items():
            case(op, f"bool_{name}", [feed("bool", shape), given(axes)], [out("bool")], {"keepDims": keep}, kind="bool")
    case(
        "SUM",
        "int32_overflow",
        [given_feed([[2**31 - 1, 1], [-(2**31), -1]]), given([1])],
        [out("int32")],
        kind="int32",
    )
    case(
        "MEAN",
        "int32_negative_remainder",
        [given_feed([[-1, -2, -4], [1, 2, 4]]), given([1])],
        [out("int32")],
        kind="int32",
    )


def arg_min_max():
    """ARG_MAX and ARG_MIN: the first of equal elements."""
    for op in ("ARG_MAX", "ARG_MIN"):
        for name, shape, axis in (
            ("last", (2, 3, 5), 2),
            ("first", (4, 3), 0),
            ("middle", (2, 5, 3), 1),
            ("negative", (2, 3, 5), -2),
            ("rank_1", (9,), 0),
            ("rank_5", (2, 1, 3, 2, 2), 2),
        ):
            for code, result in ((2, "int32"), (4, "int64")):
                operands = [feed("float32", shape), given(axis)]
                case(op, f"float32_{name}_{result}", operands, [out(result)], {"outputType": code}, kind="float32")
        for dtype in ("int8", "uint8", "int16", "int32", "int64", "bool", "float16", "bfloat16"):
            for axis in (0, -1):
                operands = [feed(dtype, (4, 9), integers(0, 1 if dtype == "bool" else 4)), given(axis)]
                case(
                    op,
                    f"{dtype}_axis_{'first' if axis == 0 else 'last'}",
                    operands,
                    [out("int32")],
                    {"outputType": 2},
                    kind=dtype,
                )
        operands = [given_feed([[1, 3, 3, 2], [5, 5, 1, 1]], "float32"), given([1])]
        case(op, "float32_ties", operands, [out("int32")], {"outputType": 2}, kind="float32")
        operands = [given_feed([[np.nan, 1, 2], [1, np.nan, 2], [3, 1, np.nan]], "float32"), given(1)]
        case(op, "float32_nan", operands, [out("int32")], {"outputType": 2}, kind="float32")
        operands = [feed("float32", (3, 4)), given(1, "int64")]
        case(op, "float32_int64_axis", operands, [out("int32")], {"outputType": 2}, kind="float32")
        operands = [feed("int8", (3, 40), None, QUANT["int8"]), given(1)]
        case(op, "int8_quantized", operands, [out("int32")], {"outputType": 2})
        operands = [feed("float32", (3, 4)), given_feed(0)]
        case(op, "float32_fed_axis", operands, [out("int64")], {"outputType": 4}, kind="float32")


def cumsum():
    """CUMSUM, exclusive and reverse."""
    for exclusive in (False, True):
        for reverse in (False, True):
            options = {"exclusive": exclusive, "reverse": reverse}
            suffix = ("_exclusive" if exclusive else "") + ("_reverse" if reverse else "")
            for dtype in ("float32", "int32", "int64"):
                for name, shape, axis in (
                    ("last", (2, 5), 1),
                    ("first", (4, 3), 0),
                    ("negative", (2, 3, 2), -2),
                    ("rank_5", (2, 1, 3, 2, 2), 2),
                    ("rank_1", (7,), 0),
                ):
                    operands = [feed(dtype, shape), given(axis)]
                    case("CUMSUM", f"{dtype}_{name}{suffix}", operands, [out(dtype)], options, kind=dtype, summands=7)
    case("CUMSUM", "float32_empty", [feed("float32", (0, 3)), given(0)], [out("float32")], kind="float32")
    case("CUMSUM", "float32_fed_axis", [feed("float32", (2, 3)), given_feed(0)], [out("float32")], kind="float32")


def segments():
    """Sums and other reductions of segments."""
    for dtype in ("float32", "int32"):
        for name, shape, ids in (
            ("rank_1", (6,), [0, 0, 1, 1, 1, 2]),
            ("rank_2", (4, 3), [0, 1, 1, 2]),
            ("rank_3", (3, 2, 2), [0, 1, 1]),
        ):
            operands = [feed(dtype, shape), given_feed(ids)]
            case("SEGMENT_SUM", f"{dtype}_{name}", operands, [out(dtype)], kind=dtype, dynamic=[0], summands=4)
            operands = [feed(dtype, shape), given(ids)]
            case("SEGMENT_SUM", f"{dtype}_{name}_constant_ids", operands, [out(dtype)], kind=dtype, summands=4)
    for op in ("PROD", "MAX", "MIN", "SUM"):
        op = f"UNSORTED_SEGMENT_{op}"
        for dtype in ("float32", "int32", "int64", "float16"):
            for name, shape, ids, count in (
                ("rank_1", (6,), [2, 0, 1, 0, 2, 2], 4),
                ("rank_2", (4, 3), [1, 0, 1, 1], 2),
                ("negative_ids", (4, 2), [1, -1, 0, -1], 3),
                ("rank_2_ids", (2, 3, 2), [[1, 0, 1], [0, 1, 3]], 4),
            ):
                operands = [feed(dtype, shape), given_feed(ids), given(count)]
                case(op, f"{dtype}_{name}", operands, [out(dtype)], kind=dtype, summands=4)
        operands = [feed("float32", (4, 2)), given_feed([0, 1, 1, 2]), given_feed(4)]
        case(op, "float32_fed_count", operands, [out("float32")], kind="float32", dynamic=[0], summands=4)


def windows():
    """REDUCE_WINDOW and DILATE."""
    functions = {"add": 1, "mul": 2, "minimum": 3, "maximum": 4}
    for function, code in functions.items():
        for dtype in ("float32", "int32", "int64", "int8", "int16", "uint8"):
            for name, shape, window, strides, dilations in (
                ("rank_2", (5, 6), [2, 3], [1, 2], [1, 1]),
                ("dilations", (7, 6), [2, 2], [2, 1], [3, 2]),
                ("rank_4", (1, 4, 4, 2), [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1]),
            ):
                if name == "rank_4" and dtype not in ("float32", "int32"):
                    continue
                initial = {"add": 0, "mul": 1, "minimum": 100, "maximum": -100 if dtype[0] != "u" else 0}[function]
                operands = [
                    feed(dtype, shape, None if dtype == "float32" else integers(0, 3)),
                    given(initial, dtype),
                    *(given(numbers, "int64") for numbers in (window, strides, dilations)),
                ]
                case(
                    "REDUCE_WINDOW",
                    f"{dtype}_{function}_{name}",
                    operands,
                    [out(dtype)],
                    {"reduceFunction": code},
                    kind=dtype,
                    summands=6,
                )
    for function, code in (("all", 5), ("any", 6)):
        operands = [
            feed("bool", (5, 6)),
            given(function == "all", "bool"),
            *(given(numbers, "int64") for numbers in ([2, 2], [1, 1], [1, 2])),
        ]
        case("REDUCE_WINDOW", f"bool_{function}", operands, [out("bool")], {"reduceFunction": code}, kind="bool")
    for dtype in (
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
    ):
        for name, shape, factors in (
            ("rank_1", (4,), [3]),
            ("rank_2", (2, 3), [2, 1]),
            ("rank_4", (1, 2, 2, 2), [1, 3, 2, 1]),
        ):
            if name == "rank_1" or dtype in ("float32", "int32", "int8"):
                operands = [feed(dtype, shape), given(factors), given(0 if name != "rank_2" else 2, dtype)]
                case("DILATE", f"{dtype}_{name}", operands, [out(dtype)], kind=dtype)


def build():
    """Registers the cases."""
    reducers()
    arg_min_max()
    cumsum()
    segments()
    windows()
