#!/usr/bin/env python3
"""Makes the models that the tests of serving use, with the answers that TensorFlow computes.

    models.py DIRECTORY

Writes DIRECTORY/NAME/VERSION/saved_model and DIRECTORY/NAME/VERSION/answers.npz (`x`: 64 rows, `y`: their results) for two versions of
`digits`, which learns the digits of examples/digits, of `mobilenet`, MobileNetV2 0.35 for pictures of 96 x 96 with random weights, and
of `wide`, a layer with long results, and the same as DIRECTORY/onnx/NAME/VERSION/model.onnx. Needs tensorflow-cpu 2.15 and tf2onnx.
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf
import tf2onnx

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples/digits/digits.csv"
ROWS = 64


def digits_table():
    """Pictures of digits, and which digits they are."""
    table = np.loadtxt(DIGITS, delimiter=",", dtype=np.float32)
    return table[:, :64] / 16, table[:, 64].astype(np.int32)


def digits(version):
    """A classifier of digits, larger in later versions, and its inputs."""
    x, labels = digits_table()
    tf.keras.utils.set_random_seed(version)
    model = tf.keras.Sequential([
        tf.keras.layers.Dense(128 * version, "relu", input_shape=(64,)),
        tf.keras.layers.Dense(10, "softmax"),
    ])
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(x, labels, epochs=4 * version, verbose=0)
    return model, x[:ROWS]


def mobilenet(version):
    """A network for pictures with random weights, and random pictures."""
    tf.keras.utils.set_random_seed(version)
    model = tf.keras.applications.MobileNetV2((96, 96, 3), alpha=0.35, weights=None, classifier_activation=None)
    return model, np.random.default_rng(7).uniform(-1, 1, (ROWS, 96, 96, 3)).astype(np.float32)


def wide(version):
    """A layer of 64 inputs and 4096 results."""
    tf.keras.utils.set_random_seed(version)
    return tf.keras.Sequential([tf.keras.layers.Dense(4096, input_shape=(64,))]), digits_table()[0][:ROWS]


def main():
    out = pathlib.Path(sys.argv[1])
    for make in (digits, mobilenet, wide):
        for version in (1, 2):
            name = f"{make.__name__}/{version}"
            model, x = make(version)
            spec = tf.TensorSpec([None, *x.shape[1:]], tf.float32, name="x")
            answer = tf.function(lambda x: {"scores": model(x, training=False)}, input_signature=[spec])
            tf.saved_model.save(model, str(out / name / "saved_model"), signatures=answer.get_concrete_function())
            np.savez(out / name / "answers.npz", x=x, y=answer(x)["scores"].numpy())
            onnx = out / "onnx" / name / "model.onnx"
            onnx.parent.mkdir(parents=True, exist_ok=True)
            tf2onnx.convert.from_function(answer, [spec], opset=17, output_path=str(onnx))


if __name__ == "__main__":
    main()
