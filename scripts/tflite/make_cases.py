#!/usr/bin/env python3
"""Records the answers of LiteRT's kernels for small `.tflite` models.

    PYTHON scripts/tflite/make_cases.py [--out FOLDER] [FILE...]

Writes FOLDER/FILE.npz for each FILE (an op in lower case, or a group such as `while`), by default for all, and then
FOLDER/README.md, which describes the format. PYTHON has ai-edge-litert 2.3.0 and flatbuffers (`scripts/venv.sh
venv-litert ai-edge-litert==2.3.0 flatbuffers` makes such a one). Inputs depend only on the names of cases, so that the
same versions yield the same files.
"""

import argparse
import importlib
import io
import json
import os
import zipfile

import numpy as np

from builder import CASES, TYPES
from readme import write_readme
from runner import Runner

FAMILIES = (
    "float_elementwise",
    "quantized_elementwise",
    "convolutions",
    "dense",
    "pooling",
    "normalization",
    "reductions",
    "shapes",
    "indexing",
    "images",
    "recurrent",
    "control",
    "stablehlo",
    "random_ops",
    "networks",
)
NAMES = {code: name for name, code in TYPES.items()}


def member(values):
    """An array in NumPy's format. Types that do not exist in NumPy are stored as their bits."""
    values = np.ascontiguousarray(values).reshape(np.shape(values))
    if values.dtype.name == "bfloat16":
        values = values.view(np.uint16)
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def equal(left, right):
    """True if two lists of arrays are bitwise equal."""
    return all(a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in zip(left, right, strict=True))


def difference(case, reference, optimized):
    """Greatest distance of integer results, and whether float results are within the case's tolerance."""
    distance, close = 0, True
    for want, got in zip(sum(reference, []), sum(optimized, []), strict=True):
        if want.shape != got.shape:
            return None, False
        if want.dtype.kind in "iu" and want.size:
            distance = max(distance, int(np.max(np.abs(want.astype(np.float64) - got.astype(np.float64)))))
        elif want.dtype.kind == "b":
            distance = max(distance, int(np.any(want != got)))
        elif want.size:
            want, got = want.astype(np.complex128), got.astype(np.complex128)
            with np.errstate(all="ignore"):
                good = np.abs(want - got) <= case.atol + case.rtol * np.abs(want)
            close &= bool(np.all(good | (want == got) | (np.isnan(want) & np.isnan(got))))
    return distance, close


def record(runner, other_runner, case):
    """Runs a case. Returns its members, or the message of LiteRT's refusal."""
    content = case.model.bytes()
    kernels = case.kernels
    arguments = (case.feeds, kernels, case.runs, signature_names(case))
    done, answer = runner.run(content, *arguments)
    if not done and "Didn't find op" in answer:
        kernels = "optimized"
        arguments = (case.feeds, kernels, *arguments[2:])
        done, answer = runner.run(content, *arguments)
    if not done:
        return None, answer
    if case.infer:
        tensors = case.model.table.subgraphs[0].tensors
        for number in case.infer:
            tensors[number].shape = list(answer[1][number])
            if number in [case.model.table.subgraphs[0].outputs[k] for k in case.dynamic]:
                tensors[number].shapeSignature = [-1] * len(tensors[number].shape)
                tensors[number].shape = [1] * len(tensors[number].shape)
        content = case.model.bytes()
    done, again = other_runner.run(content, *arguments)
    if not done:
        return None, f"with shapes: {again}"
    results = answer[0]
    if not all(equal(first, second) for first, second in zip(results, again[0])):
        return None, "results depend on uninitialized memory"
    distance, close = 0, True
    if kernels == "reference" or case.kernels != "reference":
        other_kernels = "optimized" if kernels == "reference" else "reference"
        done, other = runner.run(content, case.feeds, other_kernels, *arguments[2:])
        distance, close = difference(case, results, other[0]) if done else (0, True)
    meta = metadata(case, results, kernels, distance, close)
    members = {"model.tflite": np.frombuffer(content, np.uint8)}
    members["meta.json"] = np.frombuffer(json.dumps(meta).encode(), np.uint8)
    members |= {f"feed/{k}": values for k, values in enumerate(case.feeds)}
    for run, values in enumerate(results):
        prefix = "fetch" if run == 0 else f"fetch_{run + 1}"
        members |= {f"{prefix}/{k}": value for k, value in enumerate(values)}
    return members, meta


def signature_table(case):
    """The signature that a case runs."""
    return next(table for table in case.model.table.signatureDefs if table.signatureKey == case.signature)


def signature_names(case):
    """Key and names of a case's signature in the order of its subgraph's inputs and outputs, or None."""
    if case.signature is None:
        return None
    table = signature_table(case)
    graph = case.model.table.subgraphs[table.subgraphIndex]
    names = [{entry.tensorIndex: entry.name for entry in entries} for entries in (table.inputs, table.outputs)]
    return case.signature, [names[0][k] for k in graph.inputs], [names[1][k] for k in graph.outputs]


def metadata(case, results, kernels, distance, close):
    """The contents of meta.json."""
    graph = case.model.table.subgraphs[0]
    if case.signature is not None:
        graph = case.model.table.subgraphs[signature_table(case).subgraphIndex]

    def described(numbers, arrays):
        tensors = [graph.tensors[number] for number in numbers]
        return [
            {"name": tensor.name, "dtype": NAMES[tensor.type], "shape": list(array.shape)}
            for tensor, array in zip(tensors, arrays, strict=True)
        ]

    meta = {
        "op": case.op,
        "feeds": described(graph.inputs, case.feeds),
        "fetches": described(graph.outputs, results[0]),
        "atol": float(f"{case.atol:.3g}"),
        "rtol": float(f"{case.rtol:.3g}"),
        "step": int(distance is not None and distance > 0),
        "kind": case.kind,
    }
    if case.dynamic:
        meta["dynamic"] = case.dynamic
    if case.runs > 1:
        meta["runs"] = case.runs
    if case.signature is not None:
        meta["signature"] = case.signature
    if kernels != "reference":
        meta["kernels"] = kernels
    if distance is None or distance > 0:
        meta["difference"] = distance
    if not close:
        meta["float_difference"] = True
    return meta


def write(path, entries):
    """Writes an archive. A fixed date makes equal cases equal files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, values in entries.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member(values), zipfile.ZIP_DEFLATED)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="tests/tflite", help="folder of the archives")
    parser.add_argument("--refused", help="write the cases that LiteRT refuses, and its messages, to this file")
    parser.add_argument("files", nargs="*", metavar="FILE", help="archives to write (default: all)")
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)
    for family in FAMILIES:
        importlib.import_module(family).build()
    files = {}
    for case in CASES:
        if not arguments.files or case.file in arguments.files:
            files.setdefault(case.file, []).append(case)
    runners, refused = (Runner(85), Runner(171)), []
    for file, cases in files.items():
        entries, recorded = {}, 0
        for case in cases:
            members, meta = record(*runners, case)
            if members is None:
                refused.append(f"{file}/{case.name} [{case.kind}]: {meta}")
                continue
            recorded += 1
            entries |= {f"{case.name}/{name}": values for name, values in members.items()}
        if entries:
            write(os.path.join(arguments.out, f"{file}.npz"), entries)
        print(f"{file}: {recorded} of {len(cases)} cases", flush=True)
    if arguments.refused:
        with open(arguments.refused, "w") as report:
            report.writelines(f"{line}\n" for line in refused)
    write_readme(arguments.out)


if __name__ == "__main__":
    main()
