"""Architectures of the package transformers in TensorFlow, with random weights and few, narrow layers."""

import inspect

import numpy as np
import tensorflow as tf
import transformers

from transformers_parts import HEADS, config_of, inputs_of

# Largest sizes of networks (see make.py), if not the usual ones.
OPEN = {
    "GPT2Prefill": {"w0": 512},
    # Shorter texts are not pooled: the branches of its conditions have other shapes.
    "Funnel": {"w0": (3, 48), "batch": 4},
}


def prefill():
    """GPT-2 of 124 million parameters, as it reads a text: scores of the next word, and the keys and values of all layers."""
    model = transformers.TFGPT2LMHeadModel(transformers.GPT2Config())

    def function(input_ids):
        found = model(input_ids, training=False, use_cache=True)
        return found.logits[:, -1], *found.past_key_values

    inputs = {"input_ids": np.random.default_rng(0).integers(0, 50257, (1, 64)).astype(np.int32)}
    function(**inputs)
    return function, inputs, list(model.variables)


def build(name):
    tf.keras.utils.set_random_seed(0)
    if name == "GPT2Prefill":
        return prefill()
    config = config_of(name)
    model = getattr(transformers, f"TF{name}{HEADS.get(name, 'Model')}")(config)
    inputs = inputs_of(name, config)
    cache = {"use_cache": False} if "use_cache" in inspect.signature(model.call).parameters else {}
    separate = ["noise"] if name == "ViTMAE" else []

    def function(**x):
        named = {key: x.pop(key) for key in separate}
        return tuple(model(x, training=False, **named, **cache).values())

    function(**inputs)
    return function, inputs, list(model.variables)
