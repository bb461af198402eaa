#!/usr/bin/env python3
"""Steps in a second of tfcompile's session and of TensorFlow, without and with just-in-time compilation, in turns.

    python compare.py TOOL DATA ROUNDS STEPS     # with tensorflow-cpu==2.15.1

Both do the same steps on the same batches on one thread, each batch fed from the program's memory and each loss fetched; in
each round every one runs once. The table has the median round. TensorFlow runs the step as a tf.function and the graph of
train.pbtxt in a session.
"""
import os
import re
import statistics
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from google.protobuf import text_format  # noqa: E402
from make_graph import CLASSES, PIXELS, RATE, idx  # noqa: E402
from tensorflow.core.framework import graph_pb2  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH = 100
# The same tolerance as in check.py.
TOLERANCE = 1e-5


def ours(tool, data, steps, jit):
    """Returns losses and steps per second after the first step."""
    rows = os.path.join(data, "rows.npy")
    command = [tool, "run", os.path.join(HERE, "train.pbtxt"), "--fetch", "loss", "--batch", str(BATCH)]
    command += ["--jit", jit, "--mnist", data, "--steps", str(steps)]
    command += ["--batch-rows", rows] if os.path.exists(rows) else []
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    losses = [float(m[1]) for m in re.finditer(r"^step \d+  loss:0: (\S+)$", run.stdout, re.M)]
    return losses, float(re.search(r"(\d+) steps/s", run.stderr)[1])


def timed(step, batches):
    """Returns losses and steps per second after the first step, which compiles."""
    losses = [step(*batches[0])]
    begin = time.perf_counter()
    losses += [step(*batch) for batch in batches[1:]]
    return losses, (len(batches) - 1) / (time.perf_counter() - begin)


def function(jit):
    """Runs the step as a function with fresh variables."""
    weights, biases = tf.Variable(tf.zeros([PIXELS, CLASSES])), tf.Variable(tf.zeros([CLASSES]))

    @tf.function(jit_compile=jit)
    def step(x, labels):
        with tf.GradientTape() as tape:
            logits = tf.matmul(x, weights) + biases
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        for variable, gradient in zip((weights, biases), tape.gradient(loss, (weights, biases))):
            variable.assign_sub(RATE * gradient)
        return loss

    def run(batches):
        weights.assign(tf.zeros_like(weights))
        biases.assign(tf.zeros_like(biases))
        return timed(lambda x, labels: float(step(tf.constant(x), tf.constant(labels))), batches)

    return run


def session():
    """Runs the graph in a session with fresh variables."""
    graph_def = graph_pb2.GraphDef()
    with open(os.path.join(HERE, "train.pbtxt")) as file:
        text_format.Parse(file.read(), graph_def)
    graph = tf.Graph()
    with graph.as_default():
        tf.import_graph_def(graph_def, name="")
    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    opened = tf.compat.v1.Session(graph=graph, config=config)

    def run(batches):
        opened.run(["weights/Assign", "biases/Assign"])
        return timed(lambda x, labels: float(opened.run("loss:0", {"x:0": x, "labels:0": labels})), batches)

    return run


def main():
    tool, data, rounds, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)

    def array(name):
        path = os.path.join(data, name)
        return idx(path + ".gz" if os.path.exists(path + ".gz") else path)

    images = array("train-images-idx3-ubyte").reshape(-1, PIXELS).astype(np.float32) / np.float32(255)
    labels = array("train-labels-idx1-ubyte").astype(np.int64)
    if os.path.exists(os.path.join(data, "rows.npy")):
        rows = np.load(os.path.join(data, "rows.npy"))
    else:
        rows = np.arange(len(labels) // BATCH * BATCH).reshape(-1, BATCH)
    batches = [(images[rows[k % len(rows)]], labels[rows[k % len(rows)]]) for k in range(steps)]
    without, compiled, graph = function(False), function(True), session()
    runs = {
        "tfcompile run --jit off": lambda: ours(tool, data, steps, "off"),
        "TensorFlow, session": lambda: graph(batches),
        "TensorFlow, tf.function": lambda: without(batches),
        "tfcompile run --jit on": lambda: ours(tool, data, steps, "on"),
        "TensorFlow, tf.function, jit_compile": lambda: compiled(batches),
    }
    rates, losses = {name: [] for name in runs}, {}
    for _ in range(rounds):
        for name, run in runs.items():
            losses[name], rate = run()
            rates[name].append(rate)
    reference = np.array(losses["TensorFlow, session"])
    print("%-38s %10s %18s %12s" % ("one thread, median of %d rounds" % rounds, "steps/s", "slowest, fastest", "losses off"))
    failed = False
    for name in runs:
        off = np.abs(np.array(losses[name]) - reference).max()
        failed |= not off <= TOLERANCE
        extremes = "%.0f, %.0f" % (min(rates[name]), max(rates[name]))
        print("%-38s %10.0f %18s %12.1e" % (name, statistics.median(rates[name]), extremes, off))
    if failed:
        sys.exit("compare: losses differ by more than %g from those of TensorFlow's session" % TOLERANCE)


if __name__ == "__main__":
    main()
