"""Sessions with the interface of TensorFlow 1."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _arrays, _models, _native


class RunOptions:
    """Trace options of a run."""

    NO_TRACE = 0
    SOFTWARE_TRACE = 1
    HARDWARE_TRACE = 2
    FULL_TRACE = 3

    def __init__(self, trace_level: int = NO_TRACE):
        self.trace_level = trace_level


class StepStats:
    """Time spent in each node of a run: a serialized `tensorflow.StepStats`."""

    def __init__(self, data: bytes = b""):
        self._data = data

    def SerializeToString(self) -> bytes:
        return self._data


class RunMetadata:
    """Result of a traced run: a serialized `tensorflow.RunMetadata`. TensorFlow's own message also works."""

    def __init__(self):
        self._data = b""

    def ParseFromString(self, data: bytes) -> None:
        self._data = bytes(data)

    def SerializeToString(self) -> bytes:
        return self._data

    @property
    def step_stats(self) -> StepStats:
        """Field 1 of the message."""
        data, at = self._data, 0
        while at < len(data):
            key, at = _read_varint(data, at)
            if key & 7 != 2:
                raise ValueError("invalid run metadata: expected only message fields")
            size, at = _read_varint(data, at)
            if key >> 3 == 1:
                return StepStats(data[at : at + size])
            at += size
        return StepStats()


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


class Session:
    """Runs parts of a graph. Variables persist between runs.

    `graph` is a path (GraphDef, SavedModel), the bytes of a GraphDef, or a TensorFlow graph; without one, TensorFlow's default
    graph when the first run asks for it. `config` is a `ConfigProto` (TensorFlow's message, its bytes, or its text): threads,
    devices, soft placement, the level of just-in-time compilation.
    """

    def __init__(self, target: Any = "", graph: Any = None, config: Any = None, *, seed: int = 0):
        # TensorFlow's first parameter is the address of a server. A graph in its place is accepted
        # as the graph.
        if not isinstance(target, str) or target and graph is None:
            target, graph = "", target
        if target:
            raise ValueError(f"target {target!r}: sessions run in this process; omit the target")
        if config is not None and not isinstance(config, (bytes, str)):
            config = config.SerializeToString()
        self._config = config.encode() if isinstance(config, str) else config
        self._seed = seed
        self._given = graph
        self._session: _native.Session | None = None
        self._placeholders: dict[str, str] = {}
        self._effects: set[str] = set()
        self._is_closed = False

    def _native_session(self) -> "_native.Session":
        if self._is_closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if self._session is None:
            self._session = self._open(self._given)
            self._placeholders = self._session.placeholders
            self._effects = set(self._session.effects)
        return self._session

    def _open(self, graph: Any) -> "_native.Session":
        if graph is None:
            import tensorflow as tf

            graph = tf.compat.v1.get_default_graph()
        values: list = []
        if isinstance(graph, (str, os.PathLike)):
            data, values = _native.initial_values(graph, None)
        else:
            if hasattr(graph, "as_graph_def"):
                graph = graph.as_graph_def()
            data = graph if isinstance(graph, bytes) else graph.SerializeToString()
        session = _native.Session(data, self._config, self._seed)
        for name, value in values:
            session.set_variable(name, (value[0], value[1], bytes(value[2])))
        return session

    def run(self, fetches: Any, feed_dict: Mapping | None = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs the part of the graph that the fetches need, once.

        Fetches are names (`node`, `node:1`), tensors or operations of TensorFlow's, or lists, tuples and dictionaries of them, which
        the answer has the structure of; an operation, or a node without outputs, is run and gives None.
        """
        session = self._native_session()
        tensors: dict[str, int] = {}
        targets: dict[str, None] = {}
        structure = _structure(fetches, tensors, targets, self._effects)
        feeds = [self._fed(_name(key), value) for key, value in (feed_dict or {}).items()]
        level = getattr(options, "trace_level", 0) if options is not None else 0
        is_traced = bool(level) and run_metadata is not None
        values, metadata = session.run(feeds, list(tensors), list(targets), is_traced)
        if metadata is not None:
            run_metadata.ParseFromString(metadata)
        arrays = [_scalar(_arrays.from_native(value)) for value in values]
        return _filled(structure, arrays)

    def _fed(self, name: str, value: Any) -> tuple[str, Any]:
        """Converts a fed value to its placeholder's type. Like TensorFlow, converts numbers where that is safe."""
        array, wanted = np.asarray(value), self._placeholders.get(name.removesuffix(":0"))
        if wanted is not None and array.dtype.kind not in "OSU":
            to = _arrays.dtype(wanted)
            if not isinstance(value, np.ndarray) or np.can_cast(array.dtype, to, "same_kind"):
                array = array.astype(to, copy=False)
        return name, _arrays.to_native(array)

    def initialize(self) -> list[str]:
        """Runs the initializers of uninitialized variables. Returns the names of variables without an initializer."""
        return self._native_session().initialize()

    def variables(self) -> dict[str, np.ndarray]:
        """Values of the initialized variables by node name."""
        session = self._native_session()
        values = {name: session.variable(name) for name in session.variables()}
        return {name: _arrays.from_native(value) for name, value in values.items() if value is not None}

    def set_variable(self, name: str, value: Any) -> None:
        """Sets the value of a variable."""
        self._native_session().set_variable(name, _arrays.to_native(value))

    def list_devices(self) -> list[str]:
        """Full names of the session's devices."""
        return self._native_session().devices()

    def close(self) -> None:
        """Frees variables and code."""
        self._session, self._is_closed = None, True

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _name(of: Any) -> str:
    if isinstance(of, str):
        return of
    # A TensorFlow variable is fetched as the tensor that reads it.
    return (of._as_graph_element() if hasattr(of, "_as_graph_element") else of).name


def _structure(fetches: Any, tensors: dict[str, int], targets: dict[str, None], operations: set[str]) -> Any:
    """Returns the fetches with each leaf replaced by the index of its tensor, or None."""
    if isinstance(fetches, Mapping):
        return {key: _structure(value, tensors, targets, operations) for key, value in fetches.items()}
    if isinstance(fetches, (list, tuple)):
        parts = [_structure(value, tensors, targets, operations) for value in fetches]
        if isinstance(fetches, tuple):
            return type(fetches)(*parts) if hasattr(fetches, "_fields") else tuple(parts)
        return parts
    name = _name(fetches)
    # TensorFlow operations have outputs; tensors do not.
    if hasattr(fetches, "outputs") or name.startswith("^") or name in operations:
        targets[name.removeprefix("^")] = None
        return None
    return tensors.setdefault(name, len(tensors))


def _filled(structure: Any, arrays: list) -> Any:
    if structure is None:
        return None
    if isinstance(structure, dict):
        return {key: _filled(value, arrays) for key, value in structure.items()}
    if isinstance(structure, (list, tuple)):
        parts = [_filled(value, arrays) for value in structure]
        if isinstance(structure, tuple):
            return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
        return parts
    return arrays[structure]


def _scalar(array: np.ndarray) -> Any:
    """Returns a number for a scalar, as TensorFlow does."""
    return array[()] if array.ndim == 0 else array
