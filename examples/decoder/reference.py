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
    data = np.memmap(path, np.uint8, "r")
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(bytes(data[8 : 8 + length]))
    data = data[8 + length :]
    types = {"I8": np.int8, "F16": np.float16, "F32": np.float32}
    arrays = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        arrays[name] = data[first:last].view(types[entry["dtype"]]).reshape(entry["shape"])
    return arrays


def product(x, arrays, name):
    """x times a matrix, in float64. Blocks of summands have their scales in the first dimension.

    Converts a few rows at a time: all of a large decoder would need eight times its size.
    """
    numbers, scales = arrays[name], arrays[name + ".scale"].astype(np.float64)
    x = x.reshape(len(numbers), -1)
    result = np.zeros(numbers.shape[-1])
    piece = max(1, (1 << 20) // numbers[0].size)
    for first in range(0, len(numbers), piece):
        rows = slice(first, first + piece)
        wide = numbers[rows].astype(np.float64)
        wide *= scales if numbers.ndim == 2 else scales[rows, None]
        result += x[rows].reshape(-1) @ wide.reshape(-1, len(result))
    return result


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
        self.keys = [[] for _ in range(self.layers)]
        self.values = [[] for _ in range(self.layers)]

    def read(self, word):
        a = self.arrays
        x = a["words"][word].astype(np.float64) * float(a["words.scale"][word])
        size = len(x) // self.heads
        for layer in range(self.layers):
            times = lambda x, name: product(x, a, f"layers.{layer}.{name}")
            parts = times(normalized(x, a[f"layers.{layer}.norm1"]), "qkv").reshape(-1, size)
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
            x = x + times(np.concatenate(mixed), "out")
            gate, up = np.split(times(normalized(x, a[f"layers.{layer}.norm2"]), "gate_up"), 2)
            x = x + times(gate / (1 + np.exp(-gate)) * up, "down")
        return product(normalized(x, a["norm"]), a, "head")


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
    for number, found in enumerate(scores, 1):
        error = np.abs(found - expected).max() / np.abs(expected).max()
        worst = max(worst, error)
        if found.argmax() != expected.argmax() or not error < 2e-5:
            sys.exit(f"word {number}: {found.argmax()} instead of {expected.argmax()}, scores differ by {error:.1e}")
        if number < count:
            expected = decoder.read(int(expected.argmax()))
    print(f"{count} words agree; scores differ by at most {worst:.1e}")


if __name__ == "__main__":
    main()
