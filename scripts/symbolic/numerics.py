"""Transforms, decompositions of matrices, and random numbers."""

import jax
import jax.numpy as jnp
from jax import lax

from symbolic.registry import program

SMALL = ["t <= 9"]


@program("b, 8, 6:c64")
def ffts(x):
    return jnp.fft.fft(x), jnp.fft.ifft2(x), jnp.fft.irfft(x)


@program("b, t, 6", constraints=["b <= 3", "t <= 4"])
def ffts_of_open(x):
    return jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x))


@program("b, n, n", "b, n, m", constraints=["n <= 6", "m <= 6"])
def triangular_open(x, y):
    a = jnp.tril(x) + 5 * jnp.eye(x.shape[1])
    return lax.linalg.triangular_solve(a, y, left_side=True, lower=True)


@program("b, 4, 4", "b, 4, 3")
def triangular_batch(x, y):
    a = jnp.triu(x) + 5 * jnp.eye(4)
    z = lax.linalg.triangular_solve(a, y, left_side=True, lower=False)
    return z, lax.linalg.triangular_solve(a, y.transpose(0, 2, 1), left_side=False, lower=False, transpose_a=True)


@program("b, n, n", constraints=["n <= 6"])
def cholesky_open(x):
    return jnp.linalg.cholesky(x @ x.transpose(0, 2, 1) + 3 * jnp.eye(x.shape[1]))


@program("b, 4, 3")
def qr_batch(x):
    q, r = jnp.linalg.qr(x)
    return jnp.abs(q), jnp.abs(r), q @ r


@program("b, 3, 3")
def lu_batch(x):
    lu, pivots, permutation = lax.linalg.lu(x)
    return lu, pivots, permutation, jnp.linalg.inv(x + 5 * jnp.eye(3)), *jnp.linalg.slogdet(x)


@program("b, 3, 3")
def eigh_batch(x):
    s = x + x.transpose(0, 2, 1)
    return jnp.linalg.eigvalsh(s), jnp.abs(jnp.linalg.eigh(s)[1])


@program("b, 4, 3")
def svd_batch(x):
    return jnp.linalg.svd(x, compute_uv=False), jnp.linalg.norm(x, axis=(1, 2))


@program("b, 3, 3:c64")
def complex_batch(x):
    return x @ jnp.conj(x), jnp.abs(x), jnp.angle(x), (x.sum(0) * 2j).real, jnp.linalg.det(x)


@program("2:u32", "b, 4")
def random_uniform(key, x):
    key = jax.random.wrap_key_data(key)
    return jax.random.uniform(key, x.shape), jax.random.bits(key, (2 * x.shape[0],)), jax.random.randint(key, x.shape, 0, 9)


@program("2:u32", "b, t, 8", constraints=SMALL)
def random_choices(key, x):
    key = jax.random.wrap_key_data(key)
    return jax.random.categorical(key, x, axis=1), jax.random.categorical(key, x, axis=2).reshape(-1)


@program("2:u32", "b, 4")
def random_keys(key, x):
    key = jax.random.wrap_key_data(key)
    keys = jax.random.split(key, 2 * x.shape[0])
    return jax.random.key_data(keys), jax.vmap(lambda k: jax.random.normal(k, (3,)))(keys), jax.random.truncated_normal(
        key, -1.0, 1.0, x.shape)


@program("b, 2:u32", "b, t", constraints=["t <= 5"])
def random_gammas(key, a):
    return jax.vmap(jax.random.gamma)(jax.random.wrap_key_data(key), jnp.abs(a) + 0.5)


@program("b, n, n", constraints=["n <= 6"])
def eigh_open(x):
    values, vectors = jnp.linalg.eigh(x + x.transpose(0, 2, 1))
    return values, jnp.abs(vectors)


@program("n, n", "n", constraints=["n <= 7"])
def solve_open(x, y):
    a = x @ x.T + 3 * jnp.eye(x.shape[0])
    return jnp.linalg.solve(a, y), jnp.linalg.inv(a), jnp.linalg.det(a), jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(a), True), y)


@program("b, n, n", constraints=["n <= 7"])
def qr_open(x):
    q, r = jnp.linalg.qr(x)
    return jnp.abs(q), jnp.abs(r), q @ r


@program("n, 3", constraints=["n <= 9", "n >= 3"])
def qr_tall(x):
    (q, r), whole = jnp.linalg.qr(x), jnp.linalg.qr(x, mode="complete").Q
    return jnp.abs(q), jnp.abs(r), q @ r, jnp.abs(whole.T @ whole), jnp.abs(jnp.linalg.qr(x, mode="r"))


@program("2, m, n", constraints=["m <= 8", "n <= 6", "m >= n"])
def qr_of_two_sizes(x):
    q, r = jnp.linalg.qr(x)
    return jnp.abs(q), jnp.abs(r), q @ r


@program("b, m, n", constraints=["m <= 8", "n <= 7"])
def singular_values_open(x):
    return jnp.linalg.svd(x, compute_uv=False), jnp.linalg.svd(x[:, :, :1] * x[:, :1], compute_uv=False)


@program("b, n, n", constraints=["n <= 7"])
def svd_open(x):
    u, s, v = jnp.linalg.svd(x)
    # Of matrices of rank 1, only these are unique.
    one = x[:, :, :1] * x[:, :1] * 1e-5
    p, d, q = jnp.linalg.svd(one)
    return (
        s,
        jnp.abs(u),
        jnp.abs(v),
        (u * s[:, None]) @ v,
        1e5 * d,
        1e5 * (p * d[:, None]) @ q,
        jnp.matmul(p.transpose(0, 2, 1), p),
        jnp.matmul(q, q.transpose(0, 2, 1)),
    )


@program("n, 3", "2, m", constraints=["n <= 9", "n >= 3", "m <= 8", "m >= 2"])
def svd_of_one_size(x, y):
    (u, s, v), (p, d, q) = jnp.linalg.svd(x, full_matrices=False), jnp.linalg.svd(y)
    same = x[:, :1] * jnp.ones((1, 3))
    c, _, e = jnp.linalg.svd(same, full_matrices=False)
    return jnp.abs(u), s, jnp.abs(v), jnp.abs(p), d, (q @ q.T), (u * s) @ v, c.T @ c, e @ e.T


@program("n, n", constraints=["n <= 6"])
def inverse_of_small_numbers(x):
    s = 1e-6 * (x + x.T)
    values, vectors = jnp.linalg.eigh(s)
    return 1e6 * values, 1e6 * (vectors * values) @ vectors.T, jnp.linalg.pinv(x + 4 * jnp.eye(x.shape[0]))
