"""Functions of PyTorch: arrays, losses, and types of numbers."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from parts_torch import Function, generator, numbers, whole

# Arrays.


def einsums():
    def function(x, y, z):
        return torch.einsum("bij,bjk->bik", x, y), torch.einsum("bij,bkj->", x, z), torch.einsum("bii->bi", x[:, :4, :4]), \
            torch.einsum("...ij,...kj->...ki", x, z), torch.einsum("bij,bjk,bki->b", x, y, z[:, :3, :5].mT.mT), \
            torch.tensordot(x, y, ([2, 0], [1, 0])), torch.bmm(x, y), torch.baddbmm(z[:, :5, :3], x, y), torch.kron(x[0], z[0])

    return Function(function), {"x": numbers(2, 5, 6), "y": numbers(2, 6, 3), "z": numbers(2, 5, 6)}


def scatters():
    def function(x, values, index, rows):
        return x.gather(1, index), x.scatter(1, index, values), x.scatter_add(1, index, values), \
            x.scatter_reduce(1, index, values, "amax"), x.scatter_reduce(1, index, values, "prod", include_self=True), \
            x.index_select(0, rows), x.index_add(0, rows, values[:3]), torch.take_along_dim(x, index, 1)

    index = np.stack([generator.permutation(8)[:5] for _ in range(4)])
    return Function(function), {"x": numbers(4, 8), "values": numbers(4, 5), "index": index, "rows": np.array([2, 0, 3])}


SCATTER_ADD_WIDTH = 8


def indexing():
    def function(x, rows, columns):
        y = x.clone()
        y[rows, columns] = 7.0
        z = x.clone()
        z[:, 1:3] = x[:, :2] * 2
        z[..., -1] += 3
        w = x.index_put((rows, columns), torch.ones(3), accumulate=True)
        return y, z, w, x[rows], x[:, columns], x[rows[:, None], columns], x[1:, ::2], x[..., None, 3], x.diagonal(), \
            torch.where(x > 0, x, 0.0), x.masked_fill(x < -1, -9.0), x.tril(-1), x.triu(1), torch.diag_embed(x)

    return Function(function), {"x": numbers(4, 6), "rows": np.array([1, 3, 0]), "columns": np.array([5, 2, 0])}


def boolean_places():
    """Elements where a condition holds: how many, the data say."""
    return Function(lambda x: (x[x > 0], torch.nonzero(x > 1))), {"x": numbers(6, 8)}


def sorting():
    def function(x):
        return x.topk(3), x.topk(2, dim=0, largest=False), x.sort(descending=True, stable=True), x.argsort(), x.max(1), x.min(0), \
            x.argmax(), x.kthvalue(2), x.median(1), x.amax((0, 1)), x.aminmax(dim=1)

    return Function(function), {"x": numbers(5, 9)}


def sums():
    def function(x):
        return x.cumsum(1), x.cumprod(0), x.logcumsumexp(1), x.cummax(1), x.logsumexp(1), x.prod(1), x.std(1), \
            x.var(0, correction=0), x.norm(dim=1), torch.linalg.vector_norm(x, 1), x.any(1), (x > -2).all(0), x.diff(), \
            torch.count_nonzero(x > 0, 1), x.mean((0, 1)), torch.cdist(x, x + 1), F.cosine_similarity(x, x.flip(0), 1)

    return Function(function), {"x": numbers(5, 9)}


def rounding():
    def function(x, n):
        return x.round(), x.round(decimals=1), x.trunc(), x.frac(), x.floor(), x.ceil(), x.fmod(0.7), x.remainder(0.7), n % 3, \
            n // 3, torch.div(n, 3, rounding_mode="trunc"), torch.fmod(n, 3), n << 2, n & 6, n ^ 5, ~n, x.sign(), x.clamp(-0.5, 0.7), \
            torch.floor_divide(x, 0.3), x.copysign(-x), n.bitwise_right_shift(1), x.hypot(x + 1)

    return Function(function), {"x": numbers(5, 9), "n": generator.integers(-9, 9, (4, 5))}


def special():
    def function(x):
        y = x.abs() + 0.1
        return y.log1p(), y.log2(), x.expm1(), x.erf(), torch.erfc(x), x.sigmoid().logit(), x.atan2(y), x.sinh(), x.asinh(), \
            y.rsqrt(), torch.special.xlogy(x, y), x.exp2(), torch.lgamma(y), torch.digamma(y), x.sinc(), torch.logaddexp(x, y), \
            torch.i0(x), x.tan(), x.sigmoid().acos(), x.heaviside(y), torch.lerp(x, y, 0.3), torch.addcmul(x, x, y, value=0.2)

    return Function(function), {"x": numbers(5, 9)}


def activations():
    names = ["celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "mish",
             "relu6", "selu", "silu", "softmin", "softplus", "softshrink", "softsign", "tanhshrink", "rrelu"]

    def function(prelu, x):
        found = [getattr(F, name)(x, **({"dim": 1} if name == "softmin" else {})) for name in names]
        return *found, F.gelu(x, approximate="tanh"), F.threshold(x, 0.2, -1.0), prelu(x), F.log_softmax(x, 1), F.softmax(x, 0), \
            F.gumbel_softmax(x * 40, tau=0.01, hard=True).shape[0] * x

    return Function(function, nn.PReLU(8)), {"x": 2 * numbers(5, 8)}


def not_numbers():
    def function(x):
        y = (x - 0.2).log()
        return y.nan_to_num(0.5, 9.0, -9.0), y.isnan(), y.isinf(), torch.isfinite(y), torch.where(y.isnan(), -1.0, y).isneginf()

    return Function(function), {"x": np.concatenate([numbers(9), np.float32([0.2, np.inf, np.nan, -np.inf])])}


def buckets():
    edges = torch.linspace(-1.5, 1.5, 7)

    def function(x):
        return torch.bucketize(x, edges), torch.searchsorted(edges, x, right=True), F.one_hot(torch.bucketize(x, edges), 8), \
            torch.histc(x, 5, -2, 2)

    return Function(function), {"x": numbers(4, 6)}


def searched():
    edges = torch.linspace(-1.5, 1.5, 7)
    return Function(lambda x: (torch.bucketize(x, edges), torch.searchsorted(edges, x, right=True))), {"x": numbers(4, 6)}


def one_hot():
    return Function(lambda n, layer_in: (F.one_hot(n, 8), F.one_hot(n, 8).float() @ layer_in)), {"n": whole(8, 3, 4), "layer_in": numbers(8, 5)}


def constructors():
    def function(x):
        rows, columns = x.shape
        grid = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        return *grid, torch.linspace(0, 1, columns) + x, torch.eye(columns), torch.full_like(x, 2.5), x.new_zeros(rows, 2), \
            torch.arange(columns, 0, -2), torch.ones(rows, 1) @ x[:1], torch.stack([x, x], 1), torch.cat([x, x[:1]]), *x.split([2, 4], 1), \
            *x.chunk(3, 1), torch.block_diag(x, x), torch.cartesian_prod(x[0], x[1])

    return Function(function), {"x": numbers(4, 6)}


def bags():
    def function(mean, total, tokens, flat, offsets):
        return mean(tokens), total(flat, offsets)

    return Function(function, nn.EmbeddingBag(50, 8, mode="mean"), nn.EmbeddingBag(50, 8, mode="sum")), {
        "tokens": whole(50, 4, 6), "flat": whole(50, 15), "offsets": np.array([0, 4, 5, 11])}


def bag_of_rows():
    return Function(lambda layer, tokens: layer(tokens), nn.EmbeddingBag(50, 8, mode="sum")), {"tokens": whole(50, 4, 6)}


def transforms():
    """Fourier transforms of signals and of images."""
    def function(x):
        y = torch.fft.rfft(x)
        return torch.view_as_real(y), torch.fft.irfft(y, n=24), torch.view_as_real(torch.fft.fft2(x[None])), y.abs()

    return Function(function), {"x": numbers(3, 24)}


def fourier_mixing():
    """The mixing layer of FNet."""
    return Function(lambda x: torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real), {"x": numbers(2, 12, 16)}


def spectrogram():
    window = torch.hann_window(64)
    return Function(lambda x: torch.view_as_real(torch.stft(x, 64, 16, window=window, return_complex=True)).square().sum(-1)), {
        "x": numbers(2, 400)}


def linear_algebra():
    def function(x):
        y = x @ x.mT + 2 * torch.eye(5)
        return torch.linalg.inv(y), torch.linalg.det(y), torch.linalg.cholesky(y), torch.linalg.solve(y, x)

    return Function(function), {"x": numbers(2, 5, 5)}


def determinants():
    return Function(lambda x: (torch.linalg.det(x), torch.linalg.inv(x))), {"x": numbers(2, 5, 5)}


# Losses, as networks that state their own training's aim.


def losses():
    def function(x, target, classes):
        return F.cross_entropy(x, classes, label_smoothing=0.1), F.nll_loss(x.log_softmax(1), classes, reduction="none"), \
            F.mse_loss(x, target), F.smooth_l1_loss(x, target), F.binary_cross_entropy_with_logits(x, target.sigmoid()), \
            F.kl_div(x.log_softmax(1), target.softmax(1), reduction="batchmean"), F.huber_loss(x, target), \
            F.triplet_margin_loss(x, target, x.flip(0)), F.cosine_embedding_loss(x, target, torch.ones(6)), F.margin_ranking_loss(x, target, x.sign())

    return Function(function), {"x": numbers(6, 8), "target": numbers(6, 8), "classes": whole(8, 6)}


# Types.


def half():
    layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8)).half()
    return Function(lambda layers, x: layers(x.half()).float(), layers), {"x": numbers(4, 16)}


def brain():
    layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8)).bfloat16()
    return Function(lambda layers, x: layers(x.bfloat16()).float(), layers), {"x": numbers(4, 16)}


def double():
    return nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 8)).double(), {"input": numbers(4, 16).astype(np.float64)}


def casts():
    def function(x, n, flags):
        return x.int(), x.to(torch.uint8 if False else torch.int64), n.float() / 3, flags.float(), flags & (x > 0), n.bool(), x * n, n + 0.5, \
            n.to(torch.int8), flags.long() + n, n.double() * 0.1, x.half(), torch.result_type(x, n) is torch.float32 and x + n

    return Function(function), {"x": 3 * numbers(4, 5), "n": generator.integers(-9, 9, (4, 5)), "flags": generator.random((4, 5)) < 0.5}


def fake_quantized():
    """Numbers that are rounded to those of 8 bits: of a tensor, and of each channel of a weight."""
    scales = torch.linspace(0.01, 0.03, 12)
    zeros = torch.zeros(12, dtype=torch.int32)

    def function(layer, x):
        x = torch.fake_quantize_per_tensor_affine(x, 0.05, 3, -128, 127)
        weight = torch.fake_quantize_per_channel_affine(layer.weight, scales, zeros, 0, -128, 127)
        return torch.fake_quantize_per_tensor_affine(F.linear(x, weight, layer.bias), 0.1, 10, 0, 255)

    return Function(function, nn.Linear(16, 12)), {"x": numbers(4, 16)}


NETWORKS = {name: value for name, value in globals().items() if getattr(value, "__module__", "") == __name__}


def build(name):
    torch.manual_seed(0)
    return NETWORKS[name]()
