"""Layers and networks of PyTorch, with random weights and small sizes."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from parts_torch import Function, generator, numbers, whole

# Recurrent layers: results and last states.


def lstm(kind=nn.LSTM, **options):
    layer = kind(12, 24, batch_first=True, **options)
    return Function(lambda layer, x: layer(x), layer), {"x": numbers(2, 9, 12)}


def lstm_with_states():
    layer = nn.LSTM(12, 24, num_layers=2)
    return Function(lambda layer, x, h, c: layer(x, (h, c)), layer), {
        "x": numbers(9, 2, 12), "h": numbers(2, 2, 24), "c": numbers(2, 2, 24)}


def packed():
    """A recurrent network of texts of different lengths."""
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(50, 16)
            self.layer = nn.LSTM(16, 24, batch_first=True, bidirectional=True)

        def forward(self, tokens, lengths):
            texts = nn.utils.rnn.pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True)
            found, (h, _) = self.layer(texts)
            return nn.utils.rnn.pad_packed_sequence(found, batch_first=True)[0], h

    return Tagger(), {"tokens": whole(50, 3, 9), "lengths": np.array([9, 7, 4])}


def cells():
    """A loop over steps that the export unrolls."""
    def function(first, second, x):
        h = torch.zeros(x.shape[1], 24)
        state = h, h
        for step in x.unbind(0):
            h = first(step, h)
            state = second(h, state)
        return h, *state

    return Function(function, nn.GRUCell(12, 24), nn.LSTMCell(24, 24)), {"x": numbers(6, 2, 12)}


# Transformers.


def attention():
    return Function(lambda layer, x, y: layer(x, y, y), nn.MultiheadAttention(32, 4, batch_first=True)), {
        "x": numbers(2, 7, 32), "y": numbers(2, 11, 32)}


def attention_masked():
    def function(layer, x):
        mask = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        return layer(x, x, x, attn_mask=mask, need_weights=False)[0]

    return Function(function, nn.MultiheadAttention(32, 4, batch_first=True)), {"x": numbers(2, 7, 32)}


def encoder():
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu", norm_first=True)
    layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return Function(lambda layers, x, padding: layers(x, src_key_padding_mask=padding), layers), {
        "x": numbers(2, 9, 32), "padding": np.arange(9)[None] >= np.array([[9], [6]])}


def decoder():
    layers = nn.TransformerDecoder(nn.TransformerDecoderLayer(32, 4, 64, batch_first=True), 2)

    def function(layers, x, memory):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return layers(x, memory, tgt_mask=mask, tgt_is_causal=True)

    return Function(function, layers), {"x": numbers(2, 7, 32), "memory": numbers(2, 11, 32)}


def whole_transformer():
    layers = nn.Transformer(32, 4, 2, 2, 64, batch_first=True)
    return Function(lambda layers, x, y: layers(x, y), layers), {"x": numbers(2, 7, 32), "y": numbers(2, 5, 32)}


def scaled_attention():
    def function(q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, attn_mask=mask), \
            F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.2)

    return Function(function), {"q": numbers(2, 4, 7, 8), "k": numbers(2, 4, 7, 8), "v": numbers(2, 4, 7, 8),
                                "mask": generator.random((2, 1, 7, 7)) < 0.7}


def grouped_attention():
    return Function(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True)), {
        "q": numbers(2, 8, 7, 16), "k": numbers(2, 2, 7, 16), "v": numbers(2, 2, 7, 16)}


def rotary():
    """Rotary embeddings in real numbers, with positions as an input."""
    frequencies = 1.0 / 10000 ** (torch.arange(0, 16, 2) / 16)

    def function(x, positions):
        angles = positions[..., None].float() * frequencies
        cos, sin = torch.cat([angles, angles], -1).cos(), torch.cat([angles, angles], -1).sin()
        first, second = x.chunk(2, -1)
        return x * cos[:, None] + torch.cat([-second, first], -1) * sin[:, None]

    return Function(function), {"x": numbers(2, 4, 9, 16), "positions": whole(100, 2, 9)}


# Convolutions, norms, and images.


def transposed():
    parts = [nn.ConvTranspose2d(4, 8, 3, 2, 1, 1), nn.ConvTranspose2d(8, 6, 4, 2, 1, groups=2),
             nn.ConvTranspose2d(6, 3, 3, 1, 2, dilation=2)]
    return nn.Sequential(*parts), {"input": numbers(2, 4, 9, 11)}


def convolutions():
    def function(one, two, three, back, x):
        y = one(x)
        z = two(y[:, :, None].expand(-1, -1, 5, -1))
        return y, z, three(z[:, :, None].expand(-1, -1, 4, -1, -1)), back(y)

    parts = [nn.Conv1d(6, 8, 5, 2, padding=2, padding_mode="reflect"), nn.Conv2d(8, 8, 3, padding="same", groups=8),
             nn.Conv3d(8, 4, (2, 3, 3), padding=(0, 1, 1), padding_mode="circular"), nn.ConvTranspose1d(8, 4, 4, 2, 1)]
    return Function(function, *parts), {"x": numbers(2, 6, 30)}


def norms():
    def function(group, instance, layer, rms, local, weight, x):
        channels_last = x.movedim(1, -1)
        return group(x), instance(x), layer(channels_last), rms(channels_last), local(x), weight(channels_last), \
            F.normalize(x, dim=1), F.batch_norm(x, x.mean((0, 2, 3)), x.var((0, 2, 3)))

    weight = nn.utils.parametrizations.weight_norm(nn.Linear(8, 6))
    parts = [nn.GroupNorm(4, 8), nn.InstanceNorm2d(8, affine=True), nn.LayerNorm(8), nn.RMSNorm(8),
             nn.LocalResponseNorm(3), weight]
    return Function(function, *parts), {"x": numbers(2, 8, 7, 9)}


def interpolation(names):
    """Images of other sizes: by a size and by a factor, with and without the centers of corners."""
    def function(x):
        found = []
        for name in names:
            found += [F.interpolate(x, size=(13, 6), mode=name), F.interpolate(x, scale_factor=(1.7, 2.0), mode=name)]
            if name not in ("nearest", "nearest-exact", "area"):
                found.append(F.interpolate(x, size=(13, 6), mode=name, align_corners=True))
        return found

    return Function(function), {"x": numbers(1, 3, 8, 10)}


def sampling():
    """Images read at places of a grid, with all modes."""
    def function(x, grid):
        return [F.grid_sample(x, grid, mode, padding, align)
                for mode in ("bilinear", "nearest", "bicubic") for padding in ("zeros", "border", "reflection") for align in (False, True)]

    return Function(function), {"x": numbers(2, 3, 7, 9), "grid": (1.2 * generator.uniform(-1, 1, (2, 5, 6, 2))).astype(np.float32)}


def spatial_transformer():
    def function(layer, x):
        theta = layer(x.mean((2, 3))).view(-1, 2, 3)
        return F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)

    return Function(function, nn.Linear(3, 6)), {"x": numbers(2, 3, 8, 10)}


def unpool():
    def function(x):
        found, places = F.max_pool2d(x, 2, return_indices=True)
        return F.max_unpool2d(found, places, 2)

    return Function(function), {"x": numbers(2, 3, 12, 10)}


def folds():
    def function(x):
        columns = F.unfold(x, 3, padding=1, stride=2)
        return columns, F.fold(columns, (8, 10), 3, padding=1, stride=2)

    return Function(function), {"x": numbers(2, 3, 8, 10)}


def pads():
    def function(x):
        return F.pad(x, (1, 2, 3, 0)), F.pad(x, (1, 2, 3, 0), value=1.5), F.pad(x, (2, 1, 1, 3), "reflect"), \
            F.pad(x, (2, 1, 1, 3), "replicate"), F.pad(x, (2, 1, 1, 3), "circular"), F.pad(x, (-1, 2, -2, 0))

    return Function(function), {"x": numbers(1, 2, 6, 7)}


# Control flow.


@torch.jit.script
def scripted_loop(x, steps: int):
    total = torch.zeros_like(x)
    for k in range(steps):
        total = total + x * float(k)
        if bool(total.sum() > 10):
            total = total - 1
    return total


@torch.jit.script
def scripted_search(x):
    """Newton's steps until the error is small."""
    y = x / 2
    while bool((y * y - x).abs().max() > 1e-4):
        y = 0.5 * (y + x / y)
    return y


@torch.jit.script
def scripted_list(x):
    found = []
    for k in range(x.size(0)):
        found.append(x[k] * (k + 1))
    return torch.stack(found)


@torch.jit.script
def scripted_greedy(weight, state, length: int):
    """Greedy decoding: the largest score chooses the next row."""
    tokens = torch.zeros([length], dtype=torch.long)
    for k in range(length):
        state = torch.tanh(weight @ state)
        tokens[k] = state.argmax()
        state = state + weight[tokens[k]]
    return tokens, state


def script(function, inputs, *rest):
    return Function(lambda *given: function(*given, *rest)), inputs


def condition():
    return Function(lambda x: torch.cond(x.sum() > 0, lambda x: x.cos() * 2, lambda x: x.sin() - 1, (x,))), {"x": numbers(4, 5)}


# Whole networks.


def unet():
    block = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU())

    def function(a, b, c, up, d, up2, e, last, x):
        one = a(x)
        two = b(F.max_pool2d(one, 2))
        three = c(F.max_pool2d(two, 2))
        four = d(torch.cat([two, up(three)], 1))
        return last(e(torch.cat([one, up2(four)], 1)))

    parts = [block(3, 8), block(8, 16), block(16, 32), nn.ConvTranspose2d(32, 16, 2, 2), block(32, 16),
             nn.ConvTranspose2d(16, 8, 2, 2), block(16, 8), nn.Conv2d(8, 4, 1)]
    return Function(function, *parts), {"x": numbers(1, 3, 64, 64)}


def super_resolution():
    return nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(),
                         nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3)), {"input": numbers(1, 1, 40, 48)}


def crnn():
    def function(images, layer, last, x):
        columns = images(x).squeeze(2).permute(0, 2, 1)
        return last(layer(columns)[0]).log_softmax(-1)

    images = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1),
                           nn.ReLU(), nn.MaxPool2d((2, 1)), nn.AdaptiveAvgPool2d((1, None)))
    return Function(function, images, nn.LSTM(32, 48, bidirectional=True, batch_first=True), nn.Linear(96, 20)), {"x": numbers(1, 1, 32, 100)}


def pointnet():
    def function(points, head, x):
        return head(points(x.mT).amax(-1))

    points = nn.Sequential(nn.Conv1d(3, 32, 1), nn.BatchNorm1d(32), nn.ReLU(), nn.Conv1d(32, 128, 1))
    return Function(function, points, nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))), {"x": numbers(2, 200, 3)}


def graph_network():
    """Sums of the messages along edges."""
    def function(first, second, nodes, edges):
        for layer in (first, second):
            found = torch.zeros_like(nodes).index_add(0, edges[1], nodes[edges[0]])
            nodes = layer(nodes + found).relu()
        return nodes, nodes.mean(0)

    return Function(function, nn.Linear(16, 16), nn.Linear(16, 16)), {"nodes": numbers(20, 16), "edges": whole(20, 2, 50)}


def recommender():
    """DLRM: tables of features, and products of all pairs."""
    def function(bottom, table, top, dense, sparse):
        x = bottom(dense)
        rows = torch.cat([x[:, None], table(sparse + torch.arange(4) * 20)], 1)
        pairs = rows @ rows.mT
        first, second = torch.tril_indices(5, 5, -1)
        return top(torch.cat([x, pairs[:, first, second]], 1)).sigmoid()

    return Function(function, nn.Sequential(nn.Linear(13, 16), nn.ReLU()), nn.Embedding(80, 16), nn.Sequential(nn.Linear(26, 32), nn.ReLU(), nn.Linear(32, 1))), {
        "dense": numbers(4, 13), "sparse": whole(20, 4, 4)}


def ode():
    def function(layer, x):
        for _ in range(8):
            a = layer(x)
            b = layer(x + 0.05 * a)
            x = x + 0.1 * b
        return x

    return Function(function, nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 6))), {"x": numbers(3, 6)}


def experts():
    """A mixture of experts, of which each row takes the best two."""
    def function(gate, first, second, x):
        scores, chosen = gate(x).softmax(-1).topk(2)
        hidden = torch.einsum("td,edh->teh", x, first.weight.view(4, 16, 32)).relu()
        every = torch.einsum("teh,ehd->ted", hidden, second.weight.view(4, 32, 16))
        found = every.gather(1, chosen[..., None].expand(-1, -1, 16))
        return (found * scores[..., None]).sum(1)

    return Function(function, nn.Linear(16, 4), nn.Linear(16, 128), nn.Linear(16, 128)), {"x": numbers(10, 16)}


def codebook():
    """The nearest rows of a table, as in a VQ-VAE."""
    def function(encoder, table, decoder, x):
        y = encoder(x).movedim(1, -1)
        places = (y.unsqueeze(-2) - table.weight).square().sum(-1).argmin(-1)
        return decoder(table(places).movedim(-1, 1)), places

    encoder = nn.Sequential(nn.Conv2d(3, 16, 4, 2, 1), nn.ReLU(), nn.Conv2d(16, 8, 4, 2, 1))
    decoder = nn.Sequential(nn.ConvTranspose2d(8, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1))
    return Function(function, encoder, nn.Embedding(32, 8), decoder), {"x": numbers(1, 3, 32, 32)}


def boxes():
    """Boxes from anchors and offsets, and those that suppression keeps."""
    import torchvision

    def function(x, scores):
        found = torch.cat([x[:, :2], x[:, :2] + x[:, 2:].exp()], 1)
        kept = torchvision.ops.nms(found, scores, 0.3)
        return found[kept[:5]], torchvision.ops.box_iou(found, found)

    return Function(function), {"x": numbers(20, 4), "scores": generator.random(20).astype(np.float32)}


def regions():
    import torchvision

    def function(x, rows):
        return torchvision.ops.roi_align(x, rows, (5, 5), 0.5, 2), torchvision.ops.roi_pool(x, rows, (3, 3), 0.5)

    corners = generator.uniform(0, 12, (6, 2))
    rows = np.concatenate([whole(2, 6, 1), corners, corners + generator.uniform(2, 10, (6, 2))], 1)
    return Function(function), {"x": numbers(2, 4, 12, 12), "rows": rows.astype(np.float32)}


NETWORKS = {
    "lstm": lstm, "lstm_deep": lambda: lstm(num_layers=2, bidirectional=True),
    "gru": lambda: lstm(nn.GRU), "gru_deep": lambda: lstm(nn.GRU, num_layers=2, bidirectional=True), "rnn": lambda: lstm(nn.RNN),
    "rnn_relu": lambda: lstm(nn.RNN, nonlinearity="relu", bidirectional=True), "lstm_states": lstm_with_states, "packed": packed, "cells": cells,
    "attention": attention, "attention_masked": attention_masked, "encoder": encoder, "decoder": decoder,
    "transformer": whole_transformer, "scaled_attention": scaled_attention, "grouped_attention": grouped_attention, "rotary": rotary,
    "transposed": transposed, "convolutions": convolutions, "norms": norms,
    "interpolation": lambda: interpolation(["nearest", "bilinear"]), "interpolation_area": lambda: interpolation(["area"]),
    "interpolation_exact": lambda: interpolation(["nearest-exact"]), "interpolation_cubic": lambda: interpolation(["bicubic"]),
    "sampling": sampling, "spatial_transformer": spatial_transformer, "unpool": unpool, "folds": folds, "pads": pads,
    "scripted_loop": lambda: script(scripted_loop, {"x": numbers(3, 4)}, 7),
    "scripted_search": lambda: script(scripted_search, {"x": generator.uniform(1, 9, 6).astype(np.float32)}),
    "scripted_list": lambda: script(scripted_list, {"x": numbers(5, 4)}),
    "scripted_greedy": lambda: script(scripted_greedy, {"weight": numbers(8, 8), "state": numbers(8)}, 6),
    "condition": condition, "unet": unet, "super_resolution": super_resolution, "crnn": crnn, "pointnet": pointnet,
    "graph_network": graph_network, "recommender": recommender, "ode": ode, "experts": experts, "codebook": codebook, "boxes": boxes, "regions": regions,
}


def build(name, _exporter):
    torch.manual_seed(0)
    return NETWORKS[name]()
