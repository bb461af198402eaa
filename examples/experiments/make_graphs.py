#!/usr/bin/env python3
"""Makes the graphs of the study: one training step each of fourteen small networks, written the way of TensorFlow 1.

    python make_graphs.py        # with tensorflow-cpu==2.15.1; writes beside itself

Each graph is what TensorFlow exports: it feeds `x` and `y`, and `loss` is the loss before the step, on which the step
hangs by a control input. Loops are those of TensorFlow 1 (Enter, Merge, Switch, NextIteration, Exit). There are no configs:
tfcompile infers them. The files are checked in, so nobody needs Python to repeat the study.
"""

import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

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


def minimise(loss, adam=False, rate=0.1, also=()):
    """One step of an optimiser; the answer is the loss before it."""
    optimiser = v1.train.AdamOptimizer(0.01) if adam else v1.train.GradientDescentOptimizer(rate)
    step = optimiser.minimize(loss)
    with tf.control_dependencies([step, *also]):
        return tf.identity(loss, name="loss")


def cross_entropy(labels, logits):
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def classifier(convolution=False, hidden=3, norm=None, training=True, adam=False):
    """Dense layers, perhaps behind a convolution, perhaps with batch normalisation."""
    x = v1.placeholder(tf.float32, (BATCH, *IMAGE) if convolution else (BATCH, IMAGE[0] * IMAGE[1]), name="x")
    y = v1.placeholder(tf.float32, (BATCH, CLASSES), name="y")
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
    return minimise(cross_entropy(y, logits), adam=adam, also=updates)


def sequences():
    return (
        v1.placeholder(tf.float32, (SEQUENCES, TIMES, 1), name="x"),
        v1.placeholder(tf.float32, (SEQUENCES, CLASSES), name="y"),
    )


def dynamic_rnn():
    x, y = sequences()
    cell = v1.nn.rnn_cell.BasicRNNCell(STATE, name="cell")
    outputs, _ = v1.nn.dynamic_rnn(cell, x, initial_state=cell.zero_state(SEQUENCES, tf.float32), scope="rnn")
    logits = tf.keras.layers.Dense(CLASSES, name="logits")(outputs)
    return minimise(cross_entropy(y, logits[:, -1, :]))


def keras_rnn():
    x, y = sequences()
    last = tf.keras.layers.RNN(tf.keras.layers.SimpleRNNCell(STATE, name="cell"), name="rnn")(x)
    return minimise(cross_entropy(y, tf.keras.layers.Dense(CLASSES, name="logits")(last)))


def rnn_seq_length():
    x = v1.placeholder(tf.float32, (len(LENGTHS), max(LENGTHS), 1), name="x")
    y = v1.placeholder(tf.int32, (len(LENGTHS), max(LENGTHS)), name="y")
    cell = tf.keras.layers.LSTMCell(CELLS, name="cell")
    outputs, _ = v1.nn.dynamic_rnn(cell, x, sequence_length=tf.constant(LENGTHS), dtype=tf.float32, scope="rnn")
    logits = tf.keras.layers.Dense(WORDS, name="logits")(outputs)
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    return minimise(tf.reduce_mean(loss), rate=0.5)


EXPERIMENTS = {
    "fc": lambda: classifier(),
    "fc_adam": lambda: classifier(adam=True),
    "fc_batchnorm": lambda: classifier(norm="layer"),
    "fc_batchnorm_adam": lambda: classifier(norm="layer", adam=True),
    "fc_batchnorm_notrain": lambda: classifier(norm="layer", training=False),
    "fc_kerasbatchnorm": lambda: classifier(hidden=1, norm="keras"),
    "conv_fc": lambda: classifier(convolution=True),
    "conv_fc_adam": lambda: classifier(convolution=True, adam=True),
    "conv_fc_batchnorm": lambda: classifier(convolution=True, norm="layer"),
    "conv_fc_batchnorm_adam": lambda: classifier(convolution=True, norm="layer", adam=True),
    "conv_fc_batchnorm_notrain": lambda: classifier(convolution=True, norm="layer", training=False),
    "dynamic_rnn": dynamic_rnn,
    "keras_rnn": keras_rnn,
    "rnn_seq_length": rnn_seq_length,
}


def main():
    folder = pathlib.Path(__file__).parent
    for name, build in EXPERIMENTS.items():
        v1.set_random_seed(1)
        with tf.Graph().as_default() as graph:
            build()
        graph_def = graph.as_graph_def()
        for node in graph_def.node:
            # Where Python made the node: no part of the graph's meaning.
            node.ClearField("experimental_debug_info")
        (folder / f"{name}.pb").write_bytes(graph_def.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
