"""Ops that change shapes: RESHAPE, TRANSPOSE, paddings, concatenations, splits, slices, tiles."""

from builder import Quant, case, feed, given, given_feed, out

ALL = (
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
    "int4",
)
QUANT = {"int8": Quant(0.05, -7), "uint8": Quant(0.05, 121), "int16": Quant(0.0003)}


def typed(op, name, types, make, options=None, **more):
    """Registers a case for each type; `make` gives the operands of a type."""
    for dtype in types:
        quant = QUANT.get(dtype)
        results = more.get("results", 1)
        arguments = {key: value for key, value in more.items() if key != "results"}
        case(
            op,
            f"{dtype}_{name}",
            make(dtype, quant),
            [out(dtype, quant) for _ in range(results)],
            options,
            kind=dtype,
            **arguments,
        )


def reshape():
    """RESHAPE, SQUEEZE, EXPAND_DIMS, SHAPE, RANK."""
    for name, shape, target in (
        ("to_rank_1", (2, 3, 2), [12]),
        ("minus_one", (2, 3, 4), [-1, 6]),
        ("to_scalar", (1, 1), []),
        ("from_scalar", (), [1, 1]),
        ("rank_6", (2, 6), [1, 2, 1, 3, 1, 2]),
        ("empty", (0, 4), [2, 0]),
        ("same", (2, 3), [2, 3]),
    ):
        for dtype in ALL if name == "minus_one" else ("float32",):
            quant = QUANT.get(dtype)
            operands = [feed(dtype, shape, None, quant)]
            case(
                "RESHAPE",
                f"{dtype}_{name}",
                [*operands, given(target)],
                [out(dtype, quant)],
                {"newShape": target},
                kind=dtype,
            )
        operands = [feed("float32", shape)]
        case(
            "RESHAPE", f"float32_{name}_options_only", operands, [out("float32")], {"newShape": target}, kind="float32"
        )
        case("RESHAPE", f"float32_{name}_operand_only", [*operands, given(target)], [out("float32")], kind="float32")
    case(
        "RESHAPE",
        "float32_fed_shape",
        [feed("float32", (2, 3)), given_feed([3, 2])],
        [out("float32")],
        kind="float32",
        dynamic=[0],
    )
    case(
        "RESHAPE", "float32_legacy_scalar", [feed("float32", (1,))], [out("float32")], {"newShape": [0]}, kind="float32"
    )
    for name, shape, axes in (
        ("all", (1, 3, 1, 2), []),
        ("one", (1, 3, 1, 2), [0]),
        ("negative", (1, 3, 1), [-1]),
        ("several", (2, 1, 1, 3, 1), [1, -1]),
        ("to_scalar", (1, 1), [0, 1]),
        ("rank_6", (1, 2, 1, 2, 1, 1), [0, 4]),
    ):
        typed(
            "SQUEEZE",
            name,
            ALL if name == "one" else ("float32", "int8"),
            lambda d, q, s=shape: [feed(d, s, None, q)],
            {"squeezeDims": axes},
        )
    for axis in (0, 1, 2, -1, -3):
        label = f"axis_{axis}".replace("-", "minus_")
        typed(
            "EXPAND_DIMS",
            label,
            ALL if axis == 1 else ("float32",),
            lambda d, q, a=axis: [feed(d, (2, 3), None, q), given(a)],
        )
    typed("EXPAND_DIMS", "scalar", ("float32", "int32"), lambda d, q: [feed(d, (), None, q), given([0])])
    typed("EXPAND_DIMS", "int64_axis", ("float32",), lambda d, q: [feed(d, (2, 2), None, q), given(1, "int64")])
    for name, shape in (("rank_0", ()), ("rank_3", (2, 3, 4)), ("empty", (2, 0)), ("rank_6", (1, 2, 1, 2, 1, 1))):
        for dtype in ("float32", "int8", "bool"):
            for code, result in ((2, "int32"), (4, "int64")):
                case(
                    "SHAPE",
                    f"{dtype}_{name}_{result}",
                    [feed(dtype, shape)],
                    [out(result)],
                    {"outType": code},
                    kind=dtype,
                )
            case("RANK", f"{dtype}_{name}", [feed(dtype, shape)], [out("int32")], kind=dtype)


def transpose():
    """TRANSPOSE up to rank 6."""
    for name, shape, order in (
        ("rank_2", (3, 4), [1, 0]),
        ("rank_3", (2, 3, 4), [2, 0, 1]),
        ("rank_4", (2, 3, 1, 4), [0, 3, 1, 2]),
        ("rank_5", (2, 1, 3, 2, 2), [4, 2, 0, 3, 1]),
        ("rank_6", (1, 2, 3, 1, 2, 2), [5, 3, 1, 0, 2, 4]),
        ("identity", (2, 3, 2), [0, 1, 2]),
        ("rank_1", (4,), [0]),
        ("empty", (2, 0, 3), [2, 1, 0]),
    ):
        typed(
            "TRANSPOSE",
            name,
            ALL if name == "rank_3" else ("float32", "int8"),
            lambda d, q, s=shape, o=order: [feed(d, s, None, q), given(o)],
        )
    typed("TRANSPOSE", "fed_order", ("float32",), lambda d, q: [feed(d, (2, 3, 4)), given_feed([2, 1, 0])], dynamic=[0])
    typed("TRANSPOSE", "negative_order", ("float32",), lambda d, q: [feed(d, (2, 3, 4)), given([-1, 0, 1])])


def paddings():
    """PAD, PADV2, MIRROR_PAD."""
    sets = {
        "rank_1": ((3,), [[2, 1]]),
        "rank_2": ((2, 3), [[1, 0], [0, 2]]),
        "rank_4": ((1, 2, 3, 2), [[0, 0], [1, 2], [2, 1], [0, 0]]),
        "rank_4_all": ((1, 2, 2, 2), [[1, 0], [0, 1], [1, 1], [2, 1]]),
        "rank_5": ((1, 2, 1, 2, 2), [[0, 1], [1, 0], [1, 1], [0, 0], [1, 2]]),
        "none": ((2, 2), [[0, 0], [0, 0]]),
        "empty": ((0, 2), [[1, 1], [0, 1]]),
    }
    for name, (shape, amounts) in sets.items():
        types = ALL if name == "rank_2" else ("float32", "int8", "uint8", "int16")
        typed("PAD", name, types, lambda d, q, s=shape, a=amounts: [feed(d, s, None, q), given(a)])
        value = {"int8": -7, "uint8": 9, "int16": 300}

        def with_value(dtype, quant, s=shape, a=amounts):
            number = 1 if dtype == "bool" else value.get(dtype, 3)
            return [feed(dtype, s, None, quant), given(a), given(number, dtype, quant=quant)]

        typed("PADV2", name, types, with_value)
    for op in ("PAD", "PADV2"):
        more = [given(1.5, "float32")] if op == "PADV2" else []
        typed(
            op, "int64_amounts", ("float32",), lambda d, q: [feed(d, (2, 3)), given([[1, 0], [0, 2]], "int64"), *more]
        )
        typed(
            op,
            "fed_amounts",
            ("float32",),
            lambda d, q: [feed(d, (2, 3)), given_feed([[1, 0], [0, 2]]), *more],
            dynamic=[0],
        )
    for mode, code in (("reflect", 0), ("symmetric", 1)):
        for name, shape, amounts in (
            ("rank_1", (4,), [[2, 3]]),
            ("rank_2", (3, 4), [[2, 1], [0, 3]]),
            ("rank_4", (1, 3, 3, 2), [[0, 0], [1, 2], [2, 1], [0, 0]]),
            ("rank_5", (1, 2, 2, 3, 2), [[0, 0], [1, 1], [0, 1], [2, 0], [1, 1]]),
        ):
            types = ALL if name == "rank_2" else ("float32", "int8")
            typed(
                "MIRROR_PAD",
                f"{mode}_{name}",
                types,
                lambda d, q, s=shape, a=amounts: [feed(d, s, None, q), given(a)],
                {"mode": code},
            )


def joins():
    """CONCATENATION, PACK, UNPACK, SPLIT, SPLIT_V."""
    for name, shapes, axis in (
        ("last", ((2, 3), (2, 4)), 1),
        ("first", ((1, 3), (2, 3), (3, 3)), 0),
        ("negative", ((2, 1, 2), (2, 3, 2)), -2),
        ("one", ((2, 3),), 0),
        ("rank_5", ((1, 2, 1, 2, 2), (1, 2, 1, 2, 3)), 4),
        ("with_empty", ((2, 0), (2, 3)), 1),
        ("many", ((1, 2),) * 7, 0),
    ):
        types = ALL if name == "last" else ("float32", "int8", "uint8", "int16")
        typed(
            "CONCATENATION",
            name,
            types,
            lambda d, q, s=shapes: [feed(d, shape, None, q) for shape in s],
            {"axis": axis},
        )
    operands = [feed("uint8", (2, 3), None, Quant(0.05, 121)), feed("uint8", (2, 5), None, Quant(0.09, 3))]
    case(
        "CONCATENATION", "uint8_different_scales", operands, [out("uint8", Quant(0.1, 100))], {"axis": 1}, kind="uint8"
    )
    for name, shape, axis, count in (
        ("first", (2, 3), 0, 3),
        ("last", (2, 3), 2, 2),
        ("negative", (2, 3), -1, 2),
        ("scalars", (), 0, 4),
        ("rank_4", (1, 2, 2, 2), 1, 2),
        ("one", (3,), 1, 1),
    ):
        types = ALL if name == "first" else ("float32", "int8")
        typed(
            "PACK",
            name,
            types,
            lambda d, q, s=shape, c=count: [feed(d, s, None, q) for _ in range(c)],
            {"axis": axis, "valuesCount": count},
        )
    for name, shape, axis in (
        ("first", (3, 2), 0),
        ("last", (2, 3), 1),
        ("negative", (2, 2, 3), -2),
        ("to_scalars", (3,), 0),
        ("rank_5", (1, 2, 1, 2, 2), 3),
    ):
        types = ALL if name == "first" else ("float32", "int8")
        typed(
            "UNPACK",
            name,
            types,
            lambda d, q, s=shape: [feed(d, s, None, q)],
            {"axis": axis, "num": shape[axis]},
            results=shape[axis],
        )
    for name, shape, axis, count in (
        ("first", (4, 3), 0, 2),
        ("last", (2, 6), 1, 3),
        ("negative", (2, 4, 2), -2, 4),
        ("one", (2, 3), 1, 1),
        ("rank_5", (1, 4, 1, 2, 2), 1, 2),
    ):
        types = ALL if name == "first" else ("float32", "int8", "uint8", "int16")
        typed(
            "SPLIT",
            name,
            types,
            lambda d, q, s=shape, a=axis: [given(a), feed(d, s, None, q)],
            {"numSplits": count},
            results=count,
        )
    for name, shape, axis, sizes in (
        ("first", (5, 2), 0, [2, 3]),
        ("last", (2, 6), 1, [1, 2, 3]),
        ("negative_size", (2, 6), -1, [1, -1, 2]),
        ("with_empty", (2, 3), 1, [0, 3]),
        ("rank_4", (1, 4, 2, 2), 1, [3, 1]),
    ):
        types = ALL if name == "first" else ("float32", "int8")
        typed(
            "SPLIT_V",
            name,
            types,
            lambda d, q, s=shape, a=axis, z=sizes: [feed(d, s, None, q), given(z), given(a)],
            {"numSplits": len(sizes)},
            results=len(sizes),
        )
    typed(
        "SPLIT_V",
        "int64_sizes",
        ("float32",),
        lambda d, q: [feed(d, (5, 2)), given([2, 3], "int64"), given(0)],
        {"numSplits": 2},
        results=2,
    )


def slices():
    """SLICE, STRIDED_SLICE, DYNAMIC_UPDATE_SLICE."""
    for name, shape, begin, size in (
        ("rank_1", (5,), [1], [3]),
        ("rank_2", (3, 4), [1, 0], [2, 3]),
        ("rest", (3, 4, 2), [1, 2, 0], [-1, -1, 1]),
        ("rank_4", (1, 3, 3, 2), [0, 1, 1, 0], [1, 2, 2, 2]),
        ("rank_5", (2, 1, 3, 2, 2), [1, 0, 1, 0, 1], [1, 1, 2, 2, 1]),
        ("empty", (3, 2), [1, 0], [0, 2]),
    ):
        types = ALL if name == "rank_2" else ("float32", "int8", "int16")
        typed("SLICE", name, types, lambda d, q, s=shape, b=begin, z=size: [feed(d, s, None, q), given(b), given(z)])
    typed(
        "SLICE",
        "int64_indices",
        ("float32",),
        lambda d, q: [feed(d, (3, 4)), given([1, 1], "int64"), given([1, 2], "int64")],
    )
    typed(
        "SLICE",
        "fed_indices",
        ("float32",),
        lambda d, q: [feed(d, (3, 4)), given_feed([1, 1]), given_feed([1, 2])],
        dynamic=[0],
    )
    typed(
        "SLICE",
        "fed_begin",
        ("float32",),
        lambda d, q: [feed(d, (3, 4)), given_feed([1, 1]), given([1, 2])],
        dynamic=[0],
    )
    sets = {
        "rank_1": ((7,), [1], [6], [2], {}),
        "rank_2": ((4, 5), [1, 0], [3, 4], [1, 2], {}),
        "negative_strides": ((4, 5), [3, -1], [0, -6], [-1, -2], {}),
        "negative_indices": ((4, 5), [-3, -4], [-1, -1], [1, 1], {}),
        "begin_mask": ((4, 5), [2, 1], [3, 4], [1, 1], {"beginMask": 1}),
        "end_mask": ((4, 5), [1, 1], [2, 2], [1, 1], {"endMask": 2}),
        "both_masks": ((4, 5), [1, 1], [2, 2], [1, 2], {"beginMask": 3, "endMask": 3}),
        "reverse_masks": ((4, 5), [0, 0], [0, 0], [-1, -1], {"beginMask": 3, "endMask": 3}),
        "shrink_axis": ((4, 5), [2, 0], [3, 5], [1, 1], {"shrinkAxisMask": 1}),
        "shrink_negative": ((4, 5), [-1, 0], [0, 5], [1, 1], {"shrinkAxisMask": 1}),
        "shrink_all": ((4, 5), [1, 2], [2, 3], [1, 1], {"shrinkAxisMask": 3}),
        "new_axis": ((3, 4), [0, 0, 1], [0, 3, 3], [1, 1, 1], {"newAxisMask": 1}),
        "new_axis_middle": ((3, 4), [0, 0, 1], [3, 0, 3], [1, 1, 1], {"newAxisMask": 2}),
        "ellipsis": ((2, 3, 4), [0, 1], [0, 3], [1, 1], {"ellipsisMask": 1}),
        "ellipsis_middle": ((2, 3, 2, 4), [1, 0, 1], [2, 0, 4], [1, 1, 2], {"ellipsisMask": 2}),
        "ellipsis_and_new_axis": ((2, 3, 4), [0, 0, 1], [0, 0, 3], [1, 1, 1], {"ellipsisMask": 1, "newAxisMask": 2}),
        "fewer_indices": ((3, 4, 2), [1], [3], [1], {}),
        "out_of_range": ((4, 5), [-9, 2], [9, 99], [1, 1], {}),
        "empty": ((4, 5), [3, 0], [2, 5], [1, 1], {}),
        "rank_5": ((2, 3, 1, 4, 2), [0, 2, 0, 3, 0], [2, 0, 1, 0, 2], [1, -1, 1, -2, 1], {}),
        "offset": ((6, 5), [1, 2], [3, 2], [1, 1], {"offset": True}),
    }
    for name, (shape, begin, end, strides, options) in sets.items():
        types = ALL if name == "rank_2" else ("float32", "int8")
        typed(
            "STRIDED_SLICE",
            name,
            types,
            lambda d, q, s=shape, i=(begin, end, strides): [feed(d, s, None, q), *map(given, i)],
            options,
        )
    typed(
        "STRIDED_SLICE",
        "fed_indices",
        ("float32",),
        lambda d, q: [feed(d, (4, 5)), given_feed([1, 1]), given_feed([3, 4]), given([1, 2])],
        dynamic=[0],
    )
    for name, shape, update, start in (
        ("rank_1", (6,), (2,), [3]),
        ("rank_2", (3, 4), (2, 2), [1, 1]),
        ("clamped", (3, 4), (2, 2), [2, -5]),
        ("whole", (2, 3), (2, 3), [0, 0]),
        ("rank_4", (1, 3, 3, 2), (1, 2, 1, 2), [0, 1, 2, 0]),
    ):
        types = ALL if name == "rank_2" else ("float32", "int8")
        typed(
            "DYNAMIC_UPDATE_SLICE",
            name,
            types,
            lambda d, q, s=shape, u=update, b=start: [feed(d, s, None, q), feed(d, u, None, q), given_feed(b)],
        )
    typed(
        "DYNAMIC_UPDATE_SLICE",
        "int64_start",
        ("float32",),
        lambda d, q: [feed(d, (3, 4)), feed(d, (2, 2)), given_feed([1, 1], "int64")],
    )


def tiles():
    """TILE, BROADCAST_TO, BROADCAST_ARGS, FILL, RANGE, REVERSE_V2, REVERSE_SEQUENCE."""
    for name, shape, counts in (
        ("rank_1", (3,), [2]),
        ("rank_2", (2, 3), [1, 2]),
        ("rank_4", (1, 2, 1, 3), [2, 1, 3, 1]),
        ("none", (2, 3), [0, 1]),
        ("rank_5", (1, 2, 1, 2, 1), [2, 1, 2, 1, 3]),
    ):
        types = ALL if name == "rank_2" else ("float32", "int8")
        typed("TILE", name, types, lambda d, q, s=shape, c=counts: [feed(d, s, None, q), given(c)])
    typed("TILE", "int64_counts", ("float32",), lambda d, q: [feed(d, (2, 3)), given([2, 2], "int64")])
    typed("TILE", "fed_counts", ("float32",), lambda d, q: [feed(d, (2, 3)), given_feed([2, 2])], dynamic=[0])
    for name, shape, target in (
        ("row", (3,), [2, 3]),
        ("column", (2, 1), [2, 4]),
        ("scalar", (), [2, 2]),
        ("rank_5", (2, 1, 1, 2), [3, 2, 2, 1, 2]),
        ("rank_6", (1, 2, 1), [2, 1, 2, 2, 2, 3]),
        ("same", (2, 3), [2, 3]),
        ("empty", (1, 3), [0, 3]),
    ):
        types = ALL if name == "row" else ("float32", "int8")
        typed("BROADCAST_TO", name, types, lambda d, q, s=shape, t=target: [feed(d, s, None, q), given(t)])
    typed("BROADCAST_TO", "int64_shape", ("float32",), lambda d, q: [feed(d, (3,)), given([2, 3], "int64")])
    for dtype in ("int32", "int64"):
        for name, left, right in (
            ("same", [2, 3], [2, 3]),
            ("ones", [2, 1, 3], [4, 1]),
            ("longer", [3], [5, 2, 3]),
            ("scalar", [], [2, 2]),
        ):
            case(
                "BROADCAST_ARGS",
                f"{dtype}_{name}",
                [given_feed(left, dtype), given_feed(right, dtype)],
                [out(dtype)],
                kind=dtype,
            )
    for dtype in ALL:
        quant = QUANT.get(dtype)
        number = feed(dtype, (), None, quant)
        case("FILL", f"{dtype}_rank_2", [given([2, 3]), number], [out(dtype, quant)], kind=dtype)
    case("FILL", "float32_scalar", [given([]), feed("float32", ())], [out("float32")], kind="float32")
    case(
        "FILL",
        "float32_int64_shape",
        [given([2, 1, 2], "int64"), feed("float32", ())],
        [out("float32")],
        kind="float32",
    )
    case("FILL", "float32_empty", [given([0, 3]), feed("float32", ())], [out("float32")], kind="float32")
    case(
        "FILL",
        "float32_fed_shape",
        [given_feed([2, 3]), feed("float32", ())],
        [out("float32")],
        kind="float32",
        dynamic=[0],
    )
    for dtype in ("int32", "int64", "float32"):
        for name, numbers in (("up", (0, 5, 1)), ("step", (2, 11, 4)), ("down", (5, -3, -2)), ("empty", (3, 3, 1))):
            case(
                "RANGE",
                f"{dtype}_{name}",
                [given_feed(number, dtype) for number in numbers],
                [out(dtype)],
                kind=dtype,
                dynamic=[0],
            )
            case(
                "RANGE",
                f"{dtype}_{name}_constant",
                [given(number, dtype) for number in numbers],
                [out(dtype)],
                kind=dtype,
            )
    case(
        "RANGE",
        "float32_fractions",
        [given(number, "float32") for number in (0, 1, 0.3)],
        [out("float32")],
        kind="float32",
    )
    for name, shape, axes in (
        ("first", (3, 2), [0]),
        ("last", (2, 4), [1]),
        ("negative", (2, 3, 2), [-2]),
        ("several", (2, 3, 2), [1, 2]),
        ("rank_5", (2, 1, 3, 2, 2), [2]),
        ("rank_1", (5,), [0]),
    ):
        types = ALL if name == "first" else ("float32", "int8")
        typed("REVERSE_V2", name, types, lambda d, q, s=shape, a=axes: [feed(d, s, None, q), given(a)])
    for name, shape, lengths, sequence, batch in (
        ("rank_3", (2, 4, 3), [2, 4], 1, 0),
        ("swapped", (4, 3), [1, 4, 0], 0, 1),
        ("rank_4", (2, 3, 4, 2), [1, 2, 3], 2, 1),
    ):
        types = ALL if name == "rank_3" else ("float32",)
        typed(
            "REVERSE_SEQUENCE",
            name,
            types,
            lambda d, q, s=shape, n=lengths: [feed(d, s, None, q), given_feed(n)],
            {"seqDim": sequence, "batchDim": batch},
        )
    typed(
        "REVERSE_SEQUENCE",
        "int64_lengths",
        ("float32",),
        lambda d, q: [feed(d, (2, 4)), given_feed([3, 1], "int64")],
        {"seqDim": 1, "batchDim": 0},
    )


def build():
    """Registers the cases."""
    reshape()
    transpose()
    paddings()
    joins()
    slices()
    tiles()
