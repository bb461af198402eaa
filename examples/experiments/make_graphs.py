#!/usr/bin/env python3
"""Creates the graphs of the study: one training step of each of fourteen small networks in the
style of TensorFlow 1.

    python make_graphs.py                                  # requires tensorflow-cpu==2.15.1
    python make_graphs.py --any-batch tests/experiments

Writes the graphs into this file's directory. Each graph is what TensorFlow exports. Its feeds are
`x` and `y`. Its fetch `loss` is the loss before the step and has a control dependency on the step.
Loops use TensorFlow 1's nodes (Enter, Merge, Switch, NextIteration, Exit). There are no configs,
because tfcompile infers them. The files are checked in, so repeating the study needs no Python.

The batch size is a constant of these graphs, as in the study. With --any-batch, the graphs accept
batches of any size and are written to the given directory. Next to each such graph, NAME.npz
contains examples, the number of examples in each step, and the losses of these steps in a session
of TensorFlow that starts from the graph's own initializers, whose seeds are fixed.
"""

import argparse
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1
v1.disable_v2_behavior()
v1.disable_control_flow_v2()
v1.enable_resource_variables()

BATCH, CLASSES = 32, 10
IMAGE = (8, 8, 1)
UNITS = 32
SEQUENCES, TIMES, STATE = 16, 20, 16
LENGTHS, WORDS, CELLS = (12, 5, 10), 20, 24
# Number of examples in each step of any batch size.
BATCHES = (32, 7, 33, 1) * 3


def minimize(loss, adam=False, rate=0.1, also=()):
    """Builds one step of an optimizer. Returns the loss before the step."""
    optimizer = v1.train.AdamOptimizer(0.01) if adam else v1.train.GradientDescentOptimizer(rate)
    step = optimizer.minimize(loss)
    with tf.control_dependencies([step, *also]):
        return tf.identity(loss, name="loss")


def cross_entropy(labels, logits):
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def classifier(any_batch, convolution=False, hidden=3, norm=None, training=True, adam=False):
    """Builds dense layers, optionally after a convolution, optionally with batch normalization."""
    batch = None if any_batch else BATCH
    x = v1.placeholder(tf.float32, (batch, *IMAGE) if convolution else (batch, IMAGE[0] * IMAGE[1]), name="x")
    y = v1.placeholder(tf.float32, (batch, CLASSES), name="y")
    value, updates = x, []
    if convolution:
        value = tf.keras.layers.Conv2D(4, (2, 2), activation=tf.nn.relu, name="conv")(value)
        value = v1.layers.flatten(value)
    for number in range(1 if convolution else hidden):
        value = tf.keras.layers.Dense(UNITS, activation=tf.nn.relu, name=f"hidden{number}")(value)
        if norm == "layer":
            value = v1.layers.batch_normalization(value, training=training, name=f"norm{number}")
        elif norm == "keras":
            layer = tf.keras.layers.BatchNormalization(name=f"norm{number}")
            value = layer(value, training=True)
            updates += layer.updates
    logits = tf.keras.layers.Dense(CLASSES, name="logits")(value)
    updates += v1.get_collection(v1.GraphKeys.UPDATE_OPS)
    return minimize(cross_entropy(y, logits), adam=adam, also=updates)


def sequences(any_batch):
    batch = None if any_batch else SEQUENCES
    return (
        v1.placeholder(tf.float32, (batch, TIMES, 1), name="x"),
        v1.placeholder(tf.float32, (batch, CLASSES), name="y"),
    )


def dynamic_rnn(any_batch):
    x, y = sequences(any_batch)
    cell = v1.nn.rnn_cell.BasicRNNCell(STATE, name="cell")
    state = cell.zero_state(tf.shape(x)[0] if any_batch else SEQUENCES, tf.float32)
    outputs, _ = v1.nn.dynamic_rnn(cell, x, initial_state=state, scope="rnn")
    logits = tf.keras.layers.Dense(CLASSES, name="logits")(outputs)
    return minimize(cross_entropy(y, logits[:, -1, :]))


def keras_rnn(any_batch):
    x, y = sequences(any_batch)
    last = tf.keras.layers.RNN(tf.keras.layers.SimpleRNNCell(STATE, name="cell"), name="rnn")(x)
    return minimize(cross_entropy(y, tf.keras.layers.Dense(CLASSES, name="logits")(last)))


def rnn_seq_length(any_batch):
    batch = None if any_batch else len(LENGTHS)
    x = v1.placeholder(tf.float32, (batch, max(LENGTHS), 1), name="x")
    y = v1.placeholder(tf.int32, (batch, max(LENGTHS)), name="y")
    lengths = v1.placeholder(tf.int32, (None,), name="lengths") if any_batch else tf.constant(LENGTHS)
    cell = tf.keras.layers.LSTMCell(CELLS, name="cell")
    outputs, _ = v1.nn.dynamic_rnn(cell, x, sequence_length=lengths, dtype=tf.float32, scope="rnn")
    logits = tf.keras.layers.Dense(WORDS, name="logits")(outputs)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    return minimize(tf.reduce_mean(loss), rate=0.5)


EXPERIMENTS = {
    "fc": lambda any_batch: classifier(any_batch),
    "fc_adam": lambda any_batch: classifier(any_batch, adam=True),
    "fc_batchnorm": lambda any_batch: classifier(any_batch, norm="layer"),
    "fc_batchnorm_adam": lambda any_batch: classifier(any_batch, norm="layer", adam=True),
    "fc_batchnorm_notrain": lambda any_batch: classifier(any_batch, norm="layer", training=False),
    "fc_kerasbatchnorm": lambda any_batch: classifier(any_batch, hidden=1, norm="keras"),
    "conv_fc": lambda any_batch: classifier(any_batch, convolution=True),
    "conv_fc_adam": lambda any_batch: classifier(any_batch, convolution=True, adam=True),
    "conv_fc_batchnorm": lambda any_batch: classifier(any_batch, convolution=True, norm="layer"),
    "conv_fc_batchnorm_adam": lambda any_batch: classifier(any_batch, convolution=True, norm="layer", adam=True),
    "conv_fc_batchnorm_notrain": lambda any_batch: classifier(any_batch, convolution=True, norm="layer", training=False),
    "dynamic_rnn": dynamic_rnn,
    "keras_rnn": keras_rnn,
    "rnn_seq_length": rnn_seq_length,
}


def build(name, any_batch):
    """Returns the graph of an experiment without the Python source locations of its nodes."""
    with tf.Graph().as_default() as graph:
        if any_batch:
            v1.set_random_seed(1)
        EXPERIMENTS[name](any_batch)
        if any_batch:
            v1.global_variables_initializer()
    graph_def = graph.as_graph_def()
    for node in graph_def.node:
        node.ClearField("experimental_debug_info")
    return graph, graph_def


def examples(graph):
    """Returns the examples of the largest batch for each placeholder."""
    random = np.random.RandomState(1)
    count = max(BATCHES)
    given = {}
    for node in graph.get_operations():
        if node.type != "Placeholder":
            continue
        shape = (count, *node.outputs[0].shape.as_list()[1:])
        if node.name == "x":
            # Multiples of 1/16: exact, and small in an archive.
            given["x"] = (random.randint(-16, 17, shape) / 16).astype(np.float32)
        elif node.name == "lengths":
            given["lengths"] = random.randint(1, max(LENGTHS) + 1, shape).astype(np.int32)
        elif node.outputs[0].dtype == tf.int32:
            given["y"] = random.randint(0, WORDS, shape).astype(np.int32)
        else:
            given["y"] = np.eye(CLASSES, dtype=np.float32)[random.randint(0, CLASSES, count)]
    return given


def losses(graph, given):
    """Returns the losses of consecutive steps, which cycle through the examples from any start."""
    one_thread = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with v1.Session(graph=graph, config=one_thread) as session:
        session.run("init")
        return [
            session.run("loss:0", {f"{key}:0": np.roll(rows, -step, axis=0)[:batch] for key, rows in given.items()})
            for step, batch in enumerate(BATCHES)
        ]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--any-batch", type=pathlib.Path, metavar="FOLDER")
    folder = parser.parse_args().any_batch
    for name in EXPERIMENTS:
        graph, graph_def = build(name, folder is not None)
        to = folder or pathlib.Path(__file__).parent
        (to / f"{name}.pb").write_bytes(graph_def.SerializeToString(deterministic=True))
        if folder:
            given = examples(graph)
            lost = np.array(losses(graph, given), np.float32)
            np.savez_compressed(to / f"{name}.npz", batches=np.array(BATCHES, np.int32), losses=lost, **given)


if __name__ == "__main__":
    main()
