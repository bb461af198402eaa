"""Writes a network of a framework as a model, with inputs and the framework's results.

    make.py [--sizes COUNT] [--exporter dynamo|script] FAMILY NAME DIR [SOURCES]

FAMILY is a module beside this one, with a function build(NAME), or build(NAME, EXPORTER) for PyTorch. It returns a
function and its inputs, a dictionary of arrays; weights are random, with seed 0. Writes DIR/model (a SavedModel),
DIR/model.jax (an artifact of jax.export), or with an exporter of PyTorch DIR/model.onnx; and DIR/in.npz and
DIR/want.npz, both by the names of feeds and fetches. SOURCES is a directory that some families read.

With --sizes, sizes are open in the SavedModel: of inputs of whole numbers [ROWS, WORDS, ...], those of texts,
dimension 1 with the names w0, w1, ..., one for each length, and the leading dimension that all inputs share. A module
can state the largest sizes of a network: OPEN[NAME], such as {"w0": 512} for texts of up to 512 words and one row, or
{"w0": (3, 48), "batch": 4} for texts of 3 words or more and up to 4 rows. With DIMENSIONS[NAME], other dimensions are
open: names by input and dimension.
Inputs and results are those of that many runs of random sizes, by the names "batch=3,w0=17/NAME", and DIR/flags has
the flags of tfcompile for the range. Of large inputs, sizes are smaller.
"""

import argparse
import importlib
import os
import pathlib

os.environ.update(CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="3", HF_HUB_OFFLINE="1")
import numpy as np


def write_saved_model(directory, function, inputs, variables, count, largest, dimensions):
    """Saves a function of TensorFlow's tensors that reads these variables. Returns feeds and results."""
    import tensorflow as tf

    module = tf.Module()
    module.variables_read = variables
    tensors = lambda results: [leaf for leaf in tf.nest.flatten(results) if tf.is_tensor(leaf)]
    signature = tf.function(lambda **x: {f"y{k}": leaf for k, leaf in enumerate(tensors(function(**x)))})
    names, most = open_dimensions(inputs, largest, dimensions) if count else ({}, {})
    shape = lambda name, value: [None if (name, d) in names else size for d, size in enumerate(value.shape)]
    specs = {name: tf.TensorSpec(shape(name, value), value.dtype, name=name) for name, value in inputs.items()}
    signature = signature.get_concrete_function(**specs)
    tf.saved_model.save(module, str(directory / "model"), signatures=signature)
    run = lambda given: {name: value.numpy() for name, value in
                         signature(**{name: tf.constant(value) for name, value in given.items()}).items()}
    return runs_of(directory, inputs, run, names, most, count)


def runs_of(directory, inputs, run, names, most, count):
    """Feeds and results of one run, or of that many runs of random sizes, whose flags the directory receives."""
    if not count:
        return inputs, run(inputs)
    (directory / "flags").write_text(flags(names, most))
    feeds, results = {}, {}
    for sizes in runs(most, count):
        given = {name: resized(value, [sizes.get(names.get((name, d)), size) for d, size in enumerate(value.shape)])
                 for name, value in inputs.items()}
        label = ",".join(f"{name}={size}" for name, size in sizes.items())
        for of, arrays in ((feeds, given), (results, run(given))):
            of.update({f"{label}/{name}": value for name, value in arrays.items()})
    return feeds, results


def open_dimensions(inputs, largest, dimensions=None):
    """Names of open dimensions, by input and number, and the largest size of each name."""
    is_text = lambda value: value.ndim > 1 and np.issubdtype(value.dtype, np.integer)
    lengths = list(dict.fromkeys(value.shape[1] for value in inputs.values() if is_text(value)))
    most = {f"w{k}": 3 * length for k, length in enumerate(lengths)}
    leading = {value.shape[:1] for value in inputs.values()}
    if len(leading) == 1 and leading != {()}:
        elements = sum(value[0].size for value in inputs.values())
        most["batch"] = 4 if lengths else int(np.clip(2_000_000 // elements, 4, 64))
    most = most if largest is None else largest
    if not most:
        raise ValueError("the inputs share no leading dimension")
    if dimensions is not None:
        return dimensions, most
    names = {(name, 0): "batch" for name in inputs if "batch" in most}
    for name, value in inputs.items():
        word = f"w{lengths.index(value.shape[1])}" if is_text(value) else None
        names.update({(name, 1): word} if word in most else {})
    return names, most


def flags(names, most):
    """The flags of the range: none for a batch alone, whose range needs no flag."""
    if set(most) == {"batch"}:
        return ""
    words = [f"{input_name}.{d}={name}" for (input_name, d), name in names.items() if d > 0]
    ranges = ["{}={}..{}".format(name, *ends(size)) for name, size in most.items()]
    return " ".join(f"--dim {word}" for word in [*words, *ranges])


def ends(size):
    """The smallest and the largest size of a dimension, whose largest size or both are given."""
    return size if isinstance(size, tuple) else (1, size)


def runs(most, count):
    """Different random sizes, in a random order."""
    generator = np.random.default_rng(0)
    found = {}
    for _ in range(100 * count):
        sizes = {name: int(generator.integers(low, high + 1)) for name, (low, high) in
                 ((name, ends(size)) for name, size in most.items())}
        found.setdefault(tuple(sizes.values()), sizes)
        if len(found) == count:
            break
    return list(found.values())


def resized(value, shape):
    """An array of this shape with the elements of another. Floats of each row are scaled, and integers rotated, by its number."""
    if list(value.shape) == shape:
        return value
    generator = np.random.default_rng(shape)
    for d, size in enumerate(shape):
        value = np.take(value, np.arange(size) % value.shape[d], axis=d)
    if np.issubdtype(value.dtype, np.floating):
        scales = generator.uniform(0.5, 1.0, (shape[0],) + (1,) * (value.ndim - 1))
        return (value * scales).astype(value.dtype)
    if value.ndim > 1:
        return np.stack([np.roll(row, generator.integers(row.shape[0]), axis=0) for row in value])
    return value


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


def write_onnx(directory, module, inputs, exporter, count, largest, dimensions):
    """Exports a module of PyTorch, by torch.export (`dynamo`) or by tracing (`script`). Returns feeds and results."""
    import torch

    # The fast path has ops of its own, which no exporter knows.
    torch.backends.mha.set_fastpath_enabled(False)
    leaves = lambda results: [leaf for leaf in torch.utils._pytree.tree_leaves(results) if torch.is_tensor(leaf)]

    class Flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, *given):
            return tuple(leaves(self.module(*given)))

    flat = Flat().eval()
    tensors = lambda given: tuple(torch.from_numpy(np.ascontiguousarray(value)) for value in given.values())
    run = lambda given: {f"y{k}": leaf.numpy() for k, leaf in enumerate(flat(*tensors(given)))}
    names, most = open_dimensions(inputs, largest, dimensions) if count else ({}, {})
    axes = {name: {d: names[name, d] for d in range(value.ndim) if (name, d) in names} for name, value in inputs.items()}
    options = {"input_names": list(inputs), "dynamo": exporter == "dynamo", "external_data": False}
    with torch.no_grad():
        options["output_names"] = list(run(inputs))
        if exporter == "script":
            options.update(opset_version=18, dynamic_axes=axes)
        else:
            options.update(dynamic_shapes=(tuple(axes.values()),) if count else None)
        torch.onnx.export(flat, tensors(inputs), directory / "model.onnx", **options)
        return runs_of(directory, inputs, run, names, most, count)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, default=0)
    parser.add_argument("--exporter", choices=("dynamo", "script"))
    parser.add_argument("family")
    parser.add_argument("name")
    parser.add_argument("directory", type=pathlib.Path)
    # Families read it.
    parser.add_argument("sources", nargs="*")
    options = parser.parse_args()
    family = importlib.import_module(options.family)
    exporter = [options.exporter] if options.exporter else []
    function, inputs, *variables = family.build(options.name, *exporter)
    largest = getattr(family, "OPEN", {}).get(options.name)
    dimensions = getattr(family, "DIMENSIONS", {}).get(options.name)
    write = write_onnx if exporter else write_saved_model if variables else write_jax
    with_sizes = options.sizes, largest, dimensions
    feeds, results = write(options.directory, function, inputs, *(exporter or variables or [None]), *with_sizes)
    np.savez(options.directory / "in.npz", **feeds)
    np.savez(options.directory / "want.npz", **results)


if __name__ == "__main__":
    main()
