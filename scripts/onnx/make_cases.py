#!/usr/bin/env python3
"""Turns the tests of ONNX's package into cases for `onnx-cases`.

    PYTHON scripts/onnx/make_cases.py [--contrib] [--sample NAME --known FILE] FOLDER [OP...]

Writes FOLDER/OP.npz for each OP (an op in lower case) that the tests of `onnx.backend.test` are about, by default for
all. PYTHON has onnx 1.23.2 (`scripts/venv.sh venv-onnx onnx==1.23.2 onnxruntime==1.32.0 numpy` makes such a one). The
answers are those of the package. With --contrib, the cases are those of `contrib.py`, with ONNX Runtime's answers. With
--sample, FOLDER/NAME.npz has the smallest cases of each op that the list of known failures does not name.
tests/onnx/README.md describes the format.
"""

import argparse
import importlib
import io
import json
import pathlib
import warnings
import zipfile

import numpy as np
import onnx
from onnx import numpy_helper

warnings.filterwarnings("ignore")


def stored(values):
    """An array in a type of NumPy's own: others are their bits, or bytes if they have fewer."""
    values = np.asarray(values)
    name = values.dtype.name
    if name in ("int4", "int2"):
        return values.astype(np.int8)
    if name in ("uint4", "uint2"):
        return values.astype(np.uint8)
    if values.dtype.kind == "V" or name in ("bfloat16",) or name.startswith("float8") or name.startswith("float4"):
        return values.view({1: np.uint8, 2: np.uint16}[values.dtype.itemsize])
    if values.dtype.kind in "OUS":
        return np.zeros(values.shape, np.uint8)
    return values


def member(values):
    buffer = io.BytesIO()
    values = np.asarray(values)
    np.save(buffer, np.ascontiguousarray(values).reshape(values.shape))
    return buffer.getvalue()


def as_array(content):
    return np.frombuffer(content, np.uint8)


def flat(values):
    """The arrays of a list of values, some of which are sequences or absent."""
    arrays = []
    for value in values:
        if isinstance(value, (list, tuple)):
            arrays += flat(value)
        elif isinstance(value, onnx.TensorProto):
            arrays.append(numpy_helper.to_array(value))
        elif isinstance(value, onnx.SequenceProto):
            arrays += flat(numpy_helper.to_list(value))
        elif isinstance(value, onnx.OptionalProto):
            inner = numpy_helper.to_optional(value)
            arrays += flat([] if inner is None else [inner])
        elif value is not None:
            arrays.append(np.asarray(value))
    return arrays


def with_constants(model, feeds, chosen):
    """What to append to a model, so that these inputs become constants: fields of messages are merged."""
    graph = onnx.GraphProto()
    initialized = {tensor.name for tensor in model.graph.initializer}
    inputs = [info for info in model.graph.input if info.name not in initialized]
    for k in chosen:
        tensor = numpy_helper.from_array(np.asarray(feeds[k]), inputs[k].name)
        graph.initializer.append(tensor)
    part = onnx.ModelProto()
    part.graph.CopyFrom(graph)
    return part.SerializeToString()


def constant_choices(feeds):
    """Inputs that may be constants, from those that state shapes to any small ones."""
    small = [k for k, feed in enumerate(feeds) if np.ndim(feed) <= 1 and np.size(feed) <= 64]
    shapes = [k for k in small if np.asarray(feeds[k]).dtype.kind in "iub"]
    choices = []
    for chosen in (shapes, small):
        if chosen and chosen not in choices:
            choices.append(chosen)
    return choices


def add_case(cases, archive, name, model, inputs, outputs, rtol, atol, step=0):
    """Adds the members of a case."""
    feeds, fetches = flat(inputs), flat(outputs)
    plain = all(not isinstance(value, (list, tuple, onnx.SequenceProto, onnx.OptionalProto)) for value in inputs)
    choices = constant_choices(feeds) if plain and len(feeds) == len(inputs) else []
    members = cases.setdefault(archive, {})
    # Two units in the last place of short floats.
    for short, unit in (("bfloat16", 2.0**-7), ("float16", 2.0**-10)):
        if any(fetch.dtype.name == short for fetch in fetches):
            rtol = max(rtol, 2 * unit)
    meta = {
        "feeds": [{"dtype": feed.dtype.name} for feed in feeds],
        "fetches": [{"dtype": fetch.dtype.name} for fetch in fetches],
        "rtol": rtol,
        "atol": atol,
        "step": step,
        "constants": choices,
    }
    members[f"{name}/meta.json"] = as_array(json.dumps(meta).encode())
    members[f"{name}/model.onnx"] = as_array(model.SerializeToString())
    for k, chosen in enumerate(choices):
        members[f"{name}/constants/{k}"] = as_array(with_constants(model, feeds, chosen))
    for k, feed in enumerate(feeds):
        members[f"{name}/feed/{k}"] = stored(feed)
    for k, fetch in enumerate(fetches):
        members[f"{name}/fetch/{k}"] = stored(fetch)


def archive_of(model, name):
    """The op that a test is about: that of its last node that is not part of an expanded function."""
    if "_expanded" in name:
        return "expanded"
    return model.graph.node[-1].op_type.lower() if len(model.graph.node) == 1 else "graphs"


def node_cases(cases):
    from onnx.backend.test.case.node import collect_testcases

    for case in collect_testcases(None):
        name = case.name.removeprefix("test_")
        for number, (inputs, outputs) in enumerate(case.data_sets):
            own = name if number == 0 else f"{name}_{number}"
            archive = archive_of(case.model, name)
            # Elements that cancel have the rounding errors of the others.
            if archive in ("dft", "stft"):
                case.atol = max(case.atol, 1e-6 * max(float(np.max(np.abs(array))) for array in flat(outputs)))
            add_case(cases, archive, own, case.model, inputs, outputs, case.rtol, max(case.atol, 1e-6))


def read_value(path, info):
    content = path.read_bytes()
    kind = info.type.WhichOneof("value")
    message = {"sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}.get(kind, onnx.TensorProto)
    return message.FromString(content)


def data_cases(cases):
    """The tests whose models and data are in the package."""
    data = pathlib.Path(onnx.__file__).parent / "backend/test/data"
    for group in ("simple", "pytorch-converted", "pytorch-operator"):
        for folder in sorted((data / group).iterdir()):
            if not (folder / "model.onnx").exists():
                continue
            model = onnx.load(folder / "model.onnx")
            initialized = {tensor.name for tensor in model.graph.initializer}
            wanted = [info for info in model.graph.input if info.name not in initialized]
            for number, data_set in enumerate(sorted(folder.glob("test_data_set_*"))):
                inputs = [read_value(data_set / f"input_{k}.pb", info) for k, info in enumerate(wanted)]
                outputs = [
                    read_value(data_set / f"output_{k}.pb", info) for k, info in enumerate(model.graph.output)
                ]
                inputs = [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in inputs]
                name = folder.name.removeprefix("test_")
                own = name if number == 0 else f"{name}_{number}"
                add_case(cases, group.replace("-", "_"), own, model, inputs, outputs, 1e-3, 1e-6)


def sample(cases, name, known, most):
    """The smallest cases of each archive, as one archive."""
    chosen = {}
    for archive, members in cases.items():
        sizes = {}
        for member_name, content in members.items():
            case = member_name.split("/")[0]
            if f'"{archive}/{case}"' not in known:
                sizes[case] = sizes.get(case, 0) + content.nbytes
        for case in sorted(sizes, key=lambda case: (sizes[case], case))[:most]:
            for member_name, content in members.items():
                if member_name.startswith(f"{case}/"):
                    chosen[f"{archive}_{member_name}"] = content
    return {name: chosen}


def write(cases, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for archive, members in sorted(cases.items()):
        with zipfile.ZipFile(folder / f"{archive}.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
            for name, content in members.items():
                file.writestr(zipfile.ZipInfo(f"{name}.npy"), member(content), zipfile.ZIP_DEFLATED)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--contrib", action="store_true")
    parser.add_argument("--sample", metavar="NAME")
    parser.add_argument("--known", type=pathlib.Path)
    parser.add_argument("--most", type=int, default=2, help="cases of each op in a sample")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("op", nargs="*")
    arguments = parser.parse_args()
    cases = {}
    if arguments.contrib:
        importlib.import_module("contrib").add_cases(lambda *case: add_case(cases, *case))
    else:
        node_cases(cases)
        data_cases(cases)
    if arguments.op:
        cases = {name: members for name, members in cases.items() if name in arguments.op}
    if arguments.sample:
        known = arguments.known.read_text() if arguments.known else ""
        cases = sample(cases, arguments.sample, known, arguments.most)
    write(cases, arguments.folder)
    print(f"{sum(name.endswith('/meta.json') for members in cases.values() for name in members)} cases")


if __name__ == "__main__":
    main()
