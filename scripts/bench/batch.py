#!/usr/bin/env python3
"""Creates a model with a larger batch from one whose feeds have a batch of 1.

    PYTHON batch.py MODEL_DIR BATCH NEW_DIR

PYTHON has TensorFlow. The leading sizes of the feeds become BATCH in the graph's placeholders and in the config; inputs are random
numbers. Exits with 3 if TensorFlow's shape inference refuses the batch, for instance because a reshape states another one.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.compiler.tf2xla import tf2xla_pb2
from tensorflow.core.framework import graph_pb2


def main():
    source, batch, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    graph, config = graph_pb2.GraphDef(), tf2xla_pb2.Config()
    with open(os.path.join(source, "graph.pb"), "rb") as file:
        graph.ParseFromString(file.read())
    with open(os.path.join(source, "config.pbtxt")) as file:
        text_format.Parse(file.read(), config)
    if config.variable:
        sys.exit(3)
    fed = {feed.id.node_name for feed in config.feed}
    for feed in config.feed:
        if not feed.shape.dim or feed.shape.dim[0].size != 1:
            sys.exit(3)
        feed.shape.dim[0].size = batch
    for node in graph.node:
        # The result shapes may state the old batch size.
        if "_output_shapes" in node.attr:
            del node.attr["_output_shapes"]
        if node.name in fed and "shape" in node.attr and node.attr["shape"].shape.dim:
            node.attr["shape"].shape.dim[0].size = batch
    with tf.Graph().as_default() as imported:
        try:
            tf.import_graph_def(graph, name="")
        except ValueError:
            sys.exit(3)
        for fetch in config.fetch:
            shape = imported.get_tensor_by_name("%s:%d" % (fetch.id.node_name, fetch.id.output_index)).shape
            if shape.rank is None or shape.rank == 0 or shape[0] != batch:
                sys.exit(3)
    os.makedirs(target, exist_ok=True)
    random, wide = np.random.RandomState(0), {}
    for feed in config.feed:
        if tf.as_dtype(feed.type) != tf.float32:
            sys.exit(3)
        sizes = [dim.size for dim in feed.shape.dim]
        wide[feed.id.node_name] = random.uniform(-1, 1, sizes).astype(np.float32)
    np.savez(os.path.join(target, "inputs.npz"), **wide)
    with open(os.path.join(target, "graph.pb"), "wb") as file:
        file.write(graph.SerializeToString(deterministic=True))
    with open(os.path.join(target, "config.pbtxt"), "w") as file:
        file.write(text_format.MessageToString(config))


main()
