#!/usr/bin/env python3
"""Writes JAX functions as StableHLO text with arguments and JAX's answers.

    PYTHON scripts/jax_programs.py OUT [NAME...]

For each function NAME below: OUT/NAME.mlir, what `jax.jit(f).lower(...)` prints, OUT/NAME.jax, the artifact of
`jax.export`, and OUT/NAME.npz, the arguments `in0`, `in1`, ... and results `out0`, ... Types that NumPy lacks are stored
as their bits. PYTHON has jax 0.10.2 and flatbuffers (`scripts/venv.sh venv-xla jax==0.10.2 flatbuffers` makes such a
one). The programs in `tests/stablehlo` were made so.
"""

import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

jax.config.update("jax_enable_x64", True)
RANDOM = np.random.default_rng(0)
NHWC = ("NHWC", "HWIO", "NHWC")
PROGRAMS = {}


def normal(*sizes):
    return RANDOM.standard_normal(sizes).astype(np.float32)


def program(*arguments, platform="cpu"):
    """Registers a function and example arguments under the function's name, to be lowered for a platform."""

    def add(function):
        PROGRAMS[function.__name__] = (function, arguments, platform)
        return function

    return add


LAYERS = (normal(4, 8), normal(8, 16), normal(16), normal(16, 3), normal(3))
KERNELS = (normal(2, 12, 12, 3), normal(3, 3, 3, 8), normal(3, 3, 8, 4))
CELLS = (normal(7, 3, 4), normal(4, 8), normal(8, 8), normal(8))
SQUARE = normal(5, 5)
DEFINITE = (SQUARE @ SQUARE.T + 5 * np.eye(5)).astype(np.float32)


# Networks and their gradients.


@program(*LAYERS)
def mlp(x, w1, b1, w2, b2):
    return jax.nn.softmax(jax.nn.relu(x @ w1 + b1) @ w2 + b2)


@program(*LAYERS, np.array([0, 2, 1, 1]))
def mlp_grad(x, w1, b1, w2, b2, labels):
    def loss(parameters):
        w1, b1, w2, b2 = parameters
        logits = jax.nn.log_softmax(jnp.tanh(x @ w1 + b1) @ w2 + b2)
        return -jnp.mean(logits[jnp.arange(4), labels])

    return jax.value_and_grad(loss)((w1, b1, w2, b2))


@program(*KERNELS)
def cnn(x, k1, k2):
    y = jax.nn.relu(lax.conv_general_dilated(x, k1, (1, 1), "SAME", dimension_numbers=NHWC))
    y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return lax.conv_general_dilated(y, k2, (2, 2), "SAME", dimension_numbers=NHWC).mean((1, 2))


@program(*KERNELS)
def cnn_grad(x, k1, k2):
    return jax.grad(lambda kernels: jnp.sum(cnn(x, *kernels) ** 2))((k1, k2))


@program(normal(2, 5, 16), normal(16, 48), normal(16, 16))
def attention(x, wqkv, wo):
    heads = [part.reshape(2, 5, 4, 4).transpose(0, 2, 1, 3) for part in jnp.split(x @ wqkv, 3, -1)]
    scores = jnp.einsum("bhqd,bhkd->bhqk", heads[0], heads[1]) / 2.0
    scores = jnp.where(jnp.tril(jnp.ones((5, 5), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), heads[2])
    return mixed.transpose(0, 2, 1, 3).reshape(2, 5, 16) @ wo


@program(*CELLS)
def rnn_scan(xs, wx, wh, b):
    def step(state, x):
        state = jnp.tanh(x @ wx + state @ wh + b)
        return state, state.sum(-1)

    return lax.scan(step, jnp.zeros((3, 8)), xs)


@program(*CELLS)
def rnn_grad(xs, wx, wh, b):
    return jax.grad(lambda w: jnp.sum(rnn_scan(xs, w, wh, b)[1] ** 2))(wx)


@program(normal(3, 8), normal(8), normal(8))
def layer_norm(x, gain, bias):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * gain + bias


@program(normal(10), normal(10))
def adam_step(parameter, gradient):
    mean, square = 0.1 * gradient, 0.001 * gradient * gradient
    return parameter - 0.01 * (mean / 0.1) / (jnp.sqrt(square / 0.001) + 1e-8)


@program({"w": normal(4, 2), "b": normal(2)}, normal(3, 4))
def tree_args(parameters, x):
    return {"y": x @ parameters["w"] + parameters["b"], "n": [x.sum(), x.mean()]}


# Convolutions and windows.


@program(normal(3, 2, 8, 8, 2), normal(3, 3, 2, 4))
def vmap_conv(x, kernel):
    convolve = lambda image: lax.conv_general_dilated(image, kernel, (1, 1), "VALID", dimension_numbers=NHWC)
    return jax.vmap(convolve)(x)


@program(normal(3, 8, 8, 2), normal(3, 3, 3, 2, 4))
def vmap_conv_both(x, kernels):
    convolve = lambda image, kernel: lax.conv_general_dilated(
        image[None], kernel, (1, 1), "SAME", dimension_numbers=NHWC
    )
    return jax.vmap(convolve)(x, kernels)


@program(normal(2, 9, 9, 4), normal(3, 3, 1, 8))
def depthwise(x, kernel):
    return lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=NHWC, feature_group_count=4)


@program(normal(2, 5, 5, 4), normal(3, 3, 4, 6))
def conv_transpose(x, kernel):
    return lax.conv_transpose(x, kernel, (2, 2), "SAME")


@program(normal(1, 3, 10), normal(4, 3, 3))
def conv1d_nchw(x, kernel):
    return lax.conv_general_dilated(x, kernel, (1,), "VALID", rhs_dilation=(2,))


@program(normal(1, 5, 5, 5, 2), normal(2, 2, 2, 2, 3))
def conv3d(x, kernel):
    return lax.conv_general_dilated(x, kernel, (1, 1, 1), "SAME", dimension_numbers=("NDHWC", "DHWIO", "NDHWC"))


@program(normal(2, 6, 6, 2))
def pools(x):
    sums = lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")
    largest = lambda v: lax.reduce_window(v, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return sums, jax.grad(lambda v: (largest(v) ** 2).sum())(x)


@program(normal(2, 8, 8, 3))
def resize(x):
    return jax.image.resize(x, (2, 16, 16, 3), "bilinear"), jax.image.resize(x, (2, 4, 4, 3), "nearest")


# Linear algebra and transforms.


@program(DEFINITE)
def cholesky(a):
    return jnp.linalg.cholesky(a)


@program(DEFINITE, normal(5, 2))
def tri_solve(a, b):
    return lax.linalg.triangular_solve(jnp.tril(a), b, left_side=True, lower=True)


@program(SQUARE + 5 * np.eye(5, dtype=np.float32), normal(5))
def solve(a, b):
    return jnp.linalg.solve(a, b)


@program(SQUARE)
def det(a):
    return jnp.linalg.det(a), jnp.linalg.inv(a + 5 * jnp.eye(5))


@program(normal(5, 3))
def qr(a):
    return tuple(jnp.linalg.qr(a))


@program((SQUARE + SQUARE.T).astype(np.float32))
def eigh(a):
    return jnp.linalg.eigvalsh(a)


@program(normal(5, 3))
def svd(a):
    return jnp.linalg.svd(a, compute_uv=False)


@program(normal(16))
def fft(x):
    return jnp.fft.fft(x), jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x))


@program(normal(6, 10))
def fft2(x):
    return jnp.fft.fft2(x)


@program(normal(2, 3, 4), normal(2, 4, 5))
def batched_dot(a, b):
    return jnp.einsum("bij,bjk->bik", a, b), jnp.einsum("bij,bjk->ik", a, b), jnp.einsum("bij,bjk->kb", a, b)


# Random numbers.


@program(np.uint32(42))
def threefry_bits(seed):
    return jax.random.bits(jax.random.key(seed), (7,))


@program(np.uint32(42))
def threefry_normal(seed):
    return jax.random.normal(jax.random.key(seed), (5, 3))


@program(np.uint32(42))
def threefry_misc(seed):
    keys = jax.random.split(jax.random.key(seed), 4)
    return (
        jax.random.uniform(keys[0], (4,)),
        jax.random.randint(keys[1], (5,), 0, 10),
        jax.random.permutation(keys[2], 6),
        jax.random.bernoulli(keys[3], 0.3, (8,)),
    )


@program(np.uint32(42))
def rbg_bits(seed):
    return jax.random.bits(jax.random.key(seed, impl="rbg"), (7,))


# Control flow.


@program(np.int32(37))
def collatz(n):
    step = lambda c: (jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1)
    return lax.while_loop(lambda c: c[0] != 1, step, (n, jnp.int32(0)))[1]


@program(np.int32(1), normal(4))
def switch(index, x):
    return lax.switch(index, [jnp.sin, jnp.cos, lambda v: v * v], x)


@program(normal(4))
def cond(x):
    return lax.cond(x.sum() > 0, lambda v: v + 1, lambda v: v - 1, x)


@program(np.int32(3), normal(6))
def fori(count, x):
    return lax.fori_loop(0, count, lambda i, v: v.at[i].multiply(2.0), x)


@program(normal(6, 6))
def map_rows(x):
    return lax.map(lambda row: jnp.sort(row)[::-1], x)


@program(normal(20))
def associative_scan(x):
    return lax.associative_scan(lambda a, b: a * b + a, x)


# Types.


@program(normal(4, 4).astype(jnp.bfloat16), normal(4, 4).astype(jnp.bfloat16))
def bf16_matmul(a, b):
    return a @ b


INTEGERS = np.random.default_rng(1)
BYTES = INTEGERS.integers(-127, 128, (16, 8)).astype(np.int8)
TAPS = INTEGERS.integers(-127, 128, (3, 3, 3, 8)).astype(np.int8)
ROWS = INTEGERS.standard_normal((5, 16)).astype(np.float32)
PIXELS = INTEGERS.standard_normal((2, 6, 7, 3)).astype(np.float32)
STEPS = np.linspace(0.002, 0.02, 8).astype(np.float32)


@program(ROWS, PIXELS)
def int8_layers(x, image):
    """Dynamic steps of the activations, as AQT chooses them, and constant weights."""
    step = jnp.max(jnp.abs(x), axis=1, keepdims=True) / 127
    steps = jnp.clip(jnp.round(x / step), -127, 127).astype(jnp.int8)
    sums = lax.dot_general(steps, BYTES, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)
    pixels = jnp.clip(jnp.round(image / 0.02), -128, 127).astype(jnp.int8)
    taps = lax.conv_general_dilated(
        pixels, TAPS, (1, 1), "SAME", dimension_numbers=NHWC, preferred_element_type=jnp.int32
    )
    return sums * step * STEPS, taps * (0.02 * STEPS)


@program(ROWS)
def fake_quantized_layer(x):
    """Quantization and dequantization in floats around constants of bytes."""
    steps = jnp.clip(jnp.round(x / 0.03) + 5, -128, 127).astype(jnp.int8)
    real = (steps.astype(jnp.float32) - 5) * 0.03
    y = jax.nn.relu(real @ (jnp.asarray(BYTES).astype(jnp.float32) * STEPS) + 0.25)
    return jnp.clip(jnp.round(y / 0.05) - 128, -128, 127).astype(jnp.int8)


@program(normal(4, 4).astype(np.float16))
def f16_math(a):
    return jnp.exp(a) + jnp.tanh(a)


@program(normal(16))
def f8_cast(a):
    return a.astype(jnp.float8_e4m3fn).astype(jnp.float32), a.astype(jnp.float8_e5m2).astype(jnp.float32)


@program(normal(3, 4).astype(np.float64))
def doubles(x):
    return jnp.exp(x), x @ x.T, jnp.linalg.norm(x)


@program((normal(3, 4) + 1j * normal(3, 4)).astype(np.complex64))
def complexes(z):
    return z * z.conj(), jnp.abs(z), jnp.angle(z), jnp.exp(z), z.real, z.imag, jnp.sqrt(z)


@program(np.arange(-6, 6, dtype=np.int32), np.array([1, 2, 3, -1, -2, -3] * 2, dtype=np.int32))
def int_ops(a, b):
    logical = lax.shift_right_logical(a, jnp.int32(2))
    arithmetic = a // b, a % b, lax.div(a, b), lax.rem(a, b)
    return *arithmetic, a << 1, a >> 1, logical, a & b, a | b, a ^ b, ~a, lax.population_count(a), lax.clz(a)


@program(np.arange(0, 250, 25, dtype=np.uint8))
def u8_ops(a):
    return a * a, a - np.uint8(30), a.astype(np.int8), lax.population_count(a)


@program(normal(3, 16))
def bits(x):
    rounded = lax.round(x * 3, lax.RoundingMethod.TO_NEAREST_EVEN), jnp.floor(x), jnp.ceil(x), jnp.trunc(x)
    return lax.bitcast_convert_type(x, jnp.int32), lax.reduce_precision(x, 5, 10), lax.nextafter(x, 0 * x), *rounded


# Indexing, sorting, shapes.


@program(normal(8, 8), np.int32(3), np.int32(9))
def dynamic_slices(x, i, j):
    return lax.dynamic_slice(x, (i, j), (3, 2)), lax.dynamic_update_slice(x, jnp.ones((2, 2), x.dtype), (i, j))


@program(normal(6, 4), np.array([[0, 5], [2, -1]]))
def gather_fill(x, i):
    return x.at[i].get(mode="fill", fill_value=7.0)


@program(normal(6, 4), np.array([0, 9, -3]))
def gather_clip(x, i):
    return x.at[i].get(mode="clip"), x[i]


@program(normal(6, 4), np.array([0, 9, 2, 2]), normal(4, 4))
def scatters(x, i, u):
    at = x.at[i]
    return at.add(u), at.set(1.0, mode="drop"), at.max(u), at.min(u), at.mul(u)


@program(normal(6), np.array([0, 0, 1, 2, 2, 2]))
def segment_sum(x, i):
    return jax.ops.segment_sum(x, i, 4)


@program(normal(5, 9))
def sort_keys(x):
    return jnp.sort(x, -1), jnp.argsort(x, -1)


@program(normal(5, 9))
def top_k(x):
    return lax.top_k(x, 3)


@program(np.array([3, 1, 4, 1, 5, 9, 2, 6], np.int32))
def searching(x):
    found = jnp.searchsorted(jnp.sort(x), jnp.array([0, 4, 10], jnp.int32))
    return found, jnp.bincount(x, length=10), jnp.unique(x, size=8, fill_value=-1)


@program(normal(4, 5, 6))
def shapes(x):
    joined = jnp.concatenate([x, x], 1), jnp.stack([x, x]), jnp.tile(x, (1, 2, 1)), jnp.repeat(x, 2, 2)
    moved = jnp.roll(x, 2, 1), jnp.flip(x, 0), jnp.pad(x, ((1, 0), (0, 2), (1, 1)))
    return x.transpose(2, 0, 1), x.reshape(20, 6)[::2, ::-1], *joined, *moved


@program(normal(12, 4), normal(7, 4))
def pairwise(a, b):
    return jnp.argmin(((a[:, None] - b[None]) ** 2).sum(-1), 0)


# Functions of numbers.


@program(normal(4, 6))
def reductions(x):
    whole = x.max(), jnp.any(x > 1), x.var()
    return *whole, x.sum(0), x.prod(1), x.min(0), x.argmax(1), x.argmin(0), jnp.all(x > -9, 1), jax.nn.logsumexp(x, 1)


@program(normal(4, 6))
def cumulative(x):
    return jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1), lax.cummin(x, 0), lax.cumlogsumexp(x, 1)


@program(normal(3, 4))
def special(x):
    functions, positive = jax.scipy.special, jnp.abs(x) + 0.1
    errors = functions.erf(x), functions.erfc(x), functions.erfinv(jnp.tanh(x))
    return *errors, functions.gammaln(positive), functions.digamma(positive)


@program(normal(3, 4))
def trigonometry(x):
    inner = jnp.tanh(x)
    inverse = jnp.arcsin(inner), jnp.arccos(inner), jnp.arctan(x), jnp.arcsinh(x), jnp.arctanh(inner)
    return jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.sinh(x), jnp.cosh(x), *inverse


@program(normal(3, 4))
def logarithms(x):
    a = jnp.abs(x) + 0.01
    roots = jnp.sqrt(a), lax.rsqrt(a), jnp.cbrt(x), a**x
    return jnp.log(a), jnp.log1p(a), jnp.expm1(x), *roots, jax.nn.sigmoid(x), jax.nn.gelu(x), jax.nn.silu(x)


@program(normal(5, 4))
def nan_ops(x):
    y = jnp.where(x > 1, jnp.nan, x)
    return jnp.nansum(y), jnp.isnan(y), jnp.nan_to_num(y), jnp.isinf(y / 0)


@program(normal(2, 3, 4))
def piecewise(x):
    polynomial = jnp.polyval(jnp.array([1.0, 2.0, 3.0], x.dtype), x)
    return polynomial, jnp.clip(x, -1, 1), jnp.maximum(x, 0), jnp.heaviside(x, 0.5), jnp.sinc(x)


@program(normal(5))
def jacobians(x):
    return jax.jacfwd(lambda v: jnp.sin(v) * v.sum())(x), jax.hessian(lambda v: (v**3).sum())(x)


@program(normal(4, 4))
def checkpointed(x):
    return jax.grad(lambda v: jax.nn.relu6(v).sum())(x), jax.checkpoint(lambda v: jnp.sin(jnp.sin(v)))(x)


@program(normal(4, 3), normal(4, 3))
def complex_svd(x, y):
    u, s, v = jnp.linalg.svd(x + 1j * y, full_matrices=False)
    return s, (u * s) @ v


# Decompositions that JAX implements with XLA's own custom calls on accelerators.
@program(normal(5, 3), DEFINITE, normal(2, 4, 4), platform="tpu")
def accelerator_decompositions(x, definite, square):
    q, r = jnp.linalg.qr(x)
    whole = jnp.linalg.qr(x, mode="complete")[0]
    values, vectors = jnp.linalg.eigh(definite)
    spectral = values, (vectors * values) @ vectors.T
    return q, r, whole, *spectral, *lax.linalg.lu(square), jnp.linalg.svd(x, compute_uv=False)


def stored(array):
    """Returns an array in a type that NumPy can store."""
    array = np.asarray(array)
    if array.dtype.name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        return array.view({1: np.uint8, 2: np.uint16}[array.dtype.itemsize])
    return array


def main(out, *names):
    os.makedirs(out, exist_ok=True)
    for name, (function, arguments, platform) in PROGRAMS.items():
        if names and name not in names:
            continue
        jitted = jax.jit(function, keep_unused=True)
        lowered = jitted.trace(*arguments).lower(lowering_platforms=(platform,))
        arrays = {f"in{k}": stored(value) for k, value in enumerate(jax.tree.leaves(arguments))}
        arrays |= {f"out{k}": stored(value) for k, value in enumerate(jax.tree.leaves(jitted(*arguments)))}
        with open(f"{out}/{name}.mlir", "w") as file:
            file.write(lowered.as_text())
        with open(f"{out}/{name}.jax", "wb") as file:
            file.write(export.export(jitted, platforms=[platform])(*arguments).serialize())
        np.savez_compressed(f"{out}/{name}.npz", **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
