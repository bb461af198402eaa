#!/usr/bin/env python3
"""Writes the models of the GPU benchmark as StableHLO.

Each model is one program whose inputs and weights are arguments. `peers.py` has the same models in
JAX and PyTorch.

    models.py FOLDER    writes FOLDER/NAME.mlir
"""
import pathlib
import sys


def f32(*sizes):
    return f"tensor<{'x'.join(map(str, sizes + ('f32',)))}>"


def typed(kind, *sizes):
    return f"tensor<{'x'.join(map(str, sizes + (kind,)))}>"


def program(arguments, result, body):
    parameters = ", ".join(f"%{name}: {ty}" for name, ty in arguments)
    return f"module {{\n  func.func @main({parameters}) -> {result} {{\n{body}    return %r : {result}\n  }}\n}}\n"


def line(text):
    return f"    {text}\n"


def matmul(m, n, k, kind):
    a, b, r = typed(kind, m, k), typed(kind, k, n), typed(kind, m, n)
    body = line(f"%r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({a}, {b}) -> {r}")
    return program([("a", a), ("b", b)], r, body)


def elementwise(count):
    ty = f32(count)
    body = line(f"%p = stablehlo.multiply %a, %b : {ty}")
    body += line(f"%s = stablehlo.add %p, %c : {ty}")
    body += line(f"%r = stablehlo.tanh %s : {ty}")
    return program([("a", ty), ("b", ty), ("c", ty)], ty, body)


def reduce_lines(name, operand, ty, rows, columns, operation, initial):
    row = f32(rows)
    return (
        line(f"%{name}_i = stablehlo.constant dense<{initial}> : tensor<f32>")
        + line(
            f"%{name} = stablehlo.reduce(%{operand} init: %{name}_i) applies stablehlo.{operation} "
            f"across dimensions = [1] : ({ty}, tensor<f32>) -> {row}"
        )
        + line(f"%{name}_b = stablehlo.broadcast_in_dim %{name}, dims = [0] : ({row}) -> {f32(rows, columns)}")
    )


def softmax(rows, columns):
    ty = f32(rows, columns)
    body = reduce_lines("m", "a", ty, rows, columns, "maximum", "0xFF800000")
    body += line(f"%d = stablehlo.subtract %a, %m_b : {ty}")
    body += line(f"%e = stablehlo.exponential %d : {ty}")
    body += reduce_lines("s", "e", ty, rows, columns, "add", "0.0")
    body += line(f"%r = stablehlo.divide %e, %s_b : {ty}")
    return program([("a", ty)], ty, body)


def layer_norm(rows, columns):
    ty, column, row = f32(rows, columns), f32(columns), f32(rows)
    body = line(f"%n = stablehlo.constant dense<{float(columns)}> : {ty}")
    body += line(f"%eps = stablehlo.constant dense<1.0e-05> : {ty}")
    body += reduce_lines("s", "a", ty, rows, columns, "add", "0.0")
    body += line(f"%mean = stablehlo.divide %s_b, %n : {ty}")
    body += line(f"%d = stablehlo.subtract %a, %mean : {ty}")
    body += line(f"%dd = stablehlo.multiply %d, %d : {ty}")
    body += reduce_lines("v", "dd", ty, rows, columns, "add", "0.0")
    body += line(f"%var = stablehlo.divide %v_b, %n : {ty}")
    body += line(f"%vare = stablehlo.add %var, %eps : {ty}")
    body += line(f"%rs = stablehlo.rsqrt %vare : {ty}")
    body += line(f"%z = stablehlo.multiply %d, %rs : {ty}")
    body += line(f"%gb = stablehlo.broadcast_in_dim %g, dims = [1] : ({column}) -> {ty}")
    body += line(f"%bb = stablehlo.broadcast_in_dim %b, dims = [1] : ({column}) -> {ty}")
    body += line(f"%zg = stablehlo.multiply %z, %gb : {ty}")
    body += line(f"%r = stablehlo.add %zg, %bb : {ty}")
    assert row
    return program([("a", ty), ("g", column), ("b", column)], ty, body)


def column_sum(rows, columns):
    ty, column = f32(rows, columns), f32(columns)
    body = line("%i = stablehlo.constant dense<0.0> : tensor<f32>")
    body += line(
        f"%r = stablehlo.reduce(%a init: %i) applies stablehlo.add across dimensions = [0] : "
        f"({ty}, tensor<f32>) -> {column}"
    )
    return program([("a", ty)], column, body)


def total(count):
    ty = f32(count)
    body = line("%i = stablehlo.constant dense<0.0> : tensor<f32>")
    body += line(
        f"%r = stablehlo.reduce(%a init: %i) applies stablehlo.add across dimensions = [0] : "
        f"({ty}, tensor<f32>) -> tensor<f32>"
    )
    return program([("a", ty)], "tensor<f32>", body)


def transpose(rows, columns):
    a, r = f32(rows, columns), f32(columns, rows)
    body = line(f"%r = stablehlo.transpose %a, dims = [1, 0] : ({a}) -> {r}")
    return program([("a", a)], r, body)


def convolution(batch, size, inputs, outputs):
    a, k, r = f32(batch, size, size, inputs), f32(3, 3, inputs, outputs), f32(batch, size, size, outputs)
    body = line(
        "%c = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
        "window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} "
        f"{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({a}, {k}) -> {r}"
    )
    body += line(f"%z = stablehlo.constant dense<0.0> : {r}")
    body += line(f"%r = stablehlo.maximum %c, %z : {r}")
    return program([("a", a), ("k", k)], r, body)


def mlp(batch, width, layers):
    ty, weight, bias = f32(batch, width), f32(width, width), f32(width)
    arguments, body, value = [("x", ty)], "", "x"
    for layer in range(layers):
        arguments += [(f"w{layer}", weight), (f"b{layer}", bias)]
        body += line(
            f"%d{layer} = stablehlo.dot_general %{value}, %w{layer}, contracting_dims = [1] x [0] : "
            f"({ty}, {weight}) -> {ty}"
        )
        body += line(f"%bb{layer} = stablehlo.broadcast_in_dim %b{layer}, dims = [1] : ({bias}) -> {ty}")
        body += line(f"%s{layer} = stablehlo.add %d{layer}, %bb{layer} : {ty}")
        name = "r" if layer + 1 == layers else f"h{layer}"
        body += line(f"%{name} = stablehlo.tanh %s{layer} : {ty}")
        value = name
    return program(arguments, ty, body)


def attention(heads, length, width, kind):
    """`softmax(q k^T / sqrt(width)) v` with scores and softmax in f32."""
    arrays, scores = typed(kind, heads, length, width), f32(heads, length, length)
    rows = f32(heads, length)

    def reduced(name, operand, operation, initial):
        return (
            line(f"%{name}_i = stablehlo.constant dense<{initial}> : tensor<f32>")
            + line(
                f"%{name} = stablehlo.reduce(%{operand} init: %{name}_i) applies stablehlo.{operation} "
                f"across dimensions = [2] : ({scores}, tensor<f32>) -> {rows}"
            )
            + line(f"%{name}_b = stablehlo.broadcast_in_dim %{name}, dims = [0, 1] : ({rows}) -> {scores}")
        )

    weights = typed(kind, heads, length, length)
    body = line(
        f"%d = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : "
        f"({arrays}, {arrays}) -> {scores}"
    )
    body += line(f"%scale = stablehlo.constant dense<{width ** -0.5}> : {scores}")
    body += line(f"%x = stablehlo.multiply %d, %scale : {scores}")
    body += reduced("m", "x", "maximum", "0xFF800000")
    body += line(f"%c = stablehlo.subtract %x, %m_b : {scores}")
    body += line(f"%e = stablehlo.exponential %c : {scores}")
    body += reduced("s", "e", "add", "0.0")
    body += line(f"%w = stablehlo.divide %e, %s_b : {scores}")
    body += line(f"%p = stablehlo.convert %w : ({scores}) -> {weights}")
    body += line(
        f"%r = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : "
        f"({weights}, {arrays}) -> {arrays}"
    )
    return program([("q", arrays), ("k", arrays), ("v", arrays)], arrays, body)


MODELS = {
    "matmul_f32_4096": matmul(4096, 4096, 4096, "f32"),
    "matmul_f32_1024": matmul(1024, 1024, 1024, "f32"),
    "matmul_bf16_4096": matmul(4096, 4096, 4096, "bf16"),
    "matmul_f16_4096": matmul(4096, 4096, 4096, "f16"),
    "elementwise_64m": elementwise(1 << 26),
    "softmax_16384x1024": softmax(16384, 1024),
    "layer_norm_16384x1024": layer_norm(16384, 1024),
    "column_sum_16384x4096": column_sum(16384, 4096),
    "total_64m": total(1 << 26),
    "transpose_8192": transpose(8192, 8192),
    "convolution_32x56x64": convolution(32, 56, 64, 64),
    "attention_f32_16x1024x64": attention(16, 1024, 64, "f32"),
    "attention_f16_16x1024x64": attention(16, 1024, 64, "f16"),
    "attention_bf16_64x2048x128": attention(64, 2048, 128, "bf16"),
    "mlp_1x256": mlp(1, 256, 8),
    "mlp_128x1024": mlp(128, 1024, 4),
}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in MODELS.items():
        (folder / f"{name}.mlir").write_text(text)


if __name__ == "__main__":
    main()
