"""Writes a network of a framework as a model, with inputs and the framework's results.

    make.py FAMILY NAME DIR [SOURCES]

FAMILY is a module beside this one, with a function build(NAME). It returns a function and its inputs, a
dictionary of arrays; weights are random, with seed 0. Writes DIR/model (a SavedModel) or DIR/model.jax (an
artifact of jax.export), DIR/in.npz, and DIR/want.npz, both by the names of feeds and fetches. SOURCES is a
directory that some families read.
"""

import importlib
import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3", HF_HUB_OFFLINE="1")
import numpy as np


def write_saved_model(directory, function, inputs, variables):
    """Saves a function of TensorFlow's tensors that reads these variables. Returns its results."""
    import tensorflow as tf

    module = tf.Module()
    module.variables_read = variables
    tensors = lambda results: [leaf for leaf in tf.nest.flatten(results) if tf.is_tensor(leaf)]
    signature = tf.function(lambda **x: {f"y{k}": leaf for k, leaf in enumerate(tensors(function(**x)))})
    specs = {name: tf.TensorSpec(value.shape, value.dtype, name=name) for name, value in inputs.items()}
    signature = signature.get_concrete_function(**specs)
    tf.saved_model.save(module, str(directory / "model"), signatures=signature)
    results = signature(**{name: tf.constant(value) for name, value in inputs.items()})
    return inputs, {name: value.numpy() for name, value in results.items()}


def write_jax(directory, function, inputs, _):
    """Exports a function of JAX's arrays. Returns its results."""
    import jax
    import jax.export

    leaves = lambda results: [leaf for leaf in jax.tree_util.tree_leaves(results) if hasattr(leaf, "dtype")]
    jitted = jax.jit(lambda x: {f"y{k}": leaf for k, leaf in enumerate(leaves(function(**x)))})
    specs = {name: jax.ShapeDtypeStruct(value.shape, value.dtype) for name, value in inputs.items()}
    (directory / "model.jax").write_bytes(jax.export.export(jitted)(specs).serialize())
    results = {name: np.asarray(value) for name, value in jitted(inputs).items()}
    return {f"x_{name}": value for name, value in inputs.items()}, results


def main():
    family, name, directory = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    module = importlib.import_module(family)
    function, inputs, *variables = module.build(name)
    write = write_saved_model if variables else write_jax
    feeds, results = write(directory, function, inputs, *(variables or [None]))
    np.savez(directory / "in.npz", **feeds)
    np.savez(directory / "want.npz", **results)


if __name__ == "__main__":
    main()
