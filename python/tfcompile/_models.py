"""Conversion of all kinds of models to files that the compiler reads."""

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any, Iterator

import numpy as np


@contextlib.contextmanager
def on_disk(model: Any, inputs: Any = None) -> Iterator[tuple[Path, str]]:
    """Returns the path of a model and its name in messages.

    A model is a path, the bytes of a GraphDef, StableHLO or HLO, a graph or a GraphDef of TensorFlow's, a Keras model, a `tf.function`
    or concrete function, or a function for JAX. `inputs` are examples of the arguments of functions: arrays, or what has `shape` and
    `dtype`.
    """
    if isinstance(model, (str, os.PathLike)):
        path = Path(model)
        if not path.exists():
            raise FileNotFoundError(f"no such model: '{path}'")
        yield path, str(path)
        return
    with tempfile.TemporaryDirectory(prefix="tfcompile-") as directory:
        yield _written(model, inputs, Path(directory)), _name(model)


def _name(model: Any) -> str:
    return "the graph" if isinstance(model, bytes) else getattr(model, "__name__", type(model).__name__)


def _written(model: Any, inputs: Any, directory: Path) -> Path:
    if hasattr(model, "as_graph_def"):
        model = model.as_graph_def()
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if isinstance(model, (bytes, bytearray, memoryview)):
        path = directory / "model"
        path.write_bytes(model)
        return path
    kind = type(model).__module__.partition(".")[0]
    if kind in ("tensorflow", "keras", "tf_keras") or _is_keras(model):
        return _saved_model(model, inputs, directory)
    if callable(model):
        return _jax_export(model, inputs, directory)
    raise TypeError(
        f"expected a model, got {type(model).__name__}: pass a path, the bytes of a graph, a Keras model, a tf.function, or a function for JAX"
    )


def _is_keras(model: Any) -> bool:
    bases = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    return bool(bases & {"keras", "tf_keras"})


def _saved_model(model: Any, inputs: Any, directory: Path) -> Path:
    import tensorflow as tf

    path = directory / "saved_model"
    if _is_keras(model):
        if inputs is not None:
            specs = [tf.TensorSpec(i.shape, i.dtype, name=f"input_{k}") for k, i in enumerate(_sequence(inputs))]
            call = tf.function(lambda *arguments: model(*arguments)).get_concrete_function(*specs)
            tf.saved_model.save(model, str(path), signatures=call)
        elif hasattr(model, "export"):
            model.export(str(path), verbose=False) if _is_keras_3(model) else model.export(str(path))
        else:
            tf.saved_model.save(model, str(path))
        return path
    if hasattr(model, "get_concrete_function"):
        specs = [tf.TensorSpec(i.shape, i.dtype) for i in _sequence(inputs)] if inputs is not None else []
        model = model.get_concrete_function(*specs)
    module = tf.Module()
    module.function = model
    # Objects that the function reads must be reachable from the module.
    module.variables_of_function = list(getattr(model, "variables", []))
    tf.saved_model.save(module, str(path), signatures=model)
    return path


def _is_keras_3(model: Any) -> bool:
    import keras

    return int(keras.__version__.partition(".")[0]) >= 3


def _jax_export(function: Any, inputs: Any, directory: Path) -> Path:
    try:
        import jax
        from jax import export
    except ImportError as error:
        raise TypeError("compiling a Python function requires JAX: pip install jax") from error
    if inputs is None:
        raise TypeError("a function for JAX is compiled for fixed argument shapes: pass examples, inputs=(x, ...)")
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    path = directory / "model.mlirbc"
    path.write_bytes(export.export(jitted)(*_sequence(inputs)).mlir_module_serialized)
    return path


def _sequence(inputs: Any) -> tuple:
    return tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)


def wanted(path: Path, name: str, options: dict) -> dict:
    """Returns the options for the native part. Unset options stay open. Raises `TypeError` for unknown options."""
    from .config import Config

    known = {
        "config": None,
        "signature": None,
        "tags": None,
        "checkpoint": None,
        "variables_to_feed": None,
        "function": None,
        "fetches": (),
        "shapes": {},
        "dims": {},
        "sizes": {},
        "feed_constants": {},
        "batch": None,
        "loop_bounds": {},
        "target": None,
        "triple": None,
        "cpu": None,
        "features": None,
    }
    unknown = options.keys() - known.keys()
    if unknown:
        raise TypeError(f"unknown option {sorted(unknown)[0]!r}; the options are {', '.join(sorted(known))}")
    given = {**known, **options}
    config = given["config"]
    if isinstance(config, Config):
        config = config.to_text().encode()
    elif isinstance(config, (str, os.PathLike)):
        config = Path(config).read_bytes()
    elif hasattr(config, "SerializeToString"):
        config = config.SerializeToString()
    dims = dict(given["dims"])
    if given["batch"] is not None:
        dims["batch"] = given["batch"]
    names = given["variables_to_feed"]
    return {
        **{key: given[key] for key in ("signature", "tags", "function", "target", "triple", "cpu", "features")},
        "path": path,
        "name": name,
        "config": config,
        "checkpoint": given["checkpoint"],
        "variables_to_feed": [names] if isinstance(names, str) else names,
        "fetches": [tensor(fetch) for fetch in given["fetches"]],
        "shapes": [(*tensor(node), list(sizes)) for node, sizes in given["shapes"].items()],
        "dims": {dim: size if isinstance(size, (int, str)) else tuple(size) for dim, size in dims.items()},
        "sizes": {dim: list(sizes) for dim, sizes in given["sizes"].items()},
        "feed_constants": {feed: _numbers(value) for feed, value in given["feed_constants"].items()},
        "loop_bounds": dict(given["loop_bounds"]),
    }


def _numbers(value: Any) -> str:
    """Returns a number, or numbers in row-major order, as the flag --feed-constant takes them."""
    return ",".join(str(number) for number in np.ravel(value).tolist()).replace("True", "true").replace("False", "false")


def tensor(name: Any) -> tuple[str, int]:
    """Returns the node and the output of `node`, `node:1`, or a TensorFlow object with such a name."""
    text = name if isinstance(name, str) else name.name
    node, colon, output = text.rpartition(":")
    return (node, int(output)) if colon else (text, 0)
