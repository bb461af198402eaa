"""A network of TensorFlow's that scores rows of 64 numbers, and TensorFlow's own scores.

    network.py save SAVED_MODEL            writes the network with an open batch
    network.py score SAVED_MODEL X.npy DIR writes TensorFlow's `score` and `classes` of the rows to DIR, computed in float64

Runs in TensorFlow's environment. The network is wide, so that a job lasts long enough to kill workers.
"""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

FEATURES, HIDDEN, CLASSES = 64, 1536, 5


class Network(tf.Module):
    def __init__(self, dtype: tf.DType):
        super().__init__()
        rng = np.random.default_rng(7)
        sizes = [FEATURES, HIDDEN, HIDDEN, HIDDEN, CLASSES]
        # float32 numbers, whatever the type in which they are used.
        draws = [(rng.standard_normal((a, b)) / a**0.5).astype(np.float32) for a, b in zip(sizes, sizes[1:])]
        self.weights = [tf.Variable(draw, dtype=dtype, name=f"weights_{k}") for k, draw in enumerate(draws)]

    def scores(self, x):
        *hidden, last = self.weights
        for weights in hidden:
            x = tf.nn.relu(x @ weights)
        classes = tf.nn.softmax(x @ last)
        return {"classes": classes, "score": tf.reduce_max(classes, axis=1)}


def main(command: str, model: str, *rest: str) -> None:
    if command == "save":
        network = Network(tf.float32)
        function = tf.function(network.scores, input_signature=[tf.TensorSpec([None, FEATURES], tf.float32, name="x")])
        tf.saved_model.save(network, model, signatures=function)
        return
    x, directory = rest
    # Does not read the SavedModel, so that a wrong weight in it is noticed.
    network = Network(tf.float64)
    rows = np.load(x).astype(np.float64)
    batches = [network.scores(rows[begin : begin + 4096]) for begin in range(0, len(rows), 4096)]
    for name in ("score", "classes"):
        np.save(Path(directory) / f"{name}.npy", np.concatenate([batch[name].numpy() for batch in batches]))


main(*sys.argv[1:])
