"""Recommenders of the package deepctr, with random weights: a batch of 8 users and items.

Features are three dense numbers, three categories, and for models of interest the items that a user has
seen, with their number.
"""

import numpy as np
import tensorflow as tf
from deepctr import models
from deepctr.feature_column import DenseFeat, SparseFeat, VarLenSparseFeat

BATCH, LENGTH, WORDS = 8, 6, 50
# Models with two groups of features, models of interest, and models of several tasks.
WIDE = {"WDL", "DeepFM", "xDeepFM", "NFM", "FNN", "DCN", "DCNMix", "FiBiNET", "AutoInt", "IFM", "DIFM", "FLEN", "FwFM",
        "DeepFEFM", "CCPM", "AFM", "EDCN", "FGCNN"}
INTEREST = {"DIN", "BST"}
TASKS = {"SharedBottom", "ESMM", "MMOE", "PLE"}


def build(name):
    tf.keras.utils.set_random_seed(0)
    generator = np.random.default_rng(0)
    group = (lambda k: f"group{k % 2}") if name == "FLEN" else (lambda k: "default_group")
    columns = [SparseFeat(f"C{k}", WORDS, embedding_dim=8, group_name=group(k)) for k in range(4)]
    if name not in ("EDCN", "AFM", "CCPM"):
        columns += [DenseFeat(f"I{k}", 1) for k in range(3)]
    if name in INTEREST:
        columns = [SparseFeat("user", WORDS, 8), SparseFeat("item", WORDS, 8), DenseFeat("score", 1)]
        group = lambda column, **more: VarLenSparseFeat(
            SparseFeat(column, WORDS, 8, embedding_name="item"), maxlen=LENGTH, length_name="seq_length", **more
        )
        columns.append(group("hist_item"))
        options = {"dnn_hidden_units": (32, 16)}
        if name == "BST":
            options["att_head_num"] = 4
        model = models.__dict__[name](columns, ["item"], **options)
    elif name in TASKS:
        model = models.__dict__[name](columns, task_types=("binary", "binary"), task_names=("ctr", "ctcvr"))
    elif name in WIDE:
        model = models.__dict__[name](columns, columns)
    elif name == "PNN":
        model = models.PNN(columns, use_outter=True)
    else:
        model = models.__dict__[name](columns)
    for variable in model.variables:
        # New embeddings are so small that all results would be one half.
        if len(variable.shape) > 1 and float(tf.math.reduce_std(variable)) < 0.05:
            variable.assign(generator.normal(0, 0.4, variable.shape).astype(np.float32))
    inputs = {}
    for tensor in model.inputs:
        sizes = (BATCH, *tensor.shape[1:])
        if tensor.dtype.is_integer:
            most = LENGTH + 1 if tensor.name == "seq_length" else WORDS
            inputs[tensor.name] = generator.integers(1, most, sizes).astype(tensor.dtype.as_numpy_dtype)
        else:
            inputs[tensor.name] = generator.standard_normal(sizes).astype(np.float32)
    names = [tensor.name for tensor in model.inputs]
    return lambda **x: model([x[name] for name in names], training=False), inputs, list(model.variables)
