"""Checks the decoder's words and scores against an implementation in NumPy and float64.

    reference.py MODEL SCORES COUNT WORD...

MODEL is the directory that model.py wrote, SCORES the file that main wrote for the prompt WORD...
Exits with status 1 if a word differs or a score is further from the reference than rounding
explains.
"""

import json
import math
import re
import struct
import sys

import numpy as np


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    types = {"I8": np.int8, "F16": np.float16, "F32": np.float32}
    arrays = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        arrays[name] = np.frombuffer(data[first:last], types[entry["dtype"]]).reshape(entry["shape"])
    return arrays


def matrix(arrays, name):
    """A matrix in float64. Blocks of summands have their scales in the first dimension."""
    numbers, scales = arrays[name].astype(np.float64), arrays[name + ".scale"].astype(np.float64)
    if numbers.ndim == 2:
        return numbers * scales
    return np.concatenate([block * scale for block, scale in zip(numbers, scales)])


def normalized(x, gain):
    return x / math.sqrt(np.mean(x**2) + 1e-5) * gain


def turned(head, position):
    """Multiplies the complex numbers of a head by powers of a root of unity."""
    half = len(head) // 2
    numbers = head[:half] + 1j * head[half:]
    numbers = numbers * np.exp(1j * position * 10000.0 ** (-np.arange(half) / half))
    return np.concatenate([numbers.real, numbers.imag])


class Decoder:
    """One word after another, one head after another."""

    def __init__(self, arrays, heads, kv_heads):
        self.arrays, self.heads, self.kv_heads = arrays, heads, kv_heads
        self.layers = 1 + max(int(m[1]) for name in arrays if (m := re.match(r"layers\.(\d+)\.", name)))
        self.matrices = {name[:-6]: matrix(arrays, name[:-6]) for name in arrays if name.endswith(".scale") and name != "words.scale"}
        self.keys = [[] for _ in range(self.layers)]
        self.values = [[] for _ in range(self.layers)]

    def read(self, word):
        a = self.arrays
        x = a["words"][word].astype(np.float64) * float(a["words.scale"][word])
        size = len(x) // self.heads
        for layer in range(self.layers):
            m = {name: self.matrices[f"layers.{layer}.{name}"] for name in ("qkv", "out", "gate_up", "down")}
            parts = (normalized(x, a[f"layers.{layer}.norm1"]) @ m["qkv"]).reshape(-1, size)
            queries, keys, values = np.split(parts, [self.heads, self.heads + self.kv_heads])
            position = len(self.keys[layer])
            self.keys[layer].append([turned(key, position) for key in keys])
            self.values[layer].append(list(values))
            mixed = []
            for head, query in enumerate(queries):
                kv = head * self.kv_heads // self.heads
                query = turned(query, position) / math.sqrt(size)
                scores = np.array([query @ keys[kv] for keys in self.keys[layer]])
                weights = np.exp(scores - scores.max())
                weights /= weights.sum()
                mixed.append(sum(w * values[kv] for w, values in zip(weights, self.values[layer])))
            x = x + np.concatenate(mixed) @ m["out"]
            gate, up = np.split(normalized(x, a[f"layers.{layer}.norm2"]) @ m["gate_up"], 2)
            x = x + (gate / (1 + np.exp(-gate)) * up) @ m["down"]
        return normalized(x, a["norm"]) @ self.matrices["head"]


def main():
    model, file, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    text = open(f"{model}/decoder.mlir").read()
    arrays = read_safetensors(f"{model}/decoder.safetensors")
    kv_heads, _, head = map(int, re.search(r"%keys_0: tensor<(\d+)x(\d+)x(\d+)xf32>", text).groups())
    decoder = Decoder(arrays, len(arrays["norm"]) // head, kv_heads)
    scores = np.fromfile(file, np.float32).reshape(count, -1)
    for word in sys.argv[4:]:
        expected = decoder.read(int(word))
    worst = 0.0
    for number, found in enumerate(scores):
        error = np.abs(found - expected).max() / np.abs(expected).max()
        worst = max(worst, error)
        if found.argmax() != expected.argmax() or not error < 2e-5:
            sys.exit(f"word {number}: {found.argmax()} instead of {expected.argmax()}, scores differ by {error:.1e}")
        expected = decoder.read(int(expected.argmax()))
    print(f"{count} words agree; scores differ by at most {worst:.1e}")


if __name__ == "__main__":
    main()
