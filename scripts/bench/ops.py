#!/usr/bin/env python3
"""Compares the times of single ops (decompositions, sorts, transforms, sums) with TensorFlow and NumPy.

    PYTHON scripts/bench/ops.py --tool target/release/tfcompile [--rounds 3] [--seconds 0.3] [--work DIR] [NAME...]

PYTHON has TensorFlow 2.15 (`scripts/venv.sh` creates such an environment). Each op is a graph with one fed array, which
`tfcompile bench` compiles for this machine and runs on one thread. TensorFlow runs the same graph in a session with one thread, NumPy
its own function. The three take turns. The output is a Markdown table of the shortest times, and of the better time of the others
divided by ours (below 1, we are slower).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import tensorflow as tf

tf.compat.v1.disable_eager_execution()


def noise(*sizes):
    return np.random.default_rng(1).standard_normal(sizes).astype(np.float32)


def positive(n):
    x = noise(n, n)
    return (x @ x.T / n + np.eye(n)).astype(np.float32)


def triangle(n):
    return np.tril(noise(n, n) / n + 2 * np.eye(n)).astype(np.float32)


RAW = tf.raw_ops
ROWS = np.random.default_rng(2).integers(0, 1000, 20000).astype(np.int32)


def added(x):
    into = np.zeros((1000, x.shape[1]), np.float32)
    np.add.at(into, ROWS, x)
    return into


# Name: the fed array, the op, NumPy's own function or nothing.
OPS = {
    "sort 100000": (noise(100000), tf.sort, np.sort),
    "sort rows 1000x256": (noise(1000, 256), tf.sort, np.sort),
    "top 10 of 1000x1000": (noise(1000, 1000), lambda x: tf.math.top_k(x, 10)[0],
                            lambda x: -np.sort(np.partition(-x, 10, 1)[:, :10], 1)),
    "fft 65536": (noise(65536), lambda x: RAW.FFT(input=tf.cast(x, tf.complex64)), np.fft.fft),
    "fft rows 64x1000": (noise(64, 1000), lambda x: RAW.FFT(input=tf.cast(x, tf.complex64)), np.fft.fft),
    "fft2 512x512": (noise(512, 512), lambda x: RAW.FFT2D(input=tf.cast(x, tf.complex64)), np.fft.fft2),
    "rfft rows 256x1024": (noise(256, 1024), lambda x: RAW.RFFT(input=x, fft_length=[1024]), np.fft.rfft),
    "cumsum rows 1000x1000": (noise(1000, 1000), lambda x: tf.cumsum(x, 1), lambda x: np.cumsum(x, 1)),
    "cumsum columns 1000x1000": (noise(1000, 1000), lambda x: tf.cumsum(x, 0), lambda x: np.cumsum(x, 0)),
    "scatter-add 20000x64": (noise(20000, 64), lambda x: tf.scatter_nd(ROWS[:, None], x, [1000, 64]), added),
    "segment sum 20000x64": (noise(20000, 64), lambda x: tf.math.unsorted_segment_sum(x, ROWS, 1000), added),
    "cholesky 256": (positive(256), tf.linalg.cholesky, np.linalg.cholesky),
    "cholesky 512": (positive(512), tf.linalg.cholesky, np.linalg.cholesky),
    "triangular solve 512": (triangle(512), lambda x: tf.linalg.triangular_solve(x, np.eye(512, dtype=np.float32)), None),
    "inverse 256": (positive(256), tf.linalg.inv, np.linalg.inv),
    "lu 256": (positive(256), lambda x: tf.linalg.lu(x)[0], None),
    "lu 512": (positive(512), lambda x: tf.linalg.lu(x)[0], None),
    "solve 256": (positive(256), lambda x: tf.linalg.solve(x, np.ones((256, 8), np.float32)),
                  lambda x: np.linalg.solve(x, np.ones((256, 8), np.float32))),
    "qr 128": (noise(128, 128), lambda x: tf.linalg.qr(x)[1], lambda x: np.linalg.qr(x)[1]),
    "svd 64": (noise(64, 64), lambda x: tf.linalg.svd(x)[0], lambda x: np.linalg.svd(x)[1]),
    "eigh 64": (positive(64), lambda x: tf.linalg.eigh(x)[0], lambda x: np.linalg.eigh(x)[0]),
}


def shortest(run, seconds):
    """The shortest time of one run, in microseconds."""
    run()
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        run()
        now = time.perf_counter()
        best = min(best, now - begin)
        if now >= end:
            return best * 1e6


class Subject:
    def __init__(self, name, work):
        self.array, op, self.numpy = OPS[name]
        graph = tf.Graph()
        with graph.as_default():
            x = tf.compat.v1.placeholder(tf.float32, self.array.shape, name="x")
            tf.identity(op(x), name="y")
        stem = os.path.join(work, name.replace(" ", "_"))
        self.model, self.feed = stem + ".pb", stem + ".npy"
        with open(self.model, "wb") as file:
            file.write(graph.as_graph_def().SerializeToString())
        np.save(self.feed, self.array)
        options = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
        self.session = tf.compat.v1.Session(graph=graph, config=options)

    def ours(self, tool, seconds):
        command = [tool, "bench", self.model, "--fetch", "y", "--feed", f"x={self.feed}", "--target-cpu", "native",
                   "--seconds", str(seconds), "--no-peak", "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(done.stderr, file=sys.stderr)
            return float("inf")
        return json.loads(done.stdout)["times"][0]["latency"]["min"] * 1e6

    def tensorflow(self, seconds):
        run = self.session.make_callable("y:0", feed_list=["x:0"])
        return shortest(lambda: run(self.array), seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--work", default=None)
    parser.add_argument("names", nargs="*", metavar="NAME")
    flags = parser.parse_args()
    work = flags.work or tempfile.mkdtemp()
    names = [name for name in OPS if not flags.names or any(wanted in name for wanted in flags.names)]
    print("| op | ours us | TensorFlow us | NumPy us | better of both / ours |\n|---|---|---|---|---|", flush=True)
    for name in names:
        subject, times = Subject(name, work), [float("inf")] * 3
        for _ in range(flags.rounds):
            times[0] = min(times[0], subject.ours(flags.tool, flags.seconds))
            times[1] = min(times[1], subject.tensorflow(flags.seconds))
            if subject.numpy:
                times[2] = min(times[2], shortest(lambda: subject.numpy(subject.array), flags.seconds))
        numpy = f"{times[2]:.0f}" if subject.numpy else "-"
        ratio = min(times[1:]) / times[0]
        print(f"| {name} | {times[0]:.0f} | {times[1]:.0f} | {numpy} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
