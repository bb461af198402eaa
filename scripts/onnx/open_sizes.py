"""Compares recurrent layers and other nodes with open times and batches with ONNX Runtime.

    open_sizes.py TFCOMPILE

Each is compiled for 1 to 12 times (other nodes: 6 to 24, and widths of 5 to 20) and 1 to 4 rows, and run at several
sizes. The last line counts the runs; the exit status is 1 if one differs.
"""

import itertools
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

HIDDEN, FEATURES = 6, 5
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
TYPES = {"i": TensorProto.INT64, "u": TensorProto.FLOAT}


def model(op, direction, has_lengths, generator):
    """A layer with random weights, and the shapes of its inputs by name."""
    directions = 2 if direction == "bidirectional" else 1
    rows = GATES[op] * HIDDEN
    weights = {"w": (directions, rows, FEATURES), "r": (directions, rows, HIDDEN), "b": (directions, 2 * rows)}
    weights = [onnx.numpy_helper.from_array((generator.standard_normal(shape) / 2).astype(np.float32), name)
               for name, shape in weights.items()]
    state = [directions, "batch", HIDDEN]
    feeds = {"x": ["time", "batch", FEATURES], **({"lengths": ["batch"]} if has_lengths else {}), "h": state,
             **({"c": state} if op == "LSTM" else {})}
    fetches = {"y": ["time", directions, "batch", HIDDEN], "last": state, **({"cell": state} if op == "LSTM" else {})}
    inputs = ["x", "w", "r", "b", "lengths" if has_lengths else "", "h", *(["c"] if op == "LSTM" else [])]
    node = helper.make_node(op, inputs, list(fetches), hidden_size=HIDDEN, direction=direction)
    info = lambda name, shape: helper.make_tensor_value_info(
        name, TensorProto.INT32 if name == "lengths" else TensorProto.FLOAT, shape)
    graph = helper.make_graph([node], "layer", [info(*feed) for feed in feeds.items()],
                              [info(*fetch) for fetch in fetches.items()], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), feeds


def constants(**arrays):
    return [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in arrays.items()]


def nodes(generator):
    """Other nodes: a name, the shape of the first input, its type, the node, and constants or shapes of further inputs,
    which are indices i and updates u.
    """
    normal = lambda *shape: generator.standard_normal(shape).astype(np.float32)
    bytes_of = lambda *shape: generator.integers(-100, 100, shape).astype(np.int8)
    text, image = ["batch", "time", 6], ["batch", 3, "time"]
    node = lambda op, more=(), **attributes: helper.make_node(op, ["x", *more], ["y"], **attributes)
    float32 = TensorProto.FLOAT
    yield "layer normalization", text, float32, node("LayerNormalization", ["s", "b"]), constants(s=normal(6), b=normal(6))
    yield "batch normalization", image, float32, node("BatchNormalization", ["s", "b", "m", "v"]), constants(
        s=normal(3), b=normal(3), m=normal(3), v=np.abs(normal(3)) + 0.5)
    yield "norm of channels", image, float32, node("LpNormalization", axis=1, p=2), []
    microsoft = dict(domain="com.microsoft")
    yield "biased Gelu", text, float32, node("BiasGelu", ["b"], **microsoft), constants(b=normal(6))
    yield "product of integers", text, TensorProto.UINT8, node("MatMulInteger", ["w", "z"]), constants(
        w=bytes_of(6, 5), z=np.uint8(120))
    yield "convolution of integers", image, TensorProto.UINT8, node("ConvInteger", ["w", "z"], pads=[1, 1]), constants(
        w=bytes_of(4, 3, 3), z=np.uint8(120))
    for stride, pads in ((1, [0, 0]), (2, [1, 1]), (3, [1, 0])):
        pool = dict(kernel_shape=[3], strides=[stride], pads=pads)
        yield f"largest, {pool}", image, float32, node("MaxPool", **pool), []
        yield f"mean, {pool}", image, float32, node("AveragePool", **pool), []
        yield f"mean with padding, {pool}", image, float32, node("AveragePool", count_include_pad=1, **pool), []
    for mode in ("constant", "reflect", "edge", "wrap"):
        pads = constants(p=np.array([0, 0, 2, 0, 0, 5]))
        yield f"pads, {mode}", image, float32, node("Pad", ["p"], mode=mode), pads
    yield from pictures(normal, node)
    rows = ["time", 6]
    yield "gathered elements", text, float32, node("GatherElements", ["i"], axis=1), dict(i=text)
    yield "four gathered elements", text, float32, node("GatherElements", ["i"], axis=1), dict(i=["batch", 4, 6])
    yield "gathered rows of samples", text, float32, node("GatherND", ["i"], batch_dims=1), dict(i=["batch", "time", 1])
    yield "gathered rows", rows, float32, node("GatherND", ["i"]), dict(i=["batch", "time", 1])
    yield "scattered elements", text, float32, node("ScatterElements", ["i", "u"], axis=1, reduction="add"), dict(i=text, u=text)
    yield "scattered rows", rows, float32, node("ScatterND", ["i", "u"], reduction="add"), dict(i=["batch", 1], u=["batch", 6])
    ml = dict(domain="ai.onnx.ml")
    yield "scaled features", rows, float32, node("Scaler", offset=[0.5], scale=[2.0], **ml), []
    yield "normalized features", rows, float32, node("Normalizer", norm="L2", **ml), []
    yield "linear regression", rows, float32, node("LinearRegressor", coefficients=[0.5, 1.0, -2.0, 0.1, 0.2, 0.3], **ml), []
    tree = dict(nodes_treeids=[0] * 5, nodes_nodeids=[0, 1, 2, 3, 4], nodes_featureids=[0, 4, 0, 0, 0],
                nodes_values=[0.1, -0.2, 0.0, 0.0, 0.0], nodes_truenodeids=[1, 3, 0, 0, 0], nodes_falsenodeids=[2, 4, 0, 0, 0],
                target_treeids=[0] * 3, target_nodeids=[2, 3, 4], target_ids=[0] * 3, target_weights=[1.0, 2.0, 3.0], **ml)
    for second in ("BRANCH_LEQ", "BRANCH_GT"):
        modes = ["BRANCH_LEQ", second, "LEAF", "LEAF", "LEAF"]
        yield f"tree, {second}", rows, float32, node("TreeEnsembleRegressor", n_targets=1, nodes_modes=modes, **tree), []
    frames = constants(step=np.array(2), w=normal(6))
    yield "frames", ["batch", "time", 1], float32, helper.make_node("STFT", ["x", "step", "w"], ["y"]), frames
    for parts, attributes in ((1, {}), (1, {"onesided": 1}), (2, {}), (2, {"inverse": 1})):
        yield f"transform of {parts}, {attributes}", ["batch", "time", parts], float32, node("DFT", axis=1, **attributes), []
    yield "padded transform", ["batch", "time", 2], float32, node("DFT", ["length"], axis=1), constants(length=np.int64(30))
    yield "cut transform", ["batch", "time", 2], float32, node("DFT", ["length"], axis=1), constants(length=np.int64(5))


def pictures(normal, node):
    """Nodes over images whose height and width are open, like those of nodes()."""
    picture, float32 = ["batch", 4, "time", "wide"], TensorProto.FLOAT
    features = constants(s=normal(4), b=normal(4))
    yield "mean of images", picture, float32, node("GlobalAveragePool"), []
    yield "largest of images", picture, float32, node("GlobalMaxPool"), []
    yield "norm of images", picture, float32, node("GlobalLpPool"), []
    yield "instance normalization", picture, float32, node("InstanceNormalization", ["s", "b"]), features
    yield "mean and variance of features", picture, float32, node("MeanVarianceNormalization", axes=[0, 2, 3]), []
    yield "local response", picture, float32, node("LRN", size=3), []
    yield "lower triangles", picture, float32, node("Trilu", upper=0), []
    for automatic in ("SAME_UPPER", "SAME_LOWER"):
        for kernel, stride in ((3, 2), (2, 2), (4, 3)):
            window = dict(kernel_shape=[kernel, kernel], strides=[stride, stride], auto_pad=automatic)
            yield f"largest, {window}", picture, float32, node("MaxPool", **window), []
            yield f"mean, {window}", picture, float32, node("AveragePool", **window), []
            filters = constants(w=normal(5, 4, kernel, kernel))
            yield f"convolution, {window}", picture, float32, node("Conv", ["w"], **window), filters
    for kernel, stride, pad in ((2, 2, 0), (3, 2, 0), (3, 2, 1)):
        window = dict(kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4)
        yield f"largest, rounded up, {window}", picture, float32, node("MaxPool", ceil_mode=1, **window), []
        yield f"mean, rounded up, {window}", picture, float32, node("AveragePool", ceil_mode=1, **window), []
        yield f"norm, {window}", picture, float32, node("LpPool", p=2, **window), []
    for more in (dict(strides=[2, 2]), dict(strides=[2, 3], pads=[1, 1, 0, 1], output_padding=[1, 0]), dict(dilations=[2, 1], group=2),
                 dict(strides=[2, 2], auto_pad="SAME_UPPER")):
        filters = constants(w=normal(4, 3, 3, 3), b=normal(3 * more.get("group", 1)))
        yield f"transposed convolution, {more}", picture, float32, node("ConvTranspose", ["w", "b"], **more), filters
    for mode in ("DCR", "CRD"):
        yield f"depth to space, {mode}", picture, float32, node("DepthToSpace", blocksize=2, mode=mode), []
    yield from resizes(picture, node)


def resizes(picture, node):
    """Resizing of images whose height and width are open, like nodes()."""
    float32 = TensorProto.FLOAT
    # By a fractional size, ONNX Runtime aligns corners otherwise than ONNX's tests. It also rounds
    # places to float32, which matters where one of two elements is copied.
    whole, exact, broken = [1, 1, 2, 3], [1, 1, 0.625, 1.5], [1, 1, 0.6, 1.7]
    for coordinates in ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"):
        for mode in ("nearest", "linear", "cubic"):
            fractions = () if coordinates == "align_corners" else (exact if mode == "nearest" else broken,)
            for scales in (whole, *fractions):
                more = dict(mode=mode, coordinate_transformation_mode=coordinates, nearest_mode="floor" if coordinates == "asymmetric" else "round_prefer_floor")
                yield f"resize by {scales}, {more}", picture, float32, node("Resize", ["", "k"], **more), constants(k=np.float32(scales))
            if mode == "nearest":
                continue
            sizes = node("Resize", ["", "", "k"], axes=[2, 3], mode=mode, coordinate_transformation_mode=coordinates)
            yield f"resize to sizes, {mode}, {coordinates}", picture, float32, sizes, constants(k=np.int64([9, 14]))
    for nearest in ("round_prefer_ceil", "ceil", "floor"):
        more = dict(nearest_mode=nearest, coordinate_transformation_mode="half_pixel")
        yield f"resize, {nearest}", picture, float32, node("Resize", ["", "k"], **more), constants(k=np.float32(exact))
    excluded = dict(mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5)
    yield "resize without what is outside", picture, float32, node("Resize", ["", "k"], **excluded), constants(k=np.float32(whole))


def model_of_node(shape, element_type, node, more):
    """A model of one node, whose further inputs are constants or have shapes. Returns it and the inputs by name."""
    info = helper.make_tensor_value_info
    result = TensorProto.FLOAT if "Integer" not in node.op_type else TensorProto.INT32
    shapes, initializers = ({}, more) if isinstance(more, list) else (more, [])
    feeds = {"x": (shape, element_type), **{name: (own, TYPES[name]) for name, own in shapes.items()}}
    inputs = [info(name, kind, own) for name, (own, kind) in feeds.items()]
    graph = helper.make_graph([node], "node", inputs, [info("y", result, None)], initializers)
    opsets = [helper.make_opsetid(name, version) for name, version in (("", 19), ("com.microsoft", 1), ("ai.onnx.ml", 3))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), feeds


def compare(tool, folder, model, times, runs):
    """Compares a model for a range of times with ONNX Runtime. Returns the message of a failure for each run, or None."""
    path, given, results = [folder / name for name in ("model.onnx", "in.npz", "out.npz")]
    onnx.save(model, path)
    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    own = {size for given_input in session.get_inputs() for size in given_input.shape}
    ranges = {"time": times, "batch": "1..4", "wide": "5..20"}
    dims = [word for name, sizes in ranges.items() if name in own for word in ("--dim", f"{name}={sizes}")]
    for arrays in runs:
        np.savez(given, **arrays)
        command = [tool, "run", path, *dims, "--feed", f"@{given}", "--out", results, "-q"]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            yield ran.stderr.strip()
            continue
        with np.load(results) as archive:
            found = [archive[name] for name in names]
        wanted = session.run(None, arrays)
        # ONNX Runtime's transforms are wrong by up to 1e-4, as NumPy's in doubles show.
        limit = 2e-4 if any(node.op_type == "DFT" for node in model.graph.node) else 1e-5
        agrees = all(a.shape == b.shape and np.abs(a - b).max() < limit for a, b in zip(found, wanted))
        yield None if agrees else "differs"


def main():
    tool, generator = sys.argv[1], np.random.default_rng(0)
    outcomes = []

    def array_of(shape, kind):
        if kind == TensorProto.UINT8:
            return generator.integers(0, 256, shape).astype(np.uint8)
        # There are at least six times.
        return generator.integers(-6, 6, shape) if kind == TensorProto.INT64 else generator.standard_normal(shape).astype(np.float32)

    def arrays_of(feeds, sizes):
        return {name: array_of([sizes.get(size, size) for size in shape], kind) for name, (shape, kind) in feeds.items()}

    def add(name, messages):
        for message in messages:
            outcomes.append(message is None)
            if message:
                print(f"{name}: {message}")

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for op, direction, has_lengths in itertools.product(GATES, ["forward", "reverse", "bidirectional"], [False, True]):
            layer, feeds = model(op, direction, has_lengths, generator)
            runs = []
            for time, batch in ((1, 1), (7, 3), (12, 4), (5, 1)):
                arrays = arrays_of({name: (shape, TensorProto.FLOAT) for name, shape in feeds.items()}, {"time": time, "batch": batch})
                if has_lengths:
                    arrays["lengths"] = generator.integers(1, time + 1, batch).astype(np.int32)
                runs.append(arrays)
            add(f"{op}, {direction}, lengths: {has_lengths}", compare(tool, folder, layer, "1..12", runs))
        for name, shape, element_type, node, more in nodes(generator):
            single, feeds = model_of_node(shape, element_type, node, more)
            sizes = [dict(zip(("time", "batch", "wide"), size)) for size in ((6, 1, 9), (13, 3, 5), (24, 4, 20), (17, 2, 16))]
            runs = [arrays_of(feeds, size) for size in sizes]
            add(name, compare(tool, folder, single, "6..24", runs))
    print(f"{sum(outcomes)} passed, {len(outcomes) - sum(outcomes)} failed")
    return 0 if outcomes and all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
