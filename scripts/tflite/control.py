"""Control flow and state: IF, WHILE, CALL_ONCE, variables, STABLEHLO_COMPOSITE, STABLEHLO_CASE."""

import numpy as np

from builder import Model, Quant, generator_of, random, register

FLOAT, INT, BOOL = "float32", "int32", "bool"


def values(file, name, *descriptions):
    """Random inputs of a case, from (type, shape) pairs."""
    generator = generator_of(f"{file}/{name}")
    return [random(dtype, shape, generator) for dtype, shape in descriptions]


def unary_branch(model, name, shape, *ops):
    """A subgraph that applies ops to one float input; a pair (op, number) has a constant right operand."""
    graph = model.graph(name)
    current = graph.input(f"{name}/x", FLOAT, shape)
    for k, op in enumerate(ops):
        op, *operands = op if isinstance(op, tuple) else (op,)
        constants = [graph.const(np.float32(operand), f"{name}/Const_{k}") for operand in operands]
        current = graph.op(op, [current, *constants], [(f"{name}/{op}_{k}:0", FLOAT, shape)])
    graph.output(current)
    return graph.index


def if_cases():
    """IF."""
    for name, then, otherwise in (
        ("add_or_mul", [("ADD", 1.5)], [("MUL", 3.0)]),
        ("chains", ["EXP", ("SUB", 1.0), "TANH"], ["NEG"]),
        ("identity_branch", [], [("ADD", 1.0)]),
    ):
        for condition in (True, False):
            model = Model()
            graph = model.graph("main")
            which, x = (
                graph.input("serving_default_condition:0", BOOL, ()),
                graph.input("serving_default_x:0", FLOAT, (2, 3)),
            )
            branches = [unary_branch(model, f"cond_{k}", (2, 3), *ops) for k, ops in enumerate((then, otherwise))]
            options = {"thenSubgraphIndex": branches[0], "elseSubgraphIndex": branches[1]}
            graph.output(graph.op("IF", [which, x], [("cond/Identity:0", FLOAT, (2, 3))], options))
            label = f"{name}_{str(condition).lower()}"
            feeds = [np.array(condition), *values("if", label, (FLOAT, (2, 3)))]
            register("if", label, "IF", "float32", model, feeds, atol=1e-5, rtol=1e-5)
    if_several()
    if_one_element()
    if_nested()
    if_shapes()


def if_several():
    """IF with several operands and results of several types."""
    for condition in (True, False):
        model = Model()
        graph = model.graph("main")
        inputs = [
            graph.input(f"in{k}", dtype, shape)
            for k, (dtype, shape) in enumerate(((BOOL, ()), (FLOAT, (3,)), (INT, (2,)), (FLOAT, ())))
        ]
        branches = []
        for name, op in (("then", "ADD"), ("else", "SUB")):
            branch = model.graph(name)
            x, n, s = branch.input("x", FLOAT, (3,)), branch.input("n", INT, (2,)), branch.input("s", FLOAT, ())
            y = branch.op(op, [x, s], [(f"{name}/y", FLOAT, (3,))])
            m = branch.op("MUL", [n, branch.const(np.int32(2 if name == "then" else -3))], [(f"{name}/m", INT, (2,))])
            branch.output(m, y, s)
            branches.append(branch.index)
        options = {"thenSubgraphIndex": branches[0], "elseSubgraphIndex": branches[1]}
        graph.output(*graph.op("IF", inputs, [("m", INT, (2,)), ("y", FLOAT, (3,)), ("s", FLOAT, ())], options))
        name = f"several_results_{str(condition).lower()}"
        feeds = [np.array(condition), *values("if", name, (FLOAT, (3,)), (INT, (2,)), (FLOAT, ()))]
        register("if", name, "IF", "float32", model, feeds)


def if_one_element():
    """IF with a vector of one element as the condition."""
    for condition in (True, False):
        model = Model()
        graph = model.graph("main")
        which, x = graph.input("condition", BOOL, (1,)), graph.input("x", FLOAT, (3,))
        branches = [unary_branch(model, f"branch_{k}", (3,), op) for k, op in enumerate(("SQUARE", "NEG"))]
        options = {"thenSubgraphIndex": branches[0], "elseSubgraphIndex": branches[1]}
        graph.output(graph.op("IF", [which, x], [("If", FLOAT, (3,))], options))
        name = f"vector_condition_{str(condition).lower()}"
        register("if", name, "IF", "float32", model, [np.array([condition]), *values("if", name, (FLOAT, (3,)))])


def if_nested():
    """IF within IF, and a condition that the model computes."""
    for first, second in ((True, True), (True, False), (False, True)):
        model = Model()
        graph = model.graph("main")
        a, b, x = graph.input("a", BOOL, ()), graph.input("b", BOOL, ()), graph.input("x", FLOAT, (4,))
        inner = [unary_branch(model, f"inner_{k}", (4,), op) for k, op in enumerate((("ADD", 1.0), ("MUL", -2.0)))]
        outer = model.graph("outer_then")
        c, y = outer.input("c", BOOL, ()), outer.input("y", FLOAT, (4,))
        options = {"thenSubgraphIndex": inner[0], "elseSubgraphIndex": inner[1]}
        outer.output(outer.op("IF", [c, y], [("outer/If", FLOAT, (4,))], options))
        other = model.graph("outer_else")
        other.input("c", BOOL, ())
        y = other.input("y", FLOAT, (4,))
        other.output(other.op("ABS", [y], [("outer/Abs", FLOAT, (4,))]))
        options = {"thenSubgraphIndex": outer.index, "elseSubgraphIndex": other.index}
        graph.output(graph.op("IF", [a, b, x], [("If", FLOAT, (4,))], options))
        name = f"nested_{str(first).lower()}_{str(second).lower()}"
        register(
            "if", name, "IF", "float32", model, [np.array(first), np.array(second), *values("if", name, (FLOAT, (4,)))]
        )
    for name, number in (("computed_condition_true", 2.0), ("computed_condition_false", -2.0)):
        model = Model()
        graph = model.graph("main")
        x = graph.input("x", FLOAT, (3,))
        axes = graph.const(np.array([0], np.int32))
        total = graph.op("SUM", [x, axes], [("Sum", FLOAT, ())])
        which = graph.op("GREATER", [total, graph.const(np.float32(0))], [("Greater", BOOL, ())])
        branches = [unary_branch(model, f"branch_{k}", (3,), op) for k, op in enumerate(("SQUARE", "NEG"))]
        options = {"thenSubgraphIndex": branches[0], "elseSubgraphIndex": branches[1]}
        graph.output(graph.op("IF", [which, x], [("If", FLOAT, (3,))], options))
        register("if", name, "IF", "float32", model, [np.full(3, number, np.float32)])


def if_shapes():
    """IF whose branches return arrays of different sizes."""
    for condition in (True, False):
        model = Model()
        graph = model.graph("main")
        which, x = graph.input("condition", BOOL, ()), graph.input("x", FLOAT, (4,))
        branches = []
        for k, size in enumerate((2, 3)):
            branch = model.graph(f"branch_{k}")
            y = branch.input("y", FLOAT, (4,))
            bounds = [branch.const(np.array([number], np.int32)) for number in (k, size)]
            branch.output(branch.op("SLICE", [y, *bounds], [("Slice", FLOAT, (size,))]))
            branches.append(branch.index)
        options = {"thenSubgraphIndex": branches[0], "elseSubgraphIndex": branches[1]}
        result = graph.tensor("If", FLOAT, (1,), signature=(-1,))
        graph.output(graph.op("IF", [which, x], [result], options))
        name = f"different_sizes_{str(condition).lower()}"
        feeds = [np.array(condition), *values("if", name, (FLOAT, (4,)))]
        register("if", name, "IF", "float32", model, feeds, dynamic=[0])


def loop(graph, condition, body, inputs, results):
    """Adds a WHILE."""
    options = {"condSubgraphIndex": condition.index, "bodySubgraphIndex": body.index}
    return graph.op("WHILE", inputs, results, options)


def counter(model, types, limit, prefix="while"):
    """Condition and body subgraphs of a loop over a counter, with the numbers of the body's inputs.

    The condition has the counter's shape.
    """
    condition = model.graph(f"{prefix}_cond")
    numbers = [condition.input(f"{prefix}/arg{k}", *description) for k, description in enumerate(types)]
    bound = condition.const(np.int32(limit), f"{prefix}/limit") if limit is not None else numbers[-1]
    condition.output(condition.op("LESS", [numbers[0], bound], [(f"{prefix}/Less", BOOL, types[0][1])]))
    body = model.graph(f"{prefix}_body")
    numbers = [body.input(f"{prefix}/arg{k}", *description) for k, description in enumerate(types)]
    following = body.op("ADD", [numbers[0], body.const(np.int32(1), f"{prefix}/one")], [(f"{prefix}/add", *types[0])])
    return condition, body, numbers, following


def while_cases():
    """WHILE."""
    for limit in (0, 1, 5):
        model = Model()
        graph = model.graph("main")
        types = [(INT, ()), (FLOAT, (3,))]
        inputs = [graph.input(f"in{k}", *description) for k, description in enumerate(types)]
        condition, body, (_, x), following = counter(model, types, limit)
        y = body.op("MUL", [x, body.const(np.float32(0.5))], [("half", FLOAT, (3,))])
        z = body.op("ADD", [y, body.const(np.float32(1))], [("plus", FLOAT, (3,))])
        body.output(following, z)
        graph.output(*loop(graph, condition, body, inputs, [("while:0", INT, ()), ("while:1", FLOAT, (3,))]))
        name = f"counter_{limit}_rounds"
        register("while", name, "WHILE", "float32", model, [np.int32(0), *values("while", name, (FLOAT, (3,)))])
    while_one_element()
    while_matmul()
    while_pass_through()
    while_nested()
    while_growing()
    while_quantized()
    while_data()


def while_one_element():
    """A loop whose condition is a vector of one element."""
    for limit in (0, 3):
        model = Model()
        graph = model.graph("main")
        types = [(INT, (1,)), (FLOAT, (3,))]
        inputs = [graph.input(f"in{k}", *description) for k, description in enumerate(types)]
        condition, body, (_, x), following = counter(model, types, limit)
        body.output(following, body.op("NEG", [x], [("neg", FLOAT, (3,))]))
        graph.output(*loop(graph, condition, body, inputs, [("while:0", INT, (1,)), ("while:1", FLOAT, (3,))]))
        name = f"vector_condition_{limit}_rounds"
        feeds = [np.zeros(1, np.int32), *values("while", name, (FLOAT, (3,)))]
        register("while", name, "WHILE", "float32", model, feeds)


def while_matmul():
    """A loop with a matrix product, a fed limit, and an invariant operand."""
    for limit in (3, 0):
        model = Model()
        graph = model.graph("main")
        types = [(INT, ()), (FLOAT, (2, 3)), (FLOAT, (3, 3)), (INT, ())]
        inputs = [
            graph.const(np.int32(0), "start"),
            *(graph.input(f"in{k}", *description) for k, description in enumerate(types[1:])),
        ]
        condition, body, (_, x, w, n), following = counter(model, types, None)
        product = body.op("BATCH_MATMUL", [x, w], [("MatMul", FLOAT, (2, 3))])
        body.output(following, body.op("TANH", [product], [("Tanh", FLOAT, (2, 3))]), w, n)
        results = loop(
            graph, condition, body, inputs, [(f"while:{k}", *description) for k, description in enumerate(types)]
        )
        graph.output(results[1], results[0])
        name = f"matrix_product_{limit}_rounds"
        feeds = [*values("while", name, (FLOAT, (2, 3)), (FLOAT, (3, 3))), np.int32(limit)]
        register("while", name, "WHILE", "float32", model, feeds, atol=1e-5, rtol=1e-5)


def while_pass_through():
    """Loops whose bodies swap values, or return one value twice."""
    model = Model()
    graph = model.graph("main")
    types = [(INT, ()), (FLOAT, (2,)), (FLOAT, (2,))]
    inputs = [graph.input(f"in{k}", *description) for k, description in enumerate(types)]
    condition, body, (_, a, b), following = counter(model, types, 3)
    body.output(following, b, a)
    graph.output(
        *loop(graph, condition, body, inputs, [(f"while:{k}", *description) for k, description in enumerate(types)])
    )
    register("while", "swap", "WHILE", "float32", model, [np.int32(0), *values("while", "swap", *types[1:])])
    model = Model()
    graph = model.graph("main")
    inputs = [graph.input(f"in{k}", *description) for k, description in enumerate(types)]
    condition, body, (_, a, b), following = counter(model, types, 4)
    total = body.op("ADD", [a, b], [("sum", FLOAT, (2,))])
    body.output(following, total, total)
    graph.output(
        *loop(graph, condition, body, inputs, [(f"while:{k}", *description) for k, description in enumerate(types)])
    )
    register(
        "while",
        "one_value_twice",
        "WHILE",
        "float32",
        model,
        [np.int32(0), *values("while", "one_value_twice", *types[1:])],
    )
    model = Model()
    graph = model.graph("main")
    types = [(INT, ()), (INT, ())]
    inputs = [graph.input(f"in{k}", *description) for k, description in enumerate(types)]
    condition, body, (i, total), following = counter(model, types, 6)
    body.output(following, body.op("ADD", [total, i], [("sum", INT, ())]))
    graph.output(*loop(graph, condition, body, inputs, [("while:0", INT, ()), ("while:1", INT, ())]))
    register("while", "sum_of_counter", "WHILE", "int32", model, [np.int32(0), np.int32(7)])


def while_nested():
    """WHILE within WHILE, and IF within WHILE."""
    model = Model()
    graph = model.graph("main")
    types = [(INT, ()), (FLOAT, (2,))]
    inputs = [graph.input(f"in{k}", *description) for k, description in enumerate(types)]
    condition, body, (i, x), following = counter(model, types, 3, "outer")
    inner_condition, inner_body, (_, y), inner_following = counter(model, types, 2, "inner")
    inner_body.output(
        inner_following, inner_body.op("ADD", [y, inner_body.const(np.float32(0.25))], [("quarter", FLOAT, (2,))])
    )
    inner = loop(
        body,
        inner_condition,
        inner_body,
        [body.const(np.int32(0)), x],
        [("inner:0", INT, ()), ("inner:1", FLOAT, (2,))],
    )
    body.output(following, body.op("MUL", [inner[1], body.const(np.float32(2))], [("double", FLOAT, (2,))]))
    graph.output(*loop(graph, condition, body, inputs, [("while:0", INT, ()), ("while:1", FLOAT, (2,))]))
    register("while", "nested", "WHILE", "float32", model, [np.int32(0), *values("while", "nested", (FLOAT, (2,)))])
    model = Model()
    graph = model.graph("main")
    inputs = [graph.input(f"in{k}", *description) for k, description in enumerate(types)]
    condition, body, (i, x), following = counter(model, types, 5)
    half = body.op("FLOOR_MOD", [i, body.const(np.int32(2))], [("mod", INT, ())])
    odd = body.op("EQUAL", [half, body.const(np.int32(1))], [("odd", BOOL, ())])
    branches = [unary_branch(model, f"branch_{k}", (2,), op) for k, op in enumerate((("ADD", 1.0), ("MUL", -1.5)))]
    options = {"thenSubgraphIndex": branches[0], "elseSubgraphIndex": branches[1]}
    body.output(following, body.op("IF", [odd, x], [("If", FLOAT, (2,))], options))
    graph.output(*loop(graph, condition, body, inputs, [("while:0", INT, ()), ("while:1", FLOAT, (2,))]))
    register(
        "while", "if_within", "WHILE", "float32", model, [np.int32(0), *values("while", "if_within", (FLOAT, (2,)))]
    )


def while_growing():
    """A loop whose state grows, and one that writes rows of an array."""
    model = Model()
    graph = model.graph("main")
    start = graph.input("in0", INT, ())
    x = graph.input("in1", FLOAT, (1,))
    types = [(INT, ()), (FLOAT, (1,), None)]
    condition = model.graph("cond")
    i = condition.input("i", INT, ())
    condition.input("x", FLOAT, (1,), signature=(-1,))
    condition.output(condition.op("LESS", [i, condition.const(np.int32(3))], [("Less", BOOL, ())]))
    body = model.graph("body")
    i, y = body.input("i", INT, ()), body.input("x", FLOAT, (1,), signature=(-1,))
    following = body.op("ADD", [i, body.const(np.int32(1))], [("next", INT, ())])
    grown = body.tensor("concat", FLOAT, (1,), signature=(-1,))
    body.op("CONCATENATION", [y, body.const(np.array([2.5], np.float32))], [grown], {"axis": 0})
    body.output(following, grown)
    result = graph.tensor("while:1", FLOAT, (1,), signature=(-1,))
    graph.output(*loop(graph, condition, body, [start, x], [(f"while:{0}", *types[0]), result]))
    register(
        "while",
        "growing_state",
        "WHILE",
        "float32",
        model,
        [np.int32(0), *values("while", "growing_state", (FLOAT, (1,)))],
        dynamic=[1],
    )
    model = Model()
    graph = model.graph("main")
    types = [(INT, ()), (FLOAT, (4, 2)), (FLOAT, (2,))]
    inputs = [graph.input(f"in{k}", *description) for k, description in enumerate(types)]
    condition, body, (i, rows, x), following = counter(model, types, 4)
    row = body.op(
        "RESHAPE", [x, body.const(np.array([1, 2], np.int32))], [("row", FLOAT, (1, 2))], {"newShape": [1, 2]}
    )
    at = body.op("PACK", [i, body.const(np.int32(0))], [("at", INT, (2,))], {"valuesCount": 2, "axis": 0})
    written = body.op("DYNAMIC_UPDATE_SLICE", [rows, row, at], [("rows", FLOAT, (4, 2))])
    body.output(following, written, body.op("MUL", [x, body.const(np.float32(2))], [("double", FLOAT, (2,))]))
    graph.output(
        *loop(graph, condition, body, inputs, [(f"while:{k}", *description) for k, description in enumerate(types)])
    )
    feeds = [np.int32(0), *values("while", "rows_of_array", *types[1:])]
    register("while", "rows_of_array", "WHILE", "float32", model, feeds)


def while_quantized():
    """A loop over int8."""
    model = Model()
    graph = model.graph("main")
    quant = Quant(0.05, 3)
    types = [(INT, ()), ("int8", (5,), quant)]
    inputs = [graph.input(f"in{k}", *description) for k, description in enumerate(types)]
    condition, body, (_, x), following = counter(model, types, 3)
    step = body.const(np.array([9], np.int8), "step", quant=Quant(0.03, -2))
    body.output(following, body.op("ADD", [x, step], [("sum", "int8", (5,), quant)]))
    graph.output(*loop(graph, condition, body, inputs, [("while:0", INT, ()), ("while:1", "int8", (5,), quant)]))
    feeds = [np.int32(0), np.array([-128, -7, 3, 60, 127], np.int8)]
    register("while", "int8", "WHILE", "int8 quantized", model, feeds)


def while_data():
    """A loop that ends when a value is small."""
    model = Model()
    graph = model.graph("main")
    x = graph.input("x", FLOAT, (2,))
    condition = model.graph("cond")
    y = condition.input("y", FLOAT, (2,))
    most = condition.op("REDUCE_MAX", [y, condition.const(np.array([0], np.int32))], [("Max", FLOAT, ())])
    condition.output(condition.op("GREATER", [most, condition.const(np.float32(0.1))], [("Greater", BOOL, ())]))
    body = model.graph("body")
    y = body.input("y", FLOAT, (2,))
    body.output(body.op("MUL", [y, body.const(np.float32(0.5))], [("half", FLOAT, (2,))]))
    graph.output(loop(graph, condition, body, [x], [("while", FLOAT, (2,))]))
    register("while", "until_small", "WHILE", "float32", model, [np.array([3, 1], np.float32)])


def handle(graph, name, container=""):
    """A handle of a variable."""
    return graph.op(
        "VAR_HANDLE", [], [(f"{name}_handle", "resource", ())], {"sharedName": name, "container": container}
    )


def variable_cases():
    """CALL_ONCE, VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE. Each case runs twice."""
    for name, dtype, shape, first in (
        ("accumulator_float32", FLOAT, (2, 3), np.full((2, 3), 0.5, np.float32)),
        ("accumulator_int32", INT, (3,), np.array([1, 2, 3], np.int32)),
        ("accumulator_int64", "int64", (2,), np.array([2**40, -5], np.int64)),
        ("accumulator_one_element", FLOAT, (1,), np.array([2], np.float32)),
    ):
        model = Model()
        graph = model.graph("main")
        x = graph.input("serving_default_x:0", dtype, shape)
        initial = model.graph("NoOp")
        initial.op("ASSIGN_VARIABLE", [handle(initial, "total"), initial.const(first, "initial")], [])
        graph.op("CALL_ONCE", [], [], {"initSubgraphIndex": initial.index})
        variable = handle(graph, "total")
        read = graph.op("READ_VARIABLE", [variable], [("ReadVariableOp", dtype, shape)])
        total = graph.op("ADD", [read, x], [("AddV2", dtype, shape)])
        graph.op("ASSIGN_VARIABLE", [variable, total], [])
        graph.output(graph.op("READ_VARIABLE", [variable], [("StatefulPartitionedCall:0", dtype, shape)]))
        register("variables", name, "READ_VARIABLE", dtype, model, values("variables", name, (dtype, shape)), runs=2)
    two_variables()
    variable_in_loop()
    quantized_variable()


def two_variables():
    """Two variables, one of them in a container, that exchange values."""
    model = Model()
    graph = model.graph("main")
    x = graph.input("x", FLOAT, (2,))
    initial = model.graph("init")
    for name, container, number in (("a", "", 1.0), ("b", "box", 10.0)):
        initial.op(
            "ASSIGN_VARIABLE", [handle(initial, name, container), initial.const(np.full(2, number, np.float32))], []
        )
    graph.op("CALL_ONCE", [], [], {"initSubgraphIndex": initial.index})
    a, b = handle(graph, "a"), handle(graph, "b", "box")
    old_a = graph.op("READ_VARIABLE", [a], [("old_a", FLOAT, (2,))])
    old_b = graph.op("READ_VARIABLE", [b], [("old_b", FLOAT, (2,))])
    graph.op("ASSIGN_VARIABLE", [a, old_b], [])
    graph.op("ASSIGN_VARIABLE", [b, graph.op("ADD", [old_a, x], [("sum", FLOAT, (2,))])], [])
    graph.output(
        graph.op("READ_VARIABLE", [a], [("new_a", FLOAT, (2,))]),
        graph.op("READ_VARIABLE", [b], [("new_b", FLOAT, (2,))]),
        old_a,
    )
    register(
        "variables",
        "two_variables",
        "READ_VARIABLE",
        "float32",
        model,
        values("variables", "two_variables", (FLOAT, (2,))),
        runs=2,
    )


def variable_in_loop():
    """A variable that the body of a loop writes."""
    model = Model()
    graph = model.graph("main")
    start = graph.input("start", INT, ())
    initial = model.graph("init")
    initial.op("ASSIGN_VARIABLE", [handle(initial, "v"), initial.const(np.array([1, 2], np.float32))], [])
    graph.op("CALL_ONCE", [], [], {"initSubgraphIndex": initial.index})
    condition, body, _, following = counter(model, [(INT, ())], 3)
    variable = handle(body, "v")
    read = body.op("READ_VARIABLE", [variable], [("read", FLOAT, (2,))])
    body.op(
        "ASSIGN_VARIABLE", [variable, body.op("MUL", [read, body.const(np.float32(2))], [("double", FLOAT, (2,))])], []
    )
    body.output(following)
    count = loop(graph, condition, body, [start], [("while", INT, ())])
    graph.output(count, graph.op("READ_VARIABLE", [handle(graph, "v")], [("result", FLOAT, (2,))]))
    register("variables", "variable_in_loop", "READ_VARIABLE", "float32", model, [np.int32(0)], runs=2)


def quantized_variable():
    """A variable of int8, as of a streaming model: a window that slides."""
    quant = Quant(0.05, -4)
    model = Model()
    graph = model.graph("main")
    x = graph.input("frame", "int8", (1, 2), quant)
    initial = model.graph("init")
    zeros = initial.const(np.full((3, 2), -4, np.int8), "zeros", quant=quant)
    initial.op("ASSIGN_VARIABLE", [handle(initial, "window"), zeros], [])
    graph.op("CALL_ONCE", [], [], {"initSubgraphIndex": initial.index})
    variable = handle(graph, "window")
    window = graph.op("READ_VARIABLE", [variable], [("window", "int8", (3, 2), quant)])
    bounds = [graph.const(np.array(numbers, np.int32)) for numbers in ([1, 0], [2, 2])]
    recent = graph.op("SLICE", [window, *bounds], [("recent", "int8", (2, 2), quant)])
    shifted = graph.op("CONCATENATION", [recent, x], [("shifted", "int8", (3, 2), quant)], {"axis": 0})
    graph.op("ASSIGN_VARIABLE", [variable, shifted], [])
    graph.output(shifted)
    register(
        "variables",
        "sliding_window_int8",
        "READ_VARIABLE",
        "int8 quantized",
        model,
        [np.array([[5, -100]], np.int8)],
        runs=2,
    )


def build():
    """Registers the cases."""
    if_cases()
    while_cases()
    variable_cases()
