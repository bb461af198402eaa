#!/usr/bin/env python3
"""Runs an int8 model with a peer and serves the protocol of the bench harness.

    int8_peer.py HARNESS PEER MODEL THREADS      PEER: litert, ort, openvino

Inputs are random. Run with the Python of the environment that has the peer.
"""

import os
import sys

import numpy as np

harness, peer, model, threads = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
sys.path.insert(0, os.path.join(harness, "lib"))
import benchloop  # noqa: E402

generator = np.random.default_rng(0)


def values(shape, dtype):
    """Random numbers for an input."""
    shape = [size if isinstance(size, int) and size > 0 else 1 for size in shape]
    if np.issubdtype(dtype, np.floating):
        return generator.random(shape).astype(dtype)
    # Every table has the indices 0 and 1.
    return generator.integers(0, 100 if dtype == np.int8 else 2, shape).astype(dtype)


def litert():
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=model, num_threads=threads)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], values(detail["shape"].tolist(), detail["dtype"]))
    return interpreter._interpreter.Invoke


def ort():
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    types = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64}
    binding = session.io_binding()
    held = []
    for entry in session.get_inputs():
        held.append(onnxruntime.OrtValue.ortvalue_from_numpy(values(entry.shape, types[entry.type])))
        binding.bind_ortvalue_input(entry.name, held[-1])
    names = [entry.name for entry in session.get_outputs()]
    for name in names:
        binding.bind_output(name)
    session.run_with_iobinding(binding)
    # From here on, the results live in allocated buffers.
    for name, result in zip(names, binding.copy_outputs_to_cpu()):
        held.append(onnxruntime.OrtValue.ortvalue_from_numpy(result))
        binding.bind_ortvalue_output(name, held[-1])
    raw, inner = session._sess, binding._iobinding
    return lambda held=held: raw.run_with_iobinding(inner, None)


def openvino():
    import openvino

    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.Core().compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()
    for entry in compiled.inputs:
        shape = [size.get_length() if size.is_static else 1 for size in entry.partial_shape]
        request.set_tensor(entry, openvino.Tensor(values(shape, entry.get_element_type().to_dtype())))
    return request.infer


benchloop.serve({"litert": litert, "ort": ort, "openvino": openvino}[peer]())
