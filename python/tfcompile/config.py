"""Configs: which tensors of a graph are fed and fetched, and which variables the caller keeps.

A `Config` is a `tensorflow.tf2xla.Config`, edited as a value:

    config = Config()
    config.feed("x", shape=[16, 784], dtype="float32")
    config.fetch("logits")
    config.save("model.config.pbtxt")
"""

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np

from . import _models, _native

# TensorFlow's numbers of types, by their names in NumPy and ml_dtypes.
_TYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8, "int64": 9, "bool": 10,
    "bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23, "float8_e5m2": 24,
    "float8_e4m3fn": 25,
}  # fmt: skip
_TEXT = {number: f"DT_{name.upper()}" for name, number in _TYPES.items()} | {1: "DT_FLOAT", 2: "DT_DOUBLE", 19: "DT_HALF"}


def _type(dtype: Any) -> int:
    """Returns the number of a type, given by name or as a NumPy or TensorFlow type."""
    if dtype is None:
        return 0
    if isinstance(dtype, int):
        return dtype
    if hasattr(dtype, "as_datatype_enum"):
        return dtype.as_datatype_enum
    name = dtype if isinstance(dtype, str) and dtype in _TYPES else np.dtype(dtype).name
    if name not in _TYPES:
        raise TypeError(f"TensorFlow has no type {name}")
    return _TYPES[name]


@dataclasses.dataclass
class Tensor:
    """A feed, fetch, or variable."""

    node: str
    output: int = 0
    name: str = ""
    """Name in the generated class."""
    shape: list[int | str] | None = None
    """Sizes; -1 for one that is open, and the name of a dimension for one in its range."""
    dtype: int = 0
    """TensorFlow's number of the type; 0 selects the type in the graph."""
    readonly: bool = False
    """True for a variable that the graph only reads."""


@dataclasses.dataclass
class Dimension:
    """A dimension whose size each call chooses."""

    name: str
    min: int
    max: int
    sizes: list[int] = dataclasses.field(default_factory=list)
    """Sizes with code of their own."""


@dataclasses.dataclass
class Config:
    """Feeds, fetches, variables, and dimensions with ranges."""

    feeds: list[Tensor] = dataclasses.field(default_factory=list)
    fetches: list[Tensor] = dataclasses.field(default_factory=list)
    variables: list[Tensor] = dataclasses.field(default_factory=list)
    dimensions: list[Dimension] = dataclasses.field(default_factory=list)

    def feed(self, tensor: Any, *, shape: Any = None, dtype: Any = None, name: str = "") -> Tensor:
        """Adds a feed: `node`, `node:1`, or a TensorFlow tensor, which determines shape and type."""
        shape = _sizes(getattr(tensor, "shape", None) if shape is None else shape)
        dtype = getattr(tensor, "dtype", None) if dtype is None else dtype
        added = Tensor(*_models.tensor(tensor), name, shape, _type(dtype))
        self.feeds.append(added)
        return added

    def fetch(self, tensor: Any, *, name: str = "") -> Tensor:
        """Adds a fetch."""
        added = Tensor(*_models.tensor(tensor), name)
        self.fetches.append(added)
        return added

    def variable(self, node: Any, *, shape: Any = None, dtype: Any = None, name: str = "", readonly: bool = False) -> Tensor:
        """Adds a variable, by the node of its handle."""
        shape = _sizes(getattr(node, "shape", None) if shape is None else shape)
        dtype = getattr(node, "dtype", None) if dtype is None else dtype
        added = Tensor(_models.tensor(node)[0], 0, name, shape, _type(dtype), readonly)
        self.variables.append(added)
        return added

    def dimension(self, name: str, min: int, max: int, *, sizes: Any = ()) -> Dimension:
        """Adds a dimension of any size from `min` to `max`; shapes of feeds contain its name."""
        added = Dimension(name, min, max, list(sizes))
        self.dimensions.append(added)
        return added

    def __getitem__(self, key: str) -> Tensor:
        """Returns a feed, fetch, or variable by its name or node."""
        for tensor in [*self.feeds, *self.fetches, *self.variables]:
            if key in (tensor.name, tensor.node, f"{tensor.node}:{tensor.output}"):
                return tensor
        raise KeyError(key)

    def to_text(self) -> str:
        """Returns the config as text proto."""
        lines = []
        for kind, tensors in (("feed", self.feeds), ("fetch", self.fetches)):
            for t in tensors:
                output = f" output_index: {t.output}" if t.output else ""
                lines.append(f"{kind} {{ id {{ node_name: {_quoted(t.node)}{output} }}{_rest(t)} }}")
        for t in self.variables:
            readonly = " readonly: true" if t.readonly else ""
            lines.append(f"variable {{ node_name: {_quoted(t.node)}{_rest(t)}{readonly} }}")
        for d in self.dimensions:
            sizes = "".join(f" size: {size}" for size in d.sizes)
            lines.append(f"dimension {{ name: {_quoted(d.name)} min: {d.min} max: {d.max}{sizes} }}")
        return "".join(f"{line}\n" for line in lines)

    def save(self, path: str | os.PathLike) -> None:
        """Writes it as text proto."""
        Path(path).write_text(self.to_text())

    @classmethod
    def from_text(cls, data: str | bytes) -> "Config":
        """Parses text or binary proto. For TensorFlow's message, pass `SerializeToString()`."""
        data = data.encode() if isinstance(data, str) else data
        feeds, fetches, variables, dimensions = _native.config_fields(data)
        return cls(
            [_tensor(*feed) for feed in feeds],
            [_tensor(*fetch) for fetch in fetches],
            [_tensor(*field, readonly) for field, readonly in variables],
            [Dimension(*dimension) for dimension in dimensions],
        )

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Config":
        """Reads a config from a file."""
        return cls.from_text(Path(path).read_bytes())


def _tensor(
    node: str, output: int, name: str, dims: list[tuple[int, str]] | None, dtype: int, readonly: bool = False
) -> Tensor:
    shape = None if dims is None else [dim if dim and size < 0 else size for size, dim in dims]
    return Tensor(node, output, name, shape, dtype, readonly)


def infer(model: Any, *, inputs: Any = None, **options: Any) -> Config:
    """Infers the config of a model from its graph and signatures. Accepts the models and options of `tfcompile.compile`."""
    with _models.on_disk(model, inputs) as (path, name):
        return Config.from_text(_native.config_text(_models.wanted(path, name, options)))


def from_model_fn(
    model_fn: Any, input_fn: Any, mode: str = "infer", params: Any = None, batch_size: int | None = None
) -> tuple[bytes, Config]:
    """Returns the graph of an Estimator's functions and its config.

    `input_fn()` returns features, or features and labels: tensors, arrays, dictionaries of them, or a `tf.data.Dataset`; their shapes and
    types become placeholders, which are fed. `model_fn(features, labels, mode, params)`, with as many of these as it has, returns an
    `EstimatorSpec` or something with its attributes: of mode `train` the loss and the training op are fetched, of `eval` the loss, of
    `infer` the predictions. Variables are the caller's.
    """
    import tensorflow as tf

    graph = tf.Graph()
    config = Config()
    with graph.as_default():
        with tf.Graph().as_default():
            structure = _specs(input_fn(), batch_size)
        pair = structure if isinstance(structure, tuple) and len(structure) == 2 else (structure, None)
        features = _placeholders(pair[0], "features", config)
        labels = None if mode == "infer" else _placeholders(pair[1], "labels", config)
        parameters = _parameters(model_fn)
        offered = {"labels": labels, "mode": mode, "params": params, "config": None}
        spec = model_fn(features, **{key: value for key, value in offered.items() if key in parameters})
        loss, train_op, predictions = (getattr(spec, key, None) for key in ("loss", "train_op", "predictions"))
        fetched = {"train": {"loss": loss, "train_op": train_op}, "eval": {"loss": loss}}.get(mode)
        fetched = fetched or (predictions if isinstance(predictions, dict) else {"predictions": predictions})
        for name, tensor in fetched.items():
            if tensor is None:
                raise ValueError(f"model_fn returned no {name} for mode {mode!r}")
            config.fetch(tensor, name=_identifier(name))
        for variable in tf.compat.v1.global_variables():
            is_written = any(_writes(operation, variable) for operation in graph.get_operations()) and mode == "train"
            node = variable.handle.op.name if hasattr(variable, "handle") else variable.op.name
            config.variable(node, shape=variable.shape, dtype=variable.dtype.base_dtype, name=_identifier(node), readonly=not is_written)
    return graph.as_graph_def().SerializeToString(), config


def _parameters(function: Any) -> set[str]:
    import inspect

    return set(inspect.signature(function).parameters)


def _writes(operation: Any, variable: Any) -> bool:
    """True if an operation on the variable's handle, other than its initializer, changes it."""
    handle = getattr(variable, "handle", None)
    reads = ("ReadVariableOp", "VarIsInitializedOp", "ResourceGather", "ResourceGatherNd", "VariableShape")
    initializer = getattr(variable, "initializer", None)
    return (
        handle is not None
        and any(tensor is handle for tensor in operation.inputs)
        and operation.type not in reads
        and operation is not initializer
    )


def _specs(structure: Any, batch_size: int | None) -> Any:
    """Returns the shapes and types of an input_fn's results."""
    import tensorflow as tf

    if hasattr(structure, "element_spec"):
        structure = structure.element_spec
    if isinstance(structure, dict):
        return {key: _specs(value, batch_size) for key, value in structure.items()}
    if isinstance(structure, (list, tuple)):
        return tuple(_specs(value, batch_size) for value in structure)
    if structure is None:
        return None
    if not hasattr(structure, "dtype"):
        structure = np.asarray(structure)
    sizes = _sizes(structure.shape) or []
    if sizes and sizes[0] < 0 and batch_size is not None:
        sizes[0] = batch_size
    if any(size < 0 for size in sizes):
        raise ValueError(f"input_fn leaves sizes open ({sizes}): pass batch_size, or complete shapes")
    return tf.TensorSpec(sizes, structure.dtype)


def _placeholders(specs: Any, prefix: str, config: Config) -> Any:
    import tensorflow as tf

    if specs is None:
        return None
    if isinstance(specs, dict):
        return {key: _placeholders(spec, f"{prefix}_{key}", config) for key, spec in specs.items()}
    if isinstance(specs, tuple):
        return tuple(_placeholders(spec, f"{prefix}_{k}", config) for k, spec in enumerate(specs))
    placeholder = tf.compat.v1.placeholder(specs.dtype, specs.shape, name=_identifier(prefix))
    config.feed(placeholder, name=_identifier(prefix))
    return placeholder


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in name)


def _sizes(shape: Any) -> list[int] | None:
    """Returns the sizes of a NumPy or TensorFlow shape, or of a list; -1 for open sizes."""
    if shape is None:
        return None
    if hasattr(shape, "as_list"):
        shape = shape.as_list() if shape.rank is not None else None
        if shape is None:
            return None
    return [-1 if size is None else size if isinstance(size, str) else int(size) for size in shape]


def _quoted(text: str) -> str:
    return '"' + "".join(c if " " <= c <= "~" and c not in '"\\' else "".join(f"\\{b:03o}" for b in c.encode()) for c in text) + '"'


def _rest(tensor: Tensor) -> str:
    def dim(size: int | str) -> str:
        return f"dim {{ size: -1 name: {_quoted(size)} }}" if isinstance(size, str) else f"dim {{ size: {size} }}"

    dims = None if tensor.shape is None else " ".join(map(dim, tensor.shape))
    shape = "" if dims is None else f" shape {{ {dims} }}"
    dtype = f" type: {_TEXT.get(tensor.dtype, tensor.dtype)}" if tensor.dtype else ""
    name = f" name: {_quoted(tensor.name)}" if tensor.name else ""
    return f"{shape}{name}{dtype}"
