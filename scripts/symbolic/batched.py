"""Primitives of JAX over an open batch, by `vmap` or with several open leading dimensions."""

import jax
import jax.numpy as jnp
from jax import lax

from symbolic.registry import NHWC, normal, program

SMALL = ["t <= 9"]
FILTER = normal(3, 3, 2, 4)


@program("b, 2, 5, 5, 2")
def vmap_conv(x):
    return jax.vmap(lambda x: lax.conv_general_dilated(x, FILTER, (2, 1), "VALID", dimension_numbers=NHWC))(x)


@program("b, 3, 3, 2, 4")
def vmap_conv_of_kernels(k):
    x = jnp.asarray(normal(1, 5, 5, 2))
    return jax.vmap(lambda k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=NHWC))(k)


@program("b, 6, 2:i32", "b, 3:i32")
def vmap_slices(x, i):
    def parts(x, i):
        i = i % 4
        return lax.dynamic_slice(x, (i[0], 0), (2, 2)), lax.dynamic_update_slice(x, x[:2], (i[1], 0)), x[i], x.at[i].add(5)

    return jax.vmap(parts)(x, i)


@program("b, 7", "b, 2:i32")
def vmap_scatters(x, i):
    i = i % 9 - 1

    def each(x, i):
        return x.at[i].max(0.5), x.at[i].mul(2.0, mode="drop"), x.at[i[0]].set(1.0, mode="clip"), x.at[i].get(
            mode="fill", fill_value=-1.0)

    return jax.vmap(each)(x, i)


@program("b, t", constraints=SMALL)
def vmap_orders(x):
    return jax.vmap(jnp.sort)(x), jax.vmap(jnp.argmax)(x), jax.vmap(lambda r: lax.sort((r, -r), num_keys=2)[1])(x), jax.vmap(
        lambda r: jnp.cumsum(r[::-1]))(x)


@program("b, 4", "b, 4")
def special_of_two(x, y):
    a, b = jnp.abs(x) + 0.5, jnp.abs(y) + 0.5
    return (
        jax.scipy.special.gammainc(a, b),
        jax.scipy.special.gammaincc(a, b),
        jax.scipy.special.betainc(a, b, jax.nn.sigmoid(x)),
        jax.scipy.special.zeta(a + 1, b),
        jax.scipy.special.polygamma(1, b),
        jnp.nextafter(x, y),
        jnp.arctan2(x, y),
        jnp.hypot(x, y),
        jnp.logaddexp(x, y),
    )


@program("b, 4")
def special_of_one(x):
    return (
        jax.scipy.special.digamma(jnp.abs(x) + 1),
        jax.scipy.special.i0e(x),
        jax.scipy.special.i1e(x),
        jax.scipy.special.erfc(x),
        jax.scipy.special.expit(x),
        jax.scipy.special.ndtri(jax.nn.sigmoid(x)),
        lax.reduce_precision(x, 5, 7),
        jnp.round(x),
        jnp.cbrt(x),
        jnp.sinc(x),
        jnp.tan(x),
        jnp.exp2(x),
        jnp.nan_to_num(jnp.log(x)),
        jnp.signbit(x),
    )


@program("b, 4, 4:c64")
def decompositions_of_complex(x):
    h = x + jnp.conj(x.transpose(0, 2, 1))
    spd = x @ jnp.conj(x.transpose(0, 2, 1)) + 3 * jnp.eye(4)
    q, r = jnp.linalg.qr(x)
    return jnp.linalg.eigvalsh(h), jnp.linalg.cholesky(spd), q @ r, jnp.linalg.inv(spd), jnp.linalg.svd(x, compute_uv=False)


@program("a, b, 3, 3", constraints=["b <= 5"])
def two_batches(x):
    s = x @ jnp.swapaxes(x, 2, 3) + 3 * jnp.eye(3)
    u, d, v = jnp.linalg.svd(x)
    return jnp.linalg.cholesky(s), jnp.linalg.eigvalsh(s), (u * d[..., None, :]) @ v, jnp.linalg.solve(s, x), jnp.linalg.pinv(s)


@program("a, b, 4", "a, b, 4, 5", constraints=["b <= 6"])
def two_batch_products(x, y):
    return (
        jnp.einsum("abi,abij->abj", x, y),
        jnp.einsum("abi,acij->bcj", x, y),
        jnp.matmul(x[:, :, None], y),
        jnp.tensordot(x, y, ((0, 1, 2), (0, 1, 2))),
        jnp.vecdot(x, x),
    )


@program("b, h, w, 2", constraints=["h >= 4", "w >= 4", "h <= 9", "w <= 9"])
def max_pool_tangent(x):
    def pool(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    return jax.jvp(pool, (x,), (jnp.sin(x),))


@program("4:u32", "b, t", constraints=SMALL)
def generated_bits(key, x):
    bits = lax.rng_bit_generator(key, (x.shape[0], 2), dtype=jnp.uint32, algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)
    return bits[1].shape[0] + x


@program("b, 2:u32", "b, 6")
def keys_of_batch(keys, x):
    keys = jax.random.wrap_key_data(keys)
    return (
        jax.vmap(lambda k, r: r * jax.random.bernoulli(k, 0.5, r.shape))(keys, x),
        jax.vmap(lambda k: jax.random.permutation(k, 5))(keys),
        jax.vmap(lambda k, r: jax.random.choice(k, r, (2,)))(keys, x),
        jax.random.key_data(jax.vmap(lambda k: jax.random.fold_in(k, 3))(keys)),
        jax.vmap(lambda k: jax.random.exponential(k, (2,)))(keys),
    )


@program("b + 1, 3", "4*b, 2")
def sizes_of_sums(x, y):
    return x[1:] + y.reshape(-1, 8)[:, :3], x[:-1] * y[::4, :1], jnp.concatenate([x, y[:, :1] * jnp.ones(3)])


@program("a, b", "a*b", "2*a + b", constraints=["b <= 6"])
def sizes_of_products(x, y, z):
    a, b = x.shape
    return x.reshape(-1) + y, y.reshape(b, a) @ x, z[: 2 * a].sum() + z[2 * a :].sum(), jnp.concatenate([z, y])


@program("b, t, 4", "b:i32", constraints=SMALL)
def padded_sequences(x, n):
    n = n % (x.shape[1] + 1)
    mask = jnp.arange(x.shape[1])[None] < n[:, None]
    scores = jnp.where(mask[:, None], x @ x.transpose(0, 2, 1), -1e9)
    shifted = jnp.concatenate([jnp.zeros_like(x[:, :1]), x[:, :-1]], 1)
    order = jnp.argsort(~mask, axis=1, stable=True)
    return jax.nn.softmax(scores) @ x, shifted, jnp.take_along_axis(x, order[..., None], 1), jnp.sum(mask, 1)


@program("t, 4", constraints=["t >= 2", "t <= 12"])
def convolved_by_scan(x):
    def step(window, row):
        window = jnp.concatenate([window[1:], row[None]])
        return window, window.mean(0)

    return lax.scan(step, jnp.zeros((3, 4)), x), jax.checkpoint(lambda x: lax.scan(step, jnp.ones((2, 4)), x)[1])(x)


@program("b, 4", "4, b")
def solved_by_iteration(x, y):
    a = y @ x + 6 * jnp.eye(4)
    return jax.scipy.sparse.linalg.cg(a @ a.T, jnp.ones(4), maxiter=5)[0], lax.fori_loop(
        0, 4, lambda i, v: v / jnp.linalg.norm(v) @ (y @ x), jnp.ones(4))


@program("b, t", constraints=["t <= 7"])
def second_derivatives(x):
    def energy(x):
        return (jnp.tanh(x) ** 2).sum() + (x[:, :1] * x.sum(1, keepdims=True)).sum()

    return jax.grad(lambda x: (jax.grad(energy)(x) * jnp.cos(x)).sum())(x), jax.jvp(jax.grad(energy), (x,), (x,))[1]


@program("b, 3, 4:bf16", "b, 4, 2:bf16")
def narrow_batch(x, y):
    return jnp.einsum("bij,bjk->bik", x, y, preferred_element_type=jnp.float32), jnp.sort(x, 1), x.max((0, 1)), x > 0


@program("b, 4:i32", "b:bool")
def flags(x, y):
    return jnp.where(y[:, None], x, -x), jnp.any(y), jnp.logical_xor(y, x[:, 0] > 50), jnp.cumsum(y), jnp.argmax(y), jnp.packbits(
        (x > 50), axis=1), y.sum(), jnp.unique(x[:, 0] % 3, size=3, fill_value=9)


@program("b, t, 8:i8", "t, 8, 4:i8", constraints=["t <= 5"])
def narrow_integers(x, y):
    kernel = jnp.ones((3, 8, 2), jnp.int8)
    return (
        lax.dot_general(x, y, (((2,), (1,)), ((1,), (0,))), preferred_element_type=jnp.int32),
        lax.conv_general_dilated(x, kernel, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"), preferred_element_type=jnp.int32),
        x.sum((1, 2), dtype=jnp.int32),
        x.max(1),
    )


IMAGE = ["b <= 3", "h <= 12", "w <= 12"]


@program("b, h, w, 3", constraints=IMAGE)
def strided_same(x):
    # Each size is half of the one before, rounded up, and is known to be so.
    for k in range(3):
        kernel = jnp.sin(jnp.arange(9 * 3 * 3, dtype=jnp.float32) + k).reshape(3, 3, 3, 3)
        x = jnp.tanh(lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=NHWC))
    return x


@program("b, h, w, 12", constraints=IMAGE)
def depth_to_space(x):
    b, h, w, _ = x.shape
    y = x.reshape(b, h, w, 2, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(b, 2 * h, 2 * w, 3)
    z = y.reshape(b, h, 2, w, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(b, h, w, 12)
    return y, z + x


@program("b, h, w, 16", constraints=IMAGE)
def statistics(x):
    groups = x.reshape(*x.shape[:3], 4, 4)
    return (
        (x - x.mean((0, 1, 2))) / jnp.sqrt(x.var((0, 1, 2)) + 1),
        jnp.exp(-x).sum((0, 1, 2)) + jnp.square(x).max((0, 1, 2)),
        groups.mean((1, 2, 4)),
        x.sum((1, 3)),
        x.min((0, 2, 3)),
        x.prod((1, 2)),
    )


@program("b, h, w, 3", constraints=[*IMAGE, "h >= 4", "w >= 4"])
def reflected(x):
    return jnp.pad(x, ((0, 0), (2, 1), (1, 2), (0, 0)), mode="reflect")
