"""Comparison of .tflite models with LiteRT's reference kernels, on random inputs.

Inputs have seed 0: normal numbers for floats, all values of a type for integers. Differences are relative
to the largest element of a result, or in steps for integers. (On mediapipe's models, LiteRT's own kernels
differ from each other by up to 3e-4.) Models that LiteRT itself cannot run, since they have custom
operators, run with MediaPipe's kernels on an image if mediapipe 0.10.14 is installed. Otherwise they are
only checked, and the text says so.
"""

import importlib.util
import json
import pathlib
import subprocess
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


def compare(tool, path, tolerance):
    """Compares a model. Returns a text, and whether the results agree."""
    note = ""
    try:
        inputs, wanted = reference(path)
    except RuntimeError as error:
        if "custom op" not in str(error):
            raise
        if not has_mediapipe():
            subprocess.run([tool, "check", path], check=True, capture_output=True, text=True)
            return f"LiteRT cannot run it ({str(error).splitlines()[0]}); compiles", True
        inputs, wanted = reference_of_mediapipe(path)
        note = " (MediaPipe)"
    with tempfile.TemporaryDirectory() as folder:
        results = run(tool, path, inputs, pathlib.Path(folder))
    pairs = [difference(actual, want) for actual, want in zip(results, wanted, strict=True)]
    is_wrong = any(value > (1 if steps else tolerance) for value, steps in pairs)
    texts = [f"{value:.0f} steps" if steps else f"{value:.1e}" for value, steps in pairs]
    return ", ".join(texts) + note + (" TOO LARGE" if is_wrong else ""), not is_wrong
