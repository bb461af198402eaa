"""Functions of PyTorch: arrays, numbers, images, losses, and types."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from parts_torch import Function, generator, numbers, whole

# Each group is a function of its inputs to functions by name, and the inputs.


def einsums():
    def group(x, y, z):
        return {
            "matrices": lambda: torch.einsum("bij,bjk->bik", x, y), "sum": lambda: torch.einsum("bij,bkj->", x, z),
            "diagonal": lambda: torch.einsum("bii->bi", x[:, :4, :4]), "ellipsis": lambda: torch.einsum("...ij,...kj->...ki", x, z),
            "three": lambda: torch.einsum("bij,bjk,bki->b", x, y, z[:, :3, :5]), "tensordot": lambda: torch.tensordot(x, y, ([2, 0], [1, 0])),
            "bmm": lambda: torch.bmm(x, y), "baddbmm": lambda: torch.baddbmm(z[:, :5, :3], x, y), "kron": lambda: torch.kron(x[0], z[0]),
        }

    return group, {"x": numbers(2, 5, 6), "y": numbers(2, 6, 3), "z": numbers(2, 5, 6)}


def scatters():
    def group(x, values, index, rows):
        return {
            "gather": lambda: x.gather(1, index), "scatter": lambda: x.scatter(1, index, values), "scatter_add": lambda: x.scatter_add(1, index, values),
            "scatter_max": lambda: x.scatter_reduce(1, index, values, "amax"), "index_select": lambda: x.index_select(0, rows),
            "scatter_product": lambda: x.scatter_reduce(1, index, values, "prod", include_self=True),
            "index_add": lambda: x.index_add(0, rows, values[:3, :1].expand(3, 8)), "take": lambda: torch.take_along_dim(x, index, 1),
        }

    index = np.stack([generator.permutation(8)[:5] for _ in range(4)])
    return group, {"x": numbers(4, 8), "values": numbers(4, 5), "index": index, "rows": np.array([2, 0, 3])}


def indexing():
    def changed(x, change):
        y = x.clone()
        change(y)
        return y

    def group(x, rows, columns):
        def put(y):
            y[rows, columns] = 7.0

        def put_slice(y):
            y[:, 1:3] = x[:, :2] * 2

        def add_column(y):
            y[..., -1] += 3

        return {
            "put": lambda: changed(x, put), "put_slice": lambda: changed(x, put_slice), "add_column": lambda: changed(x, add_column),
            "index_put": lambda: x.index_put((rows, columns), torch.ones(3), accumulate=True), "rows": lambda: x[rows],
            "columns": lambda: x[:, columns], "outer": lambda: x[rows[:, None], columns], "strides": lambda: x[1:, ::2],
            "column": lambda: x[..., None, 3], "diagonal": lambda: x.diagonal(), "where": lambda: torch.where(x > 0, x, 0.0),
            "masked_fill": lambda: x.masked_fill(x < -1, -9.0), "tril": lambda: x.tril(-1), "triu": lambda: x.triu(1),
            "diag_embed": lambda: torch.diag_embed(x),
        }

    return group, {"x": numbers(4, 6), "rows": np.array([1, 3, 0]), "columns": np.array([5, 2, 0])}


def boolean_places():
    """Elements where a condition holds: how many, the data say."""
    group = lambda x: {"select": lambda: x[x > 0], "nonzero": lambda: torch.nonzero(x > 1)}
    return group, {"x": numbers(6, 8)}


def sorting():
    def group(x):
        return {
            "topk": lambda: x.topk(3), "smallest": lambda: x.topk(2, dim=0, largest=False), "sort": lambda: x.sort(descending=True, stable=True),
            "argsort": lambda: x.argsort(), "max": lambda: x.max(1), "min": lambda: x.min(0), "argmax": lambda: x.argmax(),
            "kthvalue": lambda: x.kthvalue(2), "median": lambda: x.median(1), "amax": lambda: x.amax((0, 1)), "aminmax": lambda: x.aminmax(dim=1),
        }

    return group, {"x": numbers(5, 9)}


def sums():
    def group(x):
        return {
            "cumsum": lambda: x.cumsum(1), "cumprod": lambda: x.cumprod(0), "logcumsumexp": lambda: x.logcumsumexp(1), "cummax": lambda: x.cummax(1),
            "logsumexp": lambda: x.logsumexp(1), "prod": lambda: x.prod(1), "std": lambda: x.std(1), "var": lambda: x.var(0, correction=0),
            "norm": lambda: x.norm(dim=1), "vector_norm": lambda: torch.linalg.vector_norm(x, 1), "any": lambda: x.any(1),
            "all": lambda: (x > -2).all(0), "diff": lambda: x.diff(), "count": lambda: torch.count_nonzero(x > 0, 1),
            "mean": lambda: x.mean((0, 1)), "cdist": lambda: torch.cdist(x, x + 1), "cosine": lambda: F.cosine_similarity(x, x.flip(0), 1),
        }

    return group, {"x": numbers(5, 9)}


def rounding():
    def group(x, n):
        return {
            "round": lambda: x.round(), "decimals": lambda: x.round(decimals=1), "trunc": lambda: x.trunc(), "frac": lambda: x.frac(),
            "floor": lambda: x.floor(), "ceil": lambda: x.ceil(), "fmod": lambda: x.fmod(0.7), "remainder": lambda: x.remainder(0.7),
            "modulo": lambda: n % 3, "quotient": lambda: n // 3, "truncated": lambda: torch.div(n, 3, rounding_mode="trunc"),
            "fmod_whole": lambda: torch.fmod(n, 3), "shift": lambda: n << 2, "and": lambda: n & 6, "xor": lambda: n ^ 5, "not": lambda: ~n,
            "sign": lambda: x.sign(), "clamp": lambda: x.clamp(-0.5, 0.7), "floor_divide": lambda: torch.floor_divide(x, 0.3),
            "copysign": lambda: x.copysign(-x), "right_shift": lambda: n.bitwise_right_shift(1), "hypot": lambda: x.hypot(x + 1),
        }

    return group, {"x": numbers(5, 9), "n": generator.integers(-9, 9, (4, 5))}


def special():
    def group(x):
        y = x.abs() + 0.1
        return {
            "log1p": lambda: y.log1p(), "log2": lambda: y.log2(), "expm1": lambda: x.expm1(), "erf": lambda: x.erf(), "erfc": lambda: torch.erfc(x),
            "logit": lambda: x.sigmoid().logit(), "atan2": lambda: x.atan2(y), "sinh": lambda: x.sinh(), "asinh": lambda: x.asinh(),
            "rsqrt": lambda: y.rsqrt(), "xlogy": lambda: torch.special.xlogy(x, y), "exp2": lambda: x.exp2(), "lgamma": lambda: torch.lgamma(y),
            "digamma": lambda: torch.digamma(y), "sinc": lambda: x.sinc(), "logaddexp": lambda: torch.logaddexp(x, y), "i0": lambda: torch.i0(x),
            "tan": lambda: x.tan(), "acos": lambda: x.sigmoid().acos(), "heaviside": lambda: x.heaviside(y), "lerp": lambda: torch.lerp(x, y, 0.3),
            "addcmul": lambda: torch.addcmul(x, x, y, value=0.2),
        }

    return group, {"x": numbers(5, 9)}


def activations():
    names = ["celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "mish",
             "relu6", "selu", "silu", "softplus", "softshrink", "softsign", "tanhshrink", "rrelu"]

    def group(x, slopes):
        return {name: lambda name=name: getattr(F, name)(x) for name in names} | {
            "gelu_tanh": lambda: F.gelu(x, approximate="tanh"), "threshold": lambda: F.threshold(x, 0.2, -1.0), "prelu": lambda: F.prelu(x, slopes),
            "softmin": lambda: F.softmin(x, 1), "log_softmax": lambda: F.log_softmax(x, 1), "softmax": lambda: F.softmax(x, 0),
        }

    return group, {"x": 2 * numbers(5, 8), "slopes": numbers(8)}


def not_numbers():
    def group(x):
        y = (x - 0.2).log()
        return {
            "nan_to_num": lambda: y.nan_to_num(0.5, 9.0, -9.0), "isnan": lambda: y.isnan(), "isinf": lambda: y.isinf(),
            "isfinite": lambda: torch.isfinite(y), "isneginf": lambda: torch.where(y.isnan(), -1.0, y).isneginf(),
        }

    return group, {"x": np.concatenate([numbers(9), np.float32([0.2, np.inf, np.nan, -np.inf])])}


def buckets():
    edges = torch.linspace(-1.5, 1.5, 7)

    def group(x):
        return {
            "bucketize": lambda: torch.bucketize(x, edges), "searchsorted": lambda: torch.searchsorted(edges, x, right=True),
            "one_hot": lambda: F.one_hot(torch.bucketize(x, edges), 8), "histc": lambda: torch.histc(x, 5, -2, 2),
        }

    return group, {"x": numbers(4, 6)}


def one_hot():
    group = lambda n, layer_in: {"one_hot": lambda: F.one_hot(n, 8), "product": lambda: F.one_hot(n, 8).float() @ layer_in}
    return group, {"n": whole(8, 3, 4), "layer_in": numbers(8, 5)}


def constructors():
    def group(x):
        rows, columns = x.shape
        return {
            "meshgrid": lambda: torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij"),
            "linspace": lambda: torch.linspace(0, 1, columns) + x, "eye": lambda: torch.eye(columns), "full_like": lambda: torch.full_like(x, 2.5),
            "new_zeros": lambda: x.new_zeros(rows, 2), "arange": lambda: torch.arange(columns, 0, -2), "ones": lambda: torch.ones(rows, 1) @ x[:1],
            "stack": lambda: torch.stack([x, x], 1), "cat": lambda: torch.cat([x, x[:1]]), "split": lambda: x.split([2, 4], 1),
            "chunk": lambda: x.chunk(3, 1), "block_diag": lambda: torch.block_diag(x, x), "cartesian": lambda: torch.cartesian_prod(x[0], x[1]),
        }

    return group, {"x": numbers(4, 6)}


def bags():
    def group(table, tokens, flat, offsets):
        return {
            "mean": lambda: F.embedding_bag(tokens, table, mode="mean"), "sum": lambda: F.embedding_bag(flat, table, offsets, mode="sum"),
            "rows": lambda: F.embedding_bag(tokens, table, mode="sum"),
        }

    return group, {"table": numbers(50, 8), "tokens": whole(50, 4, 6), "flat": whole(50, 15), "offsets": np.array([0, 4, 5, 11])}


def transforms():
    """Fourier transforms of signals and of images."""
    window = torch.hann_window(16)

    def group(x):
        y = torch.fft.rfft(x)
        return {
            "rfft": lambda: torch.view_as_real(y), "irfft": lambda: torch.fft.irfft(y, n=24), "fft2": lambda: torch.view_as_real(torch.fft.fft2(x[None])),
            "abs": lambda: y.abs(), "mixing": lambda: torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real,
            "spectrogram": lambda: torch.view_as_real(torch.stft(x, 16, 4, window=window, return_complex=True)).square().sum(-1),
        }

    return group, {"x": numbers(12, 24)}


def linear_algebra():
    def group(x):
        y = x @ x.transpose(1, 2) + 2 * torch.eye(5)
        return {
            "inverse": lambda: torch.linalg.inv(y), "determinant": lambda: torch.linalg.det(y), "cholesky": lambda: torch.linalg.cholesky(y),
            "solve": lambda: torch.linalg.solve(y, x),
        }

    return group, {"x": numbers(2, 5, 5)}


def losses():
    def group(x, target, classes):
        return {
            "cross_entropy": lambda: F.cross_entropy(x, classes), "smoothed": lambda: F.cross_entropy(x, classes, label_smoothing=0.1),
            "nll": lambda: F.nll_loss(x.log_softmax(1), classes, reduction="none"), "mse": lambda: F.mse_loss(x, target),
            "smooth_l1": lambda: F.smooth_l1_loss(x, target), "bce": lambda: F.binary_cross_entropy_with_logits(x, target.sigmoid()),
            "kl": lambda: F.kl_div(x.log_softmax(1), target.softmax(1), reduction="batchmean"), "huber": lambda: F.huber_loss(x, target),
            "triplet": lambda: F.triplet_margin_loss(x, target, x.flip(0)), "ranking": lambda: F.margin_ranking_loss(x, target, x.sign()),
            "cosine": lambda: F.cosine_embedding_loss(x, target, torch.ones(6)),
        }

    return group, {"x": numbers(6, 8), "target": numbers(6, 8), "classes": whole(8, 6)}


def shuffles():
    def group(x):
        return {
            "pixels": lambda: F.pixel_shuffle(x, 2), "unshuffle": lambda: F.pixel_unshuffle(x, 2), "channels": lambda: F.channel_shuffle(x, 4),
            "roll": lambda: x.roll((1, -2), (2, 3)), "flip": lambda: x.flip(-1), "rot90": lambda: x.rot90(1, (2, 3)),
            "unfold": lambda: x.unfold(2, 4, 2), "repeat": lambda: x.repeat_interleave(2, 1), "tile": lambda: x.tile(1, 2, 1, 1),
        }

    return group, {"x": numbers(2, 8, 6, 10)}


def pools():
    def group(x):
        return {
            "adaptive_mean": lambda: F.adaptive_avg_pool2d(x, (3, 5)), "adaptive_max": lambda: F.adaptive_max_pool2d(x, (3, 2)),
            "ceiling": lambda: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), "within": lambda: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            "max_ceiling": lambda: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), "places": lambda: F.max_pool2d(x, 2, return_indices=True),
            "power": lambda: F.lp_pool2d(x, 2, 3), "dilated": lambda: F.max_pool2d(x, 3, 1, 1, dilation=2),
        }

    return group, {"x": numbers(2, 3, 12, 10)}


def casts():
    def group(x, n, flags):
        return {
            "int": lambda: x.int(), "long": lambda: x.long(), "float": lambda: n.float() / 3, "from_bool": lambda: flags.float(),
            "and": lambda: flags & (x > 0), "bool": lambda: n.bool(), "mixed": lambda: x * n, "promoted": lambda: n + 0.5,
            "int8": lambda: n.to(torch.int8), "added": lambda: flags.long() + n, "double": lambda: n.double() * 0.1, "half": lambda: x.half(),
        }

    return group, {"x": 3 * numbers(4, 5), "n": generator.integers(-9, 9, (4, 5)), "flags": generator.random((4, 5)) < 0.5}


# Networks of other types.


def half():
    layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8)).half()
    return Function(lambda layers, x: layers(x.half()).float(), layers), {"x": numbers(4, 16)}


def double():
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 8)).double(), {"input": numbers(4, 16).astype(np.float64)}


def fake_quantized():
    """Numbers that are rounded to those of 8 bits: of a tensor, and of each channel of a weight."""
    scales = torch.linspace(0.01, 0.03, 12)
    zeros = torch.zeros(12, dtype=torch.int32)

    def function(layer, x):
        x = torch.fake_quantize_per_tensor_affine(x, 0.05, 3, -128, 127)
        weight = torch.fake_quantize_per_channel_affine(layer.weight, scales, zeros, 0, -128, 127)
        return torch.fake_quantize_per_tensor_affine(F.linear(x, weight, layer.bias), 0.1, 10, 0, 255)

    return Function(function, nn.Linear(16, 12)), {"x": numbers(4, 16)}


FUNCTIONS = {name: value for name, value in globals().items() if getattr(value, "__module__", "") == __name__}
# What an exporter does not write, or writes with other numbers than PyTorch's: NAME/FUNCTION.
LEFT_OUT = {
    "script": """
        activations/threshold buckets/histc buckets/searchsorted constructors/block_diag
        constructors/cartesian einsums/kron indexing/diag_embed linear_algebra/cholesky linear_algebra/inverse
        linear_algebra/solve losses/cosine losses/huber losses/ranking losses/smooth_l1 losses/smoothed
        losses/triplet not_numbers/isneginf rounding/copysign rounding/floor_divide rounding/frac
        rounding/hypot rounding/not rounding/quotient rounding/right_shift rounding/trunc rounding/xor
        scatters/take shuffles/channels shuffles/rot90 sorting/kthvalue sorting/median sorting/sort
        special/asinh special/digamma special/erfc special/exp2 special/expm1 special/heaviside special/i0
        special/lgamma special/logaddexp special/sinc special/sinh special/xlogy sums/any sums/count
        sums/cummax sums/cumprod sums/diff sums/logcumsumexp transforms/abs transforms/fft2 transforms/irfft
        transforms/mixing transforms/rfft transforms/spectrogram
    """,
    "dynamo": """
        activations/rrelu bags/mean bags/rows bags/sum buckets/histc buckets/searchsorted indexing/put
        linear_algebra/cholesky linear_algebra/inverse linear_algebra/solve losses/smoothed pools/adaptive_max
        rounding/copysign rounding/hypot shuffles/unshuffle sorting/kthvalue sorting/median sorting/sort
        special/digamma special/i0 special/lgamma sums/cdist sums/cummax sums/cumprod transforms/irfft
    """,
}


def build(name, exporter):
    torch.manual_seed(0)
    function, inputs = FUNCTIONS[name]()
    if isinstance(function, nn.Module):
        return function, inputs
    left_out = LEFT_OUT[exporter].split()
    written = lambda found: [compute() for own, compute in found.items() if f"{name}/{own}" not in left_out]
    return Function(lambda *given: written(function(*given))), inputs
