#!/usr/bin/env python3
"""Quantizes a float ONNX model with ONNX Runtime: QDQ pairs, int8 weights per channel, calibrated
with noise. ONNX Runtime and OpenVINO run the result.

    int8_onnx.py FLOAT.onnx INT8.onnx
"""

import os
import sys
import tempfile

import numpy as np
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quant_pre_process, quantize_static

TYPES = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64}


class Noise(CalibrationDataReader):
    """Two random examples."""

    def __init__(self, path):
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        generator = np.random.default_rng(0)
        self.left = []
        for _ in range(2):
            example = {}
            for entry in session.get_inputs():
                shape = [size if isinstance(size, int) else 1 for size in entry.shape]
                dtype = TYPES[entry.type]
                # Every table has the indices 0 and 1.
                numbers = generator.random(shape) if dtype == np.float32 else generator.integers(0, 2, shape)
                example[entry.name] = numbers.astype(dtype)
            self.left.append(example)

    def get_next(self):
        return self.left.pop() if self.left else None


def main():
    source, target = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        prepared = os.path.join(folder, "prepared.onnx")
        quant_pre_process(source, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared,
            target,
            Noise(prepared),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            weight_type=QuantType.QInt8,
            activation_type=QuantType.QUInt8,
        )


if __name__ == "__main__":
    main()
