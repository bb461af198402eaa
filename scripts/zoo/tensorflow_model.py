"""Runs a SavedModel or a frozen graph with TensorFlow, or saves a network of a Keras file as a SavedModel.

    tensorflow_model.py MODEL FEEDS.npz RESULTS.npz NAME...
    tensorflow_model.py --save MODEL.h5 DIR

FEEDS.npz has arrays, and RESULTS.npz receives the NAMEs as "0", "1", .. Names are those of tensors in a frozen
graph, and of inputs and outputs of the signature serving_default in a SavedModel. In one that --save writes, these
are x0, x1, ... and y0, y1, ..., in the order of the network.
"""

import os
import pathlib
import sys

os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
import numpy as np
import tensorflow as tf


def save(model, folder):
    """Saves the network of a Keras file."""
    network = tf.keras.models.load_model(model, compile=False)
    specs = [tf.TensorSpec(tensor.shape, tensor.dtype, f"x{k}") for k, tensor in enumerate(network.inputs)]

    @tf.function(input_signature=specs)
    def call(*inputs):
        return {f"y{k}": y for k, y in enumerate(tf.nest.flatten(network(list(inputs), training=False)))}

    tf.saved_model.save(network, folder, signatures=call)


def run(model, feeds, results, *names):
    """Runs a model."""
    with np.load(feeds) as archive:
        feeds = dict(archive)
    if pathlib.Path(model).is_dir():
        loaded = tf.saved_model.load(model)
        outputs = loaded.signatures["serving_default"](**{name: tf.constant(value) for name, value in feeds.items()})
        outputs = [outputs[name].numpy() for name in names]
    else:
        graph = tf.compat.v1.GraphDef.FromString(pathlib.Path(model).read_bytes())
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            tf.import_graph_def(graph, name="")
            outputs = session.run(list(names), feeds)
    np.savez(results, **{str(k): output for k, output in enumerate(outputs)})


if __name__ == "__main__":
    save(*sys.argv[2:]) if sys.argv[1] == "--save" else run(*sys.argv[1:])
