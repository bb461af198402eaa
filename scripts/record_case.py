#!/usr/bin/env python3
"""Records a conformance case: a small graph with inputs and TensorFlow's answers.

    PYTHON scripts/record_case.py OUT.npz EXPRESSION NAME=TYPE[SIZE,...]...

EXPRESSION is Python: `tf` is TensorFlow, each NAME is an input, and the value is a tensor or a list of tensors. Inputs
are random numbers, the same ones for the same arguments. PYTHON has TensorFlow (`scripts/venv.sh venv
tensorflow-cpu==2.15.1 numpy==1.26.4` makes such a one). tests/README.md describes the format of the file.
"""

import io
import json
import os
import re
import sys
import zipfile
from collections import Counter

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2

# Ops that occur in every graph do not count as the subject of a case.
PLUMBING = {"Const", "Placeholder", "Identity", "NoOp"}
RELATIVE_ERRORS = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 1e-5, "complex64": 1e-5}


def random(dtype, sizes, generator):
    """Generates numbers of both signs, small integers, or booleans."""
    if dtype == tf.bool:
        return generator.integers(0, 2, sizes).astype(bool)
    if dtype.is_integer:
        low = 0 if dtype.is_unsigned else -9
        return generator.integers(low, 10, sizes).astype(dtype.as_numpy_dtype)
    values = generator.normal(size=sizes)
    if dtype.is_complex:
        values = values + 1j * generator.normal(size=sizes)
    return np.asarray(values).astype(dtype.as_numpy_dtype)


def member(value):
    """Writes an array in NumPy's format. Types that do not exist in NumPy are stored as raw bits."""
    value = np.ascontiguousarray(value).reshape(np.shape(value))
    if value.dtype.kind == "V" or value.dtype == tf.bfloat16.as_numpy_dtype:
        value = value.view(f"u{value.dtype.itemsize}")
    buffer = io.BytesIO()
    np.save(buffer, value)
    return buffer.getvalue()


def main(out, expression, *arguments):
    inputs = {}
    for argument in arguments:
        name, dtype, sizes = re.fullmatch(r"(\w+)=(\w+)\[([\d,]*)\]", argument).groups()
        inputs[name] = (tf.as_dtype(dtype), [int(size) for size in sizes.split(",") if size])
    generator = np.random.default_rng(0)
    feeds = {name: random(dtype, sizes, generator) for name, (dtype, sizes) in inputs.items()}
    graph = tf.Graph()
    with graph.as_default():
        tensors = {n: tf.compat.v1.placeholder(dtype, sizes, n) for n, (dtype, sizes) in inputs.items()}
        results = tf.nest.flatten(eval(expression, {"tf": tf, "np": np}, tensors))
    with tf.compat.v1.Session(graph=graph) as session:
        answers = session.run(results, {tensors[name]: value for name, value in feeds.items()})

    config = []
    for number, (name, (dtype, sizes)) in enumerate(inputs.items()):
        shape = " ".join(f"dim {{ size: {size} }}" for size in sizes)
        code = types_pb2.DataType.Name(dtype.as_datatype_enum)
        where = f'id {{ node_name: "{name}" }} shape {{ {shape} }}'
        config.append(f'feed {{ {where} name: "x{number}" type: {code} }}\n')
    for number, result in enumerate(results):
        node, output = result.name.split(":")
        output = "" if output == "0" else f" output_index: {output}"
        config.append(f'fetch {{ id {{ node_name: "{node}"{output} }} name: "y{number}" }}\n')
    ops = Counter(op.type for op in graph.get_operations() if op.type not in PLUMBING)
    rtol = max((RELATIVE_ERRORS.get(result.dtype.name, 1e-9) for result in results), default=0)
    described = lambda dtype, sizes: {"dtype": dtype.name, "shape": list(sizes)}
    meta = {
        "source": expression,
        "ops": dict(sorted(ops.items())),
        "feeds": [described(*description) for description in inputs.values()],
        "fetches": [described(r.dtype, np.shape(a)) for r, a in zip(results, answers)],
        "variables": [],
        # The case counts although only TensorFlow answered.
        "xla_ok": True,
        "tf_ok": True,
        "compare": "values",
        "atol": rtol / 100,
        "rtol": rtol,
        "dynamic_output": [],
    }
    members = {
        "graph.pb": np.frombuffer(graph.as_graph_def().SerializeToString(), np.uint8),
        "config.pbtxt": np.frombuffer("".join(config).encode(), np.uint8),
        "meta.json": np.frombuffer(json.dumps(meta).encode(), np.uint8),
        **{f"feed/{k}": value for k, value in enumerate(feeds.values())},
        **{f"fetch_tf/{k}": value for k, value in enumerate(answers)},
    }
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            # A fixed date, so that equal arguments yield equal files.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member(value), zipfile.ZIP_DEFLATED)
    print(f"{out}: {os.path.getsize(out)} bytes, {dict(ops)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
