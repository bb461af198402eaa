"""Builds `.tflite` models and registers test cases.

A case is a model, its inputs, and how to compare its outputs. `case` covers the common form, a single op; `Model` and
`Graph` cover everything else. Output shapes need not be given: the runner takes them from LiteRT and the model is then
written again with them.
"""

import hashlib
from dataclasses import dataclass, field

import flatbuffers
import ml_dtypes
import numpy as np
from ai_edge_litert import schema_py_generated as schema

from tolerances import tolerance

TYPES = {name.lower(): code for name, code in vars(schema.TensorType).items() if isinstance(code, int)}
OPS = {name: code for name, code in vars(schema.BuiltinOperator).items() if isinstance(code, int)}
ACTIVATIONS = {"none": 0, "relu": 1, "relu_n1_to_1": 2, "relu6": 3, "tanh": 4, "sign_bit": 5}
SAME, VALID = schema.Padding.SAME, schema.Padding.VALID
NUMPY = {"bfloat16": ml_dtypes.bfloat16, "int4": np.int8, "uint4": np.uint8, "int2": np.int8}
BITS = {"int4": 4, "uint4": 4, "int2": 2}
# First version of an op with the semantics that the schema describes.
VERSIONS = {"BROADCAST_TO": 2}
# Options tables whose names do not follow from the op's.
TABLES = {
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "L2_POOL_2D": "Pool2DOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
    **dict.fromkeys(
        ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL"), "ReducerOptions"
    ),
    **dict.fromkeys(("RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "MULTINOMIAL"), "RandomOptions"),
}
FOLDED_TABLES = {name.lower(): name for name in [*vars(schema.BuiltinOptions), *vars(schema.BuiltinOptions2)]}


def numpy_type(dtype):
    """NumPy's type of the elements of a TensorFlow Lite type."""
    return np.dtype(NUMPY.get(dtype, dtype))


@dataclass
class Quant:
    """Affine quantization: real = scale * (stored - zero). A list of scales is one per channel along `axis`."""

    scale: object
    zero: object = 0
    axis: int = 0


@dataclass
class Arg:
    """An operand of a single-op model: fed, constant, or a variable that keeps its value between runs."""

    dtype: str
    shape: tuple
    values: object = None
    quant: Quant = None
    kind: str = "feed"
    name: str = None
    signature: tuple = None


@dataclass
class Out:
    """A result of a single-op model."""

    dtype: str
    quant: Quant = None
    shape: tuple = None
    name: str = None
    signature: tuple = None
    fetch: bool = True


def feed(dtype, shape, values=None, quant=None, **more):
    """An input of the model. `values` is an array, a function of (generator, shape), or None for random numbers."""
    return Arg(dtype, tuple(shape), values, quant, **more)


def const(dtype, shape, values=None, quant=None, **more):
    """A constant, stored in the model."""
    return Arg(dtype, tuple(shape), values, quant, kind="const", **more)


def given(values, dtype="int32", **more):
    """A constant of given values, for axes, sizes, and paddings."""
    values = np.asarray(values, numpy_type(dtype))
    return Arg(dtype, values.shape, values, kind="const", **more)


def given_feed(values, dtype="int32", **more):
    """An input of given values."""
    values = np.asarray(values, numpy_type(dtype))
    return Arg(dtype, values.shape, values, **more)


def variable(dtype, shape, quant=None, **more):
    """A variable tensor, zero at first."""
    return Arg(dtype, tuple(shape), None, quant, kind="variable", **more)


def out(dtype, quant=None, shape=None, **more):
    """A result. Its shape is LiteRT's if not given."""
    return Out(dtype, quant, shape, **more)


def generator_of(name):
    """A random generator whose seed depends on the name alone."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little"))


def bounds(dtype):
    """Least and greatest stored value of an integer type."""
    if dtype in BITS:
        bits = BITS[dtype]
        return (0, 2**bits - 1) if dtype[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def random(dtype, shape, generator, quantized=False):
    """Random numbers of a type. Quantized numbers use the whole range and hit both of its ends."""
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype in ("complex64", "complex128"):
        return (generator.normal(size=shape) + 1j * generator.normal(size=shape)).astype(dtype)
    if dtype in ("float32", "float64", "float16", "bfloat16"):
        return np.asarray(generator.normal(size=shape)).astype(numpy_type(dtype))
    low, high = bounds(dtype)
    if not quantized and dtype not in BITS:
        low, high = max(low, -9), min(high, 9)
    values = np.asarray(generator.integers(low, high, shape, endpoint=True)).astype(numpy_type(dtype))
    if quantized and values.size > 2:
        values.flat[generator.integers(0, values.size)] = low
        values.flat[generator.integers(0, values.size)] = high
    return values


def uniform(low, high):
    """Values between two bounds, for `feed` and `const`."""
    return lambda generator, shape: generator.uniform(low, high, shape)


def integers(low, high):
    """Integers between two bounds, both included, for `feed` and `const`."""
    return lambda generator, shape: generator.integers(low, high, shape, endpoint=True)


def evaluate(argument, generator):
    """Values of an operand as an array of its type and shape."""
    values = argument.values
    if values is None:
        values = random(argument.dtype, argument.shape, generator, argument.quant is not None)
    elif callable(values):
        values = values(generator, argument.shape)
    return np.asarray(values).astype(numpy_type(argument.dtype)).reshape(argument.shape)


def pack_bits(values, bits):
    """Bytes of sub-byte integers, first element in the lowest bits."""
    flat = np.asarray(values).reshape(-1).astype(np.uint8) & (2**bits - 1)
    per_byte = 8 // bits
    flat = np.concatenate([flat, np.zeros(-len(flat) % per_byte, np.uint8)]).reshape(-1, per_byte)
    return sum(flat[:, k] << (bits * k) for k in range(per_byte)).astype(np.uint8).tobytes()


class AlignedBuffer(schema.BufferT):
    """A buffer whose bytes are aligned to 16, which the generated code omits."""

    def Pack(self, builder):
        data = bytes(self.data or b"")
        if data:
            builder.StartVector(1, len(data), 16)
            builder.head -= len(data)
            builder.Bytes[builder.head : builder.head + len(data)] = data
            vector = builder.EndVector()
        schema.BufferStart(builder)
        if data:
            schema.BufferAddData(builder, vector)
        return schema.BufferEnd(builder)


def options_table(op, values):
    """The options of an op as (member of which union, type code, table)."""
    name = TABLES.get(op) or FOLDED_TABLES.get(op.replace("_", "").lower() + "options")
    if name is None:
        return "builtinOptions", 0, None
    table = getattr(schema, name + "T")()
    for key, value in (values or {}).items():
        if not hasattr(table, key):
            raise AttributeError(f"{name} has no member {key}")
        setattr(table, key, value)
    if hasattr(schema.BuiltinOptions, name):
        return "builtinOptions", getattr(schema.BuiltinOptions, name), table
    return "builtinOptions2", getattr(schema.BuiltinOptions2, name), table


class Graph:
    """A subgraph of a model under construction. Tensors are numbers."""

    def __init__(self, model, name):
        self.model = model
        self.table = schema.SubGraphT()
        self.table.tensors, self.table.inputs, self.table.outputs, self.table.operators = [], [], [], []
        self.table.name = name
        self.index = len(model.table.subgraphs)
        model.table.subgraphs.append(self.table)

    def tensor(self, name, dtype, shape, quant=None, data=None, is_variable=False, signature=None):
        """Adds a tensor, constant if it has data."""
        tensor = schema.TensorT()
        tensor.name, tensor.type, tensor.shape = name, TYPES[dtype], None if shape is None else list(shape)
        tensor.isVariable, tensor.hasRank = is_variable, shape is not None
        tensor.shapeSignature = None if signature is None else list(signature)
        if data is not None:
            bits = BITS.get(dtype)
            tensor.buffer = self.model.buffer(pack_bits(data, bits) if bits else np.asarray(data).tobytes())
        if quant is not None:
            table = schema.QuantizationParametersT()
            table.scale = [float(np.float32(scale)) for scale in np.ravel(quant.scale)]
            zeros = np.ravel(quant.zero)
            table.zeroPoint = [int(zero) for zero in np.broadcast_to(zeros, len(table.scale))]
            table.quantizedDimension = quant.axis
            tensor.quantization = table
        self.table.tensors.append(tensor)
        return len(self.table.tensors) - 1

    def input(self, name, dtype, shape, quant=None, **more):
        """Adds an input of the subgraph."""
        number = self.tensor(name, dtype, shape, quant, **more)
        self.table.inputs.append(number)
        return number

    def const(self, values, name="Const", dtype=None, quant=None):
        """Adds a constant tensor."""
        values = np.asarray(values)
        dtype = dtype or str(values.dtype)
        return self.tensor(name, dtype, values.shape, quant, values.astype(numpy_type(dtype)))

    def op(self, op, inputs, outputs, options=None, intermediates=None, version=None):
        """Adds an op. Inputs may be None. An output is a tensor or (name, type, shape[, quantization])."""
        operator = schema.OperatorT()
        operator.opcodeIndex = self.model.opcode(op, version)
        operator.inputs = [-1 if number is None else number for number in inputs]
        operator.outputs = [o if isinstance(o, int) else self.tensor(*o) for o in outputs]
        operator.intermediates = intermediates
        union, code, table = options_table(op, options)
        setattr(operator, union + "Type", code)
        setattr(operator, union, table)
        self.table.operators.append(operator)
        return operator.outputs[0] if len(operator.outputs) == 1 else operator.outputs

    def output(self, *numbers):
        """Marks tensors as outputs of the subgraph."""
        self.table.outputs.extend(numbers)


class Model:
    """A model under construction."""

    def __init__(self):
        self.table = schema.ModelT()
        self.table.version = 3
        self.table.operatorCodes, self.table.subgraphs, self.table.buffers = [], [], [AlignedBuffer()]
        self.codes = {}

    def graph(self, name="main"):
        """Adds a subgraph. The first one is the main one."""
        return Graph(self, name)

    def buffer(self, data):
        """Adds a buffer and returns its number."""
        buffer = AlignedBuffer()
        buffer.data = data
        self.table.buffers.append(buffer)
        return len(self.table.buffers) - 1

    def opcode(self, op, version):
        """Number of an operator code, added if necessary."""
        key = (op, version or VERSIONS.get(op, 1))
        if key not in self.codes:
            code = schema.OperatorCodeT()
            code.builtinCode, code.version = OPS[op], key[1]
            code.deprecatedBuiltinCode = min(OPS[op], 127)
            self.codes[key] = len(self.table.operatorCodes)
            self.table.operatorCodes.append(code)
        return self.codes[key]

    def signature(self, key, graph, inputs, outputs):
        """Adds a signature; inputs and outputs are dictionaries from names to tensors."""
        table = schema.SignatureDefT()
        table.signatureKey, table.subgraphIndex = key, graph.index

        def maps(tensors):
            maps = []
            for name, number in tensors.items():
                entry = schema.TensorMapT()
                entry.name, entry.tensorIndex = name, number
                maps.append(entry)
            return maps

        table.inputs, table.outputs = maps(inputs), maps(outputs)
        self.table.signatureDefs = (self.table.signatureDefs or []) + [table]

    def bytes(self):
        """The file."""
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.table.Pack(builder), b"TFL3")
        return bytes(builder.Output())


@dataclass
class Case:
    """A registered case. `infer` lists tensors of the main subgraph whose shapes come from LiteRT."""

    file: str
    name: str
    op: str
    kind: str
    model: Model
    feeds: list
    infer: list = field(default_factory=list)
    dynamic: list = field(default_factory=list)
    runs: int = 1
    atol: float = 1e-6
    rtol: float = 1e-6
    signature: str = None
    kernels: str = "reference"


CASES = []
SEEN = set()


def register(
    file,
    name,
    op,
    kind,
    model,
    feeds,
    *,
    infer=(),
    dynamic=(),
    runs=1,
    summands=1,
    atol=None,
    rtol=None,
    signature=None,
    kernels="reference",
):
    """Registers a model with inputs.

    `summands` scales the absolute tolerance of sums. `kernels` is "optimized" where the reference kernel is wrong.
    """
    if (file, name) in SEEN:
        raise ValueError(f"two cases are called {file}/{name}")
    SEEN.add((file, name))
    types = {tensor.type for graph in model.table.subgraphs for tensor in graph.tensors}
    absolute, relative = tolerance(op, {dtype for dtype, code in TYPES.items() if code in types})
    atol = absolute * max(1, summands) if atol is None else atol
    rtol = relative if rtol is None else rtol
    CASES.append(
        Case(file, name, op, kind, model, feeds, list(infer), list(dynamic), runs, atol, rtol, signature, kernels)
    )


def label(inputs, outputs):
    """How the table of the README names the types of a single-op model."""
    tensors = [tensor for tensor in [*inputs, *outputs] if tensor is not None]
    first = tensors[0]
    for tensor in tensors:
        if tensor.quant is not None:
            return (
                f"{tensor.dtype} quantized"
                if tensor is first or tensor in outputs
                else f"{first.dtype} with {tensor.dtype}"
            )
    return first.dtype


def case(
    op, name, inputs, outputs, options=None, *, file=None, kind=None, dynamic=(), version=None, intermediates=(), **more
):
    """Registers a model of one op. Inputs are `feed`, `const`, `variable`, or None; outputs are `out`."""
    file = file or op.lower()
    generator = generator_of(f"{file}/{name}")
    model = Model()
    graph = model.graph()
    scope = f"model/{op.lower()}"
    numbers, feeds = [], []
    for k, argument in enumerate(inputs):
        if argument is None:
            numbers.append(None)
        elif argument.kind == "feed":
            number = f"serving_default_input_{k + 1}:0" if argument.name is None else argument.name
            numbers.append(
                graph.input(number, argument.dtype, argument.shape, argument.quant, signature=argument.signature)
            )
            feeds.append(evaluate(argument, generator))
        elif argument.kind == "const":
            tensor = f"{scope}/Const_{k}" if argument.name is None else argument.name
            values = evaluate(argument, generator)
            numbers.append(graph.tensor(tensor, argument.dtype, argument.shape, argument.quant, values))
        else:
            tensor = f"{scope}/state{k}" if argument.name is None else argument.name
            numbers.append(graph.tensor(tensor, argument.dtype, argument.shape, argument.quant, is_variable=True))
    results, infer = [], []
    for k, result in enumerate(outputs):
        tensor = result.name or (
            f"{scope};{scope}/BiasAdd" if len(name) % 3 == 0 and k == 0 else f"StatefulPartitionedCall:{k}"
        )
        shape, signature = result.shape, result.signature
        number = graph.tensor(
            tensor, result.dtype, shape if shape is not None else (), result.quant, signature=signature
        )
        if shape is None:
            infer.append(number)
        results.append(number)
    temporaries = [
        graph.tensor(f"{scope}/intermediate_{k}", t.dtype, t.shape, t.quant) for k, t in enumerate(intermediates)
    ]
    graph.op(op, numbers, results, options, temporaries or None, version)
    graph.output(*(number for number, result in zip(results, outputs) if result.fetch))
    register(file, name, op, kind or label(inputs, outputs), model, feeds, infer=infer, dynamic=dynamic, **more)


def make_sparse(number, shape, order, block_map, dimensions):
    """Makes a constant of the last case sparse. A dimension is (0, dense size) or (1, segments, indices)."""
    tensor = CASES[-1].model.table.subgraphs[0].tensors[number]
    tensor.shape = list(shape)
    table = schema.SparsityParametersT()
    table.traversalOrder, table.blockMap = order, block_map
    table.dimMetadata = []
    for form, *numbers in dimensions:
        dimension = schema.DimensionMetadataT()
        dimension.format = form
        if form == 0:
            dimension.denseSize = numbers[0]
        else:
            dimension.arraySegmentsType = dimension.arrayIndicesType = schema.SparseIndexVector.Int32Vector
            for member, values in zip(("arraySegments", "arrayIndices"), numbers):
                vector = schema.Int32VectorT()
                vector.values = values
                setattr(dimension, member, vector)
        table.dimMetadata.append(dimension)
    tensor.sparsity = table
