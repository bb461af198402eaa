"""STABLEHLO ops that LiteRT has kernels for."""

import numpy as np
from flatbuffers import flexbuffers

from builder import Model, Quant, case, feed, generator_of, given_feed, integers, out, random, register

PLAIN = (
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
)
# An empty map as a FlexBuffer.
ATTRIBUTES = list(flexbuffers.Dumps({}))


def elementwise():
    """Ops without broadcasting."""
    for op in ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM", "AND", "SHIFT_LEFT"):
        for dtype in PLAIN:
            right = integers(0, 5) if op == "SHIFT_LEFT" else None
            for name, shape in (("rank_0", ()), ("rank_2", (2, 3)), ("rank_5", (1, 2, 1, 2, 3))):
                if name == "rank_2" or dtype in ("float32", "int32"):
                    pair = [feed(dtype, shape), feed(dtype, shape, right)]
                    case(f"STABLEHLO_{op}", f"{dtype}_{name}", pair, [out(dtype)], kind=dtype)
        for dtype, zero in (("int8", 5), ("int16", 0), ("uint8", 120)):
            if op in ("MAXIMUM", "MINIMUM"):  # Arithmetic ignores the quantization.
                quant = Quant(0.05, zero)
                pair = [feed(dtype, (3, 9), None, quant), feed(dtype, (3, 9), None, quant)]
                case(f"STABLEHLO_{op}", f"{dtype}_quantized", pair, [out(dtype, quant)])


def pads():
    """STABLEHLO_PAD with interior and negative paddings."""
    for dtype in PLAIN:
        for name, shape, low, high, interior in (
            ("edges", (2, 3), [1, 0], [0, 2], [0, 0]),
            ("interior", (2, 3), [0, 0], [0, 0], [1, 2]),
            ("all", (2, 2, 3), [1, 0, 2], [0, 1, 1], [0, 1, 2]),
            ("negative", (4, 5), [-1, 1], [0, -2], [0, 0]),
            ("negative_and_interior", (3, 4), [-1, 0], [1, -2], [1, 1]),
            ("rank_1", (3,), [2], [-1], [1]),
        ):
            if dtype in ("float32", "int8") or name == "all":
                options = {"edgePaddingLow": low, "edgePaddingHigh": high, "interiorPadding": interior}
                number = given_feed(7 if dtype != "bool" else True, dtype)
                case(
                    "STABLEHLO_PAD", f"{dtype}_{name}", [feed(dtype, shape), number], [out(dtype)], options, kind=dtype
                )


def reducer(model, op, dtype):
    """A subgraph that combines two scalars."""
    graph = model.graph(f"reducer_{op}")
    left, right = graph.input("left", dtype, ()), graph.input("right", dtype, ())
    graph.output(graph.op(op, [left, right], [("result", dtype, ())]))
    return graph.index


def single(op, name, dtype, operands, options, result, body=None, option=None, **more):
    """Registers a model of one op with a combining subgraph."""
    file = op.lower()
    model = Model()
    graph = model.graph("main")
    generator = generator_of(f"{file}/{name}")
    numbers, feeds = [], []
    for k, operand in enumerate(operands):
        values = operand if isinstance(operand, np.ndarray) else random(dtype, operand, generator)
        numbers.append(graph.input(f"serving_default_{k}:0", str(values.dtype), values.shape))
        feeds.append(values)
    if body is not None:
        options = {**options, option: reducer(model, body, dtype)}
    target = graph.tensor("PartitionedCall:0", dtype, result)
    graph.output(graph.op(op, numbers, [target], options))
    register(file, name, op, dtype, model, feeds, infer=[target], **more)


def windows():
    """STABLEHLO_REDUCE_WINDOW."""
    bodies = {
        "sum": ("STABLEHLO_ADD", 0),
        "product": ("STABLEHLO_MULTIPLY", 1),
        "maximum": ("STABLEHLO_MAXIMUM", -100),
        "minimum": ("STABLEHLO_MINIMUM", 100),
    }
    for body, (op, initial) in bodies.items():
        for dtype in ("float32", "int32", "int8", "int16", "int64", "float16", "uint8"):
            initial_value = np.array(max(initial, 0) if dtype[0] == "u" else initial, dtype)
            for name, shape, window, strides, base, dilations, padding in (
                ("plain", (4, 6), [2, 3], [2, 3], [1, 1], [1, 1], [0, 0, 0, 0]),
                ("padding", (3, 4), [2, 2], [1, 2], [1, 1], [1, 1], [1, 0, 0, 2]),
                ("dilations", (4, 5), [2, 2], [1, 1], [2, 1], [1, 2], [0, 1, 1, 0]),
            ):
                if name == "plain" or dtype in ("float32", "int32"):
                    options = {
                        "windowDimensions": window,
                        "windowStrides": strides,
                        "baseDilations": base,
                        "windowDilations": dilations,
                        "padding": padding,
                    }
                    single(
                        "STABLEHLO_REDUCE_WINDOW",
                        f"{dtype}_{body}_{name}",
                        dtype,
                        [shape, initial_value],
                        options,
                        (1, 1),
                        op,
                        "bodySubgraphIndex",
                        summands=6,
                    )


def gathers():
    """STABLEHLO_GATHER and STABLEHLO_SCATTER."""
    for dtype in ("float32", "int32", "int8", "int64", "bool", "float16"):
        for index in ("int32", "int64"):
            for name, shape, indices, result, options in (
                (
                    "rows",
                    (4, 3),
                    [[2], [0], [9]],
                    (3, 3),
                    {
                        "offsetDims": [1],
                        "collapsedSliceDims": [0],
                        "startIndexMap": [0],
                        "indexVectorDim": 1,
                        "sliceSizes": [1, 3],
                    },
                ),
                (
                    "windows",
                    (3, 4, 2),
                    [[[0, 0], [1, 0], [2, 1]], [[0, 1], [1, 1], [0, 2]]],
                    (2, 3, 2, 2),
                    {
                        "offsetDims": [2, 3],
                        "collapsedSliceDims": [0],
                        "startIndexMap": [1, 0],
                        "indexVectorDim": 2,
                        "sliceSizes": [1, 2, 2],
                    },
                ),
            ):
                if dtype == "float32" or index == "int32" and name == "windows":
                    single(
                        "STABLEHLO_GATHER",
                        f"{dtype}_{name}_{index}_indices",
                        dtype,
                        [shape, np.array(indices, index)],
                        options,
                        result,
                    )
            for body, op in (
                ("sum", "STABLEHLO_ADD"),
                ("product", "STABLEHLO_MULTIPLY"),
                ("maximum", "STABLEHLO_MAXIMUM"),
                ("minimum", "STABLEHLO_MINIMUM"),
            ):
                if dtype in ("bool", "float16") or dtype != "float32" and index == "int64":
                    continue
                for name, shape, indices, updates, options in (
                    (
                        "rows",
                        (4, 3),
                        [[2], [0], [2]],
                        (3, 3),
                        {
                            "updateWindowDims": [1],
                            "insertedWindowDims": [0],
                            "scatterDimsToOperandDims": [0],
                            "indexVectorDim": 1,
                        },
                    ),
                    (
                        "windows",
                        (3, 4, 2),
                        [[[0, 2], [1, 0], [2, 1]], [[0, 1], [1, 0], [0, 9]]],
                        (2, 3, 2, 2),
                        {
                            "updateWindowDims": [2, 3],
                            "insertedWindowDims": [0],
                            "scatterDimsToOperandDims": [1, 0],
                            "indexVectorDim": 2,
                        },
                    ),
                ):
                    single(
                        "STABLEHLO_SCATTER",
                        f"{dtype}_{name}_{body}_{index}_indices",
                        dtype,
                        [shape, np.array(indices, index), updates],
                        options,
                        shape,
                        op,
                        "updateComputationSubgraphIndex",
                        summands=3,
                    )


def composites():
    """STABLEHLO_COMPOSITE, whose meaning is its decomposition, and STABLEHLO_CASE."""
    for name, ops in (("add_n", ["ADD"]), ("gelu", ["MUL", "TANH"]), ("nested", ["SUB", "STABLEHLO_COMPOSITE"])):
        model = Model()
        graph = model.graph("main")
        x, y = graph.input("x", "float32", (2, 3)), graph.input("y", "float32", (2, 3))
        body = model.graph("decomposition")
        a, b = body.input("a", "float32", (2, 3)), body.input("b", "float32", (2, 3))
        for op in ops:
            options = None
            if op == "STABLEHLO_COMPOSITE":
                inner = model.graph("inner")
                c, d = inner.input("c", "float32", (2, 3)), inner.input("d", "float32", (2, 3))
                inner.output(inner.op("MAXIMUM", [c, d], [("max", "float32", (2, 3))]))
                options = {
                    "name": "inner.max",
                    "decompositionSubgraphIndex": inner.index,
                    "version": 2,
                    "compositeAttributes": ATTRIBUTES,
                }
            a = body.op(op, [a] if op == "TANH" else [a, b], [(f"{op}_out", "float32", (2, 3))], options)
        body.output(a)
        options = {
            "name": f"odml.{name}",
            "decompositionSubgraphIndex": body.index,
            "version": 1,
            "compositeAttributes": ATTRIBUTES,
        }
        graph.output(graph.op("STABLEHLO_COMPOSITE", [x, y], [("composite", "float32", (2, 3))], options))
        generator = generator_of(f"stablehlo_composite/{name}")
        feeds = [random("float32", (2, 3), generator) for _ in range(2)]
        register(
            "stablehlo_composite",
            f"float32_{name}",
            "STABLEHLO_COMPOSITE",
            "float32",
            model,
            feeds,
            atol=1e-5,
            rtol=1e-5,
        )
    for branch in (0, 1, 2, -1, 7):
        model = Model()
        graph = model.graph("main")
        which, x = graph.input("branch", "int32", ()), graph.input("x", "float32", (3,))
        indices = []
        for op in ("NEG", "SQUARE", "EXP"):
            body = model.graph(f"branch_{op}")
            y = body.input("y", "float32", (3,))
            body.output(body.op(op, [y], [(op, "float32", (3,))]))
            indices.append(body.index)
        graph.output(
            graph.op("STABLEHLO_CASE", [which, x], [("case", "float32", (3,))], {"branchSubgraphIndices": indices})
        )
        name = f"float32_branch_{branch}".replace("-", "minus_")
        feeds = [np.int32(branch), random("float32", (3,), generator_of(name))]
        register("stablehlo_case", name, "STABLEHLO_CASE", "float32", model, feeds, atol=1e-5, rtol=1e-5)


def build():
    """Registers the cases."""
    elementwise()
    pads()
    windows()
    gathers()
    composites()
