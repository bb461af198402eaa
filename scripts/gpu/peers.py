#!/usr/bin/env python3
"""Measures the models of `models.py` with JAX and PyTorch, whichever are installed.

    peers.py --json FILE    writes {peer: {version, models: {name: seconds}}}

The time of a model is the median over runs of one call on arrays that are on the device, after
warming up. Floats of 32 bits are computed without TF32.
"""
import json
import math
import statistics
import sys
import time

BUDGET_S = 1.0


def measure(call, wait):
    for _ in range(3):
        call()
    wait()
    times, start = [], time.perf_counter()
    while time.perf_counter() - start < BUDGET_S and len(times) < 2000:
        begin = time.perf_counter()
        call()
        wait()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def jax_models():
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_default_matmul_precision", "highest")
    key = jax.random.PRNGKey(0)

    def array(*sizes, kind=jnp.float32):
        return (jax.random.uniform(key, sizes) * 0.25 + 0.25).astype(kind)

    def layer_norm(a, g, b):
        mean = a.mean(1, keepdims=True)
        d = a - mean
        return d * jax.lax.rsqrt((d * d).mean(1, keepdims=True) + 1e-5) * g + b

    def conv(a, k):
        numbers = ("NHWC", "HWIO", "NHWC")
        return jnp.maximum(jax.lax.conv_general_dilated(a, k, (1, 1), "SAME", dimension_numbers=numbers), 0)

    def mlp(x, *parameters):
        for w, b in zip(parameters[::2], parameters[1::2]):
            x = jnp.tanh(x @ w + b)
        return x

    def layers(batch, width, count):
        return [array(batch, width)] + [array(width, width), array(width)] * count

    def attention(q, k, v):
        scores = jnp.einsum("hqd,hkd->hqk", q, k, preferred_element_type=jnp.float32)
        weights = jax.nn.softmax(scores * q.shape[2] ** -0.5, 2)
        return jnp.einsum("hqk,hkd->hqd", weights.astype(v.dtype), v)

    models = {
        "matmul_f32_4096": (jnp.matmul, [array(4096, 4096)] * 2),
        "matmul_f32_1024": (jnp.matmul, [array(1024, 1024)] * 2),
        "matmul_bf16_4096": (jnp.matmul, [array(4096, 4096, kind=jnp.bfloat16)] * 2),
        "matmul_f16_4096": (jnp.matmul, [array(4096, 4096, kind=jnp.float16)] * 2),
        "elementwise_64m": (lambda a, b, c: jnp.tanh(a * b + c), [array(1 << 26)] * 3),
        "softmax_16384x1024": (lambda a: jax.nn.softmax(a, 1), [array(16384, 1024)]),
        "layer_norm_16384x1024": (layer_norm, [array(16384, 1024), array(1024), array(1024)]),
        "column_sum_16384x4096": (lambda a: a.sum(0), [array(16384, 4096)]),
        "total_64m": (lambda a: a.sum(), [array(1 << 26)]),
        "transpose_8192": (lambda a: a.T.copy(), [array(8192, 8192)]),
        "convolution_32x56x64": (conv, [array(32, 56, 56, 64), array(3, 3, 64, 64)]),
        "attention_f32_16x1024x64": (attention, [array(16, 1024, 64)] * 3),
        "attention_f16_16x1024x64": (attention, [array(16, 1024, 64, kind=jnp.float16)] * 3),
        "attention_bf16_64x2048x128": (attention, [array(64, 2048, 128, kind=jnp.bfloat16)] * 3),
        "mlp_1x256": (mlp, layers(1, 256, 8)),
        "mlp_128x1024": (mlp, layers(128, 1024, 4)),
    }
    seconds = {}
    for name, (function, arguments) in models.items():
        compiled, last = jax.jit(function), []

        def call():
            last[:] = [compiled(*arguments)]

        seconds[name] = measure(call, lambda: jax.block_until_ready(last[0]))
    return {"version": jax.__version__, "device": str(jax.devices()[0]), "models": seconds}


def torch_models():
    import torch
    from torch.nn import functional

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    if not torch.cuda.is_available():
        raise RuntimeError("no CUDA device")

    def array(*sizes, kind=torch.float32):
        return (torch.rand(*sizes, device="cuda") * 0.25 + 0.25).to(kind)

    def mlp(x, *parameters):
        for w, b in zip(parameters[::2], parameters[1::2]):
            x = torch.tanh(x @ w + b)
        return x

    def layers(batch, width, count):
        return [array(batch, width)] + [array(width, width), array(width)] * count

    def layer_norm(a, g, b):
        return functional.layer_norm(a, (a.shape[1],), g, b)

    def conv(a, k):
        return functional.relu(functional.conv2d(a, k, padding=1))

    def attention(q, k, v):
        return functional.scaled_dot_product_attention(q, k, v)

    channels_last = torch.channels_last
    models = {
        "matmul_f32_4096": (torch.matmul, [array(4096, 4096)] * 2),
        "matmul_f32_1024": (torch.matmul, [array(1024, 1024)] * 2),
        "matmul_bf16_4096": (torch.matmul, [array(4096, 4096, kind=torch.bfloat16)] * 2),
        "matmul_f16_4096": (torch.matmul, [array(4096, 4096, kind=torch.float16)] * 2),
        "elementwise_64m": (lambda a, b, c: torch.tanh(a * b + c), [array(1 << 26)] * 3),
        "softmax_16384x1024": (lambda a: torch.softmax(a, 1), [array(16384, 1024)]),
        "layer_norm_16384x1024": (layer_norm, [array(16384, 1024), array(1024), array(1024)]),
        "column_sum_16384x4096": (lambda a: a.sum(0), [array(16384, 4096)]),
        "total_64m": (lambda a: a.sum(), [array(1 << 26)]),
        "transpose_8192": (lambda a: a.t().contiguous(), [array(8192, 8192)]),
        "convolution_32x56x64": (
            conv,
            [
                array(32, 64, 56, 56).to(memory_format=channels_last),
                array(64, 64, 3, 3).to(memory_format=channels_last),
            ],
        ),
        "attention_f32_16x1024x64": (attention, [array(1, 16, 1024, 64)] * 3),
        "attention_f16_16x1024x64": (attention, [array(1, 16, 1024, 64, kind=torch.float16)] * 3),
        "attention_bf16_64x2048x128": (attention, [array(1, 64, 2048, 128, kind=torch.bfloat16)] * 3),
        "mlp_1x256": (mlp, layers(1, 256, 8)),
        "mlp_128x1024": (mlp, layers(128, 1024, 4)),
    }
    seconds = {}
    for name, (function, arguments) in models.items():
        compiled = torch.compile(function, mode="max-autotune-no-cudagraphs")
        with torch.no_grad():
            seconds[name] = measure(lambda: compiled(*arguments), torch.cuda.synchronize)
    device = torch.cuda.get_device_name(0)
    return {"version": torch.__version__, "device": device, "models": seconds}


def main():
    assert sys.argv[1] == "--json", __doc__
    report = {}
    for name, run in [("jax", jax_models), ("torch", torch_models)]:
        try:
            report[name] = run()
        except Exception as error:  # A peer that is missing or fails is stated in the report.
            report[name] = {"error": f"{type(error).__name__}: {error}"[:500]}
        times = report[name].get("models", {}).values()
        if times and not all(math.isfinite(seconds) for seconds in times):
            report[name] = {"error": "a time is not finite"}
    with open(sys.argv[2], "w") as out:
        json.dump(report, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
