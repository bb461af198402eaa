"""Results of LiteRT's reference kernels for .tflite models, on random inputs.

Inputs have seed 0: normal numbers for floats, all values of a type for integers. (On mediapipe's models,
LiteRT's own kernels differ from each other by up to 3e-4.) Models that LiteRT itself cannot run, since they
have custom operators, run with MediaPipe's kernels on an image.
"""

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


def reference_of_lite(path, shapes):
    """Inputs of these shapes, or those of the file, and results of the model's signature, or first subgraph, by
    LiteRT.
    """
    interpreter = Interpreter(
        model_path=str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    for detail, shape in zip(interpreter.get_input_details(), shapes or []):
        interpreter.resize_tensor_input(detail["index"], shape)
    interpreter.allocate_tensors()
    generator = np.random.default_rng(0)
    inputs = []
    for detail in interpreter.get_input_details():
        inputs.append(random_input(generator, detail))
        interpreter.set_tensor(detail["index"], inputs[-1])
    interpreter.invoke()
    return inputs, [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def reference_of_mediapipe(path, python):
    """An image of random squares as input, and the model's results by MediaPipe, which this Python has."""
    interpreter = Interpreter(model_path=str(path))
    (detail,) = interpreter.get_input_details()
    outputs = [output["shape"] for output in interpreter.get_output_details()]
    _, height, width, channels = detail["shape"]
    squares = np.random.default_rng(0).integers(0, 256, (-(-height // 16), -(-width // 16), channels))
    image = squares.astype(np.uint8).repeat(16, 0).repeat(16, 1)[:height, :width].copy()
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder) / "image.npy", pathlib.Path(folder) / "results.npz"
        np.save(source, image)
        command = [python, mediapipe_graph.__file__, path, source, str(len(outputs)), target]
        subprocess.run(command, check=True, capture_output=True, text=True)
        with np.load(target) as archive:
            results = [archive[str(k)] for k in range(len(outputs))]
    results = [result.reshape(shape) for result, shape in zip(results, outputs, strict=True)]
    return [mediapipe_graph.as_input(image)], results


def reference(path, mediapipe, shapes=None):
    """Inputs and results in the order of the file, and what to say about them.

    `mediapipe` returns a Python that has the package. `shapes` are the inputs' if they are not those of the file.
    """
    try:
        return *reference_of_lite(path, shapes), ""
    except RuntimeError as error:
        if "custom op" not in str(error):
            raise
    return *reference_of_mediapipe(path, mediapipe()), "by MediaPipe's kernels"
