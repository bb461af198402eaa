"""Sends requests of different sizes to a model of Triton Inference Server at once, and prints how many runs they took.

    client.py MODEL [URL]

The model's first input is an array of floats, a row for each sample.
"""

import concurrent.futures
import sys
import threading

import numpy as np
import tritonclient.http as client


def main(model, url="localhost:8000"):
    connection = client.InferenceServerClient(url)
    config = connection.get_model_config(model)
    name, sizes = config["input"][0]["name"], config["input"][0]["dims"]
    output = config["output"][0]["name"]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal([1 + k % 4, *sizes], dtype=np.float32) for k in range(200)]

    # A connection belongs to the thread that opened it.
    local = threading.local()

    def infer(array):
        if not hasattr(local, "connection"):
            local.connection = client.InferenceServerClient(url)
        entry = client.InferInput(name, list(array.shape), "FP32")
        entry.set_data_from_numpy(array)
        return local.connection.infer(model, [entry]).as_numpy(output)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        results = list(pool.map(infer, arrays))
    assert all(len(result) == len(array) for result, array in zip(results, arrays))
    # Rows do not depend on what they were computed with.
    for array, result in zip(arrays[:20], results):
        assert np.allclose(infer(array), result, rtol=1e-5, atol=1e-6)
    statistics = connection.get_inference_statistics(model)["model_stats"][0]
    print(f"{model}: {statistics['inference_count']} rows in {statistics['execution_count']} runs")


if __name__ == "__main__":
    main(*sys.argv[1:])
