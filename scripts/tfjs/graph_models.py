"""Results of TensorFlow.js for its models, on random inputs.

Inputs have seed 0: normal numbers for floats, 0 to 255 for integers.
"""

import json
import pathlib
import re
import subprocess
import tempfile

import numpy as np

from cases import interface

RUNNER = pathlib.Path(__file__).resolve().parent / "run.mjs"
# Types of TensorFlow.js; it has no others.
TYPES = {"f32": "float32", "s32": "int32", "pred": "bool", "u8": "int32", "s64": "int32"}
OWN_TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "s32": np.int32, "pred": np.bool_,
             "u8": np.uint8, "s64": np.int64}


def random_input(generator, shape, indices=256, kind="normal"):
    """An array of a shape such as f32[1,2]: normal, small, or uniform numbers, a tone with noise, one of each row's
    elements as 1, or whole numbers below `indices`.
    """
    dtype, sizes = re.fullmatch(r"(\w+)\[([\d,]*)\]", shape).groups()
    sizes = [int(size) for size in sizes.split(",") if size]
    if dtype not in ("f16", "f32", "f64"):
        return generator.integers(0, 2 if dtype == "pred" else indices, sizes).astype(OWN_TYPES[dtype])
    if kind == "whole":
        return generator.integers(0, indices, sizes).astype(OWN_TYPES[dtype])
    if kind == "one-hot":
        return np.eye(sizes[-1], dtype=OWN_TYPES[dtype])[generator.integers(0, sizes[-1], sizes[:-1])]
    if kind == "uniform":
        return generator.random(sizes).astype(OWN_TYPES[dtype])
    noise = generator.standard_normal(sizes) * (0.1 if kind == "small" else 1)
    if kind == "tone" and sizes:
        noise = 0.01 * noise + 0.5 * np.sin(0.09 * np.arange(sizes[-1]))
    return noise.astype(OWN_TYPES[dtype])


def constants(flags):
    """Numbers of the flags --feed-constant, by tensor."""
    pairs = [value.split("=") for flag, value in zip(flags, flags[1:]) if flag == "--feed-constant"]
    return {name: np.float32(value) for name, value in pairs}


def run(modules, path, feeds, inputs, fetches, fixed, folder):
    """Results of TensorFlow.js, in the order of the fetches. `fixed` has scalars by tensor."""
    job = {"inputs": [], "outputs": []}
    for k, (tensor, value) in enumerate(fixed.items()):
        value.tofile(folder / f"fixed{k}")
        job["inputs"].append(
            {"tensor": tensor, "dtype": "float32", "shape": [], "file": str(folder / f"fixed{k}")}
        )
    for k, feed in enumerate(feeds):
        dtype = TYPES[feed["shape"].split("[")[0]]
        array = inputs[feed["name"]].astype(np.uint8 if dtype == "bool" else dtype)
        array.tofile(folder / f"in{k}")
        tensor = feed["node"].removesuffix(":0")
        job["inputs"].append(
            {"tensor": tensor, "dtype": dtype, "shape": array.shape, "file": str(folder / f"in{k}")}
        )
    for k, fetch in enumerate(fetches):
        job["outputs"].append({"tensor": fetch["node"], "file": str(folder / f"out{k}")})
    (folder / "job.json").write_text(json.dumps(job))
    command = ["node", RUNNER, pathlib.Path(path).absolute(), folder / "job.json"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=modules)
    results = []
    for k, described in enumerate(json.loads(printed.stdout.splitlines()[-1])):
        dtype = np.uint8 if described["dtype"] == "bool" else described["dtype"]
        results.append(np.fromfile(folder / f"out{k}", dtype).reshape(described["shape"]))
    return results


def reference(tool, modules, path, flags, compiled=None):
    """Random inputs, and results of TensorFlow.js, by name. `compiled` is what tfcompile reads, if not `path`."""
    feeds, fetches = interface(tool, compiled or path, flags)
    generator = np.random.default_rng(0)
    inputs = {feed["name"]: random_input(generator, feed["shape"]) for feed in feeds}
    with tempfile.TemporaryDirectory() as folder:
        results = run(modules, path, feeds, inputs, fetches, constants(flags), pathlib.Path(folder))
    return inputs, dict(zip([fetch["name"] for fetch in fetches], results, strict=True))
