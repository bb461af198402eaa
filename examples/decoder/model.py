"""Writes a Llama-shaped decoder with random weights: StableHLO with the functions `prefill` and
`decode`, and a .safetensors file with the weights.

    model.py OUT [--size tiny|1b] [--weights int8|int4] [--seed N]

Only NumPy is needed. The weights of matrices are int8 with a scale for each column, or int4 in
blocks of 32 summands with a scale each. The vectors of the normalizations are float32.
"""

import argparse
import json
import pathlib
import struct

import numpy as np

BLOCK = 32  # summands that share a scale in int4

SIZES = {
    # layers, width, heads, heads of keys and values, width of the feed-forward network,
    # vocabulary, positions in the cache, tokens of a prefill, positions of an attention step
    "tiny": dict(layers=2, width=128, heads=8, kv_heads=2, hidden=192, words=96, positions=64, chunk=8, step=16),
    "1b": dict(layers=22, width=2048, heads=32, kv_heads=4, hidden=5632, words=32000, positions=2048, chunk=128, step=128),
}
EPSILON = 1e-5
ROPE_BASE = 10000.0


def matrices(size):
    """The matrices: name, summands, columns."""
    width, head = size["width"], size["width"] // size["heads"]
    for layer in range(size["layers"]):
        yield f"layers.{layer}.qkv", width, width + 2 * size["kv_heads"] * head
        yield f"layers.{layer}.out", width, width
        yield f"layers.{layer}.gate_up", width, 2 * size["hidden"]
        yield f"layers.{layer}.down", size["hidden"], width
    yield "head", width, size["words"]


def random_weights(size, kind, seed):
    """Random weights, as an iterator of names and arrays."""
    rng = np.random.default_rng(seed)
    bound = 127 if kind == "int8" else 7
    for name, summands, columns in matrices(size):
        numbers = rng.integers(-bound, bound, size=(summands, columns), dtype=np.int8, endpoint=True)
        scale = 1.7 / (bound * summands**0.5)
        if kind == "int8":
            scales = (scale * rng.uniform(0.5, 1.5, columns)).astype(np.float32)
        else:
            numbers = numbers.reshape(summands // BLOCK, BLOCK, columns)
            scales = (scale * rng.uniform(0.5, 1.5, (summands // BLOCK, columns))).astype(np.float16)
        yield name, numbers
        yield f"{name}.scale", scales
    yield "words", rng.integers(-127, 127, size=(size["words"], size["width"]), dtype=np.int8, endpoint=True)
    yield "words.scale", (rng.uniform(0.5, 1.5, size["words"]) / 64).astype(np.float32)
    norms = [f"layers.{layer}.{name}" for layer in range(size["layers"]) for name in ("norm1", "norm2")]
    for name in [*norms, "norm"]:
        yield name, rng.uniform(0.5, 1.5, size["width"]).astype(np.float32)


def write_safetensors(path, arrays):
    """Writes a .safetensors file. Offsets come from shapes, so that one array is in memory at a time."""
    types = {"int8": "I8", "float16": "F16", "float32": "F32"}
    header, offset = {}, 0
    with open(path.with_suffix(".data"), "w+b") as data:
        for name, array in arrays:
            end = offset + array.nbytes
            header[name] = {
                "dtype": types[array.dtype.name],
                "shape": array.shape,
                "data_offsets": [offset, end],
            }
            data.write(array.tobytes())
            offset = end
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 64)
        data.seek(0)
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            while piece := data.read(1 << 24):
                file.write(piece)
    path.with_suffix(".data").unlink()


class Function:
    """Builds the text of a StableHLO function."""

    def __init__(self):
        self.lines = []
        self.count = 0
        self.indentation = "    "

    def add(self, text, shape=None):
        """Adds an operation and returns its value; `shape` is the type of the result."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"{self.indentation}{name} = {text}")
        return Value(self, name, shape)

    def constant(self, number, shape):
        text = f"{number:.9e}" if shape.split("x")[-1].startswith("f") else str(number)
        return self.add(f"stablehlo.constant dense<{text}> : tensor<{shape}>", shape)


class Value:
    """A value of a function, with its type such as `4x8xf32`."""

    def __init__(self, function, name, shape):
        self.f, self.name, self.shape = function, name, shape

    @property
    def element(self):
        return self.shape.split("x")[-1]

    @property
    def sizes(self):
        return [int(size) for size in self.shape.split("x")[:-1]]

    def unary(self, op):
        return self.f.add(f"stablehlo.{op} {self.name} : tensor<{self.shape}>", self.shape)

    def binary(self, op, other):
        if not isinstance(other, Value):
            other = self.f.constant(other, self.shape)
        return self.f.add(f"stablehlo.{op} {self.name}, {other.name} : tensor<{self.shape}>", self.shape)

    def __add__(self, other):
        return self.binary("add", other)

    def __sub__(self, other):
        return self.binary("subtract", other)

    def __mul__(self, other):
        return self.binary("multiply", other)

    def __truediv__(self, other):
        return self.binary("divide", other)

    def _to(self, op, shape, more=""):
        text = f"stablehlo.{op} {self.name}{more} : (tensor<{self.shape}>) -> tensor<{shape}>"
        return self.f.add(text, shape)

    def convert(self, element):
        return self._to("convert", typed(self.sizes, element))

    def reshape(self, *sizes):
        return self._to("reshape", typed(sizes, self.element))

    def broadcast(self, sizes, dims):
        return self._to("broadcast_in_dim", typed(sizes, self.element), f", dims = {list(dims)}")

    def transpose(self, *dims):
        return self._to("transpose", typed([self.sizes[d] for d in dims], self.element), f", dims = {list(dims)}")

    def slice(self, *ranges):
        text = ", ".join(f"{first}:{last}" for first, last in ranges)
        shape = typed([last - first for first, last in ranges], self.element)
        return self.f.add(
            f"stablehlo.slice {self.name} [{text}] : (tensor<{self.shape}>) -> tensor<{shape}>", shape
        )

    def reduce(self, op, dim, initial):
        initial = self.f.constant(initial, self.element) if isinstance(initial, float) else initial
        sizes = [size for d, size in enumerate(self.sizes) if d != dim]
        shape = typed(sizes, self.element)
        return self.f.add(
            f"stablehlo.reduce({self.name} init: {initial.name}) applies stablehlo.{op} across dimensions = [{dim}] : "
            f"(tensor<{self.shape}>, tensor<{self.element}>) -> tensor<{shape}>",
            shape,
        )

    def dot(self, other, contracting, batch=((), ())):
        (lc, rc), (lb, rb) = contracting, batch
        sizes = [self.sizes[d] for d in lb]
        sizes += [size for d, size in enumerate(self.sizes) if d not in [*lb, *lc]]
        sizes += [size for d, size in enumerate(other.sizes) if d not in [*rb, *rc]]
        shape = typed(sizes, self.element)
        batching = f" batching_dims = {list(lb)} x {list(rb)}," if lb else ""
        return self.f.add(
            f"stablehlo.dot_general {self.name}, {other.name},{batching} contracting_dims = {list(lc)} x {list(rc)} : "
            f"(tensor<{self.shape}>, tensor<{other.shape}>) -> tensor<{shape}>",
            shape,
        )

    def dynamic_slice(self, starts, sizes):
        shape = typed(sizes, self.element)
        names = ", ".join(start.name for start in starts)
        types = ", ".join([f"tensor<{self.shape}>", *["tensor<i32>"] * len(starts)])
        return self.f.add(
            f"stablehlo.dynamic_slice {self.name}, {names}, sizes = {list(sizes)} : ({types}) -> tensor<{shape}>", shape
        )

    def dynamic_update(self, update, starts):
        names = ", ".join(start.name for start in starts)
        types = ", ".join(
            [f"tensor<{self.shape}>", f"tensor<{update.shape}>", *["tensor<i32>"] * len(starts)]
        )
        return self.f.add(
            f"stablehlo.dynamic_update_slice {self.name}, {update.name}, {names} : ({types}) -> tensor<{self.shape}>",
            self.shape,
        )


def typed(sizes, element):
    return "x".join([*map(str, sizes), element])


def iota(f, sizes, dim, element):
    shape = typed(sizes, element)
    return f.add(f"stablehlo.iota dim = {dim} : tensor<{shape}>", shape)


def compare(f, left, direction, right):
    shape = typed(left.sizes, "i1")
    return f.add(
        f"stablehlo.compare {direction}, {left.name}, {right.name} : "
        f"(tensor<{left.shape}>, tensor<{right.shape}>) -> tensor<{shape}>",
        shape,
    )


def select(f, condition, left, right):
    return f.add(
        f"stablehlo.select {condition.name}, {left.name}, {right.name} : tensor<{condition.shape}>, tensor<{left.shape}>",
        left.shape,
    )


def product(x, weights, name, kind):
    """x times a matrix of weights."""
    numbers, scales = weights[name], weights[f"{name}.scale"]
    wide = numbers.convert("f32")
    if kind == "int8":
        wide = wide * scales.broadcast(wide.sizes, [1])
    else:
        blocks, block, columns = wide.sizes
        wide = wide * scales.convert("f32").broadcast(wide.sizes, [0, 2])
        wide = wide.reshape(blocks * block, columns)
    return x.dot(wide, ((1,), (0,)))


def rms_norm(x, gain):
    rows, width = x.sizes
    mean = (x * x).reduce("add", 1, 0.0) / float(width)
    scale = (mean + EPSILON).unary("rsqrt")
    return x * scale.broadcast(x.sizes, [0]) * gain.broadcast(x.sizes, [1])


def rotated(x, cosine, sine):
    """Rotary embedding: the halves of each head are the parts of complex numbers."""
    tokens, heads, head = x.sizes
    half = [tokens, heads, head // 2]
    first = x.slice((0, tokens), (0, heads), (0, head // 2))
    second = x.slice((0, tokens), (0, heads), (head // 2, head))
    cosine, sine = cosine.broadcast(half, [0, 2]), sine.broadcast(half, [0, 2])
    parts = [first * cosine - second * sine, second * cosine + first * sine]
    types = ", ".join(f"tensor<{part.shape}>" for part in parts)
    return x.f.add(
        f"stablehlo.concatenate {parts[0].name}, {parts[1].name}, dim = 2 : ({types}) -> tensor<{x.shape}>", x.shape
    )


def attention(f, query, keys, values, position, size, tokens):
    """Attention over the cache, in steps of as many positions as have been written.

    Query is [kv heads, tokens x group, head]; keys and values are [kv heads, positions, head].
    """
    kv, rows, head = query.sizes
    step = size["step"]
    state = [
        ("i", f.constant(0, "i32")),
        ("most", f.constant(-1e30, typed([kv, rows], "f32"))),
        ("sum", f.constant(0.0, typed([kv, rows], "f32"))),
        ("mean", f.constant(0.0, typed([kv, rows, head], "f32"))),
        ("query", query),
        ("keys", keys),
        ("values", values),
        ("position", position),
    ]
    f.count += 1
    name = f"%v{f.count}"
    initial = ", ".join(f"%{label}_{f.count} = {value.name}" for label, value in state)
    suffix = f.count
    types = ", ".join(f"tensor<{value.shape}>" for _, value in state)
    f.lines.append(f"{f.indentation}{name}:{len(state)} = stablehlo.while({initial}) : {types}")
    inside = {label: Value(f, f"%{label}_{suffix}", value.shape) for label, value in state}
    outer, f.indentation = f.indentation, f.indentation + "  "
    f.lines.append(f"{outer}cond {{")
    more = compare(f, inside["i"] * step, "LT", inside["position"] + tokens)
    f.lines.append(f"{f.indentation}stablehlo.return {more.name} : tensor<i1>")
    f.lines.append(f"{outer}}} do {{")
    zero = f.constant(0, "i32")
    first = inside["i"] * step
    starts = [zero, first, zero]
    keys = inside["keys"].dynamic_slice(starts, [kv, step, head])
    values = inside["values"].dynamic_slice(starts, [kv, step, head])
    scores = inside["query"].dot(keys, ((2,), (2,)), ((0,), (0,)))
    # A token sees the positions up to its own.
    group = rows // tokens
    shape = [kv, rows, step]
    token = iota(f, [tokens, group], 0, "i32").reshape(rows) + inside["position"].broadcast([rows], [])
    seen = iota(f, [step], 0, "i32") + first.broadcast([step], [])
    visible = compare(f, seen.broadcast(shape, [2]), "LE", token.broadcast(shape, [1]))
    scores = select(f, visible, scores, f.constant(-1e30, scores.shape))
    most = inside["most"].binary("maximum", scores.reduce("maximum", 2, -1e30))
    weights = (scores - most.broadcast(shape, [0, 1])).unary("exponential")
    fade = (inside["most"] - most).unary("exponential")
    total = inside["sum"] * fade + weights.reduce("add", 2, 0.0)
    mean = inside["mean"] * fade.broadcast([kv, rows, head], [0, 1])
    mean = mean + weights.dot(values, ((2,), (1,)), ((0,), (0,)))
    new = [inside["i"] + 1, most, total, mean, *(inside[label] for label in ("query", "keys", "values", "position"))]
    f.lines.append(f"{f.indentation}stablehlo.return {', '.join(v.name for v in new)} : {types}")
    f.indentation = outer
    f.lines.append(f"{outer}}}")
    total = Value(f, f"{name}#2", typed([kv, rows], "f32"))
    mean = Value(f, f"{name}#3", typed([kv, rows, head], "f32"))
    return mean / total.broadcast(mean.sizes, [0, 1])


def function(name, size, kind, tokens, weights):
    """The text of a function that reads `tokens` tokens at the positions from `position` on.

    It returns the scores of the word that follows the last of `count` tokens.
    """
    f = Function()
    kv, heads, width, hidden = (size[key] for key in ("kv_heads", "heads", "width", "hidden"))
    head, group = width // heads, heads // kv
    caches = [f"{part}_{layer}" for layer in range(size["layers"]) for part in ("keys", "values")]
    cache = typed([kv, size["positions"], head], "f32")
    arguments = [("tokens", typed([tokens], "i32")), ("position", "i32")]
    if tokens > 1:
        arguments.append(("count", "i32"))
    values = {label: Value(f, f"%{label}", shape) for label, shape in [*arguments, *((c, cache) for c in caches)]}
    parameters = [f"%{label}: tensor<{shape}>" for label, shape in arguments]
    parameters += [f"%{label.replace('.', '_')}: tensor<{shape}>" for label, shape in weights.items()]
    parameters += [
        f"%{label}: tensor<{cache}> {{tf.aliasing_output = {number + 1} : i32}}" for number, label in enumerate(caches)
    ]
    weights = {label: Value(f, f"%{label.replace('.', '_')}", shape) for label, shape in weights.items()}
    position, zero = values["position"], f.constant(0, "i32")

    def gathered(table, sizes):
        shape = typed([tokens, *table.sizes[1:]], table.element)
        offset = "offset_dims = [1], " if len(sizes) > 1 else ""
        indices = values["tokens"].reshape(tokens, 1)
        text = (
            f'"stablehlo.gather"({table.name}, {indices.name}) {{dimension_numbers = #stablehlo.gather<{offset}'
            f"collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, "
            f"slice_sizes = array<i64: {', '.join(map(str, sizes))}>}} : "
            f"(tensor<{table.shape}>, tensor<{indices.shape}>) -> tensor<{shape}>"
        )
        return f.add(text, shape)

    x = gathered(weights["words"], [1, width]).convert("f32")
    x = x * gathered(weights["words.scale"], [1]).broadcast(x.sizes, [0])
    place = (iota(f, [tokens], 0, "i32") + position.broadcast([tokens], [])).convert("f32")
    frequency = (iota(f, [head // 2], 0, "f32") * (-2.0 / head * float(np.log(ROPE_BASE)))).unary("exponential")
    turn = [tokens, head // 2]
    angle = place.broadcast(turn, [0]) * frequency.broadcast(turn, [1])
    cosine, sine = angle.unary("cosine"), angle.unary("sine")
    updated = []
    for layer in range(size["layers"]):
        prefix = f"layers.{layer}."
        qkv = product(rms_norm(x, weights[prefix + "norm1"]), weights, prefix + "qkv", kind)
        ends = [0, width, width + kv * head, width + 2 * kv * head]
        query, key, value = (qkv.slice((0, tokens), ends[k : k + 2]) for k in range(3))
        query = rotated(query.reshape(tokens, heads, head), cosine, sine) * head**-0.5
        key = rotated(key.reshape(tokens, kv, head), cosine, sine)
        start = [zero, position, zero]
        keys = values[f"keys_{layer}"].dynamic_update(key.transpose(1, 0, 2), start)
        value = value.reshape(tokens, kv, head).transpose(1, 0, 2)
        cached = values[f"values_{layer}"].dynamic_update(value, start)
        updated += [keys, cached]
        query = query.reshape(tokens, kv, group, head).transpose(1, 0, 2, 3).reshape(kv, tokens * group, head)
        mixed = attention(f, query, keys, cached, position, size, tokens)
        mixed = mixed.reshape(kv, tokens, group, head).transpose(1, 0, 2, 3).reshape(tokens, width)
        x = x + product(mixed, weights, prefix + "out", kind)
        both = product(rms_norm(x, weights[prefix + "norm2"]), weights, prefix + "gate_up", kind)
        gate, up = both.slice((0, tokens), (0, hidden)), both.slice((0, tokens), (hidden, 2 * hidden))
        x = x + product(gate * gate.unary("logistic") * up, weights, prefix + "down", kind)
    if tokens > 1:
        x = x.dynamic_slice([values["count"] - 1, zero], [1, width])
    scores = product(rms_norm(x, weights["norm"]), weights, "head", kind)
    results = [scores, *updated]
    types = ", ".join(f"tensor<{result.shape}>" for result in results)
    named = [f'tensor<{scores.shape}> {{jax.result_info = "scores"}}']
    named += [f'tensor<{cache}> {{jax.result_info = "new_{label}"}}' for label in caches]
    return "\n".join(
        [
            f"  func.func public @{name}({', '.join(parameters)}) -> ({', '.join(named)}) {{",
            *f.lines,
            f"    func.return {', '.join(result.name for result in results)} : {types}",
            "  }",
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--weights", choices=["int8", "int4"], default="int8")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    size = SIZES[arguments.size]
    shapes = {}

    def recorded():
        for name, array in random_weights(size, arguments.weights, arguments.seed):
            element = {"int8": "i8", "float16": "f16", "float32": "f32"}[array.dtype.name]
            is_matrix = array.ndim == 3 and element == "i8"
            shapes[name] = typed(array.shape, "i4" if is_matrix else element)
            yield name, array

    arguments.out.mkdir(parents=True, exist_ok=True)
    write_safetensors(arguments.out / "decoder.safetensors", recorded())
    functions = [
        function("prefill", size, arguments.weights, size["chunk"], shapes),
        function("decode", size, arguments.weights, 1, shapes),
    ]
    text = "module @decoder {\n" + "\n".join(functions) + "\n}\n"
    (arguments.out / "decoder.mlir").write_text(text)


if __name__ == "__main__":
    main()
