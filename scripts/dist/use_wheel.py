"""Compiles a model with the installed package, and compares its results with those computed by hand.
Reads the bill of materials that the package has."""

import importlib.metadata
import json

import numpy as np
import tfcompile

model = tfcompile.compile("layer.pbtxt", config="layer.config.pbtxt").load(threads=2)
x = np.zeros(next(iter(model.feeds.values()))[1], np.float32)
x[0] = 1
(result,) = model(x).values()
# The numbers that examples/builds/main.cc prints.
assert result.tolist() == [[23, 24, 33], [1, 0, 3]], result

(bom,) = (file for file in importlib.metadata.files("tfcompile") if file.name == "tfcompile.cdx.json")
names = {component["name"] for component in json.loads(bom.read_text())["components"]}
assert {"codegen", "llvm"} <= names, names
print("the wheel agrees")
