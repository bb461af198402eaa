#!/usr/bin/env python3
"""Writes src/op_def/ops.txt: the signature of every op that TensorFlow registers.

Run in a virtual environment with tensorflow-cpu==2.15.1:

    python crates/tf/tools/op_table.py > crates/tf/src/op_def/ops.txt

Format, as read by src/op_def/table.rs: a line without indent names an op, followed by `*` if the op
is stateful. Indented lines describe the op:

    ` < name:type`      an input; the type is `float` | `@T` | `repeat(N,float)` | `repeat(N,@T)` |
                        `list(Tin)`. `@T` is the type in attribute T. The prefix `&` marks a
                        reference.
    ` > name:type`      an output
    ` name kind`        an attribute, followed by these optional parts in this order:
        `>=number`      the minimum value, or for lists the minimum length
        `in(a b c)`     the allowed values
        `= text`        the default, an AttrValue in text format, up to the end of the line
"""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from google.protobuf import text_format  # noqa: E402
from tensorflow.python.framework import dtypes, op_def_registry  # noqa: E402,F401
import tensorflow  # noqa: E402,F401  (registers all ops)
from tensorflow.core.framework import op_def_pb2  # noqa: E402
from tensorflow.python.client import pywrap_tf_session  # noqa: E402


def type_name(number):
    """Returns the short name of a DataType, such as `float` or `float_ref`."""
    name = dtypes.as_dtype(number).name
    base = name.removesuffix("_ref")
    short = {"float32": "float", "float64": "double", "float16": "half"}.get(base, base)
    return short + name[len(base) :]


def element(arg):
    """Returns the type of an argument's elements: `float`, or the attribute `T` that holds it."""
    return arg.type_attr if arg.type_attr else type_name(arg.type)


def argument(arg):
    """Returns the table's text for an argument."""
    if arg.type_list_attr:
        text = f"list({arg.type_list_attr})"
    elif arg.number_attr:
        text = f"repeat({arg.number_attr},{'@' if arg.type_attr else ''}{element(arg)})"
    elif arg.type_attr:
        text = f"@{arg.type_attr}"
    else:
        text = type_name(arg.type)
    return f"{arg.name}:{'&' if arg.is_ref else ''}{text}"


def attribute(attr):
    """Returns the table's text for an attribute."""
    parts = [attr.name, attr.type]
    if attr.has_minimum:
        parts.append(f">={attr.minimum}")
    if attr.HasField("allowed_values"):
        values = attr.allowed_values.list
        names = [type_name(t) for t in values.type] + [s.decode() for s in values.s]
        assert all(" " not in n and ")" not in n for n in names), names
        parts.append(f"in({' '.join(names)})")
    if attr.HasField("default_value"):
        parts.append("= " + text_format.MessageToString(attr.default_value, as_one_line=True))
    return " ".join(parts)


def main():
    ops = op_def_pb2.OpList()
    ops.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    for op in sorted(ops.op, key=lambda op: op.name):
        print(op.name + ("*" if op.is_stateful else ""))
        for arg in op.input_arg:
            print(" < " + argument(arg))
        for arg in op.output_arg:
            print(" > " + argument(arg))
        for attr in op.attr:
            print(" " + attribute(attr))


if __name__ == "__main__":
    sys.exit(main())
