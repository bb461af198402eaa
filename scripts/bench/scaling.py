#!/usr/bin/env python3
"""Measures how the time and memory of a compilation grow with the graph.

    scaling.py TOOL DIR [--kernels 100,1000,10000] [--parameters 10,100,1300] [--rounds N]

Needs numpy and onnx. DIR receives models of residual layers (a normalization, two products, an activation): narrow ones
for kernels, either equal or each of another width, and wide ones for millions of parameters. Prints a table of the best
CPU time and the greatest resident memory of all rounds; files are mapped, so their pages count.
"""

import argparse
import os
import pathlib
import subprocess

import numpy as np
import onnx
from onnx import TensorProto, helper

ACTIVATIONS = ["Relu", "Tanh", "Sigmoid", "Softplus", "Elu", "Erf", "Exp"]


class Weights:
    """A file of weights, and the tensors that name its parts."""

    def __init__(self, path):
        self.file, self.name, self.tensors = path.open("wb"), path.name, []
        self.pool = np.random.default_rng(1).standard_normal(1 << 22).astype(np.float32)

    def tensor(self, *dims):
        self.file.write(bytes(-self.file.tell() % 64))
        offset, left = self.file.tell(), int(np.prod(dims))
        tensor = TensorProto(name=f"w{len(self.tensors)}", data_type=TensorProto.FLOAT, dims=dims)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", self.name), ("offset", offset), ("length", 4 * left)):
            tensor.external_data.add(key=key, value=str(value))
        # No two tensors are equal.
        scale = np.float32(1 + len(self.tensors) / 1e6)
        while left:
            part = self.pool[:left] * scale
            self.file.write(part.tobytes())
            left -= part.size
        self.tensors.append(tensor)
        return tensor.name


def write(path, layers, width, hidden, is_varied=False):
    """Writes a model, and returns its millions of parameters."""
    weights, nodes, x = Weights(path.with_suffix(".data")), [], "x"

    def node(op, *inputs, **attributes):
        nodes.append(helper.make_node(op, inputs, [f"n{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    for layer in range(layers):
        inner = 8 + layer * 7 % (4 * hidden) + layer // 50 if is_varied else hidden
        h = node("LayerNormalization", x, weights.tensor(width), weights.tensor(width))
        h = node("Gemm", h, weights.tensor(width, inner), weights.tensor(inner))
        h = node(ACTIVATIONS[layer % len(ACTIVATIONS)] if is_varied else "Relu", h)
        x = node("Add", x, node("MatMul", h, weights.tensor(inner, width)))
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, width])]
    graph = helper.make_graph(nodes, "graph", inputs, [helper.make_empty_tensor_value_info(x)], weights.tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    weights.file.close()
    return path.with_suffix(".data").stat().st_size / 4e6


def measure(tool, path, directory):
    """CPU time in seconds and resident memory in MB of a compilation for one processor."""
    flags = ["--target-cpu=x86-64-v3", "--name=model", "--quiet", "-o", directory / "out"]
    command = [tool, "build", path, *flags]
    process = subprocess.Popen(command, env={**os.environ, "TFCOMPILE_KERNEL_CACHE": ""})
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"scaling.py: {path}: the tool failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--kernels", default="100,1000,10000")
    parser.add_argument("--parameters", default="10,100,1300", help="millions")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    tool = arguments.tool.absolute()
    models = []
    for kernels in filter(None, arguments.kernels.split(",")):
        # A layer has three kernels.
        layers = int(kernels) // 3
        for kind in ("equal", "varied"):
            models.append((f"{kernels} kernels, {kind}", layers, 32, 32, kind == "varied"))
    for millions in filter(None, arguments.parameters.split(",")):
        width = 1024 if int(millions) < 1000 else 2048
        layers = max(1, round(int(millions) * 1e6 / (8 * width**2)))
        models.append((f"{millions} million parameters", layers, width, 4 * width, False))
    print("| graph | parameters | CPU time | memory | object |\n|---|---|---|---|---|")
    for name, layers, width, hidden, is_varied in models:
        path = arguments.directory / f"{name.replace(',', '').replace(' ', '_')}.onnx"
        parameters = write(path, layers, width, hidden, is_varied)
        results = [measure(tool, path, arguments.directory) for _ in range(arguments.rounds)]
        seconds, memory = min(r[0] for r in results), max(r[1] for r in results)
        built = arguments.directory / "out/model.o"
        size = built.stat().st_size / 1e6
        print(f"| {name} | {parameters:.1f} M | {seconds:.2f} s | {memory:.0f} MB | {size:.1f} MB |", flush=True)
        for file in (path, path.with_suffix(".data"), built):
            file.unlink()


if __name__ == "__main__":
    main()
