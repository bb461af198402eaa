"""Writes malformed `.tflite` files, which a reader must refuse without crashing, and their README.

PYTHON scripts/tflite/malformed.py [FOLDER]
"""

import os
import struct
import sys

import numpy as np

from builder import SAME, Model, Quant, schema

FILES = {}
FLOAT = "float32"


def malformed(reason):
    """Registers a function that returns the bytes of a file, with what is wrong."""

    def add(function):
        FILES[function.__name__] = (reason, function)
        return function

    return add


def adder(shape=(2, 3)):
    """A sound model: the sum of an input and a constant."""
    model = Model()
    graph = model.graph("main")
    x = graph.input("x", FLOAT, shape)
    constant = graph.const(np.ones(shape, np.float32), "c")
    graph.output(graph.op("ADD", [x, constant], [("y", FLOAT, shape)]))
    return model


def changed(change):
    """The sound model's file after a change of its tables."""
    model = adder()
    change(model.table)
    return model.bytes()


def quantized(quant, channels=3):
    """A quantized CONV_2D whose weights have the given quantization."""
    model = Model()
    graph = model.graph("main")
    x = graph.input("x", "int8", (1, 4, 4, 2), Quant(0.05, 1))
    weights = graph.const(np.ones((channels, 1, 1, 2), np.int8), "w", quant=quant)
    bias = graph.const(np.zeros(channels, np.int32), "b", quant=Quant(0.001, 0))
    options = {"padding": SAME, "strideH": 1, "strideW": 1}
    graph.output(graph.op("CONV_2D", [x, weights, bias], [("y", "int8", (1, 4, 4, channels), Quant(0.1, 0))], options))
    return model


@malformed("the file has no bytes")
def empty():
    return b""


@malformed("the second half of the file is missing")
def truncated():
    content = adder().bytes()
    return content[: len(content) // 2]


@malformed("the last 24 bytes of the file are missing")
def truncated_tail():
    return adder().bytes()[:-24]


@malformed('the file identifier is "TFL2"')
def wrong_identifier():
    content = bytearray(adder().bytes())
    content[4:8] = b"TFL2"
    return bytes(content)


@malformed("the offset of the root table is out of range")
def root_offset_out_of_range():
    content = bytearray(adder().bytes())
    content[0:4] = struct.pack("<I", 0x7FFFFFF0)
    return bytes(content)


@malformed("the offset of the vector of subgraphs is out of range")
def vector_offset_out_of_range():
    content = bytearray(adder().bytes())
    table = schema.Model.GetRootAs(content, 0)._tab
    at = table.Pos + table.Offset(8)
    content[at : at + 4] = struct.pack("<I", 0x7FFFFFF0)
    return bytes(content)


@malformed("the vector of subgraphs says that it has 2^30 elements")
def vector_length_out_of_range():
    content = bytearray(adder().bytes())
    table = schema.Model.GetRootAs(content, 0)._tab
    at = table.Vector(table.Offset(8)) - 4
    content[at : at + 4] = struct.pack("<I", 1 << 30)
    return bytes(content)


@malformed("the root table's offset of its vtable is out of range")
def vtable_out_of_range():
    content = bytearray(adder().bytes())
    at = schema.Model.GetRootAs(content, 0)._tab.Pos
    content[at : at + 4] = struct.pack("<i", 0x7FFFFFF0)
    return bytes(content)


@malformed("the model has no subgraph")
def no_subgraphs():
    return changed(lambda table: setattr(table, "subgraphs", []))


@malformed("the body of a WHILE contains the same WHILE, so that subgraphs form a cycle")
def cyclic_subgraphs():
    model = Model()
    graph = model.graph("main")
    x = graph.input("x", "int32", ())
    condition = model.graph("cond")
    y = condition.input("y", "int32", ())
    condition.output(condition.op("LESS", [y, condition.const(np.int32(3))], [("less", "bool", ())]))
    body = model.graph("body")
    z = body.input("z", "int32", ())
    options = {"condSubgraphIndex": condition.index, "bodySubgraphIndex": body.index}
    body.output(body.op("WHILE", [z], [("again", "int32", ())], options))
    graph.output(graph.op("WHILE", [x], [("while", "int32", ())], options))
    return model.bytes()


@malformed("the branches of an IF are subgraphs that do not exist")
def subgraph_index_out_of_range():
    model = Model()
    graph = model.graph("main")
    condition, x = graph.input("c", "bool", ()), graph.input("x", FLOAT, (2,))
    options = {"thenSubgraphIndex": 7, "elseSubgraphIndex": -3}
    graph.output(graph.op("IF", [condition, x], [("y", FLOAT, (2,))], options))
    return model.bytes()


@malformed("an op reads tensor 99 of 3")
def tensor_index_out_of_range():
    return changed(lambda table: table.subgraphs[0].operators[0].inputs.__setitem__(1, 99))


@malformed("an op reads tensor -7; only -1 stands for an absent operand")
def negative_tensor_index():
    return changed(lambda table: table.subgraphs[0].operators[0].inputs.__setitem__(1, -7))


@malformed("an output of the subgraph is tensor 1000000")
def output_index_out_of_range():
    return changed(lambda table: setattr(table.subgraphs[0], "outputs", [1000000]))


@malformed("an op has operator code 5 of 1")
def opcode_index_out_of_range():
    return changed(lambda table: setattr(table.subgraphs[0].operators[0], "opcodeIndex", 5))


@malformed("a tensor has buffer 77 of 2")
def buffer_index_out_of_range():
    return changed(lambda table: setattr(table.subgraphs[0].tensors[1], "buffer", 77))


@malformed("an op has version 99")
def version_99():
    return changed(lambda table: setattr(table.operatorCodes[0], "version", 99))


@malformed("an op has the builtin code 9999")
def unknown_op():
    return changed(lambda table: setattr(table.operatorCodes[0], "builtinCode", 9999))


@malformed("a tensor has type 99")
def unknown_type():
    return changed(lambda table: setattr(table.subgraphs[0].tensors[0], "type", 99))


@malformed("a dimension of an input is -5")
def negative_dimension():
    return changed(lambda table: setattr(table.subgraphs[0].tensors[0], "shape", [2, -5]))


@malformed("the number of elements of an input is 2^93")
def huge_dimensions():
    return changed(lambda table: setattr(table.subgraphs[0].tensors[0], "shape", [2**31 - 1] * 3))


@malformed("a constant of 6 elements has a buffer of 8 bytes")
def short_buffer():
    return changed(lambda table: setattr(table.buffers[1], "data", bytes(8)))


@malformed("a constant of 9 elements of int4 has a buffer of 4 bytes instead of 5")
def int4_odd_size():
    model = Model()
    graph = model.graph("main")
    constant = graph.tensor("w", "int4", (3, 3), Quant(0.1, 0), np.ones((3, 3), np.int8))
    model.table.buffers[-1].data = model.table.buffers[-1].data[:4]
    graph.output(graph.op("DEQUANTIZE", [constant], [("y", FLOAT, (3, 3))]))
    return model.bytes()


@malformed("the scale of weights is NaN")
def nan_scale():
    return quantized(Quant(float("nan"), 0)).bytes()


@malformed("the scale of weights is 0")
def zero_scale():
    return quantized(Quant(0.0, 0)).bytes()


@malformed("the scale of weights is negative")
def negative_scale():
    return quantized(Quant(-0.1, 0)).bytes()


@malformed("weights of 3 channels have 2 scales")
def wrong_number_of_scales():
    return quantized(Quant([0.1, 0.2], 0, 0)).bytes()


@malformed("weights of rank 4 have scales along axis 6")
def scale_axis_out_of_range():
    return quantized(Quant([0.1, 0.2, 0.3], 0, 6)).bytes()


@malformed("the zero point of an int8 input is 1000")
def zero_point_out_of_range():
    model = quantized(Quant(0.1, 0))
    model.table.subgraphs[0].tensors[0].quantization.zeroPoint = [1000]
    return model.bytes()


@malformed("CONCATENATION of arrays of rank 2 along axis 5")
def axis_out_of_range():
    model = Model()
    graph = model.graph("main")
    x = graph.input("x", FLOAT, (2, 3))
    graph.output(graph.op("CONCATENATION", [x, x], [("y", FLOAT, (2, 6))], {"axis": 5}))
    return model.bytes()


@malformed("MEAN over axis -4 of an array of rank 2")
def reduction_axis_out_of_range():
    model = Model()
    graph = model.graph("main")
    x = graph.input("x", FLOAT, (2, 3))
    graph.output(graph.op("MEAN", [x, graph.const(np.array([-4], np.int32))], [("y", FLOAT, (2,))]))
    return model.bytes()


@malformed("CONV_2D has no options table")
def missing_options():
    model = quantized(Quant(0.1, 0))
    operator = model.table.subgraphs[0].operators[0]
    operator.builtinOptions, operator.builtinOptionsType = None, 0
    return model.bytes()


@malformed("CONV_2D has the options table of SOFTMAX")
def wrong_options():
    model = quantized(Quant(0.1, 0))
    operator = model.table.subgraphs[0].operators[0]
    operator.builtinOptions, operator.builtinOptionsType = (
        schema.SoftmaxOptionsT(),
        schema.BuiltinOptions.SoftmaxOptions,
    )
    return model.bytes()


@malformed("the strides of CONV_2D are 0")
def zero_strides():
    model = quantized(Quant(0.1, 0))
    model.table.subgraphs[0].operators[0].builtinOptions.strideH = 0
    return model.bytes()


@malformed("ADD has one operand")
def missing_operand():
    return changed(lambda table: setattr(table.subgraphs[0].operators[0], "inputs", [0]))


@malformed("the operands of ADD have shapes (2, 3) and (4, 5)")
def shapes_do_not_broadcast():
    def change(table):
        table.subgraphs[0].tensors[1].shape = [4, 5]
        table.buffers[1].data = bytes(80)

    return changed(change)


@malformed("two ops read each other's results")
def cyclic_ops():
    model = Model()
    graph = model.graph("main")
    x = graph.input("x", FLOAT, (2,))
    a, b = graph.tensor("a", FLOAT, (2,)), graph.tensor("b", FLOAT, (2,))
    graph.op("ADD", [x, b], [a])
    graph.op("NEG", [a], [b])
    graph.output(b)
    return model.bytes()


@malformed("RESHAPE of 6 elements to (4, 2)")
def reshape_of_other_size():
    model = Model()
    graph = model.graph("main")
    x = graph.input("x", FLOAT, (2, 3))
    sizes = graph.const(np.array([4, 2], np.int32))
    graph.output(graph.op("RESHAPE", [x, sizes], [("y", FLOAT, (4, 2))], {"newShape": [4, 2]}))
    return model.bytes()


@malformed("a signature names tensor 50 of 3 and subgraph 4 of 1")
def signature_out_of_range():
    model = adder()
    graph = type("Graph", (), {"index": 4})
    model.signature("serving_default", graph, {"x": 50}, {"y": 2})
    return model.bytes()


def main(folder="tests/tflite/malformed"):
    os.makedirs(folder, exist_ok=True)
    about = (
        "Created by `scripts/tflite/malformed.py`. A reader must refuse each of them with an error message. LiteRT"
        " accepts a few, and crashes for `cyclic_subgraphs.tflite`."
    )
    lines = ["# Malformed files", "", about, ""]
    lines += ["| file | what is wrong |", "|---|---|"]
    for name, (reason, function) in sorted(FILES.items()):
        content = function()
        with open(os.path.join(folder, f"{name}.tflite"), "wb") as file:
            file.write(content)
        lines.append(f"| `{name}.tflite` | {reason} |")
    with open(os.path.join(folder, "README.md"), "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
