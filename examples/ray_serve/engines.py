"""What computes a batch: a compiled model or, for comparison, a session of ONNX Runtime.

An engine has `feeds` and `fetches` (name to type and shape of a row), the largest number of rows in a call, `limit`, and is called with
arrays by name.
"""

import pickle
from pathlib import Path

import numpy as np


class Compiled:
    """An artifact of tfcompile for any number of rows up to a limit. It splits a batch into pieces of the sizes that it has code for."""

    FILE = "model.pickle"

    def __init__(self, path: Path):
        # An artifact contains machine code: the repository must be trusted.
        with path.open("rb") as file:
            self.model = pickle.load(file).load()
        dimensions = self.model.dimensions
        if list(dimensions) != ["batch"] or dimensions["batch"][0] != 1:
            raise ValueError(f"{path}: expected a model with one open size, batch=(1, N), got {dimensions or 'fixed sizes'}")
        self.limit = dimensions["batch"][1]
        self.feeds = {name: (dtype, shape[1:]) for name, (dtype, shape) in self.model.feeds.items()}
        self.fetches = {name: (dtype, shape[1:]) for name, (dtype, shape) in self.model.fetches.items()}

    def __call__(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return self.model(**feeds)


class OnnxRuntime:
    """An ONNX model whose leading sizes are open, on one thread of ONNX Runtime."""

    FILE = "model.onnx"
    TYPES = {"float": np.float32, "double": np.float64, "int32": np.int32, "int64": np.int64, "uint8": np.uint8, "int8": np.int8, "bool": np.bool_}

    def __init__(self, path: Path):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.limit = 64
        self.feeds, self.fetches = ({i.name: self._row(i) for i in entries} for entries in (self.session.get_inputs(), self.session.get_outputs()))

    def _row(self, entry) -> tuple[np.dtype, tuple[int, ...]]:
        return np.dtype(self.TYPES[entry.type.removeprefix("tensor(").removesuffix(")")]), tuple(entry.shape[1:])

    def __call__(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return dict(zip(self.fetches, self.session.run(list(self.fetches), feeds)))


ENGINES = {"tfcompile": Compiled, "onnxruntime": OnnxRuntime}
