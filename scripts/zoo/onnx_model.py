"""Runs an ONNX model with ONNX Runtime.

    onnx_model.py MODEL.onnx FEEDS.npz RESULTS.npz

FEEDS.npz has an array for each input, by name; RESULTS.npz receives the outputs as "0", "1", ..
"""

import sys

import numpy as np
import onnxruntime

model, feeds, results = sys.argv[1:]
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
with np.load(feeds) as archive:
    outputs = session.run(None, dict(archive))
np.savez(results, **{str(k): output for k, output in enumerate(outputs)})
