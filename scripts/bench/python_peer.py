#!/usr/bin/env python3
"""Runs a model with a peer and serves the protocol of the bench harness.

    python_peer.py HARNESS PEER MODEL THREADS [INPUTS.npz]      PEER: litert, ort, openvino, xla

Inputs are those of the archive, by name or else in order; without one they are random. XLA runs artifacts
of jax.export. Run with the Python of the environment that has the peer.
"""

import os
import re
import sys

import numpy as np

harness, peer, model, threads = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
sys.path.insert(0, os.path.join(harness, "lib"))
import benchloop  # noqa: E402

generator = np.random.default_rng(0)
given = dict(np.load(sys.argv[5])) if len(sys.argv) > 5 else {}


def values(shape, dtype):
    """Random numbers for an input."""
    shape = [size if isinstance(size, int) and size > 0 else 1 for size in shape]
    if np.issubdtype(dtype, np.floating):
        return generator.random(shape).astype(dtype)
    # Every table has the indices 0 and 1.
    return generator.integers(0, 100 if dtype == np.int8 else 2, shape).astype(dtype)


def arrays(names):
    """The given inputs for inputs that have these names, or None if there are none.

    They can be given by names of TensorFlow, which has fewer characters.
    """
    spellings = lambda name: (name, name.removesuffix(":0"), re.sub(r"[^\w.\-/>]", "_", name))
    found = [next((given[form] for name in own for form in spellings(name) if form in given), None) for own in names]
    if given and all(array is None for array in found):
        return list(given.values())
    return found


def litert():
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=model, num_threads=threads)
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()
    for detail, array in zip(details, arrays([(detail["name"],) for detail in details])):
        array = values(detail["shape"].tolist(), detail["dtype"]) if array is None else array
        interpreter.set_tensor(detail["index"], array)
    return interpreter._interpreter.Invoke


def ort():
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    types = {"tensor(float)": np.float32, "tensor(int32)": np.int32, "tensor(int64)": np.int64}
    binding = session.io_binding()
    held, entries = [], session.get_inputs()
    for entry, array in zip(entries, arrays([(entry.name,) for entry in entries])):
        array = values(entry.shape, types[entry.type]) if array is None else array
        array = array.astype(types.get(entry.type, array.dtype))
        held.append(onnxruntime.OrtValue.ortvalue_from_numpy(array))
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

    core = openvino.Core()
    network = core.read_model(model)
    inputs = arrays([entry.get_names() for entry in network.inputs])
    network.reshape({k: openvino.PartialShape(array.shape) for k, array in enumerate(inputs) if array is not None})
    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    # Otherwise, activations of layers with int8 weights are rounded to int8.
    settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] = 0
    compiled = core.compile_model(network, "CPU", settings)
    request = compiled.create_infer_request()
    for entry, array in zip(compiled.inputs, inputs):
        dtype = entry.get_element_type().to_dtype()
        if array is None:
            array = values([size.get_length() if size.is_static else 1 for size in entry.partial_shape], dtype)
        request.set_tensor(entry, openvino.Tensor(np.array(array, dtype, order="C")))
    return request.infer


def xla():
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.export

    with open(model, "rb") as file:
        exported = jax.export.deserialize(bytearray(file.read()))
    inputs = jax.device_put({name.removeprefix("x_"): array for name, array in given.items()})
    call = jax.jit(exported.call).lower(inputs).compile()
    return lambda: jax.block_until_ready(call(inputs))


benchloop.serve({"litert": litert, "ort": ort, "openvino": openvino, "xla": xla}[peer]())
