"""Runs an ONNX model with ONNX Runtime.

    onnx_model.py MODEL.onnx FEEDS.npz RESULTS.npz

FEEDS.npz has an array for each input that the results need, by its name as a name of TensorFlow. Others
receive zeros. RESULTS.npz receives the outputs as "0", "1", .., a list of maps as the matrix of their values.
"""

import re
import sys

import numpy as np
import onnxruntime

TYPES = {"float": np.float32, "double": np.float64, "float16": np.float16, "bool": np.bool_}


def value(given, info):
    """The array for an input."""
    kind = re.fullmatch(r"tensor\((\w+)\)", info.type)[1]
    dtype = TYPES.get(kind, kind)
    name = re.sub(r"[^\w.\-/>]", "_", info.name)
    if name in given:
        return given[name].astype(dtype)
    sizes = [size if isinstance(size, int) and size > 0 else 1 for size in info.shape]
    return np.zeros(sizes, dtype)


def array(output):
    """An output as an array. Keys of maps are in ascending order, as in a ZipMap."""
    if isinstance(output, list) and output and isinstance(output[0], dict):
        return np.array([[row[key] for key in sorted(row)] for row in output], np.float32)
    return output


def main():
    model, feeds, results = sys.argv[1:]
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    with np.load(feeds) as archive:
        given = dict(archive)
    outputs = session.run(None, {info.name: value(given, info) for info in session.get_inputs()})
    np.savez(results, **{str(k): array(output) for k, output in enumerate(outputs)})


if __name__ == "__main__":
    main()
