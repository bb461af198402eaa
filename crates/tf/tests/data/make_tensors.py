#!/usr/bin/env python3
"""Writes tensors.txt: tensors in text format, one a line, and the bytes that TensorFlow's decoder makes of them.

Run with tensorflow-cpu==2.15.1. A line: text, tab, hexadecimal bytes in row-major order.
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from google.protobuf import text_format  # noqa: E402
from tensorflow.core.framework import tensor_pb2  # noqa: E402

TEXTS = []


def shaped(dtype, shape, values):
    dims = " ".join(f"dim {{ size: {d} }}" for d in shape)
    TEXTS.append(f"dtype: {dtype} tensor_shape {{ {dims} }} {values}")


shaped("DT_FLOAT", [2, 3], "float_val: [1.5, -2, 0.25, 1e-40, 3, 4]")
shaped("DT_FLOAT", [2, 3], "float_val: 1.5 float_val: -2")
shaped("DT_FLOAT", [2, 2], "")
shaped("DT_FLOAT", [0, 7], "")
shaped("DT_FLOAT", [], "float_val: -0.0")
shaped("DT_FLOAT", [3], "float_val: inf float_val: -inf float_val: 0")
shaped("DT_DOUBLE", [3], "double_val: 0.1 double_val: 1e300")
shaped("DT_INT32", [4], "int_val: -1 int_val: 2147483647 int_val: -2147483648")
shaped("DT_INT16", [3], "int_val: -3 int_val: 32767")
shaped("DT_INT8", [3], "int_val: -128 int_val: 5")
shaped("DT_UINT8", [3], "int_val: 255 int_val: 5")
shaped("DT_UINT16", [3], "int_val: 65535")
shaped("DT_INT64", [2], "int64_val: -9223372036854775808 int64_val: 9223372036854775807")
shaped("DT_UINT32", [2], "uint32_val: 4294967295 uint32_val: 0")
shaped("DT_UINT64", [2], "uint64_val: 18446744073709551615")
shaped("DT_BOOL", [3], "bool_val: true bool_val: false")
shaped("DT_HALF", [3], "half_val: 15360 half_val: 49152")
shaped("DT_BFLOAT16", [3], "half_val: 16256 half_val: 49152")
shaped("DT_COMPLEX64", [3], "scomplex_val: 1 scomplex_val: -2 scomplex_val: 0.5 scomplex_val: 0")
shaped("DT_COMPLEX128", [2], "dcomplex_val: 1 dcomplex_val: -2")
shaped("DT_QINT8", [2], "int_val: -7")
shaped("DT_QUINT8", [2], "int_val: 200")
shaped("DT_QINT32", [2], "int_val: 70000 int_val: -1")
shaped("DT_INT32", [2], r'tensor_content: "\001\000\000\000\377\377\377\377"')
shaped("DT_FLOAT", [1], r'tensor_content: "\000\000\200?"')
shaped("DT_BOOL", [2], r'tensor_content: "\001\000"')
shaped("DT_COMPLEX64", [1], r'tensor_content: "\000\000\200?\000\000\000\300"')


def main():
    lines = []
    for text in TEXTS:
        proto = text_format.Parse(text, tensor_pb2.TensorProto())
        array = np.ascontiguousarray(tf.make_ndarray(proto))
        lines.append(f"{text}\t{array.tobytes().hex()}\n")
    (pathlib.Path(__file__).parent / "tensors.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
