"""Inputs and modules of networks of PyTorch."""

import numpy as np
from torch import nn

generator = np.random.default_rng(0)


def numbers(*shape):
    return generator.standard_normal(shape).astype(np.float32)


def whole(high, *shape):
    return generator.integers(0, high, shape)


class Function(nn.Module):
    """A function of modules and tensors as a module."""

    def __init__(self, function, *parts):
        super().__init__()
        self.parts, self.function = nn.ModuleList(parts), function

    def forward(self, *given):
        return self.function(*self.parts, *given)
