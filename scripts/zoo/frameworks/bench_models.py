"""The models of the bench that compute batches, with the weights of ORACLE/make_models.py.

ORACLE is $TFCOMPILE_SHARED/oracle (../shared/oracle). Its transformers state a batch of 1 in their reshapes.
"""

import os
import pathlib
import sys

import tensorflow as tf

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / os.environ.get("TFCOMPILE_SHARED", "../shared") / "oracle"))
import make_models
from oracle_common import fill


def build(name):
    module, serve, rules = make_models.build_inference(tf, name)
    inputs = {spec.name: fill(rules[spec.name], f"zoo/{name}/{spec.name}", spec.shape) for spec in serve.input_signature}

    def function(**x):
        # The method refers to its module weakly.
        return module.serve.python_function(*(x[spec.name] for spec in serve.input_signature))

    return function, inputs, list(module.variables)
