"""Functions as they occur in models, and their gradients."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from symbolic.registry import NHWC, NWC, normal, program

IN, BIAS, OUT, LAST = normal(8, 16), normal(16), normal(16, 4), normal(4)
KERNEL, SECOND = normal(3, 3, 2, 4), normal(3, 3, 4, 4)
QKV, MIX = normal(16, 48), normal(16, 16)
TABLE = normal(11, 4)


@program("b, 8")
def mlp(x):
    return jax.nn.softmax(jax.nn.relu(x @ IN + BIAS) @ OUT + LAST)


@program("b, 8", "b:i32")
def mlp_grad(x, y):

    def loss(w1, w2):
        l = jax.nn.log_softmax(jnp.tanh(x @ w1) @ w2)
        return -jnp.mean(jnp.take_along_axis(l, y[:, None] % 4, axis=1))
    return jax.value_and_grad(loss, (0, 1))(IN, OUT)


@program("b, 8, 8, 2")
def cnn(x):
    y = jax.nn.relu(lax.conv_general_dilated(x, KERNEL, (1, 1), "SAME", dimension_numbers=NHWC))
    y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return y.mean((1, 2))


@program("b, h, w, 2", constraints=["h >= 4", "w >= 4", "h <= 20", "w <= 20"])
def conv_any_image(x):
    return lax.conv_general_dilated(x, KERNEL, (1, 1), "SAME", dimension_numbers=NHWC)


@program("b, h, 8, 2", constraints=["h >= 4", "h <= 20"])
def conv_strided(x):
    return lax.conv_general_dilated(x, KERNEL, (2, 2), "SAME", dimension_numbers=NHWC)


@program("b, h, w, 2", constraints=["h >= 4", "w >= 4", "h <= 20", "w <= 20"])
def max_pool_any(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


@program("b, h, w, 2", constraints=["h >= 4", "w >= 4", "h <= 20", "w <= 20"])
def avg_pool_same(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


@program("b, t, 16", constraints=["t <= 24"])
def attention(x):
    b, t, _ = x.shape
    q, k, v = [p.reshape(b, t, 4, 4).transpose(0, 2, 1, 3) for p in jnp.split(x @ QKV, 3, -1)]
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 2
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s), v).transpose(0, 2, 1, 3).reshape(b, t, 16) @ MIX


@program("b, t, 16", constraints=["t <= 24"])
def causal_attention(x):
    b, t, _ = x.shape
    q, k, v = jnp.split(x @ QKV, 3, -1)
    s = jnp.einsum("bqd,bkd->bqk", q, k) / 4
    m = jnp.tril(jnp.ones((t, t), bool))
    return jax.nn.softmax(jnp.where(m, s, -1e+30)) @ v


@program("b, t", constraints=["t <= 30"])
def reductions(x):
    return (x.sum(0), x.max(1), x.mean(), jnp.argmax(x, 1), x.prod(0), jnp.any(x > 2, axis=1))


@program("b, t", constraints=["t <= 30"])
def cumulative(x):
    return (jnp.cumsum(x, 0), jnp.cumsum(x, 1), lax.cummax(x, 0), lax.cumsum(x, 1, reverse=True))


@program("b, 3")
def cumlogsumexp(x):
    return lax.cumlogsumexp(x, 0)


@program("b")
def arange(x):
    return (
        x + jnp.arange(x.shape[0]),
        jnp.arange(1, 2 * x.shape[0] + 1, 2),
        jnp.linspace(0.0, 1.0, x.shape[0] + 1),
    )


@program("b, t", constraints=["t <= 30"])
def flatten(x):
    return (x.reshape(x.shape[0] * x.shape[1]), x.reshape(-1, 1), x.T.reshape(-1))


@program("b, 4, t", constraints=["t <= 16"])
def reshape_middle(x):
    return (
        x.reshape(x.shape[0], 2, 2, x.shape[2]),
        x.reshape(4 * x.shape[0], x.shape[2]),
        x.reshape(x.shape[0], -1),
    )


@program("b, 3", "t, 3", constraints=["t <= 9"])
def concatenate(x, y):
    return (jnp.concatenate([x, y]), jnp.concatenate([y, x, y]), jnp.stack([x, x + 1], 1))


@program("b, 6")
def slices(x):
    return (x[:-1], x[1:], x[:, 2:5], x[::2], x[::-1], x[-1])


@program("b, 6", constraints=["b >= 4"])
def slices_fixed(x):
    return (x[:4], x[-3:], x[1:3] + x[2:4])


@program("b, 6", "i:i32", constraints=["i <= 12"])
def indexing(x, i):
    return (
        x[i % x.shape[0]],
        x.at[i % x.shape[0]].add(1.0),
        x[:, i % 6],
        jnp.take(x, i, axis=0, mode="clip"),
        jnp.take(x, i % x.shape[0], axis=0),
    )


@program("b, 6", ":i32")
def dynamic_slices(x, i):
    i = i % 5
    return (
        lax.dynamic_slice_in_dim(x, i, 1, 0),
        lax.dynamic_index_in_dim(x, i, 0),
        lax.dynamic_update_slice(x, jnp.ones((1, 6)), (i, 0)),
        lax.dynamic_slice(x, (0, i), (x.shape[0], 2)),
    )


@program("b, t", "c, t", ":i32", constraints=["c <= b", "t <= 8", "c <= 4"])
def update_part(x, y, i):
    return lax.dynamic_update_slice(x, y, (i % 7, 0))


@program("b, t", constraints=["t <= 30"])
def sorts(x):
    return (jnp.sort(x, 0), jnp.sort(x, 1), jnp.argsort(x, 0))


@program("b, 9")
def top_k(x):
    return lax.top_k(x, 3)


@program("b, t", "t, c", "b, c", constraints=["t <= 10", "c <= 10"])
def einsum(x, y, z):
    return (jnp.einsum("bt,tc,bc->c", x, y, z), x @ y, jnp.einsum("bt,tc->cb", x, y))


@program("b, 4", "b, 4")
def vmapped(x, y):
    return jax.vmap(lambda a, b: jnp.dot(a, b) * jnp.outer(a, b))(x, y)


@program("t, 4", constraints=["t <= 30"])
def scan_length(x):

    def f(c, r):
        c = jnp.tanh(c @ IN[:4, :4] + r)
        return (c, c.sum())
    return lax.scan(f, jnp.zeros(4), x)


@program("5, b", constraints=["b <= 64"])
def scan_carry(x):
    return lax.scan(lambda c, r: (c * 0.5 + r, (c + r)[::-1]), jnp.zeros(x.shape[1]), x)


@program("t, b, 4", constraints=["t <= 12", "b <= 8"])
def scan_both(x):

    def f(c, r):
        c = jnp.tanh(c @ IN[:4, :4] + r)
        return (c, c.sum(1))
    return lax.scan(f, jnp.zeros(x.shape[1:]), x)


@program("t, 4", constraints=["t <= 12"])
def scan_grad(x):

    def loss(w):

        def f(c, r):
            c = jnp.tanh(c @ w + r)
            return (c, c)
        return (lax.scan(f, jnp.zeros(4), x)[1] ** 2).sum()
    return jax.grad(loss)(IN[:4, :4])


@program("b, 4")
def while_loop(x):
    return (
        lax.while_loop(lambda s: s[0] < s[1].shape[0], lambda s: (s[0] + 1, s[1] * 0.9 + jnp.float32(s[0])), (0, x))[1],
    )


@program("b, 4")
def fori(x):
    return lax.fori_loop(0, x.shape[0], lambda i, a: a + x[i], jnp.zeros(4))


@program("b, 4", ":i32")
def cond(x, i):
    return (
        lax.cond(i % 2 == 0, lambda x: x * 2 + x.shape[0], lambda x: jnp.sin(x), x),
        lax.switch(i % 3, [lambda x: x.sum(0), lambda x: x.max(0), lambda x: x[0]], x),
    )


@program("2*b, t", constraints=["t <= 10"])
def halves(x):
    b = x.shape[0] // 2
    return (x[:b] + x[b:], x.reshape(b, 2, x.shape[1]).sum(1))


@program("b", "2*b")
def two_sizes(x, y):
    return jnp.concatenate([x, x]) + y


@program("b", "b + t", "t", constraints=["t <= 9"])
def sum_of_sizes(x, y, z):
    return jnp.concatenate([x, z]) * y


@program("b, 4", constraints=["mod(b, 4) == 0", "b <= 40"])
def groups_of_4(x):
    return x.reshape(x.shape[0] // 4, 4, 4).sum(1)


@program("b, t", constraints=["t <= 10"])
def pads(x):
    return (
        jnp.pad(x, ((1, 2), (0, 1))),
        jnp.pad(x, ((0, x.shape[0]), (0, 0))),
        jnp.pad(x, ((x.shape[1], 0), (0, 0)), constant_values=2.0),
        lax.pad(x, 0.0, ((0, 0, 1), (-1, 0, 0))),
    )


@program("b, 3")
def tiles(x):
    return (
        jnp.tile(x, (2, 1)),
        jnp.repeat(x, 2, axis=0),
        jnp.broadcast_to(x[None], (3,) + x.shape),
        jnp.roll(x, 1, axis=0),
    )


@program("b, 5, 4")
def batch_norm(x):
    m = x.mean((0, 1))
    v = x.var((0, 1))
    return (x - m) / jnp.sqrt(v + 0.001)


@program("b, t:i32", constraints=["t <= 20"])
def embedding(i):
    return jnp.asarray(TABLE)[i % 11] + jnp.sin(jnp.arange(i.shape[1])[None, :, None] * jnp.ones(4))


@program("b:i32", "b, 4")
def segment_sum(i, x):
    return jax.ops.segment_sum(x, i % 6, num_segments=6)


@program("b:i32", "b, 4")
def segment_open(i, x):
    return jax.ops.segment_sum(x, i % x.shape[0], num_segments=x.shape[0])


@program("b, t", constraints=["t <= 10"])
def where_iota(x):
    return (
        jnp.where(jnp.arange(x.shape[0])[:, None] > jnp.arange(x.shape[1]), x, 0),
        jnp.triu(x),
        jnp.eye(x.shape[0], x.shape[1]),
    )


@program("n, n", constraints=["n <= 9"])
def square(x):
    return (x @ x.T, jnp.trace(x), jnp.diagonal(x), x.T)


@program("b, 3, 3")
def cholesky(x):
    return jnp.linalg.cholesky(x @ x.transpose(0, 2, 1) + 3 * jnp.eye(3))


@program("b, 8")
def fft(x):
    return jnp.abs(jnp.fft.rfft(x))


@program("b, 4")
def special(x):
    return (
        lax.erf(x),
        jax.nn.gelu(x),
        jax.scipy.special.gammaln(jnp.abs(x) + 1),
        lax.erf_inv(jnp.tanh(x)),
        jnp.arctan(x),
        jax.nn.softplus(x),
    )


@program("b, 4")
def sizes_as_numbers(x):
    return (jnp.float32(x.shape[0]) * x, x / x.shape[0], jnp.array(x.shape))


@program("b, 4")
def remat(x):
    return jax.grad(lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())(x))(x)


@program("b, 4")
def bitcast(x):
    return lax.bitcast_convert_type(x, jnp.int32)


@program("t, b, 4", constraints=["t <= 9", "b <= 9"])
def lstm(x):
    k, r = (IN[:4, :].astype(np.float32), normal(4, 16))

    def f(s, u):
        h, c = s
        z = u @ k + h @ r
        i, f_, g, o = jnp.split(z, 4, -1)
        c = jax.nn.sigmoid(f_) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return ((h, c), h)
    s = jnp.zeros(x.shape[1:])
    return lax.scan(f, (s, s), x)


@program("b, 4")
def ratio(x):
    b = x.shape[0]
    return (x[:(b + 1) // 2], x[b // 3:], jnp.ones((b % 4 + 1,)), x[:(b + 2) // 3])


@program("b, 4")
def hessian(x):
    return jax.vmap(jax.hessian(lambda r: jnp.sum(r ** 3)))(x)


@program("b, t, 4", constraints=["t <= 10"])
def attention_grad(x):

    def f(w):
        s = jnp.einsum("bqd,de,bke->bqk", x, w, x)
        return (jax.nn.softmax(s) @ x).sum()
    return jax.grad(f)(IN[:4, :4])


@program("b, h, 8, 2", constraints=["h >= 4", "h <= 16"])
def conv_grad(x):
    def loss(k):
        return (lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=NHWC) ** 2).sum()

    return jax.grad(loss)(jnp.asarray(KERNEL))


@program("b, 8, 8, 2")
def conv_grad_batch(x):
    def loss(k):
        return (lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=NHWC) ** 2).sum()

    return jax.grad(loss)(jnp.asarray(KERNEL))


@program("b, 8, 8, 2")
def max_pool_grad(x):
    def loss(x):
        return (lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2).sum()

    return jax.grad(loss)(x)


@program("b, t, 3", constraints=["t >= 5", "t <= 30"])
def conv1d(x):
    return (
        lax.conv_general_dilated(x, normal(5, 3, 4), (1,), [(4, 0)], dimension_numbers=NWC),
        lax.conv_general_dilated(x, normal(3, 3, 4), (1,), "SAME", rhs_dilation=(2,), dimension_numbers=NWC),
    )


@program("b, t, 3", constraints=["t <= 8"])
def conv_transpose(x):
    return lax.conv_transpose(x, normal(3, 3, 4), (2,), "SAME", dimension_numbers=NWC)


@program("b, 3", "c, 3", constraints=["c <= 9"])
def distances(x, y):
    return (
        jnp.sqrt(((x[:, None] - y[None]) ** 2).sum(-1)),
        jnp.argmin(((x[:, None] - y[None]) ** 2).sum(-1), 1),
    )


@program("b, 4")
def sort_multi(x):
    return (lax.sort((x[:, 0], x[:, 1]), num_keys=1), jnp.lexsort((x[:, 0], x[:, 1])))


@program("b, 4")
def gather_nd(x):
    i = jnp.stack([jnp.arange(x.shape[0]), jnp.arange(x.shape[0]) % 4], 1)
    return (x[i[:, 0], i[:, 1]], jnp.take_along_axis(x, jnp.argsort(x, 1), 1))


@program("b, 4")
def scatter_rows(x):
    return (
        x.at[::2].set(0.0),
        x.at[-1].mul(2.0),
        x.at[:, 1].max(0.0),
        jnp.zeros_like(x).at[jnp.arange(x.shape[0]), 0].add(1.0),
    )


@program("a, b, c", constraints=["b <= 5", "c <= 5"])
def three_sizes(x):
    return (x.transpose(2, 0, 1), x.sum(1), x.reshape(x.shape[0], -1), x.reshape(-1, x.shape[2]))


@program("a, b", constraints=["a >= b", "b <= 9"])
def pad_to(x):
    return (jnp.pad(x, ((0, 0), (0, x.shape[0] - x.shape[1]))), x[:x.shape[1]])


@program("a, b", "b, a", constraints=["b <= 9"])
def transposed(x, y):
    return (x.T + y, x @ y)


@program("b, 4")
def random_normal(x):
    return (
        x + jax.random.normal(jax.random.key(1), x.shape),
        jax.random.bernoulli(jax.random.key(2), 0.5, (x.shape[0],)),
    )


@program("t, 4", "4", constraints=["t <= 20"])
def reverse_scan(x, c):
    return lax.scan(lambda c, r: (c * 0.9 + r, c), c, x, reverse=True)


@program("b, 3, 3")
def solve(x):
    return (
        jnp.linalg.solve(x @ x.transpose(0, 2, 1) + 3 * jnp.eye(3), jnp.ones((x.shape[0], 3, 1))),
        jnp.linalg.det(x),
    )


@program("b, t, 4", constraints=["t <= 9"])
def group_norm(x):
    g = x.reshape(x.shape[0], x.shape[1], 2, 2)
    m = g.mean((1, 3), keepdims=True)
    return ((g - m) / jnp.sqrt(g.var((1, 3), keepdims=True) + 0.001)).reshape(x.shape)


@program("b, t, 4", constraints=["t <= 9"])
def rope(x):
    p = jnp.arange(x.shape[1])[:, None] * jnp.exp(-jnp.arange(2.0))
    s, c = (jnp.sin(p), jnp.cos(p))
    a, b = (x[..., :2], x[..., 2:])
    return jnp.concatenate([a * c - b * s, a * s + b * c], -1)


@program("b, t, 8", "b, s, 8", constraints=["t <= 6", "s <= 6"])
def cross_attention(x, y):
    return jax.nn.softmax(jnp.einsum("btd,bsd->bts", x, y)) @ y


@program("2*a + 1, a", constraints=["a <= 20"])
def odd(x):
    return (x[:x.shape[0] // 3 * 2:2], x.sum(0))


@program("3*b, 2")
def thirds(x):
    return (x.reshape(-1, 3, 2).mean(1), x[::3])


@program("b, 4")
def switch_sizes(x):
    return lax.cond(x.sum() > 0, lambda: jnp.concatenate([x, x]), lambda: jnp.repeat(x, 2, 0))


@program("b, 4")
def nested_while(x):
    return lax.fori_loop(0, 3, lambda i, a: lax.fori_loop(0, x.shape[0], lambda j, c: c + x[j] * i, a), jnp.zeros(4))


@program("b, 4")
def scan_over_batch_body(x):
    return (
        lax.scan(
            lambda c, i: (c + lax.dynamic_index_in_dim(x, i, 0, keepdims=False), lax.dynamic_slice_in_dim(x, i, 1)),
            jnp.zeros(4),
            jnp.arange(x.shape[0]),
        ),
    )
