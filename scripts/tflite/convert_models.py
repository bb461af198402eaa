#!/usr/bin/env python3
"""Converts SavedModels with TensorFlow's converter: NAME.int8.tflite (integers throughout, also of
inputs and results), NAME.dynamic.tflite (int8 weights), NAME.float16.tflite (weights), NAME.float.tflite.

    convert_models.py [--kinds KINDS] OUT NAME=SAVED_MODEL...

The calibration data is noise, so the files serve to compare runtimes, not to measure accuracy.
Requires tensorflow-cpu==2.15.1.
"""

import argparse
import pathlib

import numpy as np
import tensorflow as tf


def converter_of(folder):
    """A converter and the inputs of a SavedModel's signature."""
    model = tf.saved_model.load(folder)
    function = model.signatures["serving_default"]
    inputs = function.structured_input_signature[1]
    return tf.lite.TFLiteConverter.from_concrete_functions([function], model), inputs


def calibration(inputs):
    """Four random examples. Integers are 0 or 1, indices that every table has."""
    generator = np.random.default_rng(0)
    for _ in range(4):
        yield {
            name: generator.random([size or 1 for size in spec.shape.as_list()], dtype=np.float32)
            if spec.dtype.is_floating
            else generator.integers(0, 2, [size or 1 for size in spec.shape.as_list()]).astype(spec.dtype.as_numpy_dtype)
            for name, spec in inputs.items()
        }


def convert(folder, kind):
    """The bytes of a converted model."""
    converter, inputs = converter_of(folder)
    if kind != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if kind == "int8":
        converter.representative_dataset = lambda: calibration(inputs)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    return converter.convert()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--kinds", default="float,float16,dynamic,int8", help="joined by commas")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("models", nargs="+", metavar="NAME=SAVED_MODEL")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for argument in options.models:
        name, folder = argument.split("=", 1)
        for kind in options.kinds.split(","):
            contents = convert(folder, kind)
            (options.out / f"{name}.{kind}.tflite").write_bytes(contents)
            print(f"{name}.{kind}.tflite: {len(contents)} bytes", flush=True)


if __name__ == "__main__":
    main()
