#!/usr/bin/env python3
"""Compares each model's results with TensorFlow's in float64, and reports TensorFlow's own float32 errors for comparison.

    PYTHON scripts/accuracy.py --tool target/release/tfcompile --models DIR [--models DIR ...] [--shared ../shared] \\
        [--samples 4] [--limit 2] [--flags=--allow-winograd] [NAME...]

PYTHON has TensorFlow 2.15 (`scripts/venv.sh tf` makes such a one). DIR holds models as SHARED/oracle/make_models.py makes them:
NAME/graph.pb, config.pbtxt, io.npz; those of training steps are left out (`scripts/bench_training.py` compares them). The
first sample is the recorded one, the others are random numbers in its range; integers are the recorded ones in another
order. The graph runs three times: as it is, by TensorFlow and by the tool (`run`), and with all of float32 turned into float64,
by TensorFlow, which is taken for the truth.

Printed as a Markdown table: the root mean square of the errors and the largest one, over all samples and results, each
relative to the largest magnitude of its result; and their ratios. The script fails if a ratio is above the limit: of the
mean squares for every model; of the largest errors for models of many elements (a maximum over few of them is chance).
"""

import argparse
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np

# Minimum number of elements for a statistically meaningful largest error.
MANY = 1000


def samples(io, feeds, count):
    """Generates feeds by tensor name, the recorded ones first."""
    yield {name: io[name] for name in feeds}
    for seed in range(1, count):
        numbers = np.random.RandomState(seed)
        sample = {}
        for name in feeds:
            value = io[name]
            if value.ndim == 0:
                sample[name] = value
            elif value.dtype == np.float32:
                sample[name] = numbers.uniform(value.min(), value.max(), value.shape).astype(np.float32)
            else:
                sample[name] = numbers.permutation(value.reshape(-1)).reshape(value.shape)
        yield sample


def run_tool(tool, flags, directory, sample, fetches, work):
    """Returns the results of the compiled model in the order of its config."""
    feeds = os.path.join(work, "feeds.npz")
    np.savez(feeds, **{name.split(":")[0]: value for name, value in sample.items()})
    out = os.path.join(work, "out.npz")
    command = [tool, "run", os.path.join(directory, "graph.pb"), "--config", os.path.join(directory, "config.pbtxt")]
    subprocess.run(command + ["--feed", "@" + feeds, "--out", out, "--quiet"] + flags, check=True, stdout=subprocess.DEVNULL)
    results = np.load(out)
    if len(results.files) != len(fetches):
        raise SystemExit(f"{directory}: results {results.files} for fetches {fetches}")
    return [results[name] for name in results.files]


class Errors:
    """Errors of one implementation, relative to the largest magnitude of each result."""

    def __init__(self):
        self.squares, self.count, self.largest = 0.0, 0, 0.0

    def add(self, got, truth):
        scale = float(np.abs(truth).max())
        if scale == 0.0:
            return
        off = np.abs(got.astype(np.float64).reshape(-1) - truth.reshape(-1)) / scale
        self.squares += float((off * off).sum())
        self.count += off.size
        self.largest = max(self.largest, float(off.max()))

    @property
    def mean(self):
        return (self.squares / max(self.count, 1)) ** 0.5


def ratio(ours, theirs):
    return ours / theirs if theirs > 0.0 else (1.0 if ours == 0.0 else float("inf"))


def compare(tool, flags, directory, count, oracle):
    """Returns our errors and TensorFlow's."""
    import tensorflow as tf

    graph = tf.compat.v1.GraphDef()
    with open(os.path.join(directory, "graph.pb"), "rb") as file:
        graph.ParseFromString(file.read())
    io = np.load(os.path.join(directory, "io.npz"))
    fetches = [name[len("float64/"):] for name in io.files if name.startswith("float64/")]
    feeds = [name for name in io.files if not name.startswith("float64/") and name not in fetches]
    wide_graph = oracle.to_float64(oracle.decompose_batch_norm(graph))
    ours, theirs = Errors(), Errors()
    with tempfile.TemporaryDirectory() as work:
        for sample in samples(io, feeds, count):
            wide_sample = {n: v.astype(np.float64) if v.dtype == np.float32 else v for n, v in sample.items()}
            truth = oracle.run_graph(tf, wide_graph, wide_sample, fetches)
            narrow = oracle.run_graph(tf, graph, sample, fetches)
            got = run_tool(tool, flags, directory, sample, fetches, work)
            for got, narrow, truth in zip(got, narrow, truth):
                if truth.dtype == np.float64:
                    ours.add(got, truth)
                    theirs.add(narrow, truth)
    return ours, theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tool", required=True)
    parser.add_argument("--models", action="append", required=True)
    parser.add_argument("--shared", default="../shared")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--limit", type=float, default=2.0)
    parser.add_argument("--flags", action="append", default=[])
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    sys.path.insert(0, os.path.join(arguments.shared, "oracle"))
    import make_models as oracle

    found = {}
    for parent in arguments.models:
        for name in sorted(os.listdir(parent)):
            io = os.path.join(parent, name, "io.npz")
            if os.path.exists(io) and any(key.startswith("float64/") for key in np.load(io).files):
                found[name] = os.path.join(parent, name)
    names = arguments.names or sorted(found)
    print("| model | elements | ours, mean | TF, mean | ratio | ours, most | TF, most | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    failed = []
    for name in names:
        if name not in found:
            raise SystemExit(f"{name}: no such model with results in float64 in {arguments.models}")
        ours, theirs = compare(arguments.tool, arguments.flags, found[name], arguments.samples, oracle)
        mean, most = ratio(ours.mean, theirs.mean), ratio(ours.largest, theirs.largest)
        print(f"| {name} | {ours.count} | {ours.mean:.2e} | {theirs.mean:.2e} | {mean:.2f} | "
              f"{ours.largest:.2e} | {theirs.largest:.2e} | {most:.2f} |", flush=True)
        if mean > arguments.limit or (most > arguments.limit and ours.count >= MANY):
            failed.append(name)
    if failed:
        raise SystemExit(f"errors above {arguments.limit} times TensorFlow's: {', '.join(failed)}")


if __name__ == "__main__":
    main()
