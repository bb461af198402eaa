"""FULLY_CONNECTED, BATCH_MATMUL, and lookups of embeddings."""

import numpy as np

from builder import (
    SAME,
    Model,
    Quant,
    case,
    const,
    feed,
    generator_of,
    given_feed,
    integers,
    make_sparse,
    out,
    register,
)
from convolutions import (
    ACTIVATIONS,
    DEVIATION,
    INPUT,
    channel_scales,
    quantized_label,
    quantized_operands,
)

# Input, depth, units, keep dimensions, activation.
SHAPES = {
    "rank_2": ((3, 7), 7, 5, False, "none"),
    "rank_2_relu": ((4, 16), 16, 8, False, "relu"),
    "rank_2_relu6": ((2, 9), 9, 4, False, "relu6"),
    "rank_2_relu_n1_to_1": ((2, 9), 9, 4, False, "relu_n1_to_1"),
    "rank_1": ((6,), 6, 3, False, "none"),
    "rank_3_flat": ((2, 3, 4), 4, 5, False, "none"),
    "rank_3_keep": ((2, 3, 4), 4, 5, True, "none"),
    "rank_4_flat": ((2, 2, 2, 3), 12, 5, False, "none"),
    "rank_4_keep": ((1, 2, 2, 8), 8, 3, True, "relu"),
    "one_unit": ((5, 11), 11, 1, False, "none"),
    "one_row": ((1, 33), 33, 19, False, "none"),
    "deep": ((2, 130), 130, 6, False, "none"),
    "no_rows": ((0, 4), 4, 3, False, "none"),
}
FEW = ("rank_2", "rank_2_relu6", "rank_3_keep", "rank_4_flat", "one_row", "deep")
# Type of inputs, type of weights, per channel, type of bias, only a few shapes.
QUANTIZED = (
    ("int8", "int8", False, "int32", False),
    ("int8", "int8", True, "int32", False),
    ("int8", "int8", True, None, True),
    ("uint8", "uint8", False, "int32", False),
    ("uint8", "uint8", False, None, True),
    ("int16", "int8", False, "int64", False),
    ("int16", "int8", True, "int64", True),
    ("int16", "int8", False, "int32", True),
    ("int16", "int8", False, None, True),
    ("int8", "int4", False, "int32", True),
    ("int8", "int4", True, "int32", True),
    ("int16", "int4", True, "int64", True),
    ("int8", "int2", True, "int32", True),
    ("int8", "int2", False, "int32", True),
)


def fully_connected():
    """FULLY_CONNECTED of every type."""
    op = "FULLY_CONNECTED"
    for name, (shape, depth, units, keep, activation) in SHAPES.items():
        options = {"keepNumDims": keep, "fusedActivationFunction": ACTIVATIONS[activation]}
        operands = [feed("float32", shape), const("float32", (units, depth)), const("float32", (units,))]
        case(op, f"float32_{name}", operands, [out("float32")], options, summands=depth)
        for dtype, weights, per_channel, bias, few in QUANTIZED:
            if few and name not in FEW:
                continue
            label = quantized_label(dtype, weights, per_channel, bias)
            operands, result = quantized_operands(dtype, weights, (units, depth), units, 0, depth, per_channel, bias)
            operands = [feed(dtype, shape, None, INPUT[dtype]), *operands]
            if bias is None:
                operands.append(None)
            more = {"quantizedBiasType": 2 if bias == "int32" else 4} if dtype == "int16" and bias else {}
            kind = None if weights == dtype else f"{dtype} x {weights}"
            case(op, f"{label}_{name}", operands, [result], {**options, **more}, kind=kind)
        if name in FEW:
            hybrid(name, shape, depth, units, options)
    for activation in ("relu", "relu_n1_to_1", "relu6", "tanh"):
        options = {"fusedActivationFunction": ACTIVATIONS[activation]}
        operands = [feed("float32", (2, 5)), const("float32", (3, 5)), const("float32", (3,))]
        case(op, f"float32_activation_{activation}", operands, [out("float32")], options, summands=5)
        operands, result = quantized_operands("int8", "int8", (3, 5), 3, 0, 5, True, "int32")
        operands = [feed("int8", (2, 5), None, INPUT["int8"]), *operands]
        case(op, f"int8_activation_{activation}", operands, [result], options)
    operands = [feed("float32", (2, 5)), const("float32", (3, 5)), None]
    case(op, "float32_no_bias", operands, [out("float32")], summands=5)
    case(op, "float32_two_operands", operands[:2], [out("float32")], summands=5)
    operands = [feed("float32", (2, 5)), feed("float32", (3, 5)), feed("float32", (3,))]
    case(op, "float32_fed_weights", operands, [out("float32")], summands=5)
    operands = [feed("int8", (2, 5), None, Quant(0.05, -7)), feed("int8", (3, 5), None, Quant(0.02, 0)), None]
    case(op, "int8_fed_weights", operands, [out("int8", Quant(0.5, 3))])
    operands = [feed("int8", (2, 5), None, Quant(0.05, -7)), const("int8", (3, 5), None, Quant(0.02, 5)), None]
    case(op, "int8_weights_with_zero_point", operands, [out("int8", Quant(0.5, 3))])
    operands = [
        feed("int8", (2, 6), None, Quant(0.05, -7)),
        const("int8", (3, 6), integers(-127, 127), Quant(0.02, 0)),
        None,
    ]
    case(op, "int8_to_int16", operands, [out("int16", Quant(0.002))])
    operands = [
        feed("uint8", (2, 6), None, Quant(0.05, 121)),
        const("uint8", (3, 6), None, Quant(0.02, 131)),
        const("int32", (3,), integers(-900, 900), Quant(0.001, 0)),
    ]
    case(op, "uint8_to_int16", operands, [out("int16", Quant(0.002))])
    operands = [feed("float16", (2, 6)), const("float16", (3, 6)), None]
    case(op, "float16", operands, [out("float16")], summands=6, atol=4e-3, rtol=2e-3)
    operands = [feed("bfloat16", (2, 6)), const("bfloat16", (3, 6)), None]
    case(op, "bfloat16", operands, [out("bfloat16")], summands=6, atol=4e-2, rtol=1.6e-2)
    operands = [feed("float32", (2, 6)), const("float16", (3, 6)), None]
    case(op, "float32_x_float16", operands, [out("float32")], summands=6)


def sparse_weights():
    """FULLY_CONNECTED with sparse weights, by element and in blocks of 4."""
    rows = [(0, 4), (1, [0, 2, 2, 4, 5], [0, 7, 1, 2, 5])]
    blocks = [(0, 4), (1, [0, 1, 1, 3, 4], [1, 0, 1, 0]), (0, 4)]
    for name, size, order, block_map, dimensions in (
        ("elements", 5, [0, 1], None, rows),
        ("blocks", 16, [0, 1, 2], [1], blocks),
    ):
        operands = [feed("float32", (3, 8)), const("float32", (size,)), const("float32", (4,))]
        case("FULLY_CONNECTED", f"float32_sparse_{name}", operands, [out("float32")], summands=8)
        make_sparse(1, (4, 8), order, block_map, dimensions)


def half_weights():
    """Ops on floats whose weights are float16 behind DEQUANTIZE."""
    for op, shape, kernel, size, options in (
        ("FULLY_CONNECTED", (3, 6), (4, 6), 4, {}),
        ("CONV_2D", (1, 4, 5, 2), (3, 2, 2, 2), 3, {"padding": SAME, "strideH": 1, "strideW": 2}),
        (
            "DEPTHWISE_CONV_2D",
            (1, 4, 5, 2),
            (1, 3, 3, 2),
            2,
            {"padding": SAME, "strideH": 1, "strideW": 1, "depthMultiplier": 1},
        ),
        ("BATCH_MATMUL", (2, 3, 4), (2, 4, 2), None, {}),
        ("MUL", (2, 3), (3,), None, {}),
        ("PRELU", (1, 2, 3, 4), (1, 1, 4), None, {}),
    ):
        generator = generator_of(f"float16_weights/{op}")
        model = Model()
        graph = model.graph("main")
        numbers = [graph.input("serving_default_x:0", "float32", shape)]
        for part, extent in (("kernel", kernel), ("bias", None if size is None else (size,))):
            if extent is not None:
                half = graph.const(generator.normal(size=extent).astype(np.float16), f"model/{part}")
                numbers.append(graph.op("DEQUANTIZE", [half], [(f"model/{part}_dequantize", "float32", extent)]))
        result = graph.tensor("StatefulPartitionedCall:0", "float32", ())
        graph.output(graph.op(op, numbers, [result], options))
        feeds = [generator.normal(size=shape).astype(np.float32)]
        register("float16_weights", op.lower(), op, "float16 weights", model, feeds, infer=[result], summands=18)


def hybrid(name, shape, depth, units, options):
    """Dynamic range: float inputs, integer weights, with symmetric or asymmetric quantization of inputs."""
    for weights in (
        ("int8", "uint8", "int4", "int2") if name in ("rank_2", "rank_3_keep", "one_row") else ("int8", "int4")
    ):
        for per_channel in (False, True) if weights != "uint8" else (False,):
            for asymmetric in (False, True):
                span = {"int4": (-7, 7), "int2": (-1, 1), "int8": (-127, 127), "uint8": (1, 255)}[weights]
                quant = Quant(channel_scales(units) if per_channel else [0.01], 128 if weights == "uint8" else 0, 0)
                operands = [
                    feed("float32", shape),
                    const(weights, (units, depth), integers(*span), quant),
                    const("float32", (units,)),
                ]
                suffix = "_asymmetric" if asymmetric else ""
                label = f"float32x{weights}_{'per_channel' if per_channel else 'per_tensor'}{suffix}_{name}"
                more = {**options, "asymmetricQuantizeInputs": asymmetric}
                case(
                    "FULLY_CONNECTED",
                    label,
                    operands,
                    [out("float32")],
                    more,
                    kind=f"float32 x {weights}",
                    summands=depth,
                )


def batch_matmul():
    """BATCH_MATMUL: broadcasting, adjoints, and every type."""
    op = "BATCH_MATMUL"
    shapes = {
        "rank_2": ((3, 4), (4, 5)),
        "rank_3": ((2, 3, 4), (2, 4, 5)),
        "rank_4": ((2, 1, 3, 4), (2, 1, 4, 2)),
        "rank_5": ((1, 2, 1, 3, 4), (2, 1, 2, 4, 2)),
        "broadcast_right": ((2, 3, 2, 4), (4, 5)),
        "broadcast_left": ((3, 4), (2, 4, 3)),
        "broadcast_both": ((2, 1, 3, 4), (1, 3, 4, 2)),
        "vector": ((1, 6), (6, 1)),
    }
    for name, (left, right) in shapes.items():
        for adjoint_x, adjoint_y in ((False, False), (True, False), (False, True), (True, True)):
            if (adjoint_x or adjoint_y) and name not in ("rank_3", "broadcast_both", "broadcast_right"):
                continue
            a = (*left[:-2], left[-1], left[-2]) if adjoint_x else left
            b = (*right[:-2], right[-1], right[-2]) if adjoint_y else right
            suffix = ("_adjoint_x" if adjoint_x else "") + ("_adjoint_y" if adjoint_y else "")
            options, depth = {"adjX": adjoint_x, "adjY": adjoint_y}, left[-1]
            case(
                op,
                f"float32_{name}{suffix}",
                [feed("float32", a), feed("float32", b)],
                [out("float32")],
                options,
                summands=depth,
            )
            for dtype in ("int8", "int16"):
                right_quant = Quant(0.01, 5) if dtype == "int8" else Quant(0.0001)
                scale = INPUT[dtype].scale * right_quant.scale * DEVIATION[dtype] * 2
                operands = [feed(dtype, a, None, INPUT[dtype]), feed(dtype, b, None, right_quant)]
                case(
                    op,
                    f"{dtype}_{name}{suffix}",
                    operands,
                    [out(dtype, Quant(scale, -7 if dtype == "int8" else 0))],
                    options,
                )
            if name in ("rank_2", "rank_3", "broadcast_right", "broadcast_left"):
                for asymmetric in (False, True):
                    more = {**options, "asymmetricQuantizeInputs": asymmetric}
                    operands = [feed("float32", a), const("int8", b, integers(-127, 127), Quant(0.01, 0))]
                    label = f"float32xint8_{name}{suffix}{'_asymmetric' if asymmetric else ''}"
                    case(op, label, operands, [out("float32")], more, kind="float32 x int8", summands=depth)
    operands = [feed("float32", (2, 3, 4)), const("float32", (2, 4, 3))]
    case(op, "float32_constant_right", operands, [out("float32")], summands=4)
    operands = [const("float32", (3, 4)), feed("float32", (4, 3))]
    case(op, "float32_constant_left", operands, [out("float32")], summands=4)
    operands = [feed("int8", (2, 3, 4), None, INPUT["int8"]), feed("int8", (2, 4, 3), None, Quant(0.01, 5))]
    case(op, "int8_to_int32", operands, [out("int32", Quant(0.0004, 0))])
    for dtype in ("float16", "bfloat16"):
        case(op, dtype, [feed(dtype, (3, 4)), feed(dtype, (4, 2))], [out(dtype)])


def embeddings():
    """EMBEDDING_LOOKUP and EMBEDDING_LOOKUP_SPARSE."""
    rows = given_feed([3, 0, 2, 3])
    for dtype in ("float32", "int32", "int64", "float16"):
        for name, shape in (("rank_2", (4, 5)), ("rank_3", (4, 2, 3)), ("rank_4", (5, 2, 1, 3))):
            case("EMBEDDING_LOOKUP", f"{dtype}_{name}", [rows, const(dtype, shape)], [out(dtype)], kind=dtype)
    for dtype in ("int8", "uint8"):
        table = const(dtype, (4, 5), None, Quant(0.02, 0 if dtype == "int8" else 128))
        case("EMBEDDING_LOOKUP", f"float32_from_{dtype}", [rows, table], [out("float32")], kind=f"float32 from {dtype}")
        case(
            "EMBEDDING_LOOKUP",
            f"{dtype}_quantized",
            [rows, table],
            [out(dtype, Quant(0.02, 0 if dtype == "int8" else 128))],
            kind=f"{dtype} quantized",
        )
    for dtype, values in (("int8", integers(-127, 127)), ("int4", integers(-7, 7)), ("int2", integers(-1, 1))):
        table = const(dtype, (4, 8), values, Quant(channel_scales(4), 0, 0))
        case(
            "EMBEDDING_LOOKUP",
            f"float32_from_{dtype}_per_row",
            [rows, table],
            [out("float32")],
            kind=f"float32 from {dtype}",
        )
        table = const(dtype, (4, 8), values, Quant(0.02, 0))
        case(
            "EMBEDDING_LOOKUP",
            f"float32_from_{dtype}_per_tensor",
            [rows, table],
            [out("float32")],
            kind=f"float32 from {dtype}",
        )
    case("EMBEDDING_LOOKUP", "float32_fed_table", [rows, feed("float32", (4, 3))], [out("float32")], kind="float32")
    ids = given_feed([1, 3, 0])
    indices, shape = given_feed([[0, 0], [2, 0], [2, 1]]), given_feed([3, 2])
    weights = given_feed([1.0, 2.0, 4.0], "float32")
    for combiner, name in enumerate(("sum", "mean", "sqrtn")):
        for table_shape in ((4, 3), (4, 3, 2)):
            operands = [ids, indices, shape, weights, const("float32", table_shape)]
            label = f"float32_{name}_rank_{len(table_shape)}"
            case(
                "EMBEDDING_LOOKUP_SPARSE",
                label,
                operands,
                [out("float32")],
                {"combiner": combiner},
                kind="float32",
                summands=7,
            )


def build():
    """Registers the cases."""
    fully_connected()
    sparse_weights()
    half_weights()
    batch_matmul()
    embeddings()
