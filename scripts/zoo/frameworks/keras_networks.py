"""Networks of tf.keras.applications: Keras 2 with TensorFlow 2.15, Keras 3 with later versions.

The statistics of batch normalization are random too, since with those of a new network the numbers grow
from layer to layer. The network ends before its softmax, which would hide differences.
"""

import numpy as np
import tensorflow as tf


def tensorflow_variables(model):
    """The variables of a model as TensorFlow's, for both versions of Keras."""
    return [getattr(variable, "_value", variable) for variable in model.variables]


def settle(model, inputs):
    """Takes one step of training statistics, with a momentum of zero: all layers then have numbers near one.

    Nothing is dropped in this step, since the statistics would not fit the network without it.
    """
    flat = list(model._flatten_layers() if hasattr(model, "_flatten_layers") else model.submodules)
    temporary = {"BatchNormalization": ("momentum", 0.0), "Dropout": ("rate", 0.0), "StochasticDepth": ("drop_path_rate", 0.0)}
    changes = [(layer, *temporary[type(layer).__name__]) for layer in flat if type(layer).__name__ in temporary]
    own = [getattr(layer, attribute) for layer, attribute, _ in changes]
    for layer, attribute, value in changes:
        setattr(layer, attribute, value)
    model(inputs, training=True)
    for (layer, attribute, _), value in zip(changes, own):
        setattr(layer, attribute, value)


def build(name):
    tf.keras.utils.set_random_seed(0)
    options = {} if name.startswith("MobileNetV3") or "NASNet" in name else {"classifier_activation": None}
    model = getattr(tf.keras.applications, name)(weights=None, **options)
    sizes = [size or 224 for size in model.input_shape[1:]]
    x = np.random.default_rng(0).uniform(0, 255, (1, *sizes)).astype(np.float32)
    settle(model, x)
    return lambda x: model(x, training=False), {"x": x}, tensorflow_variables(model)
