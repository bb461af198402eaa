"""Compares recurrent layers with open times and batches with ONNX Runtime.

    open_sizes.py TFCOMPILE

Each layer is compiled for 1 to 12 times and 1 to 4 rows, and run at several sizes. The last line counts the
runs; the exit status is 1 if one differs.
"""

import itertools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

HIDDEN, FEATURES = 6, 5
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def model(op, direction, has_lengths, generator):
    """A layer with random weights, and the shapes of its inputs by name."""
    directions = 2 if direction == "bidirectional" else 1
    rows = GATES[op] * HIDDEN
    weights = {"w": (directions, rows, FEATURES), "r": (directions, rows, HIDDEN), "b": (directions, 2 * rows)}
    weights = [onnx.numpy_helper.from_array((generator.standard_normal(shape) / 2).astype(np.float32), name)
               for name, shape in weights.items()]
    state = [directions, "batch", HIDDEN]
    feeds = {"x": ["time", "batch", FEATURES], **({"lengths": ["batch"]} if has_lengths else {}), "h": state,
             **({"c": state} if op == "LSTM" else {})}
    fetches = {"y": ["time", directions, "batch", HIDDEN], "last": state, **({"cell": state} if op == "LSTM" else {})}
    inputs = ["x", "w", "r", "b", "lengths" if has_lengths else "", "h", *(["c"] if op == "LSTM" else [])]
    node = helper.make_node(op, inputs, list(fetches), hidden_size=HIDDEN, direction=direction)
    info = lambda name, shape: helper.make_tensor_value_info(
        name, TensorProto.INT32 if name == "lengths" else TensorProto.FLOAT, shape)
    graph = helper.make_graph([node], "layer", [info(*feed) for feed in feeds.items()],
                              [info(*fetch) for fetch in fetches.items()], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), feeds


def main():
    tool, generator = sys.argv[1], np.random.default_rng(0)
    passed = failed = 0
    kinds = itertools.product(GATES, ["forward", "reverse", "bidirectional"], [False, True])
    with tempfile.TemporaryDirectory() as folder:
        path, given, results = [pathlib.Path(folder) / name for name in ("layer.onnx", "in.npz", "out.npz")]
        for op, direction, has_lengths in kinds:
            layer, feeds = model(op, direction, has_lengths, generator)
            onnx.save(layer, path)
            session = onnxruntime.InferenceSession(path)
            for time, batch in ((1, 1), (7, 3), (12, 4), (5, 1)):
                sizes = {"time": time, "batch": batch}
                shape_of = lambda shape: [sizes.get(size, size) for size in shape]
                arrays = {name: generator.standard_normal(shape_of(shape)).astype(np.float32)
                          for name, shape in feeds.items()}
                if has_lengths:
                    arrays["lengths"] = generator.integers(1, time + 1, batch).astype(np.int32)
                np.savez(given, **arrays)
                command = [tool, "run", path, "--dim", "time=1..12", "--dim", "batch=1..4", "--feed", f"@{given}",
                           "--out", results, "-q"]
                ran = subprocess.run(command, capture_output=True, text=True)
                wanted = session.run(None, arrays)
                agrees = ran.returncode == 0
                if agrees:
                    with np.load(results) as archive:
                        found = [archive[output.name] for output in layer.graph.output]
                    agrees = all(a.shape == b.shape and np.abs(a - b).max() < 1e-5 for a, b in zip(found, wanted))
                if not agrees:
                    print(f"{op}, {direction}, lengths: {has_lengths}, {sizes}: {ran.stderr.strip() or 'differs'}")
                passed, failed = passed + agrees, failed + (not agrees)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
