"""The functions that scripts/jax_symbolic.py writes, and what they have in common."""

import jax.numpy as jnp
import numpy as np

RANDOM = np.random.default_rng(7)
NHWC = ("NHWC", "HWIO", "NHWC")
NWC = ("NWC", "WIO", "NWC")
TYPES = {"": jnp.float32, "i32": jnp.int32, "u32": jnp.uint32, "bool": jnp.bool_, "c64": jnp.complex64,
         "bf16": jnp.bfloat16, "i8": jnp.int8}
PROGRAMS = {}


def normal(*sizes):
    return RANDOM.standard_normal(sizes).astype(np.float32)


def program(*shapes, constraints=()):
    """Registers a function of arrays with symbolic shapes, such as `b, 8` or `b, t:i32`."""

    def add(function):
        if function.__name__ in PROGRAMS:
            raise ValueError(f"{function.__name__} is there twice")
        PROGRAMS[function.__name__] = (function, shapes, constraints)
        return function

    return add
