"""Graph networks of the package spektral, with random weights: two layers and a readout over 24 nodes."""

import numpy as np
import tensorflow as tf
from spektral import layers, utils

NODES, FEATURES, EDGE_FEATURES = 24, 10, 4
# Layers that take an adjacency matrix, and those that take a list of edges with features.
POOLS = {"DiffPool": dict(k=6, channels=16), "MinCutPool": dict(k=6), "DMoNPool": dict(k=6), "JustBalancePool": dict(k=6)}


def build(name):
    tf.keras.utils.set_random_seed(0)
    generator = np.random.default_rng(0)
    links = generator.random((NODES, NODES)) < 0.2
    links = (links | links.T | np.eye(NODES, dtype=bool)).astype(np.float32)
    nodes = generator.standard_normal((1, NODES, FEATURES)).astype(np.float32)
    if name in POOLS:
        first, pool, last = layers.GCNConv(16, "relu"), getattr(layers, name)(**POOLS[name]), layers.GCNConv(8)

        def function(x, a):
            x, a = pool([first([x, a]), a])
            return last([x, a])
    elif name in ("ECCConv", "CrystalConv", "XENetConv"):
        pairs = generator.standard_normal((1, NODES, NODES, EDGE_FEATURES)).astype(np.float32)
        layer = layers.ECCConv(16, kernel_network=[16], activation="relu")
        output = layers.GlobalAttentionPool(8)
        function = lambda x, a, e: output(layer([x, a, e]))
        inputs = {"x": nodes, "a": links[None], "e": pairs}
        function(**inputs)
        return function, inputs, list(layer.variables) + list(output.variables)
    else:
        kind = getattr(layers, name)
        first, last = kind(16, activation="relu"), kind(8)
        links = kind.preprocess(links).astype(np.float32)
        output = layers.GlobalSumPool()
        function = lambda x, a: output(last([first([x, a]), a]))
    inputs = {"x": nodes, "a": np.asarray(links, np.float32)[None]}
    held = [first, last] + ([pool] if name in POOLS else [])
    function(**inputs)
    return function, inputs, [variable for layer in held for variable in layer.variables]
