#!/usr/bin/env python3
"""Makes train.pbtxt and losses.csv: softmax regression on images of 784 pixels, and the losses of TensorFlow's session.

    python make_graph.py DATA     # with tensorflow-cpu==2.15.1; DATA as make_data.py writes it

The graph is that of TensorFlow's tutorial "MNIST for beginners": weights and biases that begin at zero, one step of
gradient descent at a rate of 0.5, the share of images that are recognized. Both files are checked in.
"""
import gzip
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from google.protobuf import text_format  # noqa: E402
from tensorflow.core.framework import graph_pb2  # noqa: E402

PIXELS, CLASSES, RATE = 784, 10, 0.5


def build():
    x = tf.placeholder(tf.float32, [None, PIXELS], name="x")
    labels = tf.placeholder(tf.int64, [None], name="labels")
    weights = tf.Variable(tf.zeros([PIXELS, CLASSES]), name="weights", use_resource=True)
    biases = tf.Variable(tf.zeros([CLASSES]), name="biases", use_resource=True)
    logits = tf.add(tf.matmul(x, weights), biases, name="logits")
    cross_entropy = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    train = tf.train.GradientDescentOptimizer(RATE).minimize(cross_entropy, name="train")
    with tf.control_dependencies([train]):
        tf.identity(cross_entropy, name="loss")
    right = tf.equal(tf.argmax(logits, 1), labels)
    tf.reduce_mean(tf.cast(right, tf.float32), name="accuracy")
    return [weights.initializer, biases.initializer]


def idx(path):
    """Reads the array of a gzipped IDX file of bytes."""
    with gzip.open(path) as file:
        data = file.read()
    sizes = np.frombuffer(data, ">u4", data[3], 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(sizes)


def main():
    here, data = os.path.dirname(os.path.abspath(__file__)), sys.argv[1]
    tf.disable_v2_behavior()
    with tf.Graph().as_default() as graph:
        initializers = build()
        graph_def = graph_pb2.GraphDef()
        graph_def.CopyFrom(graph.as_graph_def())
        # Class hints of Python variables and colocations do not affect the computation.
        for node in graph_def.node:
            for attribute in [a for a in node.attr if a.startswith("_")]:
                del node.attr[attribute]
        with open(os.path.join(here, "train.pbtxt"), "w") as out:
            out.write(text_format.MessageToString(graph_def))
        images = idx(os.path.join(data, "train-images-idx3-ubyte.gz")).reshape(-1, PIXELS)
        images = images.astype(np.float32) / np.float32(255)
        labels = idx(os.path.join(data, "train-labels-idx1-ubyte.gz")).astype(np.int64)
        with tf.Session() as session, open(os.path.join(here, "losses.csv"), "w") as out:
            session.run(initializers)
            for rows in np.load(os.path.join(data, "rows.npy")):
                loss = session.run("loss:0", {"x:0": images[rows], "labels:0": labels[rows]})
                out.write("%.9g\n" % loss)


if __name__ == "__main__":
    main()
