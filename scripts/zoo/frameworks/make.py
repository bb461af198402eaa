"""Writes a network of a framework as a model, with inputs and the framework's results.

    make.py [--sizes COUNT] FAMILY NAME DIR [SOURCES]

FAMILY is a module beside this one, with a function build(NAME). It returns a function and its inputs, a
dictionary of arrays; weights are random, with seed 0. Writes DIR/model (a SavedModel) or DIR/model.jax (an
artifact of jax.export), DIR/in.npz, and DIR/want.npz, both by the names of feeds and fetches. SOURCES is a
directory that some families read.

With --sizes, the leading dimension that all inputs share is open in the SavedModel, and inputs and results
are those of runs with that many random sizes, by the names SIZE/NAME. Of large inputs, sizes are smaller.
"""

import argparse
import importlib
import os
import pathlib

os.environ.update(CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3", HF_HUB_OFFLINE="1")
import numpy as np


def write_saved_model(directory, function, inputs, variables, count):
    """Saves a function of TensorFlow's tensors that reads these variables. Returns feeds and results."""
    import tensorflow as tf

    module = tf.Module()
    module.variables_read = variables
    tensors = lambda results: [leaf for leaf in tf.nest.flatten(results) if tf.is_tensor(leaf)]
    signature = tf.function(lambda **x: {f"y{k}": leaf for k, leaf in enumerate(tensors(function(**x)))})
    leading = {value.shape[:1] for value in inputs.values()}
    if count and (len(leading) != 1 or leading == {()}):
        raise ValueError("the inputs share no leading dimension")
    shape = lambda value: (None, *value.shape[1:]) if count else value.shape
    specs = {name: tf.TensorSpec(shape(value), value.dtype, name=name) for name, value in inputs.items()}
    signature = signature.get_concrete_function(**specs)
    tf.saved_model.save(module, str(directory / "model"), signatures=signature)
    run = lambda given: {name: value.numpy() for name, value in
                         signature(**{name: tf.constant(value) for name, value in given.items()}).items()}
    if not count:
        return inputs, run(inputs)
    runs = {size: {name: rows(value, size) for name, value in inputs.items()} for size in sizes(inputs, count)}
    named = lambda size, arrays: {f"{size}/{name}": value for name, value in arrays.items()}
    merged = lambda parts: {name: value for part in parts for name, value in part.items()}
    return [merged(named(size, of(given)) for size, given in runs.items()) for of in (lambda given: given, run)]


def sizes(inputs, count):
    """Different random sizes of a batch."""
    largest = int(np.clip(2_000_000 // sum(value[0].size for value in inputs.values()), 4, 64))
    return sorted(np.random.default_rng(0).permutation(np.arange(1, largest + 1))[:count].tolist())


def rows(value, size):
    """Rows of an array, repeated to a size. Floats of each row are scaled, and integers rotated, by its number."""
    generator = np.random.default_rng(size)
    picked = value[np.arange(size) % len(value)]
    if np.issubdtype(value.dtype, np.floating):
        scales = generator.uniform(0.5, 1.0, (size,) + (1,) * (value.ndim - 1))
        return (picked * scales).astype(value.dtype)
    if value.ndim > 1:
        return np.stack([np.roll(row, generator.integers(row.shape[0]), axis=0) for row in picked])
    return picked


def write_jax(directory, function, inputs, *_):
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
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, default=0)
    parser.add_argument("family")
    parser.add_argument("name")
    parser.add_argument("directory", type=pathlib.Path)
    # Families read it.
    parser.add_argument("sources", nargs="*")
    options = parser.parse_args()
    function, inputs, *variables = importlib.import_module(options.family).build(options.name)
    write = write_saved_model if variables else write_jax
    feeds, results = write(options.directory, function, inputs, *(variables or [None]), options.sizes)
    np.savez(options.directory / "in.npz", **feeds)
    np.savez(options.directory / "want.npz", **results)


if __name__ == "__main__":
    main()
