"""Compiles the layer and calls it on NumPy arrays: y = relu(x w + b) for two rows of four features."""

import numpy as np
import tfcompile

layer = tfcompile.compile("layer.pbtxt", config="layer.config.pbtxt").load(threads=2)
x = np.zeros((2, 4), np.float32)
x[0] = 1
for row in layer(x=x)["y"]:
    print(*(f"{value:g}" for value in row))
