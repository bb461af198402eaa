#!/usr/bin/env python3
"""Tests the backend in Triton Inference Server itself.

    test_server.py TOOL LIBRARY FOLDER

Numbers are compared with those of TensorFlow in tests/saved_models, and with NumPy.
"""

import concurrent.futures
import itertools
import pathlib
import shutil
import sys
import threading
import time

import models
import numpy as np
import server
import tritonclient.http as client
from tritonclient.utils import InferenceServerException

rng = np.random.default_rng(1)


def infer(connection, model, inputs, outputs, **options):
    """Returns the outputs of a request by name."""
    tensors = [server.tensor(name, *(array if isinstance(array, tuple) else (array,))) for name, array in inputs.items()]
    requested = [client.InferRequestedOutput(name, binary_data=True) for name in outputs]
    result = connection.infer(model, tensors, outputs=requested, **options)
    return {name: result.as_numpy(name) for name in outputs}


def failure(connection, model, inputs, outputs=("y",)):
    """Returns the message with which a request fails."""
    try:
        infer(connection, model, inputs, outputs)
    except InferenceServerException as error:
        return str(error)
    raise AssertionError(f"{model}: expected an error")


def close(found, expected, tolerance=1e-5):
    assert found.shape == expected.shape, (found.shape, expected.shape)
    assert np.allclose(found, expected, rtol=tolerance, atol=tolerance), (found, expected)


def recorded(connection, model, signature, file, rename=lambda name: name):
    """Compares with the recorded answers of TensorFlow."""
    arrays = np.load(models.SAVED / file)
    inputs = {rename(key.split("/", 2)[2]): np.atleast_1d(arrays[key]) for key in arrays if key.startswith(f"{signature}/in/")}
    outputs = {key.split("/", 2)[2]: arrays[key] for key in arrays if key.startswith(f"{signature}/out/")}
    found = infer(connection, model, inputs, outputs)
    for name, expected in outputs.items():
        # The server has no shape without dimensions, and tensors of rows keep one.
        close(found[name].reshape(expected.shape), expected)


def test_recorded_models(connection):
    recorded(connection, "keras2", "serving_default", "keras2.npz")
    recorded(connection, "keras3", "serving_default", "keras3.npz")
    recorded(connection, "module", "serving_default", "module.npz", rename=lambda name: name.replace("/", "_"))
    recorded(connection, "branches", "branches", "flow.npz")


def test_programs_for_gpus(connection):
    if connection.is_model_ready("gpu"):
        recorded(connection, "gpu", "serving_default", "keras2.npz")
    else:
        assert "gpu" not in [name for name, *_ in models.all_models()]
        print("skipped: no OpenCL driver (scripts/setup_gpu.sh opencl)")


def test_completed_configurations(connection):
    config = connection.get_model_config("keras2")
    assert config["max_batch_size"] == 64 and "dynamic_batching" in config, config
    assert [(entry["name"], entry["dims"]) for entry in config["output"]] == [("output_0", [2]), ("output_1", [1])], config
    config = connection.get_model_config("module")
    assert [group["count"] for group in config["instance_group"]] == [2], config
    assert config["output"][0]["reshape"] == {"shape": []}, config
    config = connection.get_model_config("softmax")
    assert config["max_batch_size"] == 0 and "dynamic_batching" not in config, config
    assert config["input"][0]["dims"] == [-1, -1], config
    assert connection.get_model_config("types")["input"][7]["data_type"] == "TYPE_BF16"


def typed(rows):
    return {
        "flag": rng.integers(0, 2, (rows, 3)).astype(bool),
        "i8": rng.integers(-128, 128, (rows, 3)).astype(np.int8),
        "u8": rng.integers(0, 256, (rows, 3)).astype(np.uint8),
        "i16": rng.integers(-180, 180, (rows, 3)).astype(np.int16),
        "u32": rng.integers(0, 2**31, (rows, 3)).astype(np.uint32),
        "i64": rng.integers(-2**60, 2**60, (rows, 3)),
        "f16": rng.standard_normal((rows, 3)).astype(np.float16),
        # Exact in bfloat16.
        "bf16": (rng.integers(-64, 64, (rows, 3)).astype(np.float32), "BF16"),
        "f64": rng.standard_normal((rows, 3)),
    }


def typed_results(x):
    b = x["bf16"][0]
    arrays = [~x["flag"], x["i8"] + x["i8"], x["u8"] + x["u8"], x["i16"] * x["i16"], x["u32"] + x["u32"], -x["i64"]]
    arrays += [x["f16"] * x["f16"], -b, x["f64"] * x["f64"], x["flag"].astype(np.int32)]
    return {f"result{k}": array for k, array in enumerate(arrays)}


def test_types(connection):
    for model, rows in (("types", 8), ("types_batched", 8), ("types_batched", 3), ("types_batched", 1)):
        inputs = typed(rows)
        expected = typed_results(inputs)
        found = infer(connection, model, inputs, expected)
        for name, array in expected.items():
            assert found[name].dtype == array.dtype and np.array_equal(found[name], array), (model, rows, name)
    assert "shape" in failure(connection, "types", typed(7), ["result0"])


def softmax(x):
    y = np.exp(x - x.max(axis=-1, keepdims=True))
    return y / y.sum(axis=-1, keepdims=True)


def test_two_dimensions(connection):
    for model, rows, columns in itertools.product(("softmax", "softmax_batched"), (1, 3, 8), (1, 5, 16)):
        x = rng.standard_normal((rows, columns)).astype(np.float32)
        close(infer(connection, model, {"x": x}, ["y"])["y"], softmax(x))
    message = failure(connection, "softmax", {"x": np.zeros((3, 17), np.float32)})
    assert "input 'x': expected 1..16 in dimension 1, got 17" in message, message
    message = failure(connection, "softmax_batched", {"x": np.zeros((9, 3), np.float32)})
    assert "8" in message, message


def together(running, calls):
    """Makes all calls at once, and returns their results or exceptions."""
    connections = [running.connect() for _ in calls]
    barrier = threading.Barrier(len(calls))

    def run(call, connection):
        barrier.wait()
        try:
            return call(connection)
        except InferenceServerException as error:
            return error

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls, connections))


def test_requests_share_runs(connection, running):
    before = connection.get_inference_statistics("softmax_batched")["model_stats"][0]
    arrays = [rng.standard_normal((1 + k % 3, 4 + k % 2)).astype(np.float32) for k in range(12)]
    for _ in range(5):
        calls = [lambda c, x=x: infer(c, "softmax_batched", {"x": x}, ["y"])["y"] for x in arrays]
        for x, y in zip(arrays, together(running, calls)):
            close(y, softmax(x))
    after = connection.get_inference_statistics("softmax_batched")["model_stats"][0]
    requests = after["inference_stats"]["success"]["count"] - before["inference_stats"]["success"]["count"]
    runs, rows = (after[key] - before[key] for key in ("execution_count", "inference_count"))
    assert requests == 60 and rows == 5 * sum(len(x) for x in arrays), (requests, rows)
    assert runs < requests, f"{requests} requests in {runs} runs"


def test_an_error_concerns_one_request(connection, running):
    arrays = [np.full((1, 2), k + 1, np.float32) for k in range(6)]
    arrays[2][0, 1] = -1
    before = connection.get_inference_statistics("positive")["model_stats"][0]["inference_stats"]
    answers = together(running, [lambda c, x=x: infer(c, "positive", {"x": x}, ["y"])["y"] for x in arrays])
    for k, (x, y) in enumerate(zip(arrays, answers)):
        if k == 2:
            assert isinstance(y, InferenceServerException) and "x must be positive" in str(y), y
        else:
            close(y, x * x)
    after = connection.get_inference_statistics("positive")["model_stats"][0]["inference_stats"]
    counts = [after[key]["count"] - before[key]["count"] for key in ("success", "fail")]
    assert counts == [5, 1], counts


def test_sequences_keep_their_state(connection):
    totals = {7: np.zeros((1, 2), np.float32), 9: np.zeros((1, 2), np.float32)}
    for step in range(4):
        for sequence in totals:
            x = rng.integers(-9, 9, (1, 2)).astype(np.float32)
            totals[sequence] += x
            flags = {"sequence_id": sequence, "sequence_start": step == 0, "sequence_end": step == 3}
            close(infer(connection, "total", {"x": x}, ["total_out"], **flags)["total_out"], totals[sequence], 0)
    config = connection.get_model_config("total")
    assert [entry["name"] for entry in config["input"]] == ["x"], config


WRONG = {
    "no_library": ("", "has no shared library; write one there with tfcompile build"),
    "batch": ("max_batch_size: 65", "max_batch_size is 65, but the program takes at most 64 rows"),
    "name": ('max_batch_size: 4 input { name: "x" data_type: TYPE_FP32 dims: [ 4 ] }', "no feed of this name; it has 'features'"),
    "type": ('max_batch_size: 4 input { name: "features" data_type: TYPE_FP16 dims: [ 4 ] }', "data_type is TYPE_FP16, but the program's is TYPE_FP32"),
    "sizes": ('max_batch_size: 4 input { name: "features" data_type: TYPE_FP32 dims: [ 5 ] }', "the sizes are [5], but the program's are [4] after the batch"),
    "threads": ('parameters { key: "threads" value { string_value: "0" } }', "expected 1 to 1024, got 0"),
    "constants": ("", "has no file *.constants; copy the one that tfcompile build wrote"),
    "other_constants": ("", "the constants are for other code"),
    "text": ("", "not an object file"),
    "variables": ("", "the program has variables ('v', 'v_1')"),
}


def write_wrong_models(tool, repository):
    for name, (text, _) in WRONG.items():
        models.configure(repository, f"wrong_{name}", text)
        version = repository / f"wrong_{name}" / "1"
        version.mkdir()
        if name == "variables":
            models.build(tool, models.SAVED / "module", ["--variables-to-feed=all"], version, name)
        elif name == "text":
            (version / "libtext.so").write_text("int main(void) { return 0; }")
        elif name != "no_library":
            shutil.copy(repository / "keras2/1/libkeras2.so", version)
        if name not in ("no_library", "constants", "other_constants", "text", "variables"):
            shutil.copy(repository / "keras2/1/keras2.constants", version)
        if name == "other_constants":
            file = bytearray((repository / "keras2/1/keras2.constants").read_bytes())
            file[20] ^= 1
            (version / "keras2.constants").write_bytes(file)


def test_wrong_configurations(running):
    for name, (_, expected) in WRONG.items():
        message = running.load_failure(f"wrong_{name}")
        assert expected in message, f"{name}: expected\n{expected}\ngot\n{message}"


def scaled(tool, repository, version, factor):
    """Overwrites a version of the model y = factor * x in place, as a copy does."""
    text = f"""func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {{
      %0 = stablehlo.constant dense<{factor}> : tensor<f32>
      %1 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
      %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
      %3 = stablehlo.constant dense<3> : tensor<1xi32>
      %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %5 = stablehlo.dynamic_broadcast_in_dim %0, %4, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x3xf32>
      %6 = stablehlo.multiply %x, %5 : tensor<?x3xf32>
      return %6 : tensor<?x3xf32>
    }}"""
    source = repository.parent / "scaled.mlir"
    source.write_text(text)
    built = repository.parent / "scaled"
    models.build(tool, source, ["--dim=batch=1..32"], built, "scaled")
    folder = repository / "scaled" / str(version)
    folder.mkdir(parents=True, exist_ok=True)
    # The same file, with other contents.
    with open(folder / "libscaled.so", "r+b" if (folder / "libscaled.so").exists() else "wb") as file:
        file.write((built / "libscaled.so").read_bytes())
        file.truncate()


def test_replacing_a_model_under_load(tool, running):
    repository = running.repository
    scaled(tool, repository, 1, 2.0)
    scaled(tool, repository, 2, 10.0)
    models.configure(repository, "scaled", "version_policy { all {} }")
    connection = running.connect()
    connection.load_model("scaled")
    x = np.arange(6, dtype=np.float32).reshape(2, 3) + 1
    one = infer(connection, "scaled", {"x": x}, ["result0"], model_version="1")["result0"]
    two = infer(connection, "scaled", {"x": x}, ["result0"], model_version="2")["result0"]
    close(one, 2 * x)
    close(two, 10 * x)

    is_over = threading.Event()
    current = [10.0]

    def client_of_one_thread(_):
        connection, count = running.connect(), 0
        while not is_over.is_set():
            before = current[0]
            y = infer(connection, "scaled", {"x": x}, ["result0"], model_version="2")["result0"]
            factor = float(y[0, 0])
            close(y, factor * x)
            assert before <= factor <= current[0] + 1, (before, factor, current[0])
            count += 1
        return count

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        clients = [pool.submit(client_of_one_thread, k) for k in range(4)]
        for factor in range(11, 17):
            scaled(tool, repository, 2, float(factor))
            connection.load_model("scaled")
            current[0] = float(factor)
            time.sleep(0.1)
        is_over.set()
        counts = [future.result() for future in clients]
    assert all(counts), counts
    print(f"  {sum(counts)} requests while the model was replaced six times")
    connection.unload_model("scaled")
    assert "not ready" in failure(connection, "scaled", {"x": x}, ["result0"]) or not connection.is_model_ready("scaled")


def main(tool, library, folder):
    folder = pathlib.Path(folder)
    repository = folder / "repository"
    models.write(tool, repository)
    write_wrong_models(tool, repository)
    flags = ["--model-control-mode=explicit", *(f"--load-model={name}" for name, *_ in models.all_models())]
    with server.Server(folder, library, *flags) as running:
        connection = running.connect()
        arguments = {"connection": connection, "running": running, "tool": tool}
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test(**{key: arguments[key] for key in test.__code__.co_varnames[: test.__code__.co_argcount]})
                print(f"{name}: passed")
    check_log(running)
    # The server may forbid the backend to complete configurations.
    full = 'input { name: "features" data_type: TYPE_FP32 dims: [ 4 ] } output { name: "output_1" data_type: TYPE_FP32 dims: [ 1 ] }'
    models.configure(repository, "keras2", f"max_batch_size: 4 {full}")
    flags = ["--model-control-mode=explicit", "--disable-auto-complete-config", "--load-model=keras2"]
    with server.Server(folder, library, *flags) as running:
        arrays = np.load(models.SAVED / "keras2.npz")
        x, expected = (arrays[f"serving_default/{part}"] for part in ("in/features", "out/output_1"))
        close(infer(running.connect(), "keras2", {"features": x}, ["output_1"])["output_1"], expected)
        message = failure(running.connect(), "keras2", {"features": np.zeros((5, 4), np.float32)}, ["output_1"])
        assert "<= 4" in message, message
    check_log(running)
    print("triton: all tests passed")


def check_log(running):
    log = running.log.read_text()
    assert "the backend has a bug" not in log and "a response failed" not in log, log


if __name__ == "__main__":
    main(*sys.argv[1:])
