#!/usr/bin/env python3
"""Makes the graphs of the demo: `train`, one step of gradient descent, and `classify`, one digit.

    python make_graphs.py        # with tensorflow-cpu==2.15.1; writes beside itself

Both have the same variables: a layer of 64 relu units and one of 10 logits. Each graph comes with the config that
tfcompile reads: what is fed, what is fetched, and the variables, which the C++ program keeps in its own memory.
The files are checked in, so nobody needs Python to build the demo.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow.compat.v1 as tf  # noqa: E402
from google.protobuf import text_format  # noqa: E402
from tensorflow.core.framework import graph_pb2  # noqa: E402

PIXELS, HIDDEN, CLASSES, BATCH = 64, 64, 10, 32
VARIABLES = [
    ("hidden/kernel", [PIXELS, HIDDEN]),
    ("hidden/bias", [HIDDEN]),
    ("logits/kernel", [HIDDEN, CLASSES]),
    ("logits/bias", [CLASSES]),
]


def logits_of(images):
    """The network over variables without initializers, which the program sets. Returns handles, values, logits."""
    handles = {
        name: tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=shape, shared_name=name, name=name)
        for name, shape in VARIABLES
    }
    values = {}
    for name, shape in VARIABLES:
        values[name] = tf.raw_ops.ReadVariableOp(resource=handles[name], dtype=tf.float32, name=name + "/read")
        values[name].set_shape(shape)
    hidden = tf.nn.relu(
        tf.nn.bias_add(tf.matmul(images, values["hidden/kernel"]), values["hidden/bias"]), name="hidden/relu"
    )
    logits = tf.nn.bias_add(tf.matmul(hidden, values["logits/kernel"]), values["logits/bias"], name="logits/logits")
    return handles, values, logits


def train():
    images = tf.placeholder(tf.float32, [BATCH, PIXELS], name="images")
    labels = tf.placeholder(tf.int32, [BATCH], name="labels")
    rate = tf.placeholder(tf.float32, [], name="learning_rate")
    handles, values, logits = logits_of(images)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits, name="losses")
    loss = tf.reduce_mean(losses, name="mean_loss")
    names = [name for name, _ in VARIABLES]
    gradients = tf.gradients(loss, [values[name] for name in names])
    updates = [
        tf.raw_ops.ResourceApplyGradientDescent(var=handles[name], alpha=rate, delta=gradient, name="train/" + name)
        for name, gradient in zip(names, gradients)
    ]
    with tf.control_dependencies(updates):
        tf.identity(loss, name="loss")
    return ["images", "labels", "learning_rate"], ["loss"]


def classify():
    image = tf.placeholder(tf.float32, [1, PIXELS], name="image")
    _, _, logits = logits_of(image)
    tf.nn.softmax(logits, name="probabilities")
    tf.argmax(logits, 1, output_type=tf.int32, name="digit")
    return ["image"], ["probabilities", "digit"]


def config_of(graph, feeds, fetches, readonly):
    text = []
    shape_of = lambda shape: "".join(" dim { size: %d }" % size for size in shape)
    for name in feeds:
        shape = graph.get_tensor_by_name(name + ":0").shape.as_list()
        text.append('feed {\n  id { node_name: "%s" }\n  shape {%s }\n  name: "%s"\n}' % (name, shape_of(shape), name))
    for name in fetches:
        text.append('fetch {\n  id { node_name: "%s" }\n  name: "%s"\n}' % (name, name))
    for name, shape in VARIABLES:
        text.append(
            'variable {\n  node_name: "%s"\n  shape {%s }\n  type: DT_FLOAT\n%s}'
            % (name, shape_of(shape), "  readonly: true\n" if readonly else "")
        )
    return "\n".join(text) + "\n"


def write(name, build, readonly):
    here = os.path.dirname(os.path.abspath(__file__))
    with tf.Graph().as_default() as graph:
        feeds, fetches = build()
        graph_def = graph_pb2.GraphDef()
        graph_def.CopyFrom(graph.as_graph_def())
        # Debug information and class hints of Python variables do not affect the computation.
        for node in graph_def.node:
            for attribute in [a for a in node.attr if a.startswith("_")]:
                del node.attr[attribute]
        with open(os.path.join(here, name + ".pbtxt"), "w") as out:
            out.write(text_format.MessageToString(graph_def))
        with open(os.path.join(here, name + ".config.pbtxt"), "w") as out:
            out.write(config_of(graph, feeds, fetches, readonly))


def main():
    tf.disable_v2_behavior()
    write("train", train, readonly=False)
    write("classify", classify, readonly=True)


if __name__ == "__main__":
    main()
