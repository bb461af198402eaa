"""Models of the ops that ONNX Runtime's exporters and optimizers write, with ONNX Runtime's answers.

Inputs depend only on the names of cases, so that the same versions yield the same files.
"""

import zlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

MS = "com.microsoft"
TYPES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "float64": TensorProto.DOUBLE,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "bool": TensorProto.BOOL,
}


class Case:
    """A model of one node or a few, with its inputs."""

    def __init__(self, archive, name, opset=17, ml=3):
        self.archive, self.name, self.opset, self.ml = archive, name, opset, ml
        self.random = np.random.default_rng(zlib.crc32(f"{archive}/{name}".encode()))
        self.inputs, self.feeds, self.constants, self.nodes = [], [], [], []

    def normal(self, *sizes, scale=1.0):
        return (self.random.standard_normal(sizes) * scale).astype(np.float32)

    def bytes(self, dtype, *sizes, low=None, high=None):
        limits = np.iinfo(dtype)
        low, high = limits.min if low is None else low, limits.max if high is None else high
        return self.random.integers(low, high + 1, sizes).astype(dtype)

    def feed(self, values):
        name = f"x{len(self.inputs)}"
        values = np.asarray(values)
        self.inputs.append(helper.make_tensor_value_info(name, TYPES[values.dtype.name], values.shape))
        self.feeds.append(values)
        return name

    def constant(self, values):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, op, inputs, outputs=1, domain="", **attributes):
        names = [f"n{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        return names if outputs != 1 else names[0]

    def model(self, outputs):
        outputs = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self.nodes, "graph", self.inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid(MS, 1), helper.make_opsetid("ai.onnx.ml", self.ml)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def finish(self, add, outputs, rtol=1e-4, atol=1e-5, step=0):
        model = self.model([outputs] if isinstance(outputs, str) else outputs)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        try:
            session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        except Exception as error:  # some types and ops have kernels for GPUs only
            print(f"{self.archive}/{self.name}: {str(error).splitlines()[0][-150:]}")
            return
        answers = session.run(None, {info.name: feed for info, feed in zip(self.inputs, self.feeds)})
        # A list of maps is the matrix of their values, by ascending keys.
        is_maps = lambda answer: isinstance(answer, list) and isinstance(answer[0], dict)
        matrix = lambda rows: np.array([[row[key] for key in sorted(row)] for row in rows], np.float32)
        answers = [matrix(answer) if is_maps(answer) else answer for answer in answers]
        add(self.archive, self.name, model, self.feeds, answers, rtol, atol, step)


def gelus(add):
    for op in ("Gelu", "FastGelu", "QuickGelu"):
        case = Case(f"ms_{op.lower()}", "plain")
        case.finish(add, case.node(op, [case.feed(case.normal(3, 16, scale=3))], domain=MS))
    for op in ("BiasGelu", "FastGelu", "BiasSplitGelu"):
        case = Case(f"ms_{op.lower()}", "bias")
        x, bias = case.feed(case.normal(2, 5, 16)), case.constant(case.normal(16))
        case.finish(add, case.node(op, [x, bias], domain=MS))


def normalizations(add):
    for beta in (False, True):
        for bias in (False, True):
            case = Case("ms_skiplayernormalization", f"beta_{beta}_bias_{bias}".lower())
            inputs = [case.feed(case.normal(2, 3, 8)), case.feed(case.normal(2, 3, 8)), case.constant(case.normal(8))]
            inputs.append(case.constant(case.normal(8)) if beta else "")
            inputs.append(case.constant(case.normal(8)) if bias else "")
            outputs = case.node("SkipLayerNormalization", inputs, 4, MS, epsilon=1e-5)
            case.nodes[-1].output[1] = case.nodes[-1].output[2] = ""
            case.finish(add, [outputs[0], outputs[3]])
    for bias in (False, True):
        case = Case("ms_skipsimplifiedlayernormalization", f"bias_{bias}".lower())
        inputs = [case.feed(case.normal(2, 3, 8)), case.feed(case.normal(2, 3, 8)), case.constant(case.normal(8))]
        inputs += [case.constant(case.normal(8))] if bias else []
        outputs = case.node("SkipSimplifiedLayerNormalization", inputs, 4, MS, epsilon=1e-5)
        case.nodes[-1].output[1] = case.nodes[-1].output[2] = ""
        case.finish(add, [outputs[0], outputs[3]])
    case = Case("simplifiedlayernormalization", "plain")
    inputs = [case.feed(case.normal(2, 3, 8)), case.constant(case.normal(8))]
    case.finish(add, case.node("SimplifiedLayerNormalization", inputs, axis=-1, epsilon=1e-6))
    case = Case("ms_embedlayernormalization", "plain")
    words = case.feed(case.random.integers(0, 20, (2, 5)).astype(np.int32))
    segments = case.feed(case.random.integers(0, 2, (2, 5)).astype(np.int32))
    tables = [case.constant(case.normal(rows, 8)) for rows in (20, 10, 2)]
    inputs = [words, segments, *tables, case.constant(case.normal(8)), case.constant(case.normal(8))]
    inputs.append(case.feed(np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)))
    case.finish(add, case.node("EmbedLayerNormalization", inputs, 2, MS))


def products(add):
    shapes = {
        "plain": ((2, 3, 4), (2, 4, 5), {}),
        "alpha": ((3, 4), (4, 5), {"alpha": 0.25}),
        "trans_a": ((2, 4, 3), (2, 4, 5), {"transA": 1}),
        "trans_b": ((2, 3, 4), (2, 5, 4), {"transB": 1}),
        "trans_both": ((4, 3), (5, 4), {"transA": 1, "transB": 1, "alpha": 2.0}),
        "broadcast": ((2, 2, 3, 4), (4, 5), {}),
        "batch_a": ((3, 2, 4), (2, 4, 5), {"transBatchA": 1}),
        "batch_b": ((2, 3, 4), (4, 2, 5), {"transBatchB": 1}),
    }
    for name, (a, b, attributes) in shapes.items():
        case = Case("ms_fusedmatmul", name)
        inputs = [case.feed(case.normal(*a)), case.constant(case.normal(*b))]
        case.finish(add, case.node("FusedMatMul", inputs, domain=MS, **attributes))
    for bits, block, depth, columns, kind in (
        (4, 16, 32, 6, "none"),
        (4, 32, 72, 8, "bytes"),
        (4, 16, 40, 6, "none"),
        (8, 32, 64, 8, "none"),
        (4, 16, 48, 6, "floats"),
    ):
        case = Case("ms_matmulnbits", f"bits_{bits}_block_{block}_depth_{depth}_{kind}")
        blocks = -(-depth // block)
        x = case.feed(case.normal(2, 3, depth))
        weights = case.constant(case.bytes(np.uint8, columns, blocks, block * bits // 8))
        scales = case.constant(np.abs(case.normal(columns * blocks, scale=0.1)))
        inputs = [x, weights, scales]
        if kind == "bytes":
            inputs.append(case.constant(case.bytes(np.uint8, columns * -(-blocks * bits // 8))))
        elif kind == "floats":
            inputs.append(case.constant(np.abs(case.normal(columns * blocks, scale=4.0))))
        attributes = {"K": depth, "N": columns, "bits": bits, "block_size": block}
        case.finish(add, case.node("MatMulNBits", inputs, domain=MS, **attributes), rtol=1e-3, atol=1e-3)
    for name, equation, shapes in (
        ("three", "bij,bjk,bki->b", [(2, 5, 6), (2, 6, 3), (2, 3, 5)]),
        ("chain", "abc,cd,de->eab", [(2, 3, 4), (4, 5), (5, 6)]),
        ("four", "...i,ij,kj,k->...k", [(2, 3, 4), (4, 5), (6, 5), (6,)]),
    ):
        case = Case("einsum_ort", name)
        inputs = [case.feed(case.normal(*shape)) for shape in shapes]
        case.finish(add, case.node("Einsum", inputs, equation=equation))
    case = Case("ms_fusedgemm", "relu")
    inputs = [case.feed(case.normal(3, 4)), case.constant(case.normal(4, 5)), case.constant(case.normal(5))]
    case.finish(add, case.node("FusedGemm", inputs, domain=MS, activation="Relu", alpha=0.5))
    for name, attributes in {
        "relu": {"activation": "Relu"},
        "leaky": {"activation": "LeakyRelu", "activation_params": [0.1]},
        "clip": {"activation": "Clip", "activation_params": [-0.5, 0.5]},
        "hardsigmoid": {"activation": "HardSigmoid", "activation_params": [0.2, 0.5]},
    }.items():
        case = Case("ms_fusedconv", name)
        inputs = [case.feed(case.normal(1, 3, 8, 8)), case.constant(case.normal(4, 3, 3, 3, scale=0.3)), case.constant(case.normal(4))]
        case.finish(add, case.node("FusedConv", inputs, domain=MS, pads=[1, 1, 1, 1], kernel_shape=[3, 3], **attributes))


def integers(add):
    """Integer kernels: the results are the same numbers, but for a step where the scales round differently."""
    for x_type in (np.uint8, np.int8):
        for w_type in (np.uint8, np.int8):
            name = f"{x_type.__name__}_{w_type.__name__}"
            case = Case("qlinearmatmul_ort", name)
            zero = lambda dtype: case.constant(np.array(case.bytes(dtype, low=0, high=20), dtype))
            scale = lambda value: case.constant(np.float32(value))
            inputs = [case.feed(case.bytes(x_type, 3, 16)), scale(0.02), zero(x_type)]
            inputs += [case.constant(case.bytes(w_type, 16, 8)), scale(0.03), zero(w_type), scale(0.9), zero(x_type)]
            case.finish(add, case.node("QLinearMatMul", inputs), step=1)
            case = Case("matmulinteger_ort", name)
            inputs = [case.feed(case.bytes(x_type, 2, 3, 16)), case.constant(case.bytes(w_type, 16, 8))]
            inputs += [case.constant(x_type(3)), case.constant(w_type(5))]
            case.finish(add, case.node("MatMulInteger", inputs))
    for w_type in (np.uint8, np.int8):
        for group in (1, 4):
            for per_channel in (False, True):
                case = Case("qlinearconv_ort", f"{w_type.__name__}_group_{group}_{'channel' if per_channel else 'tensor'}")
                count = 8 if per_channel else 1
                scales = np.abs(case.normal(count, scale=0.01)) + np.float32(0.005)
                zeros = np.zeros(count, w_type) if w_type == np.int8 else np.full(count, 128, w_type)
                inputs = [case.feed(case.bytes(np.uint8, 1, 4, 7, 7)), case.constant(np.float32(0.02)), case.constant(np.uint8(121))]
                inputs += [case.constant(case.bytes(w_type, 8, 4 // group, 3, 3))]
                inputs += [case.constant(scales if per_channel else scales[0]), case.constant(zeros if per_channel else zeros[0])]
                inputs += [case.constant(np.float32(0.05)), case.constant(np.uint8(110)), case.constant(case.bytes(np.int32, 8, low=-500, high=500))]
                outputs = case.node("QLinearConv", inputs, group=group, pads=[1, 1, 1, 1], strides=[2, 1])
                case.finish(add, outputs, step=1)
        case = Case("convinteger_ort", w_type.__name__)
        inputs = [case.feed(case.bytes(np.uint8, 1, 3, 6, 6)), case.constant(case.bytes(w_type, 4, 3, 3, 3)), case.constant(np.uint8(7))]
        case.finish(add, case.node("ConvInteger", inputs, pads=[1, 0, 1, 0]))
    for op in ("QLinearAdd", "QLinearMul"):
        case = Case(f"ms_{op.lower()}", "broadcast")
        part = lambda sizes, feed: [feed(case.bytes(np.uint8, *sizes)), case.constant(np.float32(0.03)), case.constant(np.uint8(120))]
        inputs = part((2, 3, 8), case.feed) + part((8,), case.constant) + [case.constant(np.float32(0.07)), case.constant(np.uint8(130))]
        case.finish(add, case.node(op, inputs, domain=MS), step=1)
    for op in ("QLinearSigmoid", "QLinearLeakyRelu"):
        case = Case(f"ms_{op.lower()}", "plain")
        inputs = [case.feed(case.bytes(np.uint8, 4, 16)), case.constant(np.float32(0.05)), case.constant(np.uint8(128))]
        inputs += [case.constant(np.float32(1 / 256 if op == "QLinearSigmoid" else 0.04)), case.constant(np.uint8(0 if op == "QLinearSigmoid" else 100))]
        case.finish(add, case.node(op, inputs, domain=MS), step=1)
    for last in (0, 1):
        case = Case("ms_qlinearglobalaveragepool", f"channels_last_{last}")
        inputs = [case.feed(case.bytes(np.uint8, 2, 4, 5, 6)), case.constant(np.float32(0.05)), case.constant(np.uint8(128))]
        inputs += [case.constant(np.float32(0.04)), case.constant(np.uint8(100))]
        case.finish(add, case.node("QLinearGlobalAveragePool", inputs, domain=MS, channels_last=last), step=1)
    case = Case("ms_qlinearconcat", "plain")
    inputs = [case.constant(np.float32(0.05)), case.constant(np.uint8(120))]
    for scale in (0.04, 0.06):
        inputs += [case.feed(case.bytes(np.uint8, 2, 3)), case.constant(np.float32(scale)), case.constant(np.uint8(128))]
    case.finish(add, case.node("QLinearConcat", inputs, domain=MS, axis=1), step=1)
    case = Case("ms_qlinearsoftmax", "plain")
    inputs = [case.feed(case.bytes(np.uint8, 3, 10)), case.constant(np.float32(0.08)), case.constant(np.uint8(128))]
    inputs += [case.constant(np.float32(1 / 256)), case.constant(np.uint8(0))]
    case.finish(add, case.node("QLinearSoftmax", inputs, domain=MS, axis=-1, opset=13), step=1)
    case = Case("ms_matmulintegertofloat", "plain")
    inputs = [case.feed(case.bytes(np.uint8, 3, 16)), case.constant(case.bytes(np.int8, 16, 8)), case.constant(np.float32(0.02))]
    inputs += [case.constant(np.abs(case.normal(8, scale=0.02))), case.constant(np.uint8(11)), case.constant(np.zeros(8, np.int8)), case.constant(case.normal(8))]
    case.finish(add, case.node("MatMulIntegerToFloat", inputs, domain=MS))
    case = Case("ms_dynamicquantizematmul", "plain")
    inputs = [case.feed(case.normal(3, 16)), case.constant(case.bytes(np.int8, 16, 8)), case.constant(np.float32(0.02)), case.constant(np.int8(0)), case.constant(case.normal(8))]
    case.finish(add, case.node("DynamicQuantizeMatMul", inputs, domain=MS), rtol=1e-3, atol=2e-2)
    for direction, per_column in (("forward", False), ("reverse", True), ("bidirectional", True)):
        case = Case("ms_dynamicquantizelstm", f"{direction}_{'columns' if per_column else 'whole'}")
        count, features, hidden = 2 if direction == "bidirectional" else 1, 6, 8
        scales = (count, 4 * hidden) if per_column else (count,)
        inputs = [case.feed(case.normal(5, 1, features))]
        inputs += [case.constant(case.bytes(np.int8, count, depth, 4 * hidden)) for depth in (features, hidden)]
        inputs += [case.constant(case.normal(count, 8 * hidden)), ""]
        inputs += [case.feed(case.normal(count, 1, hidden, scale=0.5)) for _ in range(2)] + [""]
        for _ in range(2):
            inputs += [case.constant(np.abs(case.normal(*scales, scale=0.01)) + np.float32(0.002)), case.constant(np.zeros(scales, np.int8))]
        node = case.node("DynamicQuantizeLSTM", inputs, 3, domain=MS, direction=direction, hidden_size=hidden)
        case.finish(add, node, rtol=1e-2, atol=1e-2)
    case = Case("dynamicquantizelinear_ort", "plain")
    case.finish(add, case.node("DynamicQuantizeLinear", [case.feed(case.normal(6, 20))], 3), step=1)


def quantized_graphs(add):
    """Convolutions and products between pairs of QuantizeLinear and DequantizeLinear."""

    def pair(case, x, scale, zero, dtype=np.uint8):
        parameters = [case.constant(np.float32(scale)), case.constant(dtype(zero))]
        return case.node("DequantizeLinear", [case.node("QuantizeLinear", [x, *parameters]), *parameters])

    for per_channel in (False, True):
        case = Case("qdq", f"conv_{'channel' if per_channel else 'tensor'}")
        x = pair(case, case.feed(case.normal(1, 4, 8, 8)), 0.03, 128)
        count = 8 if per_channel else 1
        scales = (np.abs(case.normal(count, scale=0.01)) + np.float32(0.004)).astype(np.float32)
        parameters = [scales, np.zeros(count, np.int8)] if per_channel else [scales[0], np.int8(0)]
        weights = [case.constant(case.bytes(np.int8, 8, 4, 3, 3, low=-127)), *map(case.constant, parameters)]
        w = case.node("DequantizeLinear", weights, axis=0) if per_channel else case.node("DequantizeLinear", weights)
        y = case.node("Conv", [x, w, case.constant(case.normal(8, scale=0.1))], pads=[1, 1, 1, 1])
        y = pair(case, case.node("Relu", [y]), 0.05, 0)
        case.finish(add, y, rtol=0, atol=0.0501)
    case = Case("qdq", "matmul_add")
    x = pair(case, case.feed(case.normal(5, 16)), 0.03, 120)
    weights = [case.constant(case.bytes(np.int8, 16, 12, low=-127)), case.constant(np.float32(0.02)), case.constant(np.int8(0))]
    y = case.node("MatMul", [x, case.node("DequantizeLinear", weights)])
    y = case.node("Add", [y, case.constant(case.normal(12))])
    case.finish(add, pair(case, y, 0.1, 128), rtol=0, atol=0.1001)


def data_dependent_sizes(add):
    """Ops on arrays whose size follows from values: what detectors do with the boxes that remain."""
    longs = lambda case, *values: case.constant(np.array(values, np.int64))
    case = Case("sizes", "non_zero_gather_reduce")
    x = case.feed(case.normal(3, 8))
    mask = case.node("Greater", [x, case.constant(np.float32(0.3))])
    rows = case.node("Transpose", [case.node("NonZero", [mask])], perm=[1, 0])
    column = case.node("Squeeze", [case.node("Slice", [rows, longs(case, 1), longs(case, 2), longs(case, 1)]), longs(case, 1)])
    table = case.constant(case.normal(8, 4))
    taken = case.node("Gather", [table, column], axis=0)
    product = case.node("MatMul", [taken, case.constant(case.normal(4, 5))])
    outputs = [taken, product, case.node("ReduceSum", [taken, longs(case, 0)], keepdims=0)]
    outputs += [case.node("ReduceMean", [product], axes=[0, 1]), case.node("Unsqueeze", [column, longs(case, 0)])]
    outputs += [case.node("Reshape", [product, longs(case, -1, 1, 5)]), case.node("Shape", [taken])]
    case.finish(add, outputs)
    case = Case("sizes", "boxes")
    corners = case.normal(1, 12, 2)
    boxes = case.feed(np.concatenate([corners, corners + np.abs(case.normal(1, 12, 2))], 2))
    scores = case.feed(np.abs(case.normal(1, 2, 12)))
    limits = [case.constant(np.array([5], np.int64)), case.constant(np.array([0.3], np.float32)), case.constant(np.array([0.2], np.float32))]
    chosen = case.node("NonMaxSuppression", [boxes, scores, *limits])
    index = case.node("Gather", [chosen, case.constant(np.int64(2))], axis=1)
    flat = case.node("Squeeze", [boxes, longs(case, 0)])
    case.finish(add, [chosen, case.node("Gather", [flat, index], axis=0)])

    case = Case("sizes", "boxes_that_remain")
    # PyTorch's detectors drop boxes with low scores before the others suppress each other.
    corners = case.normal(14, 2)
    boxes = case.feed(np.concatenate([corners, corners + np.abs(case.normal(14, 2, scale=2))], 1))
    scores = case.feed(case.normal(14))
    rows = case.node("NonZero", [case.node("Greater", [scores, case.constant(np.float32(-0.4))])])
    kept = case.node("Squeeze", [rows, longs(case, 0)])
    boxes, scores = case.node("Gather", [boxes, kept]), case.node("Gather", [scores, kept])
    groups = [case.node("Unsqueeze", [boxes, longs(case, 0)]), case.node("Unsqueeze", [scores, longs(case, 0, 1)])]
    chosen = case.node("NonMaxSuppression", [*groups, longs(case, 2**63 - 1), case.constant(np.array([0.4], np.float32))])
    index = case.node("Squeeze", [case.node("Gather", [chosen, longs(case, 2)], axis=1), longs(case, 1)])
    case.finish(add, [chosen, case.node("Gather", [boxes, index]), case.node("Gather", [scores, index])])

    case = Case("sizes", "second_stage")
    # What a detector does with the boxes of its first stage.
    image = case.feed(case.normal(1, 6, 12, 14))
    corners = np.abs(case.normal(9, 2, scale=3))
    boxes = case.feed(np.concatenate([corners, corners + 1 + np.abs(case.normal(9, 2, scale=4))], 1))
    scores = case.feed(case.normal(9))
    rows = case.node("Transpose", [case.node("NonZero", [case.node("Greater", [scores, case.constant(np.float32(0))])])], perm=[1, 0])
    kept = case.node("Squeeze", [rows, longs(case, 1)])
    boxes = case.node("Gather", [boxes, kept])
    images = case.node("Mul", [kept, longs(case, 0)])
    regions = case.node("RoiAlign", [image, boxes, images], output_height=6, output_width=6, sampling_ratio=2)
    y = case.node("Conv", [regions, case.constant(case.normal(8, 6, 3, 3)), case.constant(case.normal(8))], pads=[1, 1, 0, 1])
    norm = [case.constant(values) for values in (case.normal(8), case.normal(8), case.normal(8), np.abs(case.normal(8)) + 0.5)]
    y = case.node("Relu", [case.node("BatchNormalization", [y, *norm])])
    y = case.node("Conv", [y, case.constant(case.normal(8, 4, 3, 3))], auto_pad="SAME_UPPER", strides=[2, 2], group=2)
    pools = [case.node("MaxPool", [y], kernel_shape=[2, 2]), case.node("AveragePool", [y], kernel_shape=[2, 2], pads=[1, 0, 0, 0])]
    y = case.node("InstanceNormalization", [y, case.constant(case.normal(8)), case.constant(case.normal(8))])
    outputs = [*pools, case.node("GlobalAveragePool", [y]), case.node("GlobalMaxPool", [y])]
    flat = case.node("Flatten", [y])
    logits = case.node("Gemm", [flat, case.constant(case.normal(5, 72)), case.constant(case.normal(5))], transB=1, alpha=0.5)
    logits = case.node("LayerNormalization", [logits, case.constant(case.normal(5))], axis=-1)
    outputs += case.node("Split", [logits, longs(case, 2, 3)], 2, axis=1)
    outputs += [case.node("Softmax", [logits], axis=1), case.node("Softmax", [logits], axis=0), case.node("LogSoftmax", [logits])]
    case.finish(add, [regions, *outputs])
    case = Case("sizes", "old_softmax", opset=11)
    x = case.feed(case.normal(7, 3, 4))
    mask = case.node("Greater", [case.feed(case.normal(7)), case.constant(np.float32(-0.2))])
    taken = case.node("Compress", [x, mask], axis=0)
    case.finish(add, [taken, case.node("Softmax", [taken], axis=1), case.node("LogSoftmax", [taken], axis=2)])
    case = Case("sizes", "signal")
    # A convolution over the part of a signal that remains.
    signal = case.feed(case.normal(1, 3, 23))
    mask = case.node("Greater", [case.feed(case.normal(23)), case.constant(np.float32(-0.5))])
    kept = case.node("Compress", [signal, mask], axis=2)
    filters = case.constant(case.normal(4, 3, 4))
    outputs = [case.node("Conv", [kept, filters], strides=[2], pads=[1, 2])]
    outputs += [case.node("Conv", [kept, filters], dilations=[2]), case.node("Conv", [kept, filters], auto_pad="SAME_LOWER")]
    case.finish(add, [kept, *outputs])


def attentions(add):
    for name, masked, causal, past in (("plain", 0, 0, 0), ("mask", 2, 0, 0), ("lengths", 1, 0, 0), ("causal", 0, 1, 0), ("past", 0, 1, 4)):
        case = Case("ms_attention", name)
        inputs = [case.feed(case.normal(2, 5, 16)), case.constant(case.normal(16, 48, scale=0.3)), case.constant(case.normal(48))]
        if masked == 1:
            inputs.append(case.feed(np.array([3, 5], np.int32)))
        elif masked == 2:
            inputs.append(case.feed(np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)))
        elif past:
            inputs.append("")
        if past:
            inputs.append(case.feed(case.normal(2, 2, 4, past, 4)))
        outputs = case.node("Attention", inputs, 2 if past else 1, MS, num_heads=4, unidirectional=causal)
        case.finish(add, outputs, rtol=1e-3)
    for name, keys, bias in (("plain", 5, False), ("cross", 7, False), ("bias", 5, True)):
        case = Case("ms_multiheadattention", name)
        inputs = [case.feed(case.normal(2, 5, 16)), case.feed(case.normal(2, keys, 16)), case.feed(case.normal(2, keys, 16))]
        inputs += [case.constant(case.normal(48))] if bias else []
        case.finish(add, case.node("MultiHeadAttention", inputs, domain=MS, num_heads=4), rtol=1e-3)
    for name, queries, past, rotary, attributes in (
        ("prompt", 6, 0, 0, {}),
        ("decode", 1, 8, 0, {}),
        ("decode_rotary", 1, 8, 1, {}),
        ("prompt_rotary_interleaved", 6, 0, 1, {"rotary_interleaved": 1}),
        ("decode_window", 1, 8, 0, {"local_window_size": 3}),
    ):
        case = Case("ms_groupqueryattention", name)
        inputs = [case.feed(case.normal(2, queries, 64)), case.feed(case.normal(2, queries, 32)), case.feed(case.normal(2, queries, 32))]
        inputs += [case.feed(case.normal(2, 2, past, 16)), case.feed(case.normal(2, 2, past, 16))] if past else ["", ""]
        lengths = np.full(2, queries - 1, np.int32) if not past else np.array([5, 7], np.int32)
        total = int(lengths.max()) + 1
        inputs += [case.feed(lengths), case.constant(np.int32(total))]
        if rotary:
            inputs += [case.constant(case.normal(16, 8)), case.constant(case.normal(16, 8))]
        outputs = case.node("GroupQueryAttention", inputs, 3, MS, num_heads=4, kv_num_heads=2, do_rotary=rotary, **attributes)
        case.finish(add, outputs[0] if past else outputs, rtol=1e-3)
    for name, interleaved in (("halves", 0), ("interleaved", 1)):
        case = Case("ms_rotaryembedding", name)
        inputs = [case.feed(case.normal(2, 5, 32)), case.feed(np.array([3], np.int64)), case.constant(case.normal(16, 4)), case.constant(case.normal(16, 4))]
        case.finish(add, case.node("RotaryEmbedding", inputs, domain=MS, interleaved=interleaved))


def machine_learning(add):
    ml = "ai.onnx.ml"
    for name, op, attributes in (
        ("scaler", "Scaler", {"offset": [0.1, 0.2, 0.3, 0.4], "scale": [1.0, 2.0, 0.5, 0.25]}),
        ("normalizer_max", "Normalizer", {"norm": "MAX"}),
        ("normalizer_l1", "Normalizer", {"norm": "L1"}),
        ("normalizer_l2", "Normalizer", {"norm": "L2"}),
        ("imputer", "Imputer", {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0], "replaced_value_float": float("nan")}),
        ("regressor", "LinearRegressor", {"coefficients": [0.5, -1.0, 2.0, 0.25] * 2, "intercepts": [0.1, 0.2], "targets": 2}),
        ("svm_rbf", "SVMRegressor", {"kernel_type": "RBF", "kernel_params": [0.3, 0.0, 3.0], "coefficients": [0.5, -0.7], "rho": [0.2], "n_supports": 2, "support_vectors": [0.1, 0.2, 0.3, 0.4, -0.1, 0.5, 0.2, 0.0]}),
        ("svm_linear", "SVMRegressor", {"kernel_type": "LINEAR", "kernel_params": [1.0, 0.0, 1.0], "coefficients": [0.5, -0.7, 0.2, 0.1], "rho": [0.2]}),
    ):
        case = Case("ml", name)
        values = case.normal(5, 4)
        if op == "Imputer":
            values[1, 2] = values[3, 0] = np.nan
        case.finish(add, case.node(op, [case.feed(values)], domain=ml, **attributes))
    for name, transform, rows in (("classifier", "NONE", 3), ("classifier_softmax", "SOFTMAX", 3), ("classifier_binary", "LOGISTIC", 1)):
        case = Case("ml", name)
        attributes = {"coefficients": list(map(float, case.normal(rows * 4))), "intercepts": list(map(float, case.normal(rows)))}
        labels = list(range(3 if rows == 3 else 2))
        outputs = case.node("LinearClassifier", [case.feed(case.normal(6, 4))], 2, ml, classlabels_ints=labels, post_transform=transform, **attributes)
        case.finish(add, outputs)
    case = Case("ml", "zip_map")
    attributes = {"coefficients": list(map(float, case.normal(12))), "intercepts": [0.1, 0.2, 0.3], "classlabels_ints": [2, 3, 7]}
    label, scores = case.node("LinearClassifier", [case.feed(case.normal(6, 4))], 2, ml, post_transform="SOFTMAX", **attributes)
    case.finish(add, [label, case.node("ZipMap", [scores], domain=ml, classlabels_int64s=[2, 3, 7])])
    tree = {
        "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1],
        "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
        "nodes_featureids": [0, 0, 2, 0, 0, 1, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "BRANCH_LT", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
        "nodes_values": [0.1, 0.0, -0.2, 0.0, 0.0, 0.3, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 3, 0, 0, 1, 0, 0],
        "nodes_falsenodeids": [2, 0, 4, 0, 0, 2, 0, 0],
        "nodes_hitrates": [1.0] * 8,
        "nodes_missing_value_tracks_true": [0] * 8,
    }
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        case = Case("ml", f"tree_regressor_{aggregate.lower()}")
        leaves = {"target_treeids": [0, 0, 0, 1, 1], "target_nodeids": [1, 3, 4, 1, 2], "target_ids": [0] * 5, "target_weights": [1.0, 2.0, -3.0, 0.5, 0.25]}
        outputs = case.node("TreeEnsembleRegressor", [case.feed(case.normal(9, 3))], 1, ml, n_targets=1, aggregate_function=aggregate, base_values=[0.5], **tree, **leaves)
        case.finish(add, outputs)
    for transform in ("NONE", "SOFTMAX"):
        case = Case("ml", f"tree_classifier_{transform.lower()}")
        leaves = {"class_treeids": [0, 0, 0, 1, 1], "class_nodeids": [1, 3, 4, 1, 2], "class_ids": [0, 1, 2, 1, 0], "class_weights": [1.0, 2.0, 3.0, 0.5, 0.25]}
        outputs = case.node("TreeEnsembleClassifier", [case.feed(case.normal(9, 3))], 2, ml, classlabels_int64s=[4, 7, 9], post_transform=transform, **tree, **leaves)
        case.finish(add, outputs)
    for transform, sign in (("NONE", 1), ("LOGISTIC", 1), ("NONE", -1), ("LOGISTIC", -1)):
        case = Case("ml", f"tree_classifier_binary_{transform.lower()}_{'positive' if sign == 1 else 'mixed'}")
        leaves = {"class_treeids": [0, 0, 0, 1, 1], "class_nodeids": [1, 3, 4, 1, 2], "class_ids": [0] * 5, "class_weights": [0.1, 0.2, 0.6, 0.3 * sign, 0.25]}
        outputs = case.node("TreeEnsembleClassifier", [case.feed(case.normal(9, 3))], 2, ml, classlabels_int64s=[0, 1], post_transform=transform, **tree, **leaves)
        case.finish(add, outputs)
    # Trees with one kind of test, and rows with NaN: of 3 leaves, of 40 along one path, and of 33
    # in six levels.
    for name, count in (("small", 2), ("long", 39), ("wide", 32)):
        case = Case("ml", f"tree_regressor_{name}")
        wide = name == "wide"
        # Nodes 0 to count - 1 are tests, the others leaves.
        yes = [2 * k + 1 if wide else count + k for k in range(count)]
        no = [2 * k + 2 if wide else k + 1 for k in range(count)]
        leaf = [0] * (count + 1)
        tree = {
            "nodes_treeids": [0] * (2 * count + 1),
            "nodes_nodeids": list(range(2 * count + 1)),
            "nodes_featureids": [k % 4 for k in range(count)] + leaf,
            "nodes_modes": ["BRANCH_LEQ"] * count + ["LEAF"] * (count + 1),
            "nodes_values": list(map(float, case.normal(count))) + [0.0] * (count + 1),
            "nodes_truenodeids": yes + leaf,
            "nodes_falsenodeids": no + leaf,
            "nodes_missing_value_tracks_true": [k // 2 % 2 for k in range(count)] + leaf,
        }
        leaves = {"target_treeids": leaf, "target_nodeids": list(range(count, 2 * count + 1)), "target_ids": leaf, "target_weights": [float(k + 1) for k in range(count + 1)]}
        rows = case.normal(60, 4)
        rows[::5, 1] = np.nan
        rows[::7, 2] = np.nan
        case.finish(add, case.node("TreeEnsembleRegressor", [case.feed(rows)], 1, ml, n_targets=1, **tree, **leaves))


def grown(case, counts, features, tests, prefix, targets_of=lambda tree, leaf: [0]):
    """Trees of random shapes with these numbers of leaves. Tests are drawn from modes, each with what NaN means.
    `targets_of` are the targets of a leaf.
    """
    nodes = {name: [] for name in ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids", "missing_value_tracks_true")}
    leaves = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree, count in enumerate(counts):
        children, open_leaves = {}, [0]
        while len(open_leaves) < count:
            # Early leaves are split more often.
            at = int(len(open_leaves) * case.random.random() ** 2)
            first = 2 * len(children) + 1
            children[open_leaves[at]] = (first, first + 1)
            open_leaves[at:at + 1] = [first, first + 1]
        for node in range(2 * count - 1):
            mode, tracks = tests[int(case.random.integers(len(tests)))] if node in children else ("LEAF", 0)
            yes, no = children.get(node, (0, 0))
            value = float(np.float32(case.random.normal())) if node in children else 0.0
            own = (tree, node, int(case.random.integers(features)) if node in children else 0, mode, value, yes, no, tracks)
            for name, part in zip(nodes, own):
                nodes[name].append(part)
        for leaf, node in enumerate(sorted(open_leaves)):
            for target in targets_of(tree, leaf):
                for name, part in zip(leaves, (tree, node, target, float(np.float32(case.random.normal())))):
                    leaves[name].append(part)
    return {**{f"nodes_{name}": part for name, part in nodes.items()}, **{f"{prefix}_{name}": part for name, part in leaves.items()}}


def large_trees(add):
    """Trees with masks of several words, and trees that are walked, for few rows and for many."""
    ml, leq = "ai.onnx.ml", [("BRANCH_LEQ", 0), ("BRANCH_LEQ", 1)]
    mixed = [("BRANCH_LEQ", 1), ("BRANCH_LT", 0), ("BRANCH_GTE", 0), ("BRANCH_GT", 1), ("BRANCH_NEQ", 0)]

    def rows_of(case, rows, nan=True):
        rows = case.normal(rows, 6)
        if nan:
            rows[::5, 1] = np.nan
            rows[::7, 2] = np.inf
        return rows

    for rows in (3, 130):
        for name, counts, tests, aggregate in (
            ("levels", [70, 130, 5, 64, 1], leq, "SUM"),
            ("words", [150, 65, 12], [*leq, ("BRANCH_LT", 0)], "AVERAGE"),
            ("mixed", [100, 3], mixed, "MIN"),
            ("long", [200] * 2, [("BRANCH_GT", 0)], "MAX"),
        ):
            case = Case("ml", f"tree_regressor_{name}_{rows}")
            trees = grown(case, counts, 6, tests, "target")
            case.finish(add, case.node("TreeEnsembleRegressor", [case.feed(rows_of(case, rows))], 1, ml, n_targets=1, aggregate_function=aggregate, **trees))
        # Leaves of a tree add to one class, to another number of trees, or to all classes.
        for name, targets_of in (
            ("equal", lambda tree, leaf: [tree % 3]),
            ("unequal", lambda tree, leaf: [tree % 3 // 2]),
            ("all", lambda tree, leaf: [0, 1, 2]),
        ):
            case = Case("ml", f"tree_classifier_{name}_{rows}")
            trees = grown(case, [70 + tree for tree in range(6)], 6, leq, "class", targets_of)
            outputs = case.node("TreeEnsembleClassifier", [case.feed(rows_of(case, rows))], 2, ml, classlabels_int64s=[4, 7, 9], **trees)
            case.finish(add, outputs)
    # Doubles next to thresholds, which are equal as floats.
    for leaves in (9, 100):
        for op in ("Regressor", "Classifier"):
            case = Case("ml", f"tree_{op.lower()}_double_{leaves}")
            prefix = "target" if op == "Regressor" else "class"
            trees = grown(case, [leaves] * 3, 6, leq, prefix, lambda tree, leaf: [tree % 3] if op == "Classifier" else [0])
            values = np.array(trees.pop("nodes_values")) + 1e-10
            weights = np.array(trees.pop(f"{prefix}_weights"))
            as_tensor = lambda array: numpy_helper.from_array(array, "values")
            trees |= {"nodes_values_as_tensor": as_tensor(values), f"{prefix}_weights_as_tensor": as_tensor(weights)}
            chosen = values[np.array(trees["nodes_modes"]) != "LEAF"]
            rows = chosen[case.random.integers(len(chosen), size=(25, 6))] + case.random.integers(-1, 2, (25, 6)) * 1e-10
            more = {"n_targets": 1} if op == "Regressor" else {"classlabels_int64s": [4, 7, 9]}
            outputs = case.node(f"TreeEnsemble{op}", [case.feed(rows)], 1 if op == "Regressor" else 2, ml, **more, **trees)
            case.finish(add, outputs)
    # Version 5, in both types, with a set of members.
    for dtype in (np.float32, np.float64):
        case = Case("ml", f"tree_ensemble_{np.dtype(dtype).name}", 21, 5)
        tensor = lambda values, kind=dtype: numpy_helper.from_array(np.array(values, kind), "values")
        outputs = case.node(
            "TreeEnsemble", [case.feed((case.random.integers(0, 5, (40, 2)) + case.random.integers(-1, 2, (40, 2)) * 1e-12).astype(dtype))], 1, ml,
            n_targets=2, aggregate_function=1, post_transform=0, tree_roots=[0], nodes_modes=tensor([0, 6, 1], np.uint8),
            nodes_featureids=[0, 1, 1], nodes_splits=tensor([2, 0, 3]), membership_values=tensor([1, 3, 4, np.nan]),
            nodes_truenodeids=[1, 0, 3], nodes_trueleafs=[0, 1, 1], nodes_falsenodeids=[2, 1, 4], nodes_falseleafs=[1, 1, 1],
            leaf_targetids=[0, 1, 0, 1, 0], leaf_weights=tensor([1.5, -2.25, 0.1, 0.7, 3.0]))
        case.finish(add, outputs)


def support_vectors(add):
    ml = "ai.onnx.ml"
    for kernel, classes, probabilities, transform in (
        ("LINEAR", 2, False, "NONE"),
        ("RBF", 2, False, "LOGISTIC"),
        ("POLY", 2, False, "SOFTMAX"),
        ("RBF", 2, True, "NONE"),
        ("POLY", 3, False, "NONE"),
        ("SIGMOID", 4, False, "SOFTMAX"),
        ("RBF", 3, True, "NONE"),
        ("RBF", 7, True, "SOFTMAX"),
        ("LINEAR", 12, True, "LOGISTIC"),
    ):
        case = Case("ml", f"svm_{classes}_{kernel}_{'probabilities' if probabilities else 'votes'}_{transform}".lower())
        # One class has no vectors if there are many.
        counts = [(k * 5) % 4 + (classes < 7) for k in range(classes)]
        pairs, vectors = classes * (classes - 1) // 2, sum(counts)
        floats = lambda *sizes: list(map(float, case.normal(*sizes)))
        attributes = {"coefficients": floats((classes - 1) * vectors), "support_vectors": floats(vectors * 4), "rho": floats(pairs)}
        attributes |= {"prob_a": [-abs(x) for x in floats(pairs)], "prob_b": floats(pairs)} if probabilities else {}
        labels = [3 * k + 1 for k in range(classes)]
        node = case.node("SVMClassifier", [case.feed(case.normal(9, 4))], 2, ml, classlabels_ints=labels, kernel_type=kernel,
                         kernel_params=[0.3, 0.5, 3.0], vectors_per_class=counts, post_transform=transform, **attributes)
        case.finish(add, node)
    for classes, sign, transform in ((1, 0, "LOGISTIC"), (2, 0, "NONE"), (2, 1, "NONE"), (3, 0, "SOFTMAX")):
        case = Case("ml", f"svm_linear_{classes}_{'positive' if sign else 'mixed'}_{transform}".lower())
        weights = case.normal(classes * 4)
        weights = list(map(float, np.abs(weights) if sign else weights))
        node = case.node("SVMClassifier", [case.feed(case.normal(9, 4))], 2, ml, classlabels_ints=[5, 2, 8][:classes],
                         coefficients=weights, rho=[0.1], kernel_params=[1.0, 0.0, 1.0], post_transform=transform)
        case.finish(add, node)


def regions(add):
    for name, pooled, scale in (("plain", [2, 3], 1.0), ("scaled", [3, 2], 0.5)):
        case = Case("maxroipool", name)
        x = case.feed(case.normal(2, 3, 9, 11))
        # A region in the image, one that ends beyond it, an empty one, halves, and one outside.
        rois = np.array([[0, 1, 2, 6, 8], [1, 4, 3, 19, 30], [1, 5, 5, 2, 1], [0, 0.5, 2.5, 7.5, 3.4], [1, 40, 50, 44, 60]], np.float32)
        case.finish(add, case.node("MaxRoiPool", [x, case.feed(rois)], pooled_shape=pooled, spatial_scale=scale))


def loops(add):
    """Loops that end by their condition, as converters of TensorFlow and PaddlePaddle write them."""
    info = helper.make_tensor_value_info
    for limit in ("none", "largest", "one_element"):
        for compared in ("int64", "float32"):
            for starts in ("computed", "true"):
                case = Case("loops", f"{limit}_{compared}_{starts}", opset=13)
                rows, steps = 5, 7
                x = case.feed(case.normal(rows, 3))
                counts = {"none": "", "largest": case.constant(np.int64(2**63 - 1)), "one_element": case.constant(np.array([steps]))}
                nodes = [
                    helper.make_node("Add", ["time", "one"], ["next"]),
                    helper.make_node("Gather", [x, "time"], ["row"]),
                    helper.make_node("Add", ["state", "row"], ["sum"]),
                    helper.make_node("Tanh", ["sum"], ["new_state"]),
                    helper.make_node("Mul", ["new_state", "row"], ["part"]),
                    helper.make_node("Identity", ["limit"], ["same_limit"]),
                ]
                less = ["next", "limit"]
                if compared == "float32":
                    nodes += [helper.make_node("Cast", [name], [f"{name}_float"], to=TensorProto.FLOAT) for name in less]
                    less = [f"{name}_float" for name in less]
                nodes.append(helper.make_node("Less", less, ["goes_on"]))
                long, row = TensorProto.INT64, TensorProto.FLOAT
                takes = [info("number", long, []), info("going", TensorProto.BOOL, []), info("time", long, []), info("limit", long, []), info("state", row, [3])]
                gives = [info("goes_on", TensorProto.BOOL, []), info("next", long, []), info("same_limit", long, []), info("new_state", row, [3]), info("part", row, [3])]
                body = helper.make_graph(nodes, "body", takes, gives, [numpy_helper.from_array(np.int64(1), "one")])
                zero = case.constant(np.int64(0))
                size = case.node("Squeeze", [case.node("Slice", [case.node("Shape", [x]), case.constant(np.array([0])), case.constant(np.array([1]))])])
                operands = [zero, size]
                if compared == "float32":
                    operands = [case.node("Cast", [name], to=TensorProto.FLOAT) for name in operands]
                first = case.node("Less", operands) if starts == "computed" else case.constant(np.array(True))
                state = case.feed(case.normal(3))
                case.finish(add, case.node("Loop", [counts[limit], first, zero, size, state], 4, body=body))
    # Each iteration adds a longer row to a sequence, as PyTorch's exporter writes as_strided.
    case = Case("loops", "a_sequence_that_grows", opset=17)
    branch = lambda name, kind, inputs, **attributes: helper.make_graph(
        [helper.make_node(kind, inputs, [name], **attributes)], name, [], [info(name, TensorProto.FLOAT, ["k"])])
    nodes = [
        helper.make_node("Equal", ["number", "zero"], ["is_first"]),
        helper.make_node("If", ["is_first"], ["added"], then_branch=branch("one_row", "Identity", ["row"]),
                         else_branch=branch("rows", "ConcatFromSequence", ["parts"], axis=0)),
        helper.make_node("Concat", ["state", "added"], ["longer"], axis=0),
        helper.make_node("Cast", ["number"], ["scale"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["longer", "scale"], ["scaled"]),
        helper.make_node("SequenceInsert", ["parts", "scaled"], ["more"]),
        helper.make_node("ReduceSum", ["scaled"], ["sum"], keepdims=0),
        helper.make_node("Identity", ["going"], ["goes_on"]),
    ]
    truth, row = TensorProto.BOOL, TensorProto.FLOAT
    sequence = lambda name: helper.make_tensor_sequence_value_info(name, row, None)
    takes = [info("number", TensorProto.INT64, []), info("going", truth, []), info("state", row, ["n"]), sequence("parts")]
    gives = [info("goes_on", truth, []), info("longer", row, ["m"]), sequence("more"), info("sum", row, [])]
    body = helper.make_graph(nodes, "body", takes, gives, [numpy_helper.from_array(case.normal(2), "row"), numpy_helper.from_array(np.int64(0), "zero")])
    empty = case.node("SequenceEmpty", [])
    last, parts, sums = case.node("Loop", [case.constant(np.int64(4)), "", case.feed(case.normal(3)), empty], 3, body=body)
    case.finish(add, [last, case.node("ConcatFromSequence", [parts], axis=0), sums])
    # A row of the result in each iteration, by a counter that is a float between iterations.
    for name, count in (("rows_by_floats", 5), ("rows_beyond_the_end", 7)):
        case = Case("loops", name, opset=13)
        rows = 5
        table, x = case.feed(case.normal(rows, 3)), case.feed(case.normal(rows, 3))
        ints = {"wide": np.array([-1, 1]), "three": np.array([1, 3])}
        nodes = [
            helper.make_node("Cast", ["time"], ["float"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["float", "one"], ["sum"]),
            helper.make_node("Cast", ["sum"], ["next"], to=TensorProto.INT64),
            helper.make_node("Min", ["next", "rows"], ["end"]),
            helper.make_node("Range", ["time", "end", "unit"], ["chosen"]),
            helper.make_node("Reshape", ["chosen", "wide"], ["column"]),
            helper.make_node("Expand", ["column", "three"], ["positions"]),
            helper.make_node("Gather", [x, "chosen"], ["row"]),
            helper.make_node("Tanh", ["row"], ["update"]),
            helper.make_node("ScatterElements", ["table", "positions", "update"], ["new_table"], axis=0),
            helper.make_node("Identity", ["going"], ["goes_on"]),
        ]
        long = TensorProto.INT64
        takes = [info("number", long, []), info("going", TensorProto.BOOL, []), info("time", long, []), info("table", TensorProto.FLOAT, [rows, 3])]
        gives = [info("goes_on", TensorProto.BOOL, []), info("next", long, []), info("new_table", TensorProto.FLOAT, [rows, 3])]
        constants = [numpy_helper.from_array(value, key) for key, value in ints.items()]
        constants += [numpy_helper.from_array(np.float32(1), "one"), numpy_helper.from_array(np.int64(rows), "rows"), numpy_helper.from_array(np.int64(1), "unit")]
        body = helper.make_graph(nodes, "body", takes, gives, constants)
        outputs = case.node("Loop", [case.constant(np.array([count])), case.constant(np.array(True)), case.constant(np.int64(0)), table], 2, body=body)
        case.finish(add, outputs)
    # A number before the first iteration is a row after it, and a flag one element. The loop ends
    # by its trip count, or by a sum that only the run knows.
    for ending, most in (("by_its_count", 6), ("by_a_sum", 40)):
        case = Case("loops", f"a_row_after_the_first_iteration_{ending}", opset=13)
        x = case.feed(np.abs(case.normal(7, 3)))
        nodes = [
            helper.make_node("Mod", ["number", "rows"], ["position"]),
            helper.make_node("Gather", [x, "position"], ["row"]),
            helper.make_node("Add", ["state", "row"], ["new_state"]),
            helper.make_node("ReduceSum", ["new_state"], ["sum"], keepdims=0),
            helper.make_node("Unsqueeze", ["sum", "axes"], ["sums"]),
            helper.make_node("Greater", ["sums", "most"], ["new_flag"]),
            helper.make_node("Cast", ["flag"], ["seen"], to=TensorProto.FLOAT),
            helper.make_node("Squeeze", ["seen"], ["seen_number"]),
            helper.make_node("Sub", ["row", "seen_number"], ["part"]),
            helper.make_node("Not", ["new_flag"], ["goes_on"]) if ending == "by_a_sum" else helper.make_node("Identity", ["going"], ["goes_on"]),
        ]
        long, row = TensorProto.INT64, TensorProto.FLOAT
        takes = [info("number", long, []), info("going", TensorProto.BOOL, None), info("state", row, None), info("flag", TensorProto.BOOL, None)]
        gives = [info("goes_on", TensorProto.BOOL, None), info("new_state", row, None), info("new_flag", TensorProto.BOOL, None), info("part", row, None)]
        constants = [numpy_helper.from_array(np.int64(7), "rows"), numpy_helper.from_array(np.array([0]), "axes"), numpy_helper.from_array(np.float32(20), "most")]
        body = helper.make_graph(nodes, "body", takes, gives, constants)
        operands = [case.constant(np.array([most])), case.constant(np.array(True)), case.constant(np.float32(0.5)), case.constant(np.array(False))]
        case.finish(add, case.node("Loop", operands, 3, body=body))
    # Branches that return one element in arrays of different rank.
    for name, number in (("scalar", 1.0), ("vector", -1.0)):
        case = Case("loops", f"branches_with_a_{name}", opset=13)
        branch = lambda key, op, *inputs, more=(): helper.make_graph([helper.make_node(op, [*inputs], ["y"])], key, [], [info("y", TensorProto.FLOAT, None)], list(more))
        axes = numpy_helper.from_array(np.array([0]), "axes")
        x = case.feed(np.float32(number))
        positive = case.node("Greater", [x, case.constant(np.float32(0))])
        then_branch, else_branch = branch("then", "Tanh", x), branch("else", "Unsqueeze", x, "axes", more=[axes])
        chosen = case.node("If", [positive], then_branch=then_branch, else_branch=else_branch)
        case.finish(add, case.node("Mul", [chosen, case.feed(case.normal(4))]))


def add_cases(add):
    for family in (loops, gelus, normalizations, products, integers, quantized_graphs, data_dependent_sizes, attentions, machine_learning, large_trees, support_vectors, regions):
        family(add)
