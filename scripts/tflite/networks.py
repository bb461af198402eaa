"""Small networks: what converters write for whole models, in every kind of quantization."""

import numpy as np

from builder import SAME, VALID, Model, Quant, generator_of, register
from convolutions import ACTIVATIONS

ZEROS = {"int8": -6, "uint8": 122, "int16": 0}


class Net:
    """A network under construction. `mode` is a type of activations, "hybrid" (int8 weights), or "float16"."""

    def __init__(self, file, name, mode):
        self.file, self.name, self.mode = file, name, mode
        self.generator = generator_of(f"{file}/{name}")
        self.model = Model()
        self.graph = self.model.graph("main")
        self.dtype = mode if mode in ZEROS else "float32"
        self.count = 0
        self.feeds, self.shapes = [], {}

    def quant(self, scale=0.05):
        """Quantization of an activation, or None for floats."""
        if self.dtype == "float32":
            return None
        scale = scale / 256 if self.dtype == "int16" else scale
        return Quant(scale * (1 + (self.count * 7) % 5 / 10), ZEROS[self.dtype])

    def scope(self, kind):
        """A name as converters write them."""
        self.count += 1
        return f"model/{kind}_{self.count}"

    def input(self, shape, quant=None):
        """A fed activation."""
        quant = quant or self.quant()
        number = self.graph.input(f"serving_default_input_{len(self.feeds) + 1}:0", self.dtype, shape, quant)
        values = self.generator.normal(size=shape)
        if quant is not None:
            info = np.iinfo(self.dtype)
            values = np.clip(np.round(values / quant.scale + quant.zero), info.min, info.max)
        self.feeds.append(values.astype(self.dtype))
        self.shapes[number] = (shape, quant)
        return number

    def weights(self, shape, axis, scope):
        """A constant of weights and its scale, one per channel unless uint8."""
        values = self.generator.normal(size=shape) * (0.8 / np.sqrt(np.prod(shape) / shape[axis]))
        if self.mode == "float32":
            return self.graph.const(values.astype(np.float32), f"{scope}/kernel"), None
        if self.mode == "float16":
            half = self.graph.const(values.astype(np.float16), f"{scope}/kernel_half")
            return self.graph.op("DEQUANTIZE", [half], [(f"{scope}/kernel", "float32", shape)]), None
        others = tuple(k for k in range(len(shape)) if k != axis)
        most = np.abs(values).max(None if self.mode == "uint8" else others, keepdims=True)
        scale = (most / 127).astype(np.float32)
        stored = np.round(values / scale)
        zero = 128 if self.mode == "uint8" else 0
        quant = Quant(scale.reshape(-1).tolist(), zero, axis if scale.size > 1 else 0)
        dtype = "uint8" if self.mode == "uint8" else "int8"
        return self.graph.const((stored + zero).astype(dtype), f"{scope}/kernel", quant=quant), scale.reshape(-1)

    def bias(self, size, source, scale, scope):
        """A constant of biases at the product of the scales of input and weights."""
        values = self.generator.normal(size=size) * 0.3
        if self.dtype == "float32":
            return self.graph.const(values.astype(np.float32), f"{scope}/bias")
        scale = np.float32(source.scale) * scale
        wide = np.int64 if self.dtype == "int16" else np.int32
        return self.graph.const(
            np.round(values / scale).astype(wide), f"{scope}/bias", quant=Quant(scale.tolist(), 0, 0)
        )

    def result(self, name, shape, quant=None):
        """A new activation."""
        quant = quant or self.quant()
        number = self.graph.tensor(name, self.dtype, shape, quant)
        self.shapes[number] = (shape, quant)
        return number

    def conv(self, x, channels, kernel=3, stride=1, activation="relu6", depthwise=False):
        """A convolution with bias and activation."""
        scope = self.scope("depthwise" if depthwise else "conv2d")
        (batch, height, width, depth), source = self.shapes[x]
        channels = depth if depthwise else channels
        shape = (1, kernel, kernel, depth) if depthwise else (channels, kernel, kernel, depth)
        kernels, scale = self.weights(shape, 3 if depthwise else 0, scope)
        bias = self.bias(channels, source, scale, scope)
        size = [-(-n // stride) for n in (height, width)]
        y = self.result(f"{scope}/Relu6;{scope}/BiasAdd;{scope}/Conv2D", (batch, *size, channels))
        options = {
            "padding": SAME,
            "strideH": stride,
            "strideW": stride,
            "fusedActivationFunction": ACTIVATIONS[activation],
        }
        if depthwise:
            options["depthMultiplier"] = 1
        return self.graph.op("DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", [x, kernels, bias], [y], options)

    def dense(self, x, units, activation="none"):
        """A fully connected layer that keeps dimensions."""
        scope = self.scope("dense")
        shape, source = self.shapes[x]
        kernels, scale = self.weights((units, shape[-1]), 0, scope)
        bias = self.bias(units, source, scale, scope)
        y = self.result(f"{scope}/MatMul;{scope}/BiasAdd", (*shape[:-1], units))
        options = {"fusedActivationFunction": ACTIVATIONS[activation], "keepNumDims": len(shape) > 2}
        return self.graph.op("FULLY_CONNECTED", [x, kernels, bias], [y], options)

    def op(self, op, inputs, shape, options=None, quant=None):
        """Any other op on activations."""
        numbers = [
            x if isinstance(x, int) else self.graph.const(np.asarray(x, np.int32), f"{op}/Const") for x in inputs
        ]
        return self.graph.op(op, numbers, [self.result(self.scope(op.lower()), shape, quant)], options)

    def finish(self, *outputs, tolerance=2e-5):
        """Registers the network. Integers leave through DEQUANTIZE."""
        results = []
        for k, output in enumerate(outputs):
            if self.dtype != "float32" and k == 0:
                output = self.graph.op(
                    "DEQUANTIZE", [output], [(f"StatefulPartitionedCall:{k}", "float32", self.shapes[output][0])]
                )
            results.append(output)
        self.graph.output(*results)
        kind = {"hybrid": "float32 x int8", "float16": "float16 weights"}.get(self.mode, self.mode)
        kind += " quantized" if self.mode in ZEROS else ""
        op = self.file.upper()
        atol = rtol = tolerance if self.dtype == "float32" else 1e-6
        register(self.file, self.name, op, kind, self.model, self.feeds, atol=atol, rtol=rtol)


def mobilenet():
    """An inverted residual block and a classifier."""
    for mode in ("float32", "float16", "hybrid", "int8", "uint8", "int16"):
        net = Net("mobilenet_block", f"classifier_{mode}", mode)
        x = net.input((1, 8, 8, 3))
        x = net.conv(x, 6, stride=2)
        y = net.conv(x, 12, kernel=1)
        y = net.conv(y, 0, depthwise=True)
        y = net.conv(y, 6, kernel=1, activation="none")
        x = net.op("ADD", [x, y], (1, 4, 4, 6), {"fusedActivationFunction": 0, "potScaleInt16": False})
        x = net.conv(x, 8, kernel=1)
        shape, quant = net.shapes[x]
        if mode == "uint8":
            options = {"padding": VALID, "strideH": 4, "strideW": 4, "filterHeight": 4, "filterWidth": 4}
            x = net.op("AVERAGE_POOL_2D", [x], (1, 1, 1, 8), options, quant)
            x = net.op("RESHAPE", [x, [1, 8]], (1, 8), {"newShape": [1, 8]}, quant)
        else:
            x = net.op("MEAN", [x, [1, 2]], (1, 8), {"keepDims": False})
        x = net.dense(x, 4)
        unit = {"int8": Quant(1 / 256, -128), "uint8": Quant(1 / 256, 0), "int16": Quant(1 / 32768)}.get(mode)
        net.finish(net.op("SOFTMAX", [x], (1, 4), {"beta": 1.0}, unit))


def quantized_ends():
    """A network whose input and output are floats, with QUANTIZE at its start."""
    for mode in ("int8", "uint8"):
        net = Net("mobilenet_block", f"float_ends_{mode}", mode)
        source = net.graph.input("serving_default_image:0", "float32", (1, 6, 6, 2))
        net.feeds.append(net.generator.normal(size=(1, 6, 6, 2)).astype(np.float32))
        quant = net.quant(0.03)
        x = net.graph.op("QUANTIZE", [source], [net.result("tfl.quantize", (1, 6, 6, 2), quant)])
        x = net.conv(x, 4, stride=2)
        options = {"padding": VALID, "strideH": 2, "strideW": 2, "filterHeight": 2, "filterWidth": 2}
        x = net.op("MAX_POOL_2D", [x], (1, 1, 1, 4), options, net.shapes[x][1])
        net.finish(x)


def attention():
    """A transformer block: projections, scores, softmax, residual, normalization."""
    for mode in ("float32", "float16", "hybrid", "int8", "int16"):
        net = Net("attention_block", f"block_{mode}", mode)
        x = net.input((1, 4, 8))
        heads = []
        for _ in range(3):
            y = net.dense(x, 8)
            quant = net.shapes[y][1]
            y = net.op("RESHAPE", [y, [1, 4, 2, 4]], (1, 4, 2, 4), {"newShape": [1, 4, 2, 4]}, quant)
            heads.append(net.op("TRANSPOSE", [y, [0, 2, 1, 3]], (1, 2, 4, 4), None, quant))
        scores = net.op("BATCH_MATMUL", heads[:2], (1, 2, 4, 4), {"adjY": True})
        unit = {"int8": Quant(1 / 256, -128), "int16": Quant(1 / 32768)}.get(mode)
        scores = net.op("SOFTMAX", [scores], (1, 2, 4, 4), {"beta": 1.0}, unit)
        y = net.op("BATCH_MATMUL", [scores, heads[2]], (1, 2, 4, 4))
        quant = net.shapes[y][1]
        y = net.op("TRANSPOSE", [y, [0, 2, 1, 3]], (1, 4, 2, 4), None, quant)
        y = net.op("RESHAPE", [y, [1, 4, 8]], (1, 4, 8), {"newShape": [1, 4, 8]}, quant)
        y = net.dense(y, 8)
        x = net.op("ADD", [x, y], (1, 4, 8), {"potScaleInt16": False})
        if mode in ("float32", "float16", "hybrid"):
            mean = net.op("MEAN", [x, [2]], (1, 4, 1), {"keepDims": True})
            centered = net.op("SUB", [x, mean], (1, 4, 8))
            variance = net.op("MEAN", [net.op("SQUARE", [centered], (1, 4, 8)), [2]], (1, 4, 1), {"keepDims": True})
            epsilon = net.graph.const(np.float32(1e-3), "epsilon")
            inverse = net.op("RSQRT", [net.op("ADD", [variance, epsilon], (1, 4, 1))], (1, 4, 1))
            x = net.op("MUL", [centered, inverse], (1, 4, 8))
        y = net.dense(x, 12, "relu")
        net.finish(net.op("ADD", [net.dense(y, 8), x], (1, 4, 8), {"potScaleInt16": False}))


def detector():
    """A head of a detector: upsampling, concatenation, sigmoid."""
    for mode in ("float32", "int8", "uint8"):
        net = Net("detection_head", f"two_scales_{mode}", mode)
        shared = net.quant()
        fine, coarse = net.input((1, 4, 4, 2), shared), net.input((1, 2, 2, 3), shared)
        up = net.op("RESIZE_NEAREST_NEIGHBOR", [coarse, [4, 4]], (1, 4, 4, 3), {"halfPixelCenters": True}, shared)
        x = net.op("CONCATENATION", [fine, up], (1, 4, 4, 5), {"axis": 3}, shared)
        x = net.op("PAD", [x, [[0, 0], [1, 1], [1, 1], [0, 0]]], (1, 6, 6, 5), None, shared)
        x = net.conv(x, 4, activation="relu")
        x = net.op("LEAKY_RELU", [x], (1, 6, 6, 4), {"alpha": 0.1})
        left = net.op(
            "STRIDED_SLICE", [x, [0, 0, 0, 0], [1, 6, 6, 2], [1, 2, 2, 1]], (1, 3, 3, 2), {}, net.shapes[x][1]
        )
        unit = {"int8": Quant(1 / 256, -128), "uint8": Quant(1 / 256, 0)}.get(mode)
        net.finish(net.op("LOGISTIC", [left], (1, 3, 3, 2), None, unit), x)


def outputs():
    """Inputs as outputs, outputs twice, constants as outputs, unused inputs, and odd names."""
    model = Model()
    graph = model.graph("main")
    x, unused = graph.input("x", "float32", (2,)), graph.input("x", "int32", (3,))
    y = graph.op("NEG", [x], [("", "float32", (2,))])
    constant = graph.const(np.array([1.5, -2], np.float32), "x")
    dead = graph.op("EXP", [x], [('model/größe:0;"quoted" name', "float32", (2,))])
    graph.op("ABS", [dead], [("dead", "float32", (2,))])
    graph.output(y, x, y, constant, unused)
    register(
        "outputs",
        "aliases_and_duplicate_names",
        "NEG",
        "float32",
        model,
        [np.array([3, -4], np.float32), np.arange(3, dtype=np.int32)],
    )
    model = Model()
    graph = model.graph("main")
    constant = graph.const(np.array([[1, 2], [3, 4]], np.float32), "c")
    graph.output(graph.op("ADD", [constant, constant], [("sum", "float32", (2, 2))]))
    register("outputs", "no_inputs", "ADD", "float32", model, [])
    model = Model()
    graph = model.graph("main")
    x = graph.input("x", "float32", (2, 2))
    graph.output(x)
    register("outputs", "no_ops", "NONE", "float32", model, [np.ones((2, 2), np.float32)])
    for batch in (1, 3):
        model = Model()
        graph = model.graph("main")
        x = graph.input("serving_default_x:0", "float32", (1, 4), signature=(-1, 4))
        generator = generator_of("dynamic batch")
        weights = graph.const(generator.normal(size=(3, 4)).astype(np.float32), "dense/kernel")
        y = graph.tensor("dense/MatMul", "float32", (1, 3), signature=(-1, 3))
        graph.op("FULLY_CONNECTED", [x, weights, None], [y], {})
        z = graph.tensor("StatefulPartitionedCall:0", "float32", (1, 3), signature=(-1, 3))
        graph.op("SOFTMAX", [y], [z], {"beta": 1.0})
        graph.output(z)
        feeds = [generator.normal(size=(batch, 4)).astype(np.float32)]
        register("outputs", f"any_batch_{batch}", "FULLY_CONNECTED", "float32", model, feeds, atol=1e-5, rtol=1e-5)


def signatures():
    """Models with signatures, of one and of several subgraphs."""
    for key in (None, "add", "scale"):
        model = Model()
        add = model.graph("add")
        a, b = add.input("add_a:0", "float32", (2,)), add.input("add_b:0", "float32", (2,))
        total = add.op("ADD", [a, b], [("StatefulPartitionedCall:0", "float32", (2,))])
        difference = add.op("SUB", [a, b], [("StatefulPartitionedCall:1", "float32", (2,))])
        add.output(difference, total)
        model.signature("add", add, {"b": b, "a": a}, {"total": total, "difference": difference})
        scale = model.graph("scale")
        x = scale.input("scale_x:0", "float32", (3,))
        y = scale.op("MUL", [x, scale.const(np.float32(2))], [("StatefulPartitionedCall_1:0", "float32", (3,))])
        scale.output(y)
        model.signature("scale", scale, {"x": x}, {"output_0": y})
        generator = generator_of("signatures")
        feeds = [
            generator.normal(size=3 if key == "scale" else 2).astype(np.float32)
            for _ in range(1 if key == "scale" else 2)
        ]
        register("signatures", f"two_{key or 'default'}", "ADD", "float32", model, feeds, signature=key)
    for key in ("serving_default", None):
        model = Model()
        graph = model.graph("main")
        numbers = {
            name: graph.input(f"serving_default_{name}:0", "int32", (2,)) for name in ("zebra", "apple", "mango")
        }
        first = graph.op("SUB", [numbers["zebra"], numbers["apple"]], [("PartitionedCall:1", "int32", (2,))])
        second = graph.op("SUB", [first, numbers["mango"]], [("PartitionedCall:0", "int32", (2,))])
        graph.output(second, first)
        model.signature("serving_default", graph, numbers, {"y": first, "x": second})
        feeds = [np.array(values, np.int32) for values in ([10, 20], [3, 4], [100, 200])]
        register("signatures", f"order_of_names_{key or 'none'}", "SUB", "int32", model, feeds, signature=key)
    counters()


def counters():
    """Signatures that share a variable. Each invocation of one signature sees its own writes."""
    model = Model()
    initial_value = np.array([5.0, 7.0], np.float32)
    main = model.graph("main")
    x = main.input("x", "float32", (2,))
    initial = model.graph("init")
    handle = initial.op("VAR_HANDLE", [], [("h", "resource", ())], {"sharedName": "count", "container": ""})
    initial.op("ASSIGN_VARIABLE", [handle, initial.const(initial_value)], [])
    main.op("CALL_ONCE", [], [], {"initSubgraphIndex": initial.index})
    handle = main.op("VAR_HANDLE", [], [("h", "resource", ())], {"sharedName": "count", "container": ""})
    read = main.op("READ_VARIABLE", [handle], [("read", "float32", (2,))])
    total = main.op("ADD", [read, x], [("total", "float32", (2,))])
    main.op("ASSIGN_VARIABLE", [handle, total], [])
    main.output(total)
    model.signature("count", main, {"x": x}, {"total": total})
    register(
        "signatures",
        "variable",
        "READ_VARIABLE",
        "float32",
        model,
        [np.array([1, 2], np.float32)],
        signature="count",
        runs=2,
    )


def build():
    """Registers the cases."""
    mobilenet()
    quantized_ends()
    attention()
    detector()
    outputs()
    signatures()
