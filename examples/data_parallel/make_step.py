"""Writes a training step as TensorFlow has it, divided in two: gradients, and what is done with them.

    python make_step.py DIR [--hidden N]

DIR/step is a SavedModel with the signatures `gradients` and `apply` over the same variables, and DIR/start.npz has the initial values of
the variables. The network is a perceptron for digits of 8 x 8 pixels, the optimizer is Adam. Needs `tensorflow`.
"""

import argparse
from pathlib import Path

import numpy as np
import tensorflow as tf

PIXELS, CLASSES = 64, 10


class Step(tf.Module):
    def __init__(self, hidden: int, rate: float = 0.005):
        super().__init__()
        rng = np.random.default_rng(0)
        sizes = [PIXELS, hidden, hidden, CLASSES]
        self.weights = [
            tf.Variable((rng.standard_normal((a, b)) * (2 / a) ** 0.5).astype(np.float32), name=f"weights_{k}")
            for k, (a, b) in enumerate(zip(sizes, sizes[1:]))
        ]
        self.biases = [tf.Variable(np.zeros(size, np.float32), name=f"biases_{k}") for k, size in enumerate(sizes[1:])]
        self.parameters = [*self.weights, *self.biases]
        self.names = [variable.name.removesuffix(":0") for variable in self.parameters]
        self.first = [tf.Variable(tf.zeros_like(variable), name=f"first_{name}") for name, variable in zip(self.names, self.parameters)]
        self.second = [tf.Variable(tf.zeros_like(variable), name=f"second_{name}") for name, variable in zip(self.names, self.parameters)]
        self.steps = tf.Variable(0.0, name="steps")
        self.rate = rate

    def gradients(self, x, y):
        """Returns the loss and its gradients, as means over the rows."""
        with tf.GradientTape() as tape:
            hidden = x
            for weights, biases in zip(self.weights[:-1], self.biases[:-1]):
                hidden = tf.nn.relu(hidden @ weights + biases)
            logits = hidden @ self.weights[-1] + self.biases[-1]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        return {"loss": loss, **dict(zip(self.names, tape.gradient(loss, self.parameters)))}

    def apply(self, **gradients):
        """Updates the variables by Adam's rule, and returns the number of steps so far."""
        self.steps.assign_add(1.0)
        scale = self.rate * tf.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps)
        for name, variable, first, second in zip(self.names, self.parameters, self.first, self.second):
            first.assign(0.9 * first + 0.1 * gradients[name])
            second.assign(0.999 * second + 0.001 * gradients[name] ** 2)
            variable.assign_sub(scale * first / (tf.sqrt(second) + 1e-7))
        return {"steps": self.steps.read_value()}


def signatures(step: Step) -> dict[str, tf.types.experimental.ConcreteFunction]:
    """Returns both functions for any number of rows."""
    x, y = tf.TensorSpec([None, PIXELS], tf.float32, name="x"), tf.TensorSpec([None], tf.int32, name="y")
    gradients = {name: tf.TensorSpec(variable.shape, tf.float32, name=name) for name, variable in zip(step.names, step.parameters)}
    return {
        "gradients": tf.function(step.gradients).get_concrete_function(x, y),
        "apply": tf.function(step.apply).get_concrete_function(**gradients),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--hidden", type=int, default=64)
    arguments = parser.parse_args()
    step = Step(arguments.hidden)
    tf.saved_model.save(step, str(arguments.directory / "step"), signatures=signatures(step))
    # Slots of the optimizer begin as zeros, as variables do anyway.
    np.savez(arguments.directory / "start.npz", **dict(zip(step.names, (variable.numpy() for variable in step.parameters))))


if __name__ == "__main__":
    main()
