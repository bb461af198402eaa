"""Runs the node tests of ONNX's package with open sizes.

    open_cases.py TFCOMPILE FOLDER

FOLDER has the archives that make_cases.py writes. In each model, dimensions of the first input and of inputs of the same
shape get names: those of images (all but the features), then those of texts (rows and words). It is compiled for ranges
of the names and run at the sizes of the test, whose answers it must give. Many tests cannot be compiled so, such as those
in which another input would have to grow, too. The last line counts; the exit status is 1 if a result differs or
fewer agree than before.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx

NAMED = {"images": {1: [0], 2: [0], 3: [0, 2], 4: [0, 2, 3], 5: [0, 2, 3, 4]}, "texts": {1: [0], 2: [0, 1], 3: [0, 1], 4: [0, 2]}}
# Types that arrays of NumPy have. Others are recorded as bits.
ARRAYS = {"bool", "float16", "float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
# As many cases agree, or more.
LEAST = 2172
# Inputs that are shapes, by the names in the tests.
SHAPES = ("scales", "roi", "sizes")


def opened(model, feeds, named):
    """Gives dimensions names, and makes inputs that state shapes constants. Returns sizes by name."""
    first, sizes = feeds[0].shape, {}
    for k, (value, feed) in enumerate(zip(model.graph.input, feeds)):
        is_float = np.issubdtype(feed.dtype, np.floating)
        if feed.shape == first:
            for d in named.get(feed.ndim, []):
                size = value.type.tensor_type.shape.dim[d]
                size.Clear()
                size.dim_param = f"n{d}"
                sizes[size.dim_param] = feed.shape[d]
        elif k and (not is_float or feed.ndim == 0 or value.name in SHAPES):
            model.graph.initializer.append(onnx.numpy_helper.from_array(feed, value.name))
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    model.graph.ClearField("value_info")
    return sizes


def named_by_letters(model):
    """Gives values whose names are numbers other names, which fetches keep."""
    letters = lambda name: f"v{name}" if name.isdecimal() else name
    for value in [*model.graph.input, *model.graph.output, *model.graph.initializer]:
        value.name = letters(value.name)
    for node in model.graph.node:
        for values in (node.input, node.output):
            values[:] = [letters(name) for name in values]


def outcome(tool, case, named):
    """None if a case has nothing to name, or else `agrees`, `refused`, or how it differs."""
    meta, model = json.loads(bytes(case["meta.json"])), onnx.load_from_string(bytes(case["model.onnx"]))
    feeds = [case[f"feed/{k}"] for k in range(len(meta["feeds"]))]
    types = [kind["dtype"] for kind in meta["feeds"] + meta["fetches"]]
    has_arrays = all(value.type.HasField("tensor_type") for value in [*model.graph.input, *model.graph.output])
    fits = len(model.graph.input) == len(feeds) and has_arrays and all(kind in ARRAYS for kind in types)
    if not feeds or not fits or 0 in feeds[0].shape:
        return None
    named_by_letters(model)
    sizes = opened(model, feeds, named)
    if not sizes:
        return None
    constants = {value.name for value in model.graph.initializer}
    with tempfile.TemporaryDirectory() as folder:
        path, given, results = [pathlib.Path(folder) / name for name in ("model.onnx", "in.npz", "out.npz")]
        path.write_bytes(model.SerializeToString())
        np.savez(given, **{value.name: feed for value, feed in zip(model.graph.input, feeds) if value.name not in constants})
        flags = [word for name, size in sizes.items() for word in ("--dim", f"{name}=1..{max(2 * size, 4)}", "--size", f"{name}={size}")]
        command = [tool, "run", path, *flags, "--feed", f"@{given}", "--out", results, "-q"]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            return "refused" if ran.returncode == 1 and "INTERNAL" not in ran.stderr else f"status {ran.returncode}: {ran.stderr[:200]}"
        with np.load(results) as archive:
            found = dict(archive)
    for k, value in enumerate(model.graph.output):
        wanted, got = case[f"fetch/{k}"], found.get(value.name)
        if got is None or got.shape != wanted.shape:
            return f"{value.name} has the shape {got if got is None else got.shape}, not {wanted.shape}"
        if not np.allclose(got, wanted, rtol=max(meta["rtol"], 1e-3), atol=max(meta["atol"], 1e-4), equal_nan=True):
            return f"{value.name} has other numbers"
    return "agrees"


def cases(folder):
    """The cases of archives: names, and their members."""
    for path in sorted(folder.glob("*.npz")):
        members = {}
        with np.load(path) as archive:
            for member in archive.files:
                name, _, rest = member.partition("/")
                members.setdefault(name, {})[rest] = archive[member]
        yield from ((f"{path.stem}/{name}", case) for name, case in members.items())


def main():
    tool, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    jobs = [(f"{name}, {kind}", case, named) for name, case in cases(folder) for kind, named in NAMED.items()]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda job: (job[0], outcome(tool, *job[1:])), jobs))
    agree, refused = [sum(text == kind for _, text in found) for kind in ("agrees", "refused")]
    different = [f"{name}: {text}" for name, text in found if text not in (None, "agrees", "refused")]
    print("\n".join(different), end="\n" if different else "")
    print(f"with open sizes, {agree} agree, {refused} cannot be compiled so, {len(different)} differ")
    return 0 if agree >= LEAST and not different else 1


if __name__ == "__main__":
    sys.exit(main())
