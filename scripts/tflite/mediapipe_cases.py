#!/usr/bin/env python3
"""Writes `.tflite` models of MediaPipe's custom operators, with answers computed by NumPy.

    PYTHON scripts/tflite/mediapipe_cases.py [--check] [--out FOLDER]

Writes FOLDER/mediapipe.npz, whose format `make_cases.py` describes. The functions below follow the definitions of
MediaPipe's kernels (`mediapipe/util/tflite/operations`) in float64. --check compares them with those kernels, for which
PYTHON also has mediapipe 0.10.14, and fails if one differs by more than its case's tolerance.
"""

import argparse
import json
import os
import struct
import sys
import tempfile

import numpy as np
from flatbuffers import flexbuffers

from builder import Model, generator_of, schema
from make_cases import write
from mediapipe_graph import run

SAME, VALID = 1, 2
CASES = []


def flex(options):
    """Options as a FlexBuffers map."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for key, value in options.items():
            builder.Key(key)
            if isinstance(value, list):
                builder.TypedVectorFromElements(value)
            else:
                builder.Add(value)
    return bytes(builder.Finish())


def custom(model, graph, op, version, inputs, shape, options):
    """Adds a custom operator with one output and returns the output's number."""
    if (op, version) not in model.codes:
        code = schema.OperatorCodeT()
        code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.CUSTOM
        code.customCode, code.version = op, version
        model.codes[op, version] = len(model.table.operatorCodes)
        model.table.operatorCodes.append(code)
    name = f"{op}_{len(graph.table.tensors)}"
    output = graph.op(op, inputs, [(name, "float32", shape)], version=version)
    if options:
        graph.table.operators[-1].customOptions = list(options)
    return output


def case(name, op, feeds, steps, tolerance=1e-5):
    """Registers a model. A step is (operator, version, operands, function, options as bytes, arguments).

    An operand is the number of a feed, or -1 for the result of the last step. The last step gives the output.
    """
    CASES.append((name, op, [np.asarray(feed, np.float32) for feed in feeds], steps, tolerance))


def answers(feeds, steps):
    """The result of each step."""
    results = []
    for _, _, operands, function, _, arguments in steps:
        values = [results[-1] if k < 0 else feeds[k].astype(np.float64) for k in operands]
        results.append(function(*values, **arguments))
    return results


def build(feeds, steps, results, constant):
    """The file of a model. With constant feeds, the model has an input of one number that it ignores."""
    model = Model()
    graph = model.graph()
    if constant:
        graph.input("unused", "float32", (1, 1, 1, 1))
        tensors = [graph.const(feed, f"x{k}") for k, feed in enumerate(feeds)]
    else:
        tensors = [graph.input(f"x{k}", "float32", feed.shape) for k, feed in enumerate(feeds)]
    last = None
    for (op, version, operands, _, options, _), result in zip(steps, results, strict=True):
        inputs = [last if k < 0 else tensors[k] for k in operands]
        last = custom(model, graph, op, version, inputs, result.shape, options)
    graph.output(last)
    return model.bytes()


def transposed_convolution(x, kernel, bias, padding, strides):
    """Convolution2DTransposeBias. Strides are along the height and the width."""
    batch, *sizes, _ = x.shape
    features, *window, _ = kernel.shape
    cuts = [0, 0]
    if padding == SAME:
        cuts = [max(0, k - (n - 1) % s - 1) for k, n, s in zip(window, sizes, strides)]
    full = [s * (n - 1) + k for k, n, s in zip(window, sizes, strides)]
    y = np.zeros((batch, *full, features))
    for row in range(sizes[0]):
        for column in range(sizes[1]):
            patch = np.einsum("bi,ohwi->bhwo", x[:, row, column], kernel)
            top, left = row * strides[0], column * strides[1]
            y[:, top : top + window[0], left : left + window[1]] += patch
    starts = [cut // 2 for cut in cuts]
    ends = [start + size - cut for start, size, cut in zip(starts, full, cuts)]
    return y[:, starts[0] : ends[0], starts[1] : ends[1]] + bias


def turn(angle):
    """The matrix that rotates by an angle."""
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def crop_matrix(landmarks, **options):
    """Landmarks2TransformMatrix, version 2."""
    points = landmarks[0, :, :2]
    line = points[options["right_rotation_idx"]] - points[options["left_rotation_idx"]]
    rotation = turn(options["target_rotation_radians"] - np.arctan2(line[1], line[0]))
    rotated = points[options["subset_idxs"]] @ rotation.T
    low, high = rotated.min(0), rotated.max(0)
    size = np.array([options["output_width"], options["output_height"]])
    scales = np.array([options["scale_x"], options["scale_y"]]) * (high - low) / size
    matrix = np.eye(4)
    matrix[:2, :2] = rotation.T * scales
    matrix[:2, 3] = rotation.T @ ((low + high) / 2) - matrix[:2, :2] @ (size / 2)
    return matrix[None]


def crop(image, matrix, output_height, output_width):
    """TransformTensorBilinear, version 2: places between the corners of pixels, and zero outside."""
    _, height, width, features = image.shape
    padded = np.zeros((height + 1, width + 1, features))
    padded[:height, :width] = image[0]
    ys, xs = np.mgrid[:output_height, :output_width] + 0.5
    x, y = (row[0] * xs + row[1] * ys + row[3] - 0.5 for row in matrix[0, :2])
    inside = (x >= 0) & (x <= width - 1) & (y >= 0) & (y <= height - 1)
    x, y = np.where(inside, x, 0), np.where(inside, y, 0)
    column, row = np.floor(x).astype(int), np.floor(y).astype(int)
    x, y = (x - column)[..., None], (y - row)[..., None]
    upper = (1 - x) * padded[row, column] + x * padded[row, column + 1]
    lower = (1 - x) * padded[row + 1, column] + x * padded[row + 1, column + 1]
    return np.where(inside[..., None], (1 - y) * upper + y * lower, 0)[None]


def move(landmarks, matrix):
    """TransformLandmarks, version 2: the third coordinate does not change."""
    moved = landmarks.copy()
    moved[..., :2] = landmarks[..., :2] @ matrix[0, :2, :2].T + matrix[0, :2, 3]
    return moved


def convolutions():
    """Cases of Convolution2DTransposeBias."""
    for name, padding, strides, window, sizes, features in (
        ("same_2x2_strides_2", SAME, (2, 2), (2, 2), (1, 4, 5), (3, 1)),
        ("same_3x3_strides_2", SAME, (2, 2), (3, 3), (1, 3, 4), (2, 3)),
        ("same_3x3", SAME, (1, 1), (3, 3), (2, 4, 3), (2, 2)),
        ("same_3x5_strides_2_3", SAME, (2, 3), (3, 5), (1, 3, 3), (2, 1)),
        ("same_1x2_strides_3", SAME, (3, 3), (1, 2), (1, 3, 2), (1, 2)),
        ("same_one_pixel", SAME, (2, 2), (4, 3), (1, 1, 1), (2, 2)),
        ("valid_3x3_strides_2", VALID, (2, 2), (3, 3), (1, 3, 2), (2, 3)),
        ("valid_2x3_strides_3_1", VALID, (3, 1), (2, 3), (2, 2, 3), (1, 2)),
    ):
        name = f"convolution_transpose_bias_{name}"
        generator = generator_of(name)
        inputs, outputs = features
        shapes = (*sizes, inputs), (outputs, *window, inputs), (outputs,)
        feeds = [generator.normal(size=shape) for shape in shapes]
        options = struct.pack("<3i", padding, strides[1], strides[0])
        op = "Convolution2DTransposeBias"
        arguments = {"padding": padding, "strides": strides}
        case(name, op, feeds, [(op, 1, (0, 1, 2), transposed_convolution, options, arguments)])


def matrix_step(operand, **changes):
    """A step that computes a transformation of landmarks."""
    options = {
        "left_rotation_idx": 1,
        "output_height": 6,
        "output_width": 8,
        "right_rotation_idx": 4,
        "scale_x": 1.5,
        "scale_y": 1.25,
        "subset_idxs": [1, 4, 2, 6, 0],
        "target_rotation_radians": 0.0,
    } | changes
    return "Landmarks2TransformMatrix", 2, (operand,), crop_matrix, flex(options), options


def landmarks_of(name, count, dimensions, size=20):
    """Random landmarks in an image."""
    return generator_of(name).uniform(2, size - 2, (1, count, dimensions))


def matrices():
    """Cases of Landmarks2TransformMatrix."""
    upright = [[10, 3, 1], [2, 5, 0], [4, 9, 2], [7, 1, 5], [9, 5, 1], [1, 1, 7], [8, 2, 3]]
    half = [[point[0], point[1] if k != 4 else 9, point[2]] for k, point in enumerate(upright)]
    for name, points, changes in (
        ("level", upright, {}),
        ("slope", half, {}),
        ("reversed", half, {"left_rotation_idx": 4, "right_rotation_idx": 1}),
        ("steep", upright, {"left_rotation_idx": 5, "right_rotation_idx": 2}),
        ("angle", half, {"target_rotation_radians": 0.7}),
        ("negative_angle", half, {"target_rotation_radians": -2.5}),
        ("one_point", upright, {"subset_idxs": [3]}),
        ("even_subset", half, {"subset_idxs": [6, 3, 0, 2]}),
        ("same_ends", upright, {"right_rotation_idx": 1}),
        ("sizes", half, {"output_height": 1, "output_width": 33, "scale_x": 0.3, "scale_y": 2.0}),
        ("large_indices", None, {"subset_idxs": [467, 300, 0, 12], "left_rotation_idx": 400}),
    ):
        name = f"landmarks_to_transform_matrix_{name}"
        feed = landmarks_of(name, 468, 3) if points is None else [points]
        case(name, "Landmarks2TransformMatrix", [feed], [matrix_step(0, **changes)])


def matrix_of(angle, scale_x, scale_y, x, y):
    """A transformation with all entries that operators read."""
    matrix = np.eye(4)
    matrix[:2, :2] = turn(angle) * [scale_x, scale_y]
    matrix[:2, 3] = x, y
    return matrix[None]


def crop_step(image, matrix, height, width):
    """A step that crops an image."""
    arguments = {"output_height": height, "output_width": width}
    return "TransformTensorBilinear", 2, (image, matrix), crop, flex(arguments), arguments


def crops():
    """Cases of TransformTensorBilinear."""
    for name, sizes, matrix, height, width in (
        ("identity", (5, 6, 3), (0, 1, 1, 0, 0), 5, 6),
        ("larger_than_image", (5, 6, 2), (0, 1, 1, 0, 0), 7, 9),
        ("half_pixel", (5, 6, 2), (0, 1, 1, 0.5, 0.25), 5, 6),
        ("smaller", (9, 8, 4), (0, 2, 2.5, 0.3, 0.2), 3, 4),
        ("rotated", (10, 12, 3), (0.6, 0.9, 0.8, 4.1, 0.7), 8, 7),
        ("partly_outside", (6, 6, 1), (-0.8, 1.1, 0.9, 0.4, 2.3), 9, 9),
        ("outside", (4, 4, 2), (0, 1, 1, 20, -9), 3, 3),
        ("one_pixel", (1, 1, 2), (0, 0.5, 0.5, 0.25, 0.25), 1, 1),
    ):
        name = f"transform_tensor_bilinear_{name}"
        image = generator_of(name).normal(size=(1, *sizes))
        steps = [crop_step(0, 1, height, width)]
        case(name, "TransformTensorBilinear", [image, matrix_of(*matrix)], steps)


def moves():
    """Cases of TransformLandmarks."""
    for name, count, dimensions, matrix in (
        ("2_coordinates", 9, 2, (0.4, 1.5, 0.7, 3, -2)),
        ("3_coordinates", 7, 3, (-2.0, 0.2, 0.3, 10, 5)),
        ("one_landmark", 1, 2, (3.0, 1, 1, 0, 1)),
    ):
        name = f"transform_landmarks_{name}"
        feeds = [landmarks_of(name, count, dimensions), matrix_of(*matrix)]
        case(name, "TransformLandmarks", feeds, [("TransformLandmarks", 2, (0, 1), move, b"", {})])


def chains():
    """A transformation of landmarks that crops an image, or moves points back."""
    for name, changes in (("level", {}), ("angle", {"target_rotation_radians": 0.5, "scale_x": 0.9})):
        name = f"landmarks_to_crop_{name}"
        landmarks = landmarks_of(name, 8, 3)
        image = generator_of(f"{name}/image").normal(size=(1, 20, 20, 3))
        steps = [matrix_step(0, **changes), crop_step(1, -1, 6, 8)]
        case(name, "TransformTensorBilinear", [landmarks, image], steps, 1e-4)
        name = name.replace("crop", "landmarks")
        points = landmarks_of(f"{name}/points", 5, 2, 8)
        steps = [matrix_step(0, **changes), ("TransformLandmarks", 2, (1, -1), move, b"", {})]
        case(name, "TransformLandmarks", [landmarks, points], steps)


def described(name, values):
    """A tensor as meta.json describes it."""
    return {"name": name, "dtype": "float32", "shape": list(values.shape)}


def error_of_mediapipe(feeds, steps, results, tolerance):
    """The largest difference between NumPy's and MediaPipe's answers, in units of the tolerance."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.tflite")
        with open(path, "wb") as file:
            file.write(build(feeds, steps, results, constant=True))
        (values,) = run(path, np.zeros((1, 1), np.uint8), 1)
    wanted = results[-1].ravel()
    return float(np.max(np.abs(values - wanted) / (tolerance + tolerance * np.abs(wanted))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare the answers with MediaPipe's kernels")
    parser.add_argument("--out", default="tests/tflite", help="folder of the archive")
    arguments = parser.parse_args()
    for family in (convolutions, matrices, crops, moves, chains):
        family()
    entries, failures = {}, 0
    for name, op, feeds, steps, tolerance in CASES:
        results = answers(feeds, steps)
        answer = results[-1].astype(np.float32)
        meta = {
            "op": op,
            "feeds": [described(f"x{k}", feed) for k, feed in enumerate(feeds)],
            "fetches": [described("y", answer)],
            "atol": tolerance,
            "rtol": tolerance,
            "step": 0,
            "kind": "float32",
        }
        if arguments.check:
            error = error_of_mediapipe(feeds, steps, results, tolerance)
            failures += not error <= 1
            print(f"{name}: {error:.3f} of the tolerance{'' if error <= 1 else ' TOO LARGE'}", flush=True)
        model = build(feeds, steps, results, constant=False)
        entries[f"{name}/model.tflite"] = np.frombuffer(model, np.uint8)
        entries[f"{name}/meta.json"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
        entries |= {f"{name}/feed/{k}": feed for k, feed in enumerate(feeds)}
        entries[f"{name}/fetch/0"] = answer
    write(os.path.join(arguments.out, "mediapipe.npz"), entries)
    print(f"{len(CASES)} cases; {failures} differ from MediaPipe" if arguments.check else f"{len(CASES)} cases")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
