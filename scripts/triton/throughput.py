#!/usr/bin/env python3
"""Measures requests per second of an MLP in Triton Inference Server, with and without dynamic batching.

    throughput.py TOOL LIBRARY FOLDER

Clients and server share the machine. The package of the server has no backend for ONNX or TensorFlow to compare with.
"""

import http.client
import json
import multiprocessing
import pathlib
import shutil
import sys
import threading
import time

import models
import numpy as np
import server

SIZES = [784, 2048, 2048, 10]
SECONDS = 4


def write_mlp(folder, weights):
    """Writes an MLP as a graph model of TensorFlow.js, whose weights are plain bytes in a file."""
    folder.mkdir(parents=True, exist_ok=True)
    float32 = {"type": "DT_FLOAT"}
    open_rows = {"shape": {"dim": [{"size": "-1"}, {"size": str(SIZES[0])}]}}
    nodes = [{"name": "x", "op": "Placeholder", "attr": {"dtype": float32, "shape": open_rows}}]
    value = "x"
    for name, array in weights.items():
        nodes.append({"name": name, "op": "Const", "attr": {"dtype": float32}})
        product = {"name": f"{name}_product", "op": "MatMul", "input": [value, name], "attr": {"T": float32}}
        nodes += [product, {"name": f"{name}_tanh", "op": "Tanh", "input": [product["name"]], "attr": {"T": float32}}]
        value = nodes[-1]["name"]
    nodes.append({"name": "y", "op": "Identity", "input": [value], "attr": {"T": float32}})
    entries = [{"name": name, "shape": list(array.shape), "dtype": "float32"} for name, array in weights.items()]
    (folder / "weights.bin").write_bytes(b"".join(array.tobytes() for array in weights.values()))
    manifest = [{"paths": ["weights.bin"], "weights": entries}]
    described = {"format": "graph-model", "modelTopology": {"node": nodes, "versions": {"producer": 1087}}, "weightsManifest": manifest}
    (folder / "model.json").write_text(json.dumps(described))
    return folder / "model.json"


def client(url, model, until, seed, counts, times):
    """Sends requests of one row, one after another."""
    x = np.random.default_rng(seed).standard_normal((1, SIZES[0])).astype(np.float32)
    entry = {"name": "x", "shape": [1, SIZES[0]], "datatype": "FP32", "parameters": {"binary_data_size": x.nbytes}}
    header = json.dumps({"inputs": [entry], "parameters": {"binary_data_output": True}}).encode()
    connection = http.client.HTTPConnection(url)
    headers = {"Inference-Header-Content-Length": str(len(header))}
    while time.monotonic() < until:
        start = time.monotonic()
        connection.request("POST", f"/v2/models/{model}/infer", header + x.tobytes(), headers)
        response = connection.getresponse()
        if response.status != 200:
            raise RuntimeError(response.read())
        response.read()
        times.append(time.monotonic() - start)
    connection.close()
    counts.append(len(times))


def process(url, model, until, first, number, results):
    times = [[] for _ in range(number)]
    counts = []
    threads = [threading.Thread(target=client, args=(url, model, until, first + k, counts, times[k])) for k in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put([t for list_ in times for t in list_])


def measure(url, model, clients):
    results = multiprocessing.Queue()
    until = time.monotonic() + SECONDS
    numbers = [clients // 2, clients - clients // 2] if clients > 1 else [1]
    running = [multiprocessing.Process(target=process, args=(url, model, until, 100 * k, number, results)) for k, number in enumerate(numbers)]
    for one in running:
        one.start()
    times = sorted(time for _ in running for time in results.get())
    for one in running:
        one.join()
    return len(times) / SECONDS, 1e3 * times[len(times) // 2], 1e3 * times[len(times) * 99 // 100]


def main(tool, library, folder):
    folder = pathlib.Path(folder)
    repository = folder / "repository"
    shutil.rmtree(repository, ignore_errors=True)
    rng = np.random.default_rng(0)
    shapes = enumerate(zip(SIZES, SIZES[1:]))
    weights = {f"w{k}": (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32) for k, shape in shapes}
    model = write_mlp(folder / "mlp", weights)
    flags = ["--fetch=y", "--constants=file", "--dim=batch=1..64"]
    single = "max_batch_size: 1"
    for name, text in (("joined", ""), ("single", single)):
        models.build(tool, model, flags, repository / name / "1", "mlp")
        models.configure(repository, name, text)
    with server.Server(folder, library) as running:
        connection = running.connect()
        x = rng.standard_normal((3, SIZES[0])).astype(np.float32)
        expected = x
        for k in range(len(SIZES) - 1):
            expected = np.tanh(expected @ weights[f"w{k}"])
        found = connection.infer("joined", [server.tensor("x", x)]).as_numpy("y")
        assert np.allclose(found, expected, atol=1e-4), np.abs(found - expected).max()
        print("clients  model    requests/s  median ms   99% ms  rows/run")
        for clients in (1, 8, 32):
            for name in ("single", "joined"):
                before = connection.get_inference_statistics(name)["model_stats"][0]
                rate, median, late = measure(running.url, name, clients)
                after = connection.get_inference_statistics(name)["model_stats"][0]
                rows, runs = (after[key] - before[key] for key in ("inference_count", "execution_count"))
                print(f"{clients:7}  {name:7}  {rate:10.0f}  {median:9.2f}  {late:7.2f}  {rows / runs:8.1f}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
