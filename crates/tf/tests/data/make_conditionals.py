#!/usr/bin/env python3
"""Writes graphs with TensorFlow 1 conditionals, and what TensorFlow computes with them, into this folder.

Run with tensorflow-cpu==2.15.1. Each graph has scalar float feeds `x` and `y`, a fetch `result`, and perhaps a resource
variable `v`. `conditionals.txt` has a line for each run: graph, x, y, v before, result, v after.
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow.compat.v1 as tf  # noqa: E402
from google.protobuf import text_format  # noqa: E402
from tensorflow.python.framework import function  # noqa: E402

tf.disable_v2_behavior()
tf.disable_control_flow_v2()


def nested(x, y, v):
    return tf.cond(
        x < y,
        lambda: tf.cond(x < 0.0, lambda: x * 2.0, lambda: x + y),
        lambda: tf.cond(y < 0.0, lambda: tf.constant(7.0), lambda: x - y),
    )


def two_results(x, y, v):
    a, b = tf.cond(x < y, lambda: (x, tf.constant(3.0)), lambda: (y * y, x))
    return a * 10.0 + b


def sequential(x, y, v):
    p = x < y
    a = tf.cond(p, lambda: x + 1.0, lambda: y + 2.0)
    b = tf.cond(p, lambda: a * y, lambda: a - x)
    return a + b


def crossed(x, y, v):
    """Two conditionals on each of two predicates, such that one `If` for each predicate would be a cycle."""
    p, q = x < y, x < 0.0
    a1 = tf.cond(p, lambda: x + 1.0, lambda: x + 2.0)
    b1 = tf.cond(q, lambda: a1 * 3.0, lambda: a1 * 5.0)
    b2 = tf.cond(q, lambda: y + 7.0, lambda: y + 11.0)
    a2 = tf.cond(p, lambda: b2 * 13.0, lambda: b2 * 17.0)
    return b1 + a2


def assigns(x, y, v):
    def add():
        with tf.control_dependencies([v.assign_add(x, read_value=False)]):
            return v.read_value() * 2.0

    return tf.cond(x < y, add, lambda: v.read_value())


def effect_only(x, y, v):
    update = tf.cond(x < y, lambda: v.assign(x * y, read_value=False), lambda: tf.no_op())
    with tf.control_dependencies([update]):
        return v.read_value() + 1.0


def gradient(x, y, v):
    z = tf.cond(x < y, lambda: x * x * y, lambda: x - y)
    return tf.gradients(z, x)[0]


def value_index(x, y, v):
    p = x < y
    if_false, if_true = tf.raw_ops.Switch(data=x, pred=p)
    output, index = tf.raw_ops.Merge(inputs=[if_true + 5.0, -if_false])
    return output + 100.0 * tf.cast(index, tf.float32)


def waits_for_switch(x, y, v):
    if_false, if_true = tf.raw_ops.Switch(data=x, pred=x < y)
    with tf.control_dependencies([if_true.op]):
        w = y * 3.0
    return w + tf.raw_ops.Merge(inputs=[if_true * 2.0, if_false]).output


def in_function(x, y, v):
    @function.Defun(tf.float32, tf.float32)
    def body(a, b):
        return tf.cond(a < b, lambda: a * b, lambda: tf.cond(b < 0.0, lambda: a, lambda: -a))

    return body(x, y) + body(y, x)


def asserted(x, y, v):
    def checked():
        with tf.control_dependencies([tf.Assert(x < 1000.0, [x])]):
            return x * 4.0

    return tf.cond(x < y, checked, lambda: y)


def main():
    folder = pathlib.Path(__file__).parent
    lines = []
    for build in [
        nested, two_results, sequential, crossed, assigns, effect_only, gradient, value_index, waits_for_switch,
        in_function, asserted,
    ]:
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [], name="x")
            y = tf.placeholder(tf.float32, [], name="y")
            v = tf.get_variable("v", initializer=4.0, use_resource=True)
            result = tf.identity(build(x, y, v), name="result")
            text = text_format.MessageToString(graph.as_graph_def())
            (folder / f"{build.__name__}.pbtxt").write_text(text)
            with tf.Session() as session:
                for feeds in [(1.0, 2.0), (2.0, 1.0), (-1.0, 3.0), (-1.0, -2.0), (0.0, 0.0)]:
                    session.run(v.initializer)
                    value = session.run(result, {x: feeds[0], y: feeds[1]})
                    after = session.run(v)
                    lines.append(f"{build.__name__} {feeds[0]} {feeds[1]} 4.0 {value} {after}\n")
    (folder / "conditionals.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
