"""Trains ResNet-8, the image network of MLPerf Tiny, to tell the nine groups of emoji apart.

    train.py PACKAGES OUT [--epochs N]

PACKAGES is a folder in which npm installed emoji-datasource-{apple,google,twitter,facebook} 16.0.0: 7,570 color
drawings, one of each emoji from each vendor. All drawings of a fifth of the emoji are the test; no drawing of these is
trained with. Needs TensorFlow 2.15 and ten minutes of two cores. Writes to OUT:

    float.tflite        the network in float32, for one image [1, 32, 32, 3] from 0 to 1
    converter.tflite    the same, quantized to int8 by TensorFlow's converter; arguments and results are float32
    calibration.npz     500 of the training images, with which both are calibrated
    images.f32, labels.s32    the test
"""

import argparse
import json
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from tensorflow import keras

VENDORS = ["apple", "google", "twitter", "facebook"]
BATCH = 64


def read(packages):
    """Returns images, labels, and the number of each image's emoji."""
    emoji = json.loads((packages / "emoji-datasource-apple/emoji.json").read_text())
    emoji = sorted((e for e in emoji if e["category"] != "Component"), key=lambda e: e["unified"])
    groups = sorted({e["category"] for e in emoji})
    images, labels, numbers = [], [], []
    for number, e in enumerate(emoji):
        for vendor in VENDORS:
            if e[f"has_img_{vendor}"]:
                png = (packages / f"emoji-datasource-{vendor}/img/{vendor}/64/{e['image']}").read_bytes()
                pixels = tf.io.decode_png(png, channels=4).numpy() / np.float32(255)
                # On white, each pixel the mean of four.
                pixels = 1 - (1 - pixels[..., :3]) * pixels[..., 3:]
                images.append(pixels.reshape(32, 2, 32, 2, 3).mean(axis=(1, 3), dtype=np.float32))
                labels.append(groups.index(e["category"]))
                numbers.append(number)
    return np.stack(images), np.array(labels, np.int32), np.array(numbers)


def resnet8(classes):
    """The network without softmax."""

    def convolution(x, filters, size, stride=1):
        regularizer = keras.regularizers.l2(1e-4)
        return keras.layers.Conv2D(filters, size, stride, padding="same", kernel_regularizer=regularizer)(x)

    def normalized(x, filters, stride=1):
        return keras.layers.BatchNormalization()(convolution(x, filters, 3, stride))

    image = keras.Input((32, 32, 3), name="image")
    x = keras.layers.ReLU()(normalized(image, 16))
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        y = keras.layers.ReLU()(normalized(x, filters, stride))
        y = normalized(y, filters)
        if stride > 1:
            x = convolution(x, filters, 1, stride)
        x = keras.layers.ReLU()(keras.layers.Add()([x, y]))
    x = keras.layers.Flatten()(keras.layers.AveragePooling2D(8)(x))
    return keras.Model(image, keras.layers.Dense(classes, name="group")(x))


def batches(images, labels, generator):
    """One epoch: random mirrors and shifts by up to three pixels."""
    order = generator.permutation(len(images))
    padded = np.pad(images, ((0, 0), (3, 3), (3, 3), (0, 0)), constant_values=1)
    for first in range(0, len(order) - BATCH + 1, BATCH):
        chosen = order[first : first + BATCH]
        batch = np.empty((BATCH, 32, 32, 3), np.float32)
        for place, (k, y, x, mirrored) in enumerate(zip(chosen, *generator.integers(0, (7, 7, 2), (BATCH, 3)).T)):
            image = padded[k, y : y + 32, x : x + 32]
            batch[place] = image[:, ::-1] if mirrored else image
        yield batch, labels[chosen]


def train(model, images, labels, epochs):
    generator = np.random.default_rng(1)
    steps = epochs * (len(images) // BATCH)
    rate = keras.optimizers.schedules.CosineDecay(3e-3, steps)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(rate), loss, metrics=["accuracy"])
    for epoch in range(epochs):
        model.reset_metrics()
        for batch in batches(images, labels, generator):
            loss, accuracy = model.train_on_batch(*batch, reset_metrics=False)
        print(f"epoch {epoch + 1}: loss {loss:.3f}, accuracy {accuracy:.1%}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=40)
    arguments = parser.parse_args()
    keras.utils.set_random_seed(1)
    tf.config.experimental.enable_op_determinism()
    images, labels, numbers = read(arguments.packages)
    is_test = np.isin(numbers, np.random.default_rng(0).permutation(numbers.max() + 1)[: numbers.max() // 5])
    model = resnet8(labels.max() + 1)
    train(model, images[~is_test], labels[~is_test], arguments.epochs)

    fixed = keras.Input((32, 32, 3), batch_size=1, name="image")
    one = keras.Model(fixed, keras.layers.Softmax()(model(fixed)))
    calibration = images[~is_test][np.random.default_rng(2).permutation((~is_test).sum())[:500]]
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    converter = tf.lite.TFLiteConverter.from_keras_model(one)
    (out / "float.tflite").write_bytes(converter.convert())
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([image[None]] for image in calibration)
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    (out / "converter.tflite").write_bytes(converter.convert())
    np.savez(out / "calibration.npz", image=calibration)
    images[is_test].tofile(out / "images.f32")
    labels[is_test].tofile(out / "labels.s32")
    accuracy = (model.predict(images[is_test], verbose=0).argmax(1) == labels[is_test]).mean()
    print(f"{is_test.sum()} test images: {accuracy:.2%}")


if __name__ == "__main__":
    main()
