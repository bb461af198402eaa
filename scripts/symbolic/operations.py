"""Functions of single operations, whose sizes, positions, or windows depend on symbolic sizes."""

import jax
import jax.numpy as jnp
from jax import lax

from symbolic.registry import NHWC, NWC, normal, program

SMALL = ["t <= 9"]
IMAGE = ["h >= 4", "w >= 4", "h <= 12", "w <= 12"]
DEPTHWISE = normal(3, 3, 1, 4)
KERNEL = normal(3, 3, 2, 4)
GROUPED = normal(3, 2, 4)
POOL = ((1, 2, 2, 1), (1, 2, 2, 1))


@program("b, 3, 9, 10")
def conv_dilated(x):
    return lax.conv_general_dilated(x, jnp.asarray(normal(4, 3, 3, 2)), (2, 3), "VALID", rhs_dilation=(1, 2))


@program("b, h, w, 4", constraints=IMAGE)
def depthwise(x):
    return lax.conv_general_dilated(x, DEPTHWISE, (1, 1), "SAME", dimension_numbers=NHWC, feature_group_count=4)


@program("b, t, 4", constraints=["t >= 4", "t <= 20"])
def conv_grouped_valid(x):
    return lax.conv_general_dilated(x, GROUPED, (2,), "VALID", dimension_numbers=NWC, feature_group_count=2)


@program("b, h, w, 2", constraints=IMAGE)
def conv_input_grad(x):
    def loss(x):
        return (lax.conv_general_dilated(x, KERNEL, (1, 1), "SAME", dimension_numbers=NHWC) ** 2).sum()

    return jax.grad(loss)(x)


@program("b, h, w, 2", constraints=IMAGE)
def conv_even_window(x):
    return lax.conv_general_dilated(x, normal(2, 4, 2, 3), (1, 2), [(1, 0), (2, 1)], dimension_numbers=NHWC)


@program("b, t, 3", "k, 3, 4", constraints=["k <= 5", "t <= 20", "t >= k"])
def conv_open_kernel(x, k):
    return lax.conv_general_dilated(x, k, (1,), "VALID", dimension_numbers=NWC)


@program("b, t, 4", constraints=["t >= 4", "t <= 12"])
def conv_per_sample_kernel(x):
    return jax.vmap(lambda r: lax.conv_general_dilated(
        r[None], GROUPED[:, :, :2], (1,), "SAME", dimension_numbers=NWC, feature_group_count=2)[0])(x)


@program("b, 8")
def window_of_size(x):
    return lax.reduce_window(x, jnp.inf, lax.min, (1, 3), (1, 1), "VALID"), lax.reduce_window(
        x, jnp.inf, lax.min, (x.shape[0], 2), (1, 1), "VALID")


@program("b, t", constraints=["b >= 2", "t >= 2", "t <= 10"])
def window_of_pairs(x):
    def step(a, b):
        larger = a[0] >= b[0]
        return lax.select(larger, a[0], b[0]), lax.select(larger, a[1], b[1])

    return lax.reduce_window((x, x * 2), (-jnp.inf, 0.0), step, (2, 2), (1, 1), "VALID")


@program("b, h, w, 2", constraints=IMAGE)
def max_pool_grad_any(x):
    return jax.grad(lambda x: (lax.reduce_window(x, -jnp.inf, lax.max, *POOL, "VALID") ** 2).sum())(x)


@program("b, h, w, 2", constraints=IMAGE)
def avg_pool_grad_any(x):
    return jax.grad(lambda x: (lax.reduce_window(x, 0.0, lax.add, *POOL, "SAME") ** 2).sum())(x)


@program("b, t", constraints=SMALL)
def cumulative_rest(x):
    return lax.cumprod(x, 0), lax.cummin(x, 1), lax.cumprod(x, 1, reverse=True), jnp.diff(x, axis=1)


@program("t", "3, 1:i32", constraints=SMALL)
def gather_whole(x, i):
    numbers = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(), start_index_map=(0,))
    return lax.gather(x, i % 2, numbers, slice_sizes=x.shape, mode="clip")


@program("b, t", "2:i32", constraints=SMALL)
def dynamic_slices_clamped(x, i):
    return (
        lax.dynamic_slice(x, (1, 0), (x.shape[0], 1)),
        lax.dynamic_slice(x, i, (x.shape[0], x.shape[1])),
        lax.dynamic_slice_in_dim(x, -1, x.shape[0] - 1, axis=0),
        lax.dynamic_update_slice(x, x * 2, i - 50),
        lax.dynamic_update_slice(x, x[:, :1], (0, i[0])),
    )


@program("t, 4", "t, 4", ":i32", constraints=SMALL)
def cache_update(cache, x, i):
    cache = lax.dynamic_update_slice_in_dim(cache, x[:1], i % cache.shape[0], axis=0)
    mask = jnp.arange(cache.shape[0]) <= i % cache.shape[0]
    return cache, jax.nn.softmax(jnp.where(mask, cache @ cache.T, -1e9)) @ cache


@program("b, 4")
def loop_of_updates(x):
    def step(i, y):
        row = lax.dynamic_slice_in_dim(x, i, 1, 0)
        return lax.dynamic_update_slice_in_dim(y, row + i, y.shape[0] - 1 - i, 0)

    return lax.fori_loop(0, x.shape[0], step, jnp.zeros_like(x))


@program("b", constraints=["b >= 2"])
def top_k_of_size(x):
    return lax.top_k(x, x.shape[0] - 1)


@program("b, t", constraints=SMALL)
def top_k_of_open(x):
    return lax.top_k(x, 1), lax.top_k(jnp.concatenate([x, x, x], 1), 3)


@program("b, t, 3", constraints=SMALL)
def order(x):
    return (
        jnp.argsort(x, axis=1),
        jnp.sort(x, axis=1, descending=True),
        jnp.argmax(x, 1),
        jnp.argmin(x, 0),
        jnp.argmax(x),
        jnp.median(x, axis=1),
        jnp.percentile(x, 30, axis=0),
        jnp.nanquantile(x, 0.5),
    )


@program("3, b", "b, 4", "b, t, 4", constraints=SMALL)
def einsums(x, y, z):
    return (
        jnp.einsum("ij,jk->ik", jnp.concatenate([x, x], 1), jnp.concatenate([y, y], 0)),
        jnp.einsum("...i->...", z),
        jnp.einsum("bi,bti->bt", y, z),
        jnp.einsum("ij,jk,jtk->it", x, y, z),
        jnp.einsum("bti,bsi->ts", z, z),
    )


@program("b, t, 3", constraints=SMALL)
def concatenate_grad(x):
    return jax.grad(lambda x: jnp.concatenate([x, jnp.sin(x), x[:1]]).sum())(x)


@program("b, t", constraints=SMALL)
def pads_by_size(x):
    return (
        lax.pad(x, 0.5, ((x.shape[0], x.shape[1], x.shape[0]), (0, 0, 0))),
        jnp.pad(x, ((x.shape[0], 0), (x.shape[1], 1)), mode="edge"),
        jnp.pad(x[1:], ((x.shape[0], 0), (0, 1))),
    )


@program("b, 4, c, t, 3", constraints=["t <= 4", "c <= 4"])
def reshapes(x):
    b, _, c, t, _ = x.shape
    return x.reshape(b, -1, t, c), x.reshape(2, -1), lax.collapse(x, 1, 4), x.reshape(b * c, 12, t), x.reshape(
        2 * b, -1, 2)


@program("b, 3", constraints=["b >= 4"])
def aranges(x):
    b = x.shape[0]
    return (
        jnp.arange(b, 0, -1),
        jnp.arange(b, -1, -2),
        jnp.arange(5 * b + 2, 0, -2),
        jnp.arange(0, b - 3, 2),
        jnp.arange(0, 10, b),
        jnp.arange(10, 0, -b),
        jnp.arange(0, b, 1, jnp.float32),
        jnp.linspace(0.0, b, 2 * b),
    )


@program("c, b", constraints=["b <= 9"])
def slices_by_size(x):
    b = x.shape[1]
    return x[b:], x[-b:], x[:b], x[: -2 * b - 2], x[2 : 2 * b + 2 : 2], x[b::-1], x[::b], x[-2::-2], x[:-4]


@program("b, 4")
def slices_with_stride(x):
    b = x.shape[0]
    return lax.slice_in_dim(x, 0, b, stride=1 + b // 4), lax.slice_in_dim(x, 0, b, stride=2), x[b // 2 :]


@program("b + 4, 2", "2*c + 4")
def splits(x, y):
    return *jnp.split(x, (2,)), *jnp.split(x, (x.shape[0] - 2,)), *jnp.split(y, 2)


@program("b, 1, 1", "b, 1", "b, 3, 1")
def squeezes(x, y, z):
    return jnp.squeeze(x, (1, 2)), jnp.squeeze(y, 1) + x[:, 0, 0], jnp.expand_dims(z, 0), jnp.moveaxis(z, 0, -1)


@program("b, t", "b, 1:i32", "i:i32", constraints=SMALL)
def takes(x, i, j):
    return (
        jnp.take_along_axis(x, i % x.shape[1], axis=1),
        jnp.take_along_axis(x, i % 2, axis=0, mode="fill"),
        x[j % x.shape[0], j % x.shape[1]],
        jnp.take(x, j, axis=1, mode="clip"),
        x[j % x.shape[0]][:, None],
        jnp.arange(24.0).reshape(6, 4)[j % 6],
    )


@program("b, 4", "b, 2:i32", "b, 1")
def scatters(x, i, u):
    i = i % 6 - 1
    numbers = lax.ScatterDimensionNumbers((1,), (0,), (0, 1))
    clipped = lax.scatter_add(x, i, u, numbers, mode=lax.GatherScatterMode.CLIP)
    columns = lax.ScatterDimensionNumbers((0,), (1,), (1,))
    added = lax.scatter_add(x, jnp.array([[1], [2]]), jnp.tile(u, (1, 2)), columns)
    grads = jax.grad(lambda x, u: (lax.scatter(x, i, u, numbers) ** 2).sum(), (0, 1))(x, u)
    return clipped, added, grads, x.at[i[:, 0] % x.shape[0]].min(u), x.at[:, 1].apply(jnp.sin)


@program("b, s, 2", "b:i32", constraints=["s <= 6"])
def segments(x, i):
    i = i % x.shape[1]
    reduced = [f(x, i, num_segments=x.shape[1]) for f in (jax.ops.segment_max, jax.ops.segment_min, jax.ops.segment_prod)]
    return *reduced, jnp.bincount(i, length=x.shape[1]), jnp.bincount(i, length=3)


@program("b:i32", "b, t", constraints=SMALL)
def one_hots(i, x):
    return jax.nn.one_hot(i % x.shape[1], x.shape[1]), jax.nn.one_hot(i, 4), jax.nn.one_hot(i % 3, x.shape[0] + 1)


@program("b, t", "b, t:bool", ":", constraints=SMALL)
def masked(x, m, y):
    return (
        jnp.where(m, x, y),
        lax.clamp(-0.5, x, y + 1),
        jnp.mean(x, axis=1, where=m),
        jnp.var(x, axis=0, where=m),
        jnp.average(x, weights=x * x),
        lax.select_n(m, x, -x),
        jnp.select([x > 1, m], [x, 2 * x], 3.0),
    )


@jax.custom_jvp
def clipped(x):
    return jnp.clip(x, -1, 1)


@clipped.defjvp
def _(primals, tangents):
    return clipped(*primals), tangents[0] * jnp.where(jnp.abs(primals[0]) < 1, 1.0, 0.1)


@jax.custom_vjp
def doubled(x):
    return 2 * x


doubled.defvjp(lambda x: (doubled(x), x), lambda x, g: (3 * g * x,))


@program("b, t", constraints=SMALL)
def custom_rules(x):
    return jax.grad(lambda x: (clipped(x) * doubled(x)).sum())(x), jax.jvp(clipped, (x,), (x,))


@program("b, t", constraints=SMALL)
def quotients(x):
    b, t = x.shape
    return (
        x[: b // 2],
        x[:, t // 3 :],
        jnp.zeros((b * t) // 2 + 1),
        jnp.ones((b % 3 + 1, t // 2 + b // 4 + 1)),
        x.reshape(-1)[: (b * t + 1) // 2],
        jnp.float32((b * t) % 5) + x[0],
    )


@program("b, t", constraints=SMALL)
def smaller_and_larger(x):
    b, t = x.shape
    least, most = jax.core.min_dim(b, t), jax.core.max_dim(b, t)
    return x[:least, :least], jnp.ones(most), jnp.pad(x, ((0, most - b), (0, most - t))), jnp.zeros(jax.core.max_dim(b - 3, 1))


@program("b, h, w, 2", constraints=["h <= 8", "w <= 8"])
def resize_linear(x):
    b, h, w, c = x.shape
    return jax.image.resize(x, (b, 2 * h, 2 * w, c), "linear")


@program("b, h, w, 2", constraints=["h <= 8", "w <= 8"])
def resize_nearest(x):
    b, h, w, c = x.shape
    return jax.image.resize(x, (b, 2 * h, 2 * w, c), "nearest")


@program("b, h, w, 2", constraints=["h <= 8", "w <= 8"])
def resize_to_fixed(x):
    return jax.image.resize(x, (x.shape[0], 8, 8, 2), "linear", antialias=False)


@program("b, 2", "")
def repeats(x, y):
    b = x.shape[0]
    return (
        jnp.repeat(x, b, axis=0),
        jnp.repeat(x, b),
        jnp.repeat(y, b)[:, None] + x,
        jnp.tile(x, (1, b)),
        jnp.broadcast_to(x, (b, b, 2)),
        jnp.roll(x, 2),
        jnp.roll(x, -1, axis=0),
    )


@program("m, n", constraints=["n <= 9"])
def triangles(x):
    m, n = x.shape
    return jnp.tri(m) + x[:, :1], jnp.tri(m, m + 2), jnp.tril(jnp.ones((m, m + n)), k=n), jnp.eye(m, m + 2), jnp.diag(x[0])


@program("b, 1, t", constraints=SMALL)
def broadcasts(x):
    b, _, t = x.shape
    grad = jax.grad(lambda x: lax.broadcast_in_dim(jnp.sin(x), (2, b, 5, t, 4), (1, 2, 3)).sum())(x)
    return grad, lax.broadcast_in_dim(x, (b, 2 * b, t), (0, 1, 2)), jnp.stack([x, -x], -1)


@program("b, t, 4", "4", constraints=SMALL)
def mapped(x, y):
    def row(r):
        return lax.scan(lambda c, e: (c * 0.5 + e, c.max()), y, r)

    return jax.vmap(row)(x), lax.map(lambda r: r.sum(0) * y, x), jax.vmap(lambda r: lax.cond(r.sum() > 0, jnp.sin, jnp.cos, r))(x)


@program("b, 4")
def vmapped_while(x):
    def halve(r):
        return lax.while_loop(lambda r: jnp.abs(r).max() > 0.3, lambda r: r * 0.5, r)

    return jax.vmap(halve)(x)


@program("b, t", constraints=SMALL)
def loop_with_flag(x):
    def step(state):
        i, y, _ = state
        y = y - 0.1 * jnp.tanh(y)
        return i + 1, y, jnp.all(jnp.abs(y) < 0.2)

    return lax.while_loop(lambda s: (s[0] < 2 * x.shape[0]) & ~s[2], step, (0, x, False))


@program("t, b, 4", constraints=["t <= 6", "b <= 8"])
def scan_jvp(x):
    def f(w):
        return lax.scan(lambda c, r: (jnp.tanh(c @ w + r), c.mean(1)), jnp.zeros(x.shape[1:]), x)[1]

    return jax.jvp(f, (jnp.eye(4),), (jnp.ones((4, 4)),)), jax.jacfwd(lambda x: x.sum(0) ** 2)(x[:, :1, 0])


@program("t, b, 2", constraints=["t <= 6", "b <= 8"])
def scan_of_slices(x):
    def step(c, i):
        window = lax.dynamic_slice_in_dim(x, i, 1, 0)[0]
        return c.at[i].set(window.sum()), (window * c[i], jnp.argmax(window, 0))

    return lax.scan(step, jnp.arange(x.shape[0], dtype=jnp.float32), jnp.arange(x.shape[0]))


@program("b, t", constraints=SMALL)
def reduced_by(x):
    def larger(a, b):
        return lax.select(a[0] > b[0], a[0], b[0]), lax.select(a[0] > b[0], a[1], b[1])

    index = lax.broadcasted_iota(jnp.int32, x.shape, 1)
    return (
        lax.reduce((x, index), (-jnp.inf, 0), larger, (1,)),
        jax.nn.logsumexp(x, 0),
        jnp.std(x, 1),
        jnp.all(x > -1, 1),
        jnp.count_nonzero(x > 0, axis=0),
        jnp.ptp(x, axis=1),
    )


@program("b:i32", "b:u32")
def bits_of(x, y):
    return x << 3, lax.population_count(y), lax.clz(y), x ^ 5, lax.shift_right_logical(y, jnp.uint32(2)), x // 7, x % 7, ~x


@program("b, t:bf16", "t, 4:bf16", constraints=SMALL)
def narrow(x, y):
    return x @ y, x.sum(0), jnp.exp(x), x.astype(jnp.float32).sum(1)


@program("b, 3", "c, 3", constraints=["c <= 6"])
def products_of_all(x, y):
    return (
        jnp.outer(x[:, 0], y[:, 0]),
        jnp.kron(x, y),
        jnp.cross(x, x[::-1]),
        jnp.meshgrid(x[:, 0], y[:, 0]),
        jnp.tensordot(x, y, (1, 1)),
        jnp.cov(x, rowvar=False),
    )


@program("b", "t", constraints=["t >= 1", "t <= 5", "b >= t"])
def filters(x, y):
    return jnp.searchsorted(jnp.array([-1.0, 0.0, 1.0]), x), (x[:, None] > jnp.sort(y)).sum(1), jnp.histogram(x, 4, (-1, 1))


@program("b, t, 8", constraints=SMALL)
def norm_grad(x):
    def norm(x, g):
        m = x.mean(-1, keepdims=True)
        return ((x - m) * lax.rsqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5) * g).sum(1).max()

    return jax.grad(norm, (0, 1))(x, jnp.ones(8))


@program("b, t, 8", "b:i32", constraints=SMALL)
def lengths(x, n):
    mask = jnp.arange(x.shape[1])[None] < (n % x.shape[1] + 1)[:, None]
    last = jnp.take_along_axis(x, (n % x.shape[1])[:, None, None], axis=1)[:, 0]
    return jnp.where(mask[..., None], x, 0).sum(1), last, jnp.cumsum(mask, 1), jnp.flip(x, 1)


@program("b, t, 6", constraints=SMALL)
def beams(x):
    scores, chosen = lax.top_k(jax.nn.log_softmax(x).reshape(x.shape[0], -1), 3)
    return scores, chosen // 6, jnp.take_along_axis(x.reshape(x.shape[0], -1), chosen, 1)


@program("b, 5", "b, 4")
def boxes(scores, corners):
    area = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    order = jnp.argsort(-scores[:, 0])
    low = jnp.maximum(corners[:, None, :2], corners[None, :, :2])
    high = jnp.minimum(corners[:, None, 2:], corners[None, :, 2:])
    shared = jnp.prod(jnp.maximum(high - low, 0), -1)

    def keep(i, kept):
        overlaps = (shared[order[i]] > 0.5 * jnp.abs(area)) & (jnp.arange(kept.shape[0]) > i)
        return jnp.where(kept[i] & overlaps, False, kept)

    return lax.fori_loop(0, scores.shape[0], keep, jnp.ones(scores.shape[0], bool)), corners[order]


@program("b, t", constraints=SMALL)
def inserted(x):
    return jnp.insert(x, 1, 0.5, axis=0), jnp.delete(x, 0, axis=1), jnp.append(x, x[:1], axis=0)


@program("b, t:i32", constraints=SMALL)
def nonzeros(x):
    return jnp.nonzero(x % 3, size=5, fill_value=100)


@program("2*b, 3*t", constraints=["t <= 5"])
def blocks(x):
    b, t = x.shape[0] // 2, x.shape[1] // 3
    y = x.reshape(b, 2, t, 3).transpose(0, 2, 1, 3)
    return y.reshape(b * t, 6), y.reshape(b, t, 6).max((0, 1)), y.mean((2, 3))


@program("b, 2*t", constraints=["t <= 8"])
def pairs(x):
    even, odd = x[:, ::2], x[:, 1::2]
    return jnp.stack([even, odd], -1).reshape(x.shape), even * odd, x.reshape(x.shape[0], -1, 2).sum(-1)


@program("b, t", constraints=["b >= 2", "t >= 2", "t <= 9"])
def reduced_from(x):
    return (
        lax.reduce(x, 1.5, lax.add, (0,)),
        lax.reduce(x, 2.0, lax.mul, (1,)),
        lax.reduce(x, jnp.float32(0.25), lax.max, (0, 1)),
        lax.reduce_window(x, 0.5, lax.add, (1, 2), (1, 1), "SAME"),
        lax.reduce_window(x, 3.0, lax.mul, (2, 2), (1, 1), [(0, 1), (1, 1)]),
    )


@program("b, t", constraints=["t >= 2", "t <= 9"])
def windows_of_sizes(x):
    b, t = x.shape
    return (
        lax.reduce_window(x, 0.0, lax.add, (1, t // 2), (1, 2), "VALID"),
        lax.reduce_window(x, -jnp.inf, lax.max, (b, t - 1), (1, 1), "VALID"),
        lax.reduce_window((x, x + 1), (0.0, 0.0), lambda a, b: (a[0] + b[0], a[1] + b[1]), (1, t), (1, 1), "VALID"),
    )


@program("b, t", constraints=["t <= 6"])
def steps_by_size(x):
    b, t = x.shape
    return x[::t], x[:: b // 2 + 1], x[:, :: t // 3 + 1], lax.pad(x, 1.0, ((0, 1, t), (t, 0, b)))
