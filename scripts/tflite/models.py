#!/usr/bin/env python3
"""Compares .tflite models, compiled by tfcompile, with LiteRT's reference kernels.

    models.py [--tool TFCOMPILE] [--tolerance T] FILE.tflite...

Runs each model with both on random inputs (seed 0: normal numbers for floats, all values of a type
for integers). Prints a line for each: the largest difference of a result, relative to its largest
element, or in steps for integers. The exit status is 1 if a difference of floats exceeds the
tolerance or one of integers a step, or if a model fails. (On mediapipe's models, LiteRT's own kernels
differ from each other by up to 3e-4.) Models that LiteRT itself cannot run, since they have custom
operators, run with MediaPipe's kernels on an image if mediapipe 0.10.14 is installed. Otherwise they
are only compiled, and the line says so.
"""

import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import mediapipe_graph


def random_input(generator, detail):
    """An array for an input of an interpreter."""
    shape, dtype = detail["shape"], detail["dtype"]
    if np.issubdtype(dtype, np.floating):
        return generator.standard_normal(shape).astype(dtype)
    if dtype == np.bool_:
        return generator.integers(0, 2, shape).astype(dtype)
    info = np.iinfo(dtype)
    # Wide integers are indices, and every table has 0 and 1.
    low, high = (info.min, info.max + 1) if info.bits <= 16 else (0, 2)
    return generator.integers(low, high, shape).astype(dtype)


def reference(path):
    """Inputs and results of the model's signature, or first subgraph, by LiteRT."""
    interpreter = Interpreter(
        model_path=str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    generator = np.random.default_rng(0)
    inputs = []
    for detail in interpreter.get_input_details():
        inputs.append(random_input(generator, detail))
        interpreter.set_tensor(detail["index"], inputs[-1])
    interpreter.invoke()
    return inputs, [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def has_mediapipe():
    """True if the mediapipe package is installed."""
    return importlib.util.find_spec("mediapipe") is not None


def reference_of_mediapipe(path):
    """An image of random squares as input, and the model's results by MediaPipe."""
    interpreter = Interpreter(model_path=str(path))
    (detail,) = interpreter.get_input_details()
    outputs = [output["shape"] for output in interpreter.get_output_details()]
    _, height, width, channels = detail["shape"]
    squares = np.random.default_rng(0).integers(0, 256, (-(-height // 16), -(-width // 16), channels))
    image = squares.astype(np.uint8).repeat(16, 0).repeat(16, 1)[:height, :width].copy()
    results = mediapipe_graph.run(path, image, len(outputs))
    results = [result.reshape(shape) for result, shape in zip(results, outputs, strict=True)]
    return [mediapipe_graph.as_input(image)], results


def run(tool, path, inputs, folder):
    """Results of tfcompile in the order of the file."""
    described = subprocess.run([tool, "check", "--json", path], check=True, capture_output=True, text=True)
    entries = json.loads(described.stdout)["interface"]
    names = lambda kind: [entry["name"] for entry in entries if entry["kind"] == kind]
    source, results = folder / "in.npz", folder / "out.npz"
    np.savez(source, **dict(zip(names("feed"), inputs, strict=True)))
    command = [tool, "run", path, "--feed", f"@{source}", "--out", results]
    subprocess.run(command, check=True, capture_output=True, text=True)
    with np.load(results) as archive:
        return [archive[name] for name in names("fetch")]


def difference(actual, wanted):
    """The largest difference of two arrays, and whether it is in steps of integers."""
    if actual.shape != wanted.shape:
        raise ValueError(f"shape {actual.shape}, not {wanted.shape}")
    if wanted.size == 0:
        return 0.0, False
    distance = np.abs(actual.astype(np.float64) - wanted.astype(np.float64)).max()
    if np.issubdtype(wanted.dtype, np.floating):
        return float(distance / max(np.abs(wanted).max(), 1e-30)), False
    return float(distance), True


def agrees(options, path, inputs, wanted):
    """Runs a model with tfcompile and prints how much its results differ. True if they do not by much."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            results = run(options.tool, path, inputs, pathlib.Path(folder))
        pairs = [difference(actual, want) for actual, want in zip(results, wanted, strict=True)]
    except (subprocess.CalledProcessError, ValueError) as error:
        text = error.stderr.strip().split("\n")[0] if hasattr(error, "stderr") else str(error)
        print(f"{path.name}: FAILED: {text}", flush=True)
        return False
    is_wrong = any(value > (1 if steps else options.tolerance) for value, steps in pairs)
    texts = [f"{value:.0f} steps" if steps else f"{value:.1e}" for value, steps in pairs]
    print(f"{path.name}: {', '.join(texts)}{' TOO LARGE' if is_wrong else ''}", flush=True)
    return not is_wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tool", default="target/release/tfcompile")
    parser.add_argument("--tolerance", type=float, default=5e-4)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    failures = 0
    for path in options.models:
        try:
            inputs, wanted = reference(path)
        except RuntimeError as error:
            if "custom op" not in str(error):
                raise
            if has_mediapipe():
                inputs, wanted = reference_of_mediapipe(path)
                failures += not agrees(options, path, inputs, wanted)
                continue
            built = subprocess.run([options.tool, "check", path], capture_output=True, text=True)
            failures += built.returncode != 0
            answer = "compiles" if built.returncode == 0 else built.stderr.strip().split("\n")[0]
            print(f"{path.name}: LiteRT cannot run it ({str(error).splitlines()[0]}); {answer}", flush=True)
            continue
        failures += not agrees(options, path, inputs, wanted)
    print(f"{len(options.models) - failures} of {len(options.models)} models agree")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
