"""Writes a network of tf.keras.applications as a SavedModel, with an input and TensorFlow's result.

    keras_model.py NAME DIR

The weights are random (seed 0); so are the statistics of batch normalization, since with those of a new
network the numbers grow from layer to layer. The network ends before its softmax, which would hide
differences. Writes DIR/model, DIR/in.npz, and DIR/want.npy.
"""

import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
import numpy as np
import tensorflow as tf

name, directory = sys.argv[1], pathlib.Path(sys.argv[2])
tf.keras.utils.set_random_seed(0)
options = {} if name.startswith("MobileNetV3") or "NASNet" in name else {"classifier_activation": None}
model = getattr(tf.keras.applications, name)(weights=None, **options)
sizes = [size or 224 for size in model.input_shape[1:]]
x = np.random.default_rng(0).uniform(0, 255, (1, *sizes)).astype(np.float32)

# One step of training statistics, with a momentum of zero: all layers then have numbers near one.
layers = [layer for layer in model.submodules if isinstance(layer, tf.keras.layers.BatchNormalization)]
momenta = [layer.momentum for layer in layers]
for layer in layers:
    layer.momentum = 0.0
model(x, training=True)
for layer, momentum in zip(layers, momenta):
    layer.momentum = momentum

signature = tf.function(lambda x: {"y": model(x, training=False)})
signature = signature.get_concrete_function(tf.TensorSpec(x.shape, tf.float32, name="x"))
tf.saved_model.save(model, str(directory / "model"), signatures=signature)
np.savez(directory / "in.npz", x=x)
np.save(directory / "want.npy", signature(tf.constant(x))["y"].numpy())
