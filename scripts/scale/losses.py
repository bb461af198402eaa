"""TensorFlow's own losses of the training of examples/data_parallel, in one process.

    losses.py EXAMPLE DIGITS.csv OUT.npz [--batch N] [--steps N]

The network is the example's, run by TensorFlow. `same` has the losses with the example's update, `keras` those with Keras's Adam, which
rounds differently.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("example", type=Path)
parser.add_argument("digits", type=Path)
parser.add_argument("out", type=Path)
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--steps", type=int, required=True)
arguments = parser.parse_args()
sys.path.insert(0, str(arguments.example))
import make_step  # noqa: E402

digits = np.loadtxt(arguments.digits, np.float32, delimiter=",")
x, y = digits[:, :-1] / 16, digits[:, -1].astype(np.int32)


def train(is_keras: bool) -> list[float]:
    """Returns the losses with Keras's Adam, or with the example's own update."""
    step = make_step.Step(hidden=64)
    optimizer = tf.keras.optimizers.Adam(step.rate)
    losses = []
    row = 0
    for _ in range(arguments.steps):
        results = step.gradients(tf.constant(x[row : row + arguments.batch]), tf.constant(y[row : row + arguments.batch]))
        losses.append(float(results["loss"]))
        if is_keras:
            optimizer.apply_gradients([(results[name], variable) for name, variable in zip(step.names, step.parameters)])
        else:
            step.apply(**{name: results[name] for name in step.names})
        row = row + arguments.batch if row + arguments.batch < len(x) else 0
    return losses


np.savez(arguments.out, keras=train(True), same=train(False))
