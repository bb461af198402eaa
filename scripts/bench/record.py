#!/usr/bin/env python3
"""Condenses the harness results into a short record: the data of the chart and the table in
docs/benchmarks.md.

    record.py RESULTS PEERS_HOME OUT

Reads RESULTS/*.json and the installed versions of the peers below PEERS_HOME. Writes OUT, a JSON
file with the machine, the date, the versions, and one row per inference model: for 1 and 2 threads,
the name of the fastest peer, its time divided by ours, and the time of TensorFlow's tfcompile
divided by ours. Excludes training models, batches larger than 1, and wrong results.
"""

import glob
import json
import os
import re
import sys

from report import OURS, geometric_mean, original, times

# The harness's name of a peer, its name in the record, and its package: a virtual environment and a
# distribution.
PEERS = [
    ("openvino", "OpenVINO", "ov", "openvino"),
    ("litert", "LiteRT", "litert", "ai_edge_litert"),
    ("ort", "ONNX Runtime", "ort", "onnxruntime"),
    ("tf-func", "TensorFlow", "tfnew", "tensorflow_cpu"),
    ("tf-xla", "TensorFlow (XLA)", "tfnew", "tensorflow_cpu"),
    ("iree", "IREE", "iree", "iree_base_compiler"),
    ("jax", "JAX", "jax", "jax"),
    ("tvm", "TVM", "tvm", "apache_tvm"),
    ("tract", "tract", None, None),
    ("tfc215", "tfcompile of TensorFlow", "conv", "tensorflow_cpu"),
    ("tfc215-generic", "tfcompile of TensorFlow", "conv", "tensorflow_cpu"),
]
NAMES = {key: name for key, name, _, _ in PEERS}


def version(home, venv, package):
    """The version of a package that is installed in one of the harness's virtual environments, or None."""
    if venv is None:
        return None
    for folder in glob.glob(os.path.join(home, "venvs", venv, "lib", "python*", "site-packages", package + "-*.dist-info")):
        return os.path.basename(folder)[len(package) + 1:-len(".dist-info")]
    return None


def row(document, threads):
    """Returns the times of the fastest peer and of TensorFlow's tfcompile as multiples of ours, or None if ours is missing."""
    found = times(document, threads)
    ours = found.pop(OURS, None)
    if ours is None or not found:
        return None
    fastest = min(found, key=found.get)
    old = original(found)
    return {
        "fastest": NAMES.get(fastest, fastest),
        "ratio": round(found[fastest] / ours, 4),
        "original": round(old / ours, 4) if old else None,
    }


def mean(models, threads):
    """Returns the geometric means of both ratios over all models that have them, or None if there is none."""
    rows = [model[threads] for model in models if model[threads]]
    values = {key: [row[key] for row in rows if row[key]] for key in ("ratio", "original")}
    return {key: round(geometric_mean(found), 4) if found else None for key, found in values.items()}


def main():
    results, home, out = sys.argv[1:4]
    with open(os.path.join(results, "machine.json")) as file:
        machine = json.load(file)
    models, measured, dates = [], set(), set()
    for path in sorted(glob.glob(os.path.join(results, "*.json"))):
        with open(path) as file:
            document = json.load(file)
        name = document.get("model", "")
        if not name or "_train" in name or re.search(r"_b\d+$", name):
            continue
        rows = {str(threads): row(document, threads) for threads in (1, 2)}
        if any(rows.values()):
            models.append({"model": name, **rows})
        measured |= {os.path.basename(peer) for threads in (1, 2) for peer in times(document, threads)}
        dates |= {run["when"][:10] for run in document.get("runs", {}).values()}
    record = {
        "machine": machine.get("cpu", "unknown processor"),
        "date": max(dates, default=""),
        "peers": {name: version(home, venv, package) for key, name, venv, package in PEERS if key in measured},
        "means": {threads: mean(models, threads) for threads in ("1", "2")},
        "models": models,
    }
    with open(out, "w") as file:
        json.dump(record, file, indent=1)
        file.write("\n")


main()
