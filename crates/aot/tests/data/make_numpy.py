"""Writes variables of the fixture `train` as NumPy does: python make_numpy.py (numpy 1.26)."""

import numpy

values = {
    "layer/kernel": numpy.array([1.5, -2, 3e-9], "float32"),
    "other": numpy.array([4, 5, 6], "float32"),
    "layer:kernel": numpy.array([7], "float32"),
    "step": numpy.array(3),
}
numpy.savez("numpy.npz", **values)
numpy.savez_compressed("numpy_compressed.npz", **values)
