"""Ops that read or write by index: GATHER, SCATTER_ND, SELECT, WHERE, TOPK_V2, UNIQUE, and others."""

import numpy as np

from builder import case, const, feed, given, given_feed, integers, make_sparse, out
from shapes import ALL, QUANT, typed


def gathers():
    """GATHER, GATHER_ND, SCATTER_ND."""
    for name, shape, indices, axis, batch in (
        ("first", (4, 3), [2, 0, 2], 0, 0),
        ("last", (2, 5), [[4, 1], [0, 0]], 1, 0),
        ("negative_axis", (2, 3, 4), [1, 3], -1, 0),
        ("scalar", (4, 3), 2, 0, 0),
        ("batch_dims", (2, 4, 3), [[1, 0], [3, 3]], 1, 1),
        ("batch_dims_last", (2, 3, 4), [[[0], [1], [2]], [[3], [2], [1]]], 2, 2),
        ("no_indices", (4, 3), np.zeros((0,)), 0, 0),
        ("rank_5", (2, 1, 3, 2, 2), [2, 1], 2, 0),
    ):
        types = ALL if name == "first" else ("float32", "int8")
        for index in ("int32", "int64", "int16") if name in ("first", "batch_dims") else ("int32",):
            suffix = "" if index == "int32" else f"_{index}_indices"
            make = lambda d, q, s=shape, i=indices, t=index: [feed(d, s, None, q), given_feed(i, t)]
            typed(
                "GATHER", name + suffix, types if not suffix else ("float32",), make, {"axis": axis, "batchDims": batch}
            )
    typed(
        "GATHER",
        "constant_table",
        ("float32", "int4", "int8"),
        lambda d, q: [const(d, (4, 4), None, q), given_feed([3, 0])],
    )
    for name, shape, indices in (
        ("rows", (3, 4), [[2], [0]]),
        ("elements", (3, 4), [[2, 1], [0, 3], [2, 2]]),
        ("rank_3", (2, 3, 4), [[[0, 1]], [[1, 2]]]),
        ("rank_5", (2, 1, 2, 3, 2), [[1, 0, 1], [0, 0, 0]]),
        ("whole", (2, 3), np.zeros((2, 0))),
    ):
        types = ALL if name == "rows" else ("float32", "int8")
        typed("GATHER_ND", name, types, lambda d, q, s=shape, i=indices: [feed(d, s, None, q), given_feed(i)])
    for index in ("int64", "int16"):
        typed(
            "GATHER_ND",
            f"{index}_indices",
            ("float32",),
            lambda d, q, t=index: [feed(d, (3, 4)), given_feed([[2, 1], [0, 0]], t)],
        )
    for name, indices, update, shape in (
        ("rows", [[2], [0]], (2, 3), [4, 3]),
        ("elements", [[4], [1], [3]], (3,), [6]),
        ("repeated", [[1], [1], [0]], (3, 2), [3, 2]),
        ("rank_3", [[0, 1], [1, 0]], (2, 2), [2, 2, 2]),
    ):
        types = ALL if name in ("rows", "repeated") else ("float32",)
        typed(
            "SCATTER_ND", name, types, lambda d, q, i=indices, u=update, s=shape: [given_feed(i), feed(d, u), given(s)]
        )
    typed(
        "SCATTER_ND",
        "fed_shape",
        ("float32",),
        lambda d, q: [given_feed([[1], [0]]), feed(d, (2, 2)), given_feed([3, 2])],
        dynamic=[0],
    )


def selects():
    """SELECT, SELECT_V2, WHERE."""
    for name, condition, left, right in (
        ("same", (2, 3), (2, 3), (2, 3)),
        ("scalar_condition", (), (2, 3), (2, 3)),
        ("row_condition", (3,), (3, 2), (3, 2)),
        (
            "rank_5",
            (2, 1, 2, 1, 2),
        )
        * 1
        + ((2, 1, 2, 1, 2), (2, 1, 2, 1, 2)),
    ):
        types = ALL if name == "same" else ("float32", "int8")
        typed(
            "SELECT",
            name,
            types,
            lambda d, q, c=condition, a=left, b=right: [feed("bool", c), feed(d, a, None, q), feed(d, b, None, q)],
        )
    for name, condition, left, right in (
        ("same", (2, 3), (2, 3), (2, 3)),
        ("scalar_condition", (), (2, 3), (2, 3)),
        ("broadcast_condition", (3, 1), (3, 4), (1, 4)),
        ("scalar_value", (2, 3), (2, 3), ()),
        ("all_broadcast", (2, 1, 1), (1, 3, 1), (4,)),
        ("rank_5", (2, 1, 3, 1, 2), (1, 2, 1, 2, 2), (2, 2, 3, 1, 1)),
        ("empty", (0, 3), (0, 3), (1, 3)),
    ):
        types = ALL if name == "same" else ("float32", "int8")
        typed(
            "SELECT_V2",
            name,
            types,
            lambda d, q, c=condition, a=left, b=right: [feed("bool", c), feed(d, a, None, q), feed(d, b, None, q)],
        )
    for name, shape in (
        ("rank_1", (7,)),
        ("rank_2", (3, 4)),
        ("rank_4", (2, 1, 3, 2)),
        ("rank_5", (1, 2, 1, 3, 2)),
        ("scalar", ()),
    ):
        for dtype in (
            ("bool", "float32", "int8", "int32", "int64", "uint8", "uint32", "float16")
            if name == "rank_2"
            else ("bool", "float32")
        ):
            values = integers(0, 1)
            case("WHERE", f"{dtype}_{name}", [feed(dtype, shape, values)], [out("int64")], kind=dtype, dynamic=[0])
    case("WHERE", "bool_none", [given_feed(np.zeros((2, 3)), "bool")], [out("int64")], kind="bool", dynamic=[0])


def sorting():
    """TOPK_V2, UNIQUE, BUCKETIZE, ONE_HOT, NON_MAX_SUPPRESSION."""
    for name, shape, count in (
        ("rank_1", (9,), 3),
        ("rank_2", (3, 6), 2),
        ("rank_3", (2, 2, 5), 5),
        ("one", (4, 3), 1),
        ("none", (2, 3), 0),
    ):
        for dtype in ALL if name == "rank_2" else ("float32", "int32"):
            quant = QUANT.get(dtype)
            operands = [feed(dtype, shape, None if dtype[0] in "fb" else integers(0, 7), quant), given(count)]
            case("TOPK_V2", f"{dtype}_{name}", operands, [out(dtype, quant), out("int32")], kind=dtype)
    operands = [given_feed([[3, 1, 3, 3, 2], [0, 0, 0, 0, 0]], "float32"), given(3)]
    case("TOPK_V2", "float32_ties", operands, [out("float32"), out("int32")], kind="float32")
    operands = [feed("float32", (2, 5)), given(2, "int16")]
    case("TOPK_V2", "float32_int16_count", operands, [out("float32"), out("int32")], kind="float32")
    operands = [feed("float32", (2, 5)), given(2)]
    case("TOPK_V2", "float32_int16_indices", operands, [out("float32"), out("int16")], kind="float32")
    operands = [feed("float32", (2, 5)), given_feed(2)]
    case("TOPK_V2", "float32_fed_count", operands, [out("float32"), out("int32")], kind="float32", dynamic=[0, 1])
    for dtype in ("float32", "int8", "int16", "int32", "int64", "uint8"):
        for code, index in ((2, "int32"), (4, "int64")):
            operands = [feed(dtype, (9,), integers(0, 4))]
            case(
                "UNIQUE",
                f"{dtype}_{index}",
                operands,
                [out(dtype), out(index)],
                {"idxOutType": code},
                kind=dtype,
                dynamic=[0],
            )
    case(
        "UNIQUE",
        "float32_one_element",
        [feed("float32", (1,))],
        [out("float32"), out("int32")],
        kind="float32",
        dynamic=[0],
    )
    for dtype in ("float32", "float64", "int32", "int64"):
        for name, shape, limits in (
            ("rank_1", (8,), [0.0]),
            ("rank_3", (2, 3, 2), [-1.0, 0.0, 0.5, 3.0]),
            ("empty", (0,), [1.0]),
        ):
            case(
                "BUCKETIZE", f"{dtype}_{name}", [feed(dtype, shape)], [out("int32")], {"boundaries": limits}, kind=dtype
            )
    case(
        "BUCKETIZE",
        "float32_boundary_values",
        [given_feed([-1, -0.0, 0, 0.5, 3, 9], "float32")],
        [out("int32")],
        {"boundaries": [-1.0, 0.0, 0.5, 3.0]},
        kind="float32",
    )
    for dtype in ("float32", "int8", "int16", "int32", "int64", "uint8", "bool"):
        for index in ("int32", "int64") if dtype == "float32" else ("int32",):
            for axis in (-1, 0, 1):
                values = (True, False) if dtype == "bool" else (5, 1)
                operands = [
                    given_feed([[0, 2], [3, -1], [4, 1]], index),
                    given(4),
                    given(values[0], dtype),
                    given(values[1], dtype),
                ]
                name = f"{dtype}_{index}_axis_{axis}".replace("-", "minus_")
                case("ONE_HOT", name, operands, [out(dtype)], {"axis": axis}, kind=dtype)
    operands = [given_feed(2), given(4), given(1, "float32"), given(0, "float32")]
    case("ONE_HOT", "float32_scalar_index", operands, [out("float32")], {"axis": -1}, kind="float32")
    suppression()


def boxes(generator, shape):
    """Boxes (y1, x1, y2, x2) that overlap often."""
    corner = generator.uniform(0, 2, (shape[0], 2))
    return np.concatenate([corner, corner + generator.uniform(0.5, 2, (shape[0], 2))], 1)


def suppression():
    """NON_MAX_SUPPRESSION_V4 and V5."""
    for count, limit, iou, threshold in (
        (8, 5, 0.5, 0.0),
        (8, 3, 0.3, 0.4),
        (5, 8, 0.9, -1.0),
        (12, 12, 0.1, 0.2),
        (6, 0, 0.5, 0.0),
    ):
        name = f"float32_{count}_boxes_{limit}_outputs"
        scores = lambda generator, shape: generator.permutation(shape[0]) / shape[0]
        operands = [
            feed("float32", (count, 4), boxes),
            feed("float32", (count,), scores),
            given_feed(limit),
            given_feed(iou, "float32"),
            given_feed(threshold, "float32"),
        ]
        fixed = [*operands[:2], given(limit), given(iou, "float32"), given(threshold, "float32")]
        for suffix, arguments, dynamic in (("", fixed, []), ("_fed", operands, [0])):
            case(
                "NON_MAX_SUPPRESSION_V4",
                name + suffix,
                arguments,
                [out("int32"), out("int32")],
                kind="float32",
                dynamic=dynamic,
            )
            for sigma in (0.0, 0.5):
                label = f"{name}_sigma_{sigma}{suffix}".replace(".", "_")
                more = [*arguments, given(sigma, "float32")]
                results = [out("int32"), out("float32"), out("int32")]
                case(
                    "NON_MAX_SUPPRESSION_V5",
                    label,
                    more,
                    results,
                    kind="float32",
                    dynamic=[0, 1] if dynamic else [],
                    atol=1e-5,
                    rtol=1e-5,
                )


def matrices():
    """MATRIX_DIAG, MATRIX_SET_DIAG, SPARSE_TO_DENSE, DENSIFY."""
    for name, shape in (("rank_1", (4,)), ("rank_2", (2, 3)), ("rank_3", (1, 2, 2))):
        types = ALL if name == "rank_2" else ("float32",)
        typed("MATRIX_DIAG", name, types, lambda d, q, s=shape: [feed(d, s, None, q)])
    for name, shape, diagonal in (("square", (3, 3), (3,)), ("wide", (2, 2, 4), (2, 2)), ("tall", (1, 4, 2), (1, 2))):
        types = ALL if name == "square" else ("float32",)
        typed(
            "MATRIX_SET_DIAG", name, types, lambda d, q, s=shape, i=diagonal: [feed(d, s, None, q), feed(d, i, None, q)]
        )
    for index in ("int32", "int64"):
        for name, indices, shape, count in (
            ("rank_0", 3, [5], ()),
            ("rank_1", [0, 2, 4], [6], (3,)),
            ("rank_2", [[0, 1], [2, 3], [1, 1]], [3, 4], (3,)),
            ("scalar_values", [[0, 1], [2, 0]], [3, 4], ()),
            ("rank_4", [[0, 1, 0, 2], [1, 0, 1, 0]], [2, 2, 2, 3], (2,)),
        ):
            types = ALL if name == "rank_2" and index == "int32" else ("float32",)
            make = lambda d, q, i=indices, s=shape, c=count, t=index: [
                given_feed(i, t),
                given(s, t),
                feed(d, c),
                given(1 if d != "bool" else False, d),
            ]
            typed("SPARSE_TO_DENSE", f"{name}_{index}", types, make, {"validateIndices": False})
    densify()


def densify():
    """DENSIFY: a sparse constant in compressed sparse rows, and one in blocks."""
    for dtype in ("float32", "float16", "int8"):
        values = const(dtype, (5,), integers(1, 9))
        case("DENSIFY", f"{dtype}_rows", [values], [out(dtype)], kind=dtype)
        make_sparse(0, (4, 3), [0, 1], None, [(0, 4), (1, [0, 2, 2, 4, 5], [0, 2, 1, 2, 0])])
        values = const(dtype, (8,), integers(1, 9))
        case("DENSIFY", f"{dtype}_blocks", [values], [out(dtype)], kind=dtype)
        make_sparse(0, (4, 4), [0, 1, 2, 3], [0, 1], [(0, 2), (1, [0, 1, 2], [1, 0]), (0, 2), (0, 2)])


def lookups():
    """HASHTABLE_LOOKUP of numbers, and LSH_PROJECTION."""
    for dtype in ("float32", "int32"):
        operands = [given_feed([7, 3, 11]), given([3, 5, 11]), const(dtype, (3, 2))]
        case("HASHTABLE_LOOKUP", dtype, operands, [out(dtype), out("uint8")], kind=dtype)
    hashes = const("float32", (3, 2))
    for code, name in ((1, "sparse"), (2, "dense"), (3, "sparse_deprecated")):
        for weight in (False, True):
            operands = [hashes, feed("int32", (5,))]
            if weight:
                operands.append(given_feed([0.12, 0.34, 0.56, 0.67, 0.78], "float32"))
            label = f"{name}{'_weights' if weight else ''}"
            case("LSH_PROJECTION", label, operands, [out("int32")], {"type": code}, kind="int32")


def build():
    """Registers the cases."""
    gathers()
    selects()
    sorting()
    matrices()
    lookups()
