#!/usr/bin/env python3
"""Writes graphs with TensorFlow 1 while loops, and what TensorFlow computes with them, into the folder `loops`.

Run with tensorflow-cpu==2.15.1. Each graph has scalar float feeds `x` and `y`, a fetch `result`, a resource variable `v`
and perhaps a reference variable `r`. `loops.txt` has a line for each run: graph, x, y, v and r before, result, v and r
after.
"""

import os
import pathlib
import subprocess
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf2  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402
from tensorflow.core.framework import attr_value_pb2  # noqa: E402
from tensorflow.python.framework import convert_to_constants, function  # noqa: E402
from tensorflow.python.ops import gen_control_flow_ops as raw  # noqa: E402

# Lowering is of functions that TensorFlow 2 traced, so another process does it.
LOWERED = sys.argv[1:] == ["lowered"]
if not LOWERED:
    tf.disable_v2_behavior()
    tf.disable_control_flow_v2()


def power(x, y, v, r):
    """The product and the count; one variable is never used after the loop, and one Exit twice."""
    n, z, _ = tf.while_loop(
        lambda n, z, u: n < x, lambda n, z, u: (n + 1.0, z * y, u - z), [tf.constant(0.0), 1.0, y]
    )
    return n * 100.0 + z + z * z


def fibonacci(x, y, v, r):
    return tf.while_loop(lambda a, b: a + b < x * 20.0, lambda a, b: (b, a + b), [y, 1.0])[0]


def nested(x, y, v, r):
    def outer(i, s):
        def inner(j, t):
            return j + 1.0, t + i * y + s * 0.5

        return i + 1.0, tf.while_loop(lambda j, t: j < i, inner, [0.0, s])[1]

    return tf.while_loop(lambda i, s: i < x, outer, [0.0, y])[1]


def triple(x, y, v, r):
    def loop(depth, s):
        if depth == 0:
            return s * 1.25 + y
        return tf.while_loop(lambda i, s: i < depth, lambda i, s: (i + 1.0, loop(depth - 1, s)), [0.0, s])[1]

    return loop(3, x)


def cond_in_body(x, y, v, r):
    def body(i, s):
        s = tf.cond(s < y, lambda: s * 2.0 + i, lambda: tf.cond(i < 2.0, lambda: s - y, lambda: y))
        return i + 1.0, s

    return tf.while_loop(lambda i, s: i < 5.0, body, [0.0, x])[1]


def outer_predicate(x, y, v, r):
    """The predicate does not change in the loop."""
    p = x < y
    body = lambda i, s: (i + 1.0, tf.cond(p, lambda: s * 2.0, lambda: y))  # noqa: E731
    return tf.while_loop(lambda i, s: i < 3.0, body, [0.0, x])[1]


def loop_in_cond(x, y, v, r):
    def double():
        return tf.while_loop(lambda i, s: i < x, lambda i, s: (i + 1.0, s * 2.0), [0.0, y])[1]

    def add():
        return tf.while_loop(lambda s: s < x, lambda s: s + 1.5, [y])

    return tf.cond(x < y, double, add) + 1.0


def cond_in_condition(x, y, v, r):
    def goes_on(i, s):
        return tf.cond(i < 3.0, lambda: s < 100.0 + y, lambda: s < x)

    return tf.while_loop(goes_on, lambda i, s: (i + 1.0, s + 1.0), [0.0, y])[1]


def loop_in_condition(x, y, v, r):
    def goes_on(i, s):
        return tf.while_loop(lambda k: k < i, lambda k: k + 1.5, [0.0]) < x

    return tf.while_loop(goes_on, lambda i, s: (i + 1.0, s * 1.5), [0.0, y])[1]


def after_another(x, y, v, r):
    n = tf.while_loop(lambda i: i < x, lambda i: i + 1.0, [0.0])
    return tf.while_loop(lambda i, s: i > 0.0, lambda i, s: (i - 1.0, s + n * y), [n, 1.0])[1]


def gradient(x, y, v, r):
    s = tf.while_loop(lambda i, s: i < x, lambda i, s: (i + 1.0, s * s * y), [0.0, y])[1]
    return tf.gradients(s * s, y)[0]


def gradient_nested(x, y, v, r):
    def outer(i, s):
        inner = lambda j, t: (j + 1.0, t * y + s)  # noqa: E731
        return i + 1.0, tf.while_loop(lambda j, t: j < i, inner, [0.0, s])[1]

    s = tf.while_loop(lambda i, s: i < x, outer, [0.0, y])[1]
    return tf.gradients(s * s, y)[0]


def gradient_cond_in_body(x, y, v, r):
    def body(i, s):
        s = tf.cond(s < y, lambda: s * s * 2.0 + y, lambda: tf.cond(i < 2.0, lambda: s * y, lambda: y * 0.5))
        return i + 1.0, s

    s = tf.while_loop(lambda i, s: i < 4.0, body, [0.0, x])[1]
    return tf.add_n(tf.gradients(s * s, [x, y]))


def gradient_loop_in_cond(x, y, v, r):
    def power():
        return tf.while_loop(lambda i, s: i < 3.0, lambda i, s: (i + 1.0, s * s * x), [0.0, y])[1]

    s = tf.cond(x < y, power, lambda: x * y)
    return tf.gradients(s * s * s, y)[0] + s


def gradient_loop_in_cond_in_loop(x, y, v, r):
    def body(i, s):
        def power():
            return tf.while_loop(lambda j, t: j < 2.0, lambda j, t: (j + 1.0, t * t * y), [0.0, s])[1]

        return i + 1.0, tf.cond(s < x, power, lambda: s * y)

    s = tf.while_loop(lambda i, s: i < 2.0, body, [0.0, y])[1]
    return tf.gradients(tf.sin(s), y)[0]


def repeated(count, function, start):
    return tf.while_loop(lambda i, s: i < count, lambda i, s: (i + 1.0, function(s)), [0.0, start])[1]


def gradient_loops_in_nested_conds(x, y, v, r):
    def innermost():
        power = lambda: repeated(3.0, lambda s: s * s * x, y)  # noqa: E731
        return tf.cond(x + y > 2.5, power, lambda: x * y * y)

    s = tf.cond(x > 0.25, lambda: tf.cond(y < 3.0, innermost, lambda: repeated(2.0, tf.sin, y)), lambda: y * 0.5)
    return tf.gradients(s * s, y)[0] + s


def gradient_conds_after_another(x, y, v, r):
    """The second conditional has one on the predicate of the first in it."""
    p, q, h = x > 0.25, y < 3.0, tf.sin(y)
    s = tf.cond(p, lambda: repeated(3.0, lambda s: s * h, y), lambda: h)

    def inner():
        return tf.cond(p, lambda: repeated(2.0, lambda t: t * s, h), lambda: s * s)

    t = tf.cond(q, inner, lambda: repeated(2.0, lambda t: tf.cos(t) * s, y))
    return tf.gradients(t * t, y)[0] + t


def gradient_loops_and_cond_in_cond(x, y, v, r):
    def inner():
        a = repeated(3.0, lambda s: s * y, y)
        b = repeated(2.0, lambda s: s + a, y)
        c = tf.cond(y < 3.0, lambda: repeated(2.0, lambda s: s * a * b, y), lambda: a + b)
        with tf.control_dependencies([v.assign_add(c)]):
            return tf.identity(c)

    s = tf.cond(x > 0.25, inner, lambda: y)
    return tf.gradients(tf.sin(s), y)[0] + s


def two_gradients(x, y, v, r):
    s = tf.while_loop(lambda i, s: i < 3.0, lambda i, s: (i + 1.0, s * s * y), [0.0, y], back_prop=True)[1]
    return tf.gradients(s, y)[0] * 2.0 + tf.gradients(s * y, x, unconnected_gradients="zero")[0]


def arrays(x, y, v, r):
    """Writes, reads of what an iteration before wrote, and reads after the loop."""
    array = tf.TensorArray(tf.float32, size=6, clear_after_read=False, element_shape=[])
    array = array.write(0, y)

    def body(i, array):
        return i + 1, array.write(i, array.read(i - 1) * 1.5 + x)

    _, array = tf.while_loop(lambda i, array: i < 6, body, [1, array])
    return array.read(5) + array.read(2)


def gradient_arrays(x, y, v, r):
    array = tf.TensorArray(tf.float32, size=4, clear_after_read=False, element_shape=[])
    array = tf.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a.write(i, y * tf.cast(i, tf.float32))), [0, array])[1]
    s = tf.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s * x + array.read(i)), [0, y])[1]
    return tf.gradients(s, y)[0]


def assigns(x, y, v, r):
    """A variable is written in every iteration, and read in the next."""

    def body(i):
        with tf.control_dependencies([v.assign(v.read_value() * 2.0 + i, read_value=False)]):
            return i + 1.0

    n = tf.while_loop(lambda i: i < x, body, [0.0])
    with tf.control_dependencies([n]):
        return v.read_value() + y


def assigns_in_cond(x, y, v, r):
    def body(i):
        with tf.control_dependencies([tf.cond(i < y, lambda: v.assign_add(i).op, lambda: tf.no_op())]):
            return i + 1.0

    return tf.while_loop(lambda i: i < x, body, [0.0], parallel_iterations=1)


def condition_reads(x, y, v, r):
    def body(i):
        with tf.control_dependencies([v.assign_add(y * y + 1.0, read_value=False)]):
            return i + 1.0

    return tf.while_loop(lambda i: v.read_value() < x * 10.0, body, [0.0])


def reference_variable(x, y, v, r):
    def body(i):
        with tf.control_dependencies([tf.assign_add(r, i + y)]):
            return i + 1.0

    n = tf.while_loop(lambda i: i < x, body, [0.0])
    with tf.control_dependencies([n]):
        return r.read_value() * 2.0


def waits(x, y, v, r):
    """Nodes in the loop wait for nodes outside, and nodes outside for the loop's end."""
    first = v.assign_add(x, read_value=False)

    def body(i, s):
        with tf.control_dependencies([first]):
            return i + 1.0, s + v.read_value()

    _, s = tf.while_loop(lambda i, s: i < 3.0, body, [0.0, y])
    with tf.control_dependencies([s]):
        last = v.assign_add(100.0, read_value=False)
    with tf.control_dependencies([last]):
        return s * 2.0


def bounded(x, y, v, r):
    return tf.while_loop(lambda s: s < x, lambda s: s + 1.0, [y], maximum_iterations=3)


def in_function(x, y, v, r):
    @function.Defun(tf.float32, tf.float32)
    def body(a, b):
        return tf.while_loop(lambda i, s: i < a, lambda i, s: (i + 1.0, tf.cond(s < b, lambda: s + i, lambda: s)), [0.0, b])[1]

    return body(x, y) + body(y, x)


def calls_function(x, y, v, r):
    @function.Defun(tf.float32, tf.float32)
    def product(a, b):
        return a * b + 1.0

    def body(i, s):
        s = product(s, y)
        s.set_shape([])
        return i + 1.0, s

    return tf.while_loop(lambda i, s: i < x, body, [0.0, y])[1]


def loop(x, body, leave=lambda value: value, enter=lambda value: value):
    """A loop of single ops that counts to x; `body` and `leave` see the product of twos."""
    frame = "by_hand/"
    limit = raw.enter(x, frame, is_constant=True)
    starts = [raw.enter(tf.constant(0.0), frame), raw.enter(enter(tf.constant(1.0)), frame)]
    heads = [raw.merge([start, start])[0] for start in starts]
    goes_on = raw.loop_cond(tf.identity(heads[0] < limit))
    switches = [raw.switch(head, goes_on) for head in heads]
    one = raw.enter(tf.constant(1.0), frame, is_constant=True)
    nexts = [switches[0][1] + one, body(switches[1][1])]
    for head, value in zip(heads, nexts):
        head.op._update_input(1, raw.next_iteration(value))
    return [switches[0][0], leave(switches[1][0])], limit, heads, switches


def leaves_by_identity(x, y, v, r):
    """What leaves the loop is computed from the outputs of Switch, once, with a value that never changes."""
    left, limit, _, _ = loop(x, lambda p: p + p)
    again = tf.identity(tf.identity(left[1]))
    return raw._exit(again * limit) + raw._exit(tf.identity(left[1])) + y


def no_exit_of_variable(x, y, v, r):
    """A loop variable with a Switch whose output that leaves has no use."""
    left, _, _, _ = loop(x, lambda p: p + p, leave=tf.identity)
    return raw._exit(left[0]) * y


def enters_without_merge(x, y, v, r):
    frame = "by_hand/"
    factor = raw.enter(y, frame, is_constant=True)
    left, _, _, _ = loop(x, lambda p: p * factor)
    return raw._exit(left[1])


def leaving_conditional(x, y, v, r):
    """A conditional on the side that leaves the loop."""
    left, limit, _, _ = loop(x, lambda p: p + p)
    small, large = raw.switch(left[1], left[1] > left[0] + limit)
    return raw._exit(raw.merge([small * limit, large - limit])[0]) + y


def no_loop(x, y, v, r):
    """A frame that does not loop."""
    inside = raw.enter(x, "once") + raw.enter(y, "once", is_constant=True)
    return raw._exit(inside * inside) + y


def trigger(x, y, v, r):
    """ControlTrigger runs although what it waits for does not."""
    if_false, if_true = raw.switch(x, x < y)
    assign_false = tf.raw_ops.AssignAddVariableOp(resource=raw.switch(v.handle, x < y)[0], value=if_false)
    assign_true = tf.raw_ops.AssignSubVariableOp(resource=raw.switch(v.handle, x < y)[1], value=if_true)
    with tf.control_dependencies([assign_false, assign_true]):
        both = raw.control_trigger()
    with tf.control_dependencies([both]):
        return v.read_value() * 2.0


def one_of_three(data, index):
    attrs = {"num_outs": attr_value_pb2.AttrValue(i=3), "T": attr_value_pb2.AttrValue(type=data.dtype.as_datatype_enum)}
    graph = tf.get_default_graph()
    return graph.create_op("_SwitchN", [data, tf.cast(index, tf.int32)], [data.dtype] * 3, name="choose", attrs=attrs).outputs


def switch_n(x, y, v, r):
    """One of three, by number; numbers out of range are the last."""
    a, b, c = one_of_three(y, x)
    output, which = raw.merge([a + 1.0, b * 2.0, -c])
    return output + 10.0 * tf.cast(which, tf.float32)


def switch_n_in_loop(x, y, v, r):
    def body(i, s):
        a, b, c = one_of_three(s, i)
        return i + 1.0, raw.merge([c + 5.0, a * 2.0, b - y])[0]

    return tf.while_loop(lambda i, s: i < x, body, [0.0, y])[1]


def lowered_loop(x, y):
    def body(i, s):
        s = tf2.cond(s < y, lambda: s * 2.0 + i, lambda: s - x)
        return i + 1.0, tf2.while_loop(lambda j, t: j < i, lambda j, t: (j + 1.0, t * 1.5), [0.0, s])[1]

    return tf2.while_loop(lambda i, s: i < x, body, [0.0, y])[1]


def lowered_case(x, y):
    sum_up = lambda: tf2.while_loop(lambda s: s < 5.0, lambda s: [s + 1.0], [y])[0]  # noqa: E731
    return tf2.switch_case(tf2.cast(x, tf2.int32), [lambda: y * 2.0, lambda: y + x, sum_up])


def lowered_case_in_loop(x, y):
    def body(i, s):
        branches = [lambda: s * 2.0, lambda: tf2.cond(s < y, lambda: s, lambda: s - y), lambda: s + 5.0]
        return i + 1.0, tf2.switch_case(tf2.cast(i, tf2.int32), branches)

    return tf2.while_loop(lambda i, s: i < x, body, [0.0, y])[1]


def lowered_loop_in_cond(x, y):
    def power():
        return tf2.while_loop(lambda s: s < 9.0, lambda s: [s * 2.0 + 1.0], [y])[0]

    return tf2.cond(x < y, power, lambda: x * y)


LOWERED_ONES = [lowered_loop, lowered_case, lowered_case_in_loop, lowered_loop_in_cond]

BY_SINGLE_OPS = [
    leaves_by_identity, no_exit_of_variable, enters_without_merge, leaving_conditional, no_loop, trigger, switch_n,
    switch_n_in_loop,
]

BUILT = [
    power, fibonacci, nested, triple, cond_in_body, outer_predicate, loop_in_cond, cond_in_condition, loop_in_condition,
    after_another, gradient, gradient_nested, gradient_cond_in_body, gradient_loop_in_cond,
    gradient_loop_in_cond_in_loop, gradient_loops_in_nested_conds, gradient_conds_after_another,
    gradient_loops_and_cond_in_cond, two_gradients, arrays, gradient_arrays, assigns, assigns_in_cond, condition_reads,
    reference_variable, waits, bounded, in_function, calls_function, *BY_SINGLE_OPS,
]

FEEDS = [(3.0, 2.0), (1.0, 5.0), (-1.0, 2.0), (0.0, 0.0), (2.0, -1.5), (0.5, 0.75)]


def strip(graph_def):
    """Without notes that only TensorFlow's own importers read."""
    for node in [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]:
        for name in ["_output_shapes", "_class", "experimental_debug_info"]:
            node.attr.pop(name, None)
        node.ClearField("experimental_debug_info")
    return graph_def


def write(folder, name, graph_def):
    (folder / f"{name}.pb").write_bytes(strip(graph_def).SerializeToString(deterministic=True))


def lowered(folder):
    """The same from functional nodes, as TensorFlow lowers them before it runs or freezes them."""
    lines = []
    for build in LOWERED_ONES:
        traced = tf2.function(build).get_concrete_function(tf2.TensorSpec([], name="x"), tf2.TensorSpec([], name="y"))
        frozen = convert_to_constants.convert_variables_to_constants_v2(traced, lower_control_flow=True)
        graph_def = frozen.graph.as_graph_def()
        output = frozen.outputs[0].name
        result = graph_def.node.add(name="result", op="Identity", input=[output])
        result.attr["T"].type = tf2.float32.as_datatype_enum
        write(folder, build.__name__, graph_def)
        for x, y in FEEDS:
            value = traced(tf2.constant(x), tf2.constant(y)).numpy()
            lines.append(f"{build.__name__} {x} {y} 4.0 5.0 {value} 4.0 5.0\n")
    return lines


def built(folder):
    lines = []
    for build in BUILT:
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, [], name="x")
            y = tf.placeholder(tf.float32, [], name="y")
            v = tf.get_variable("v", initializer=4.0, use_resource=True)
            r = tf.get_variable("r", initializer=5.0, use_resource=False)
            result = tf.identity(build(x, y, v, r), name="result")
            write(folder, build.__name__, graph.as_graph_def())
            options = tf.ConfigProto()
            options.graph_options.rewrite_options.disable_meta_optimizer = True
            with tf.Session(config=options) as session:
                for feeds in FEEDS:
                    session.run([v.initializer, r.initializer])
                    value = session.run(result, {x: feeds[0], y: feeds[1]})
                    after = session.run([v, r])
                    lines.append(
                        f"{build.__name__} {feeds[0]} {feeds[1]} 4.0 5.0 {value} {after[0]} {after[1]}\n"
                    )
    return lines


def main():
    here = pathlib.Path(__file__).parent
    folder = here / "loops"
    folder.mkdir(exist_ok=True)
    if LOWERED:
        with open(here / "loops.txt", "a") as file:
            file.writelines(lowered(folder))
    else:
        (here / "loops.txt").write_text("".join(built(folder)))
        subprocess.run([sys.executable, __file__, "lowered"], check=True)


if __name__ == "__main__":
    main()
