#!/usr/bin/env python3
"""Compares times and values of training steps and recurrent models with TensorFlow.

    PYTHON scripts/bench_training.py --tool target/release/tfcompile [--shared ../shared] [--models DIR] \\
        [--threads 1,2] [--seconds 2] [--work DIR] [NAME...]

PYTHON has TensorFlow 2.15 (`scripts/venv.sh tf` makes such a one). Each entry is compiled from its untouched graph with an
inferred config: `--fetch` as its spec.json names it, nothing else. A C++ program around the object runs the recorded steps;
losses and final variables are compared with TensorFlow's of the same run: `max relative error` is that of the losses, `of
tolerance` the largest difference of anything as a share of its recorded tolerance (up to 2 is right, since TensorFlow
has one to itself). Then program and session.run take turns, and the medians are printed as a Markdown table. The experiments lie in SHARED/oracle/cerebras14, the graphs that
SHARED/oracle/make_models.py makes in DIR.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np

MODELS = ["lstm_2x128_seq100", "gru_128_seq100", "lstm_train_b32", "lstm_train_unrolled_b32", "resnet8_train_b32"]

PROGRAM = r"""
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>
#include "model.h"
#include "tfcompile/thread_pool.h"

using Bytes = std::vector<unsigned char>;

static Bytes Read(std::FILE* file, std::size_t size) {
  Bytes bytes(size);
  if (size != 0 && std::fread(bytes.data(), 1, size, file) != size) std::exit(2);
  return bytes;
}

// Arguments: threads, steps, input, output. Then on standard input numbers of steps, each answered by nanoseconds.
int main(int argc, char** argv) {
  if (argc != 5) return 2;
  Model model;
  tfcompile::ThreadPool pool(std::atoi(argv[1]));
  if (std::atoi(argv[1]) > 1) model.set_thread_pool(&pool);
  const int steps = std::atoi(argv[2]);
  const int feeds = static_cast<int>(Model::kNumArgs - Model::kNumVariables);
  std::FILE* in = std::fopen(argv[3], "rb");
  std::FILE* out = std::fopen(argv[4], "wb");
  if (!in || !out) return 2;
  std::vector<Bytes> variables, first;
  for (int k = feeds; k < static_cast<int>(Model::kNumArgs); ++k) variables.push_back(Read(in, Model::ArgSize(k)));
  auto reset = [&] {
    for (std::size_t v = 0; v < variables.size(); ++v)
      std::memcpy(model.arg_data(feeds + v), variables[v].data(), variables[v].size());
  };
  reset();
  const int fetches = static_cast<int>(Model::kNumResults) - WRITTEN;
  for (int step = 0; step < steps; ++step) {
    for (int k = 0; k < feeds; ++k) {
      const Bytes feed = Read(in, Model::ArgSize(k));
      std::memcpy(model.arg_data(k), feed.data(), feed.size());
      if (step == 0) first.push_back(feed);
    }
    if (!model.Run()) return 3;
    for (int k = 0; k < fetches; ++k) std::fwrite(model.result_data(k), 1, model.result_size(k), out);
  }
  for (std::size_t v = 0; v < variables.size(); ++v)
    std::fwrite(model.arg_data(feeds + v), 1, variables[v].size(), out);
  std::fclose(out);
  for (int k = 0; k < feeds; ++k) std::memcpy(model.arg_data(k), first[k].data(), first[k].size());
  long count = 0;
  while (std::scanf("%ld", &count) == 1) {
    reset();
    model.Run();
    const auto begin = std::chrono::steady_clock::now();
    for (long i = 0; i < count; ++i) model.Run();
    const auto end = std::chrono::steady_clock::now();
    std::printf("%lld\n", static_cast<long long>(std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count()));
    std::fflush(stdout);
  }
}
"""


def fill(rule, key, shape):
    """Generates an array as in the recorded experiments, from a rule and the key of a stream of 24-bit numbers."""
    shape = tuple(shape)
    if rule["kind"] == "const":
        return np.full(shape, rule["value"], rule.get("dtype", "float32"))
    seed = 0xCBF29CE484222325
    for byte in key.encode():
        seed = ((seed ^ byte) * 0x100000001B3) & (1 << 64) - 1
    count = int(np.prod(shape[:-1] if rule["kind"] == "onehot" else shape, dtype=np.int64))
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        k = (z ^ z >> np.uint64(31)) >> np.uint64(40)
    if rule["kind"] == "uniform":
        values = rule["lo"] + (rule["hi"] - rule["lo"]) * (k.astype(np.float64) * 2.0**-24)
        return values.astype(np.float32).reshape(shape)
    if rule["kind"] == "pixels":
        return ((k >> np.uint64(16)).astype(np.float32) / np.float32(256)).reshape(shape)
    if rule["kind"] == "ints":
        values = (k % np.uint64(rule["hi"] - rule["lo"])).astype(np.int64) + rule["lo"]
        return values.astype(rule.get("dtype", "int32")).reshape(shape)
    if rule["kind"] == "onehot":
        return np.eye(shape[-1], dtype=np.float32)[(k % np.uint64(shape[-1])).astype(np.int64)].reshape(shape)
    raise ValueError(rule["kind"])


class Entry:
    """A graph with its initial values, by the names of tensors and of variables' nodes."""

    def __init__(self, directory):
        self.name = os.path.basename(directory.rstrip("/"))
        self.graph = os.path.join(directory, "graph.pb")
        spec = json.load(open(os.path.join(directory, "spec.json")))
        self.variable_tolerance = {}
        load = lambda name: np.load(os.path.join(directory, name))
        if "runs" in spec:
            run = spec["runs"][0]
            self.fetches = [spec["fetch"]]
            self.variables = {v["name"]: fill(v["rule"], v["key"], v["shape"]) for v in run["variables"]}
            self.batches = [
                {f["tensor"]: fill(f["rule"], f["key"].replace("<step>", str(step)), f["shape"]) for f in spec["feeds"]}
                for step in range(run["steps"])
            ]
            self.loss_tolerance = run["loss_tolerance"]
            self.variable_tolerance = {v["name"]: v["tolerance"] for v in run["variables"]}
        elif "steps" in spec:
            config = Config(open(os.path.join(directory, "config.pbtxt")).read())
            self.fetches = config.fetches
            initial, batches = load("initial.npz"), load("io.npz")
            self.variables = {name: initial[name] for name in initial.files}
            self.batches = [{feed: batches[feed][s] for feed in config.feeds} for s in range(spec["steps"])]
            self.loss_tolerance = max(spec["loss_tolerance"])
            self.variable_tolerance = {v["name"]: v["final"]["tolerance"] for v in spec["variables"] if "final" in v}
        else:
            io = load("io.npz")
            self.fetches = [f["tensor"] for f in spec["fetches"]]
            self.variables = {}
            self.batches = [{f["tensor"]: io[f["tensor"]] for f in spec["feeds"]}]
            self.loss_tolerance = max(f["tolerance"] for f in spec["fetches"])


class Config:
    """Returns the entries of a text config in order."""

    def __init__(self, text):
        self.feeds, self.fetches, self.variables, self.written = [], [], [], 0
        for kind, body in re.findall(r"^(feed|fetch|variable) \{\n(.*?)^\}", text, re.S | re.M):
            node = re.search(r'node_name: "([^"]*)"', body).group(1)
            index = re.search(r"output_index: (\d+)", body)
            tensor = "%s:%s" % (node, index.group(1) if index else 0)
            if kind == "variable":
                self.variables.append(node)
                self.written += "readonly: true" not in body
            else:
                (self.feeds if kind == "feed" else self.fetches).append(tensor)


class Compiled:
    """Links a program around the compiled graph."""

    def __init__(self, tool, entry, work, cxx):
        self.place = os.path.join(work, entry.name)
        os.makedirs(self.place, exist_ok=True)
        flags = [word for fetch in entry.fetches for word in ("--fetch", fetch)] + ["-q"]
        config = subprocess.run([tool, "config", entry.graph, *flags], check=True, capture_output=True, text=True)
        self.config = Config(config.stdout)
        build = [tool, "build", entry.graph, *flags, "--target-cpu", "native", "--name", "model", "--class", "Model"]
        begin = time.monotonic()
        subprocess.run([*build, "-o", self.place], check=True, capture_output=True, text=True)
        self.compile_ms = (time.monotonic() - begin) * 1e3
        self.object_bytes = os.path.getsize(self.path("model.o"))
        with open(self.path("main.cc"), "w") as file:
            file.write(PROGRAM)
        subprocess.run(
            [cxx, "-std=c++17", "-O2", "-pthread", "-DWRITTEN=%d" % self.config.written, "-I", self.place,
             "-I", self.path("include"), self.path("main.cc"), self.path("model.o"), "-o", self.path("main")],
            check=True)
        with open(self.path("input"), "wb") as file:
            for name in self.config.variables:
                file.write(np.ascontiguousarray(entry.variables[name]).tobytes())
            for batch in entry.batches:
                for feed in self.config.feeds:
                    file.write(np.ascontiguousarray(batch[feed]).tobytes())

    def path(self, name):
        return os.path.join(self.place, name)

    def start(self, threads, steps):
        command = [self.path("main"), str(threads), str(steps), self.path("input"), self.path("output")]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    @staticmethod
    def time(process, count):
        """Returns nanoseconds per step over this number of steps."""
        process.stdin.write("%d\n" % count)
        process.stdin.flush()
        return int(process.stdout.readline()) / count


class Reference:
    """Runs the same graph in a TensorFlow session."""

    def __init__(self, tf, entry, compiled, threads):
        v1 = tf.compat.v1
        graph_def = v1.GraphDef()
        graph_def.ParseFromString(open(entry.graph, "rb").read())
        self.graph = tf.Graph()
        with self.graph.as_default():
            tf.import_graph_def(graph_def, name="")
            self.load, self.reads, self.given = [], [], []
            for name in compiled.config.variables:
                value = entry.variables[name]
                handle = self.graph.get_tensor_by_name(name + ":0")
                given = v1.placeholder(value.dtype, value.shape)
                if handle.dtype == tf.resource:
                    self.load.append(tf.raw_ops.AssignVariableOp(resource=handle, value=given))
                    self.reads.append(tf.raw_ops.ReadVariableOp(resource=handle, dtype=value.dtype))
                else:
                    self.load.append(v1.assign(handle, given, validate_shape=False).op)
                    self.reads.append(tf.identity(handle))
                self.given.append((given, value))
            # Resources that the graph creates before its first step, such as stacks, need no
            # initial value.
        options = v1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads)
        self.session = v1.Session(graph=self.graph, config=options)
        self.step = self.session.make_callable(entry.fetches, compiled.config.feeds)
        self.batches = [[batch[feed] for feed in compiled.config.feeds] for batch in entry.batches]

    def reset(self):
        if self.load:
            self.session.run(self.load, dict(self.given))

    def values(self):
        """Returns the fetches of each recorded step, and the final variables."""
        self.reset()
        fetched = [self.step(*batch) for batch in self.batches]
        return [np.asarray(v) for step in fetched for v in step], self.session.run(self.reads) if self.reads else []

    def time(self, count):
        self.reset()
        batch = self.batches[0]
        self.step(*batch)
        begin = time.perf_counter_ns()
        for _ in range(count):
            self.step(*batch)
        return (time.perf_counter_ns() - begin) / count


def differences(compiled, entry, wanted):
    """Returns the largest relative difference of a fetch, and the largest difference of any value as a fraction of its tolerance."""
    fetched, variables = wanted
    data = open(compiled.path("output"), "rb").read()
    relative, share, at = 0.0, 0.0, 0
    tolerances = [entry.loss_tolerance] * len(fetched)
    tolerances += [entry.variable_tolerance.get(name, 0.0) for name in compiled.config.variables]
    for k, (value, tolerance) in enumerate(zip(fetched + list(variables), tolerances)):
        got = np.frombuffer(data, value.dtype, value.size, at).reshape(value.shape).astype(np.float64)
        at += value.nbytes
        off = float(np.max(np.abs(got - value.astype(np.float64)), initial=0.0))
        off = off if np.isfinite(off) else float("inf")
        if off and k < len(fetched):
            relative = max(relative, off / max(float(np.max(np.abs(value))), 1e-30))
        if off:
            share = max(share, off / tolerance if tolerance else float("inf"))
    return relative, share


def bench(tf, entry, options):
    """The rows of one entry."""
    compiled = Compiled(options.tool, entry, options.work, options.cxx)
    for threads in options.threads:
        reference = Reference(tf, entry, compiled, threads)
        wanted = reference.values()
        process = compiled.start(threads, len(entry.batches))
        ours = Compiled.time(process, 1)
        theirs = reference.time(1)
        rounds = 7
        share = options.seconds * 1e9 / rounds / 2
        our_count, their_count = (max(1, min(1000, int(share / t))) for t in (ours, theirs))
        times = [(Compiled.time(process, our_count), reference.time(their_count)) for _ in range(rounds)]
        process.stdin.close()
        process.wait()
        relative, share = differences(compiled, entry, wanted)
        ours, theirs = np.median(times, axis=0)
        # The tolerance for TensorFlow in this run is its own distance from the recorded values.
        yield share <= 2, "| %s | %d | %.0f | %d | %d | %d | %.2f | %.1e | %.2f |" % (
            entry.name, threads, compiled.compile_ms, compiled.object_bytes, ours, theirs, theirs / ours, relative, share)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default="target/release/tfcompile")
    parser.add_argument("--shared", default=os.environ.get("TFCOMPILE_SHARED", "../shared"))
    parser.add_argument("--models", default=os.path.expanduser("~/.cache/tfcompile-models/graphs"))
    parser.add_argument("--threads", default="1,2", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--seconds", default=2.0, type=float, help="of measuring, for each row")
    parser.add_argument("--work", help="where to build [default: a temporary directory]")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("names", nargs="*", help="only these entries")
    options = parser.parse_args()
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    experiments = os.path.join(options.shared, "oracle", "cerebras14")
    places = [os.path.join(experiments, name) for name in sorted(os.listdir(experiments))]
    places += [os.path.join(options.models, name) for name in MODELS]
    places = [p for p in places if os.path.exists(os.path.join(p, "graph.pb"))]
    places = [p for p in places if not options.names or os.path.basename(p) in options.names]
    print("| model | threads | compile ms | object bytes | ns per step | TensorFlow's | times | max relative error | of tolerance |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        options.work = options.work or temporary
        for place in places:
            try:
                for right, row in bench(tf, Entry(place), options):
                    failed = failed or not right
                    print(row, flush=True)
            except subprocess.CalledProcessError as error:
                failed = True
                said = (error.stderr or "").strip().split("\n")[0]
                print("| %s | %s |" % (os.path.basename(place), said), flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
