#!/usr/bin/env python3
"""Records LiteRT's answers (reference kernels) of int8 models to inputs from a fixed seed.

    PYTHON scripts/microcontrollers/answers.py DIR NAME...
"""

import pathlib
import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

directory = pathlib.Path(sys.argv[1])
for name in sys.argv[2:]:
    path = directory / f"{name}.answers.npz"
    if path.exists():
        continue
    interpreter = Interpreter(
        str(directory / f"{name}.int8.tflite"), experimental_op_resolver_type=OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    feed, fetch = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    x = np.random.default_rng(0).integers(-128, 128, feed["shape"]).astype(np.int8)
    interpreter.set_tensor(feed["index"], x)
    interpreter.invoke()
    np.savez(path, x=x, y=interpreter.get_tensor(fetch["index"]))
