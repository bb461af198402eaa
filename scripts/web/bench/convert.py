#!/usr/bin/env python3
"""Converts a prepared model (see the README of the benchmark's harness) for runtimes of browsers.

    convert.py PREPARED OUT

Writes OUT/model.onnx, OUT/model.tflite, OUT/tfjs/model.json with its weights, OUT/io.json with the names and
shapes of inputs and outputs, OUT/in<i>.bin, and OUT/ref<i>.bin. Needs tensorflow-cpu 2.15, tf2onnx, and tensorflowjs.
"""

import json
import os
import pathlib
import shutil
import sys
import unittest.mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""
# The converter imports packages that it needs only for other models.
for name in ("tensorflow_decision_forests", "tensorflow_hub", "tf_keras", "jax", "jax.experimental"):
    sys.modules.setdefault(name, unittest.mock.MagicMock())

import onnx  # noqa: E402
import tensorflow as tf  # noqa: E402
import tf2onnx  # noqa: E402

v1 = tf.compat.v1


def main() -> None:
    prepared, out = map(pathlib.Path, sys.argv[1:3])
    out.mkdir(parents=True, exist_ok=True)
    signature = json.loads((prepared / "sig.json").read_text())
    feeds = [feed["tensor"] for feed in signature["feeds"]]
    fetches = [fetch["tensor"] for fetch in signature["fetches"]]
    graph = v1.GraphDef()
    graph.ParseFromString((prepared / "static.pb").read_bytes())
    model, _ = tf2onnx.convert.from_graph_def(graph, input_names=feeds, output_names=fetches, opset=17)
    onnx.save(model, str(out / "model.onnx"))
    with tf.Graph().as_default() as whole:
        tf.import_graph_def(graph, name="")
        with v1.Session(graph=whole) as session:
            tensors = [[whole.get_tensor_by_name(name) for name in names] for names in (feeds, fetches)]
            converter = v1.lite.TFLiteConverter.from_session(session, *tensors)
            (out / "model.tflite").write_bytes(converter.convert())
    convert_tfjs(prepared / "static.pb", fetches, out / "tfjs")
    arrays = {"inputs": signature["feeds"], "outputs": signature["fetches"]}
    (out / "io.json").write_text(json.dumps(arrays))
    for file in [*prepared.glob("in*.bin"), *prepared.glob("ref*.bin")]:
        shutil.copy(file, out / file.name)


def convert_tfjs(graph: pathlib.Path, fetches: list[str], out: pathlib.Path) -> None:
    from tensorflowjs.converters import tf_saved_model_conversion_v2 as converter

    nodes = ",".join(name.removesuffix(":0") for name in fetches)
    converter.convert_tf_frozen_model(str(graph), nodes, str(out), skip_op_check=False)


main()
