"""Compares functions for JAX with JAX."""

import numpy as np
import pytest
import tfcompile

jax = pytest.importorskip("jax")


def test_a_function():
    import jax.numpy as jnp

    def layer(x, w):
        return jnp.tanh(x @ w).sum(axis=1)

    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((4, 3), np.float32), rng.standard_normal((3, 5), np.float32)
    (result,) = tfcompile.compile(layer, inputs=(x, w)).load()(x, w).values()
    np.testing.assert_allclose(result, layer(x, w), rtol=1e-5, atol=1e-6)


def test_shapes_are_wanted():
    with pytest.raises(TypeError, match="pass examples"):
        tfcompile.compile(lambda x: x)
