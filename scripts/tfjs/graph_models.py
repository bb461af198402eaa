"""Comparison of graph models of TensorFlow.js with TensorFlow.js, on random inputs.

Inputs have seed 0: normal numbers for floats, 0 to 255 for integers. Differences are relative to the
largest element of a result.
"""

import json
import pathlib
import re
import subprocess
import tempfile

import numpy as np

RUNNER = pathlib.Path(__file__).resolve().parent / "run.mjs"
# Types of TensorFlow.js; it has no others.
TYPES = {"f32": "float32", "s32": "int32", "pred": "bool", "u8": "int32", "s64": "int32"}
OWN_TYPES = {"f32": np.float32, "s32": np.int32, "pred": np.bool_, "u8": np.uint8, "s64": np.int64}


def interface(tool, path, flags):
    """Feeds and fetches of a model: name, tensor, and shape of each."""
    command = [tool, "check", "--json", *flags, path]
    described = subprocess.run(command, check=True, capture_output=True, text=True)
    entries = json.loads(described.stdout)["interface"]
    return [[entry for entry in entries if entry["kind"] == kind] for kind in ("feed", "fetch")]


def random_input(generator, shape):
    """An array of a shape such as f32[1,2]."""
    dtype, sizes = re.fullmatch(r"(\w+)\[([\d,]*)\]", shape).groups()
    sizes = [int(size) for size in sizes.split(",") if size]
    if dtype == "f32":
        return generator.standard_normal(sizes).astype(np.float32)
    return generator.integers(0, 2 if dtype == "pred" else 256, sizes).astype(OWN_TYPES[dtype])


def run(tool, path, flags, inputs, folder):
    """Results of tfcompile, by name."""
    source, results = folder / "in.npz", folder / "out.npz"
    np.savez(source, **inputs)
    command = [tool, "run", path, *flags, "--feed", f"@{source}", "--out", results]
    subprocess.run(command, check=True, capture_output=True, text=True)
    with np.load(results) as archive:
        return dict(archive)


def constants(flags):
    """Numbers of the flags --feed-constant, by tensor."""
    pairs = [value.split("=") for flag, value in zip(flags, flags[1:]) if flag == "--feed-constant"]
    return {name: np.float32(value) for name, value in pairs}


def reference(modules, path, feeds, inputs, fetches, fixed, folder):
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


def difference(actual, wanted):
    """The largest difference of two arrays, relative to the largest element."""
    if actual.shape != wanted.shape:
        raise ValueError(f"shape {actual.shape}, not {wanted.shape}")
    if wanted.size == 0:
        return 0.0
    distance = np.abs(actual.astype(np.float64) - wanted.astype(np.float64)).max()
    return float(distance / max(np.abs(wanted.astype(np.float64)).max(), 1e-30))


def compare(tool, modules, path, flags, tolerance):
    """Compares a model. Returns a text, and whether the results agree."""
    feeds, fetches = interface(tool, path, flags)
    generator = np.random.default_rng(0)
    inputs = {feed["name"]: random_input(generator, feed["shape"]) for feed in feeds}
    with tempfile.TemporaryDirectory() as folder:
        actual = run(tool, path, flags, inputs, pathlib.Path(folder))
        fixed = constants(flags)
        wanted = reference(modules, path, feeds, inputs, fetches, fixed, pathlib.Path(folder))
    values = [difference(actual[fetch["name"]], want) for fetch, want in zip(fetches, wanted, strict=True)]
    agrees = all(value <= tolerance for value in values)
    return ", ".join(f"{value:.1e}" for value in values) + ("" if agrees else " TOO LARGE"), agrees
