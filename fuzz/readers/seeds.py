#!/usr/bin/env python3
"""Writes the first inputs of each reader: files of the tests that are small.
  fuzz/readers/seeds.py FOLDER
They go to FOLDER/READER. Run in the root of the repository. Also unpacks tests/readers/READER.zip,
whose inputs earlier runs found."""

import gzip
import hashlib
import io
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile

# Larger inputs make each execution slow, and rarely reach other code.
MOST_BYTES = 48 << 10
# Most files of one kind. Enough differ from each other; libFuzzer drops those that do not.
MOST_FILES = 400

out = pathlib.Path(sys.argv[1])
shared = pathlib.Path(os.environ.get("TFCOMPILE_SHARED", "../shared"))
counts = {}


def add(reader, content):
    counts.setdefault(reader, 0)
    if not 0 < len(content) <= MOST_BYTES or counts[reader] >= MOST_FILES:
        return
    counts[reader] += 1
    folder = out / reader
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha1(content).hexdigest()).write_bytes(content)


def parts(*contents):
    """The files of an input of several, as `parts` in src/table.rs splits them."""
    sizes = [struct.pack("<I", len(content)) for content in contents[:-1]]
    return b"".join([*sizes, *contents])


def tracked():
    names = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout
    return [pathlib.Path(name) for name in names.splitlines()]


# The first bytes of MLIR's bytecode.
BYTECODE = b"ML\xefR"


def add_file(path):
    if not path.is_file():
        return
    content = path.read_bytes()
    name, suffix = path.name, path.suffix
    if suffix == ".pbtxt":
        add("config-text" if "config" in name else "graph-text", content)
    elif name == "saved_model.pb":
        variables = path.parent / "variables"
        files = [variables / f"variables.{end}" for end in ("index", "data-00000-of-00001")]
        add("saved-model", parts(content, *(f.read_bytes() if f.exists() else b"" for f in files)))
    elif suffix == ".pb":
        if "config" in name:
            add("config", content)
        elif ".hlo" in name or "hlo" in str(path.parent):
            add("hlo-proto", content)
        else:
            add("graph", content)
    elif suffix == ".meta":
        add("meta-graph", content)
    elif suffix == ".index":
        data = sorted(path.parent.glob(f"{path.stem}.data-00000-of-*"))
        if data:
            add("checkpoint-v2", parts(content, data[0].read_bytes()))
    elif suffix == ".gz" and "idx" in name:
        add("idx", content)
    elif suffix == ".ckpt" or "checkpoints/v1" in str(path):
        add("checkpoint-v1", content)
    elif suffix in (".hlo", ".txt") and content.lstrip().startswith((b"HloModule", b"//")):
        # The files of tests state passes and expectations in comments.
        add("hlo-text", content)
    elif suffix == ".mlir":
        add("mlir-text", content)
    elif suffix in (".jax", ".mlirbc", ".bc"):
        add("mlir-bytecode" if content.startswith(BYTECODE) else "jax-export", content)
        start = content.find(BYTECODE)
        if start > 0:
            size = int.from_bytes(content[start - 4 : start], "little")
            add("mlir-bytecode", content[start : start + size])
    elif suffix == ".npy":
        add("npy", content)
    elif suffix == ".npz":
        add("npz", content)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [m for m in archive.infolist() if m.file_size <= MOST_BYTES]
            for member in members[:40]:
                add("npy", archive.read(member))
            for member in members:
                # An array of bytes.
                if member.filename.endswith(".onnx.npy"):
                    inner = archive.read(member)
                    add("onnx", inner[10 + int.from_bytes(inner[8:10], "little") :])
    elif suffix == ".safetensors":
        add("safetensors", content)
    elif suffix == ".tflite":
        add("tflite", content)
    elif suffix == ".onnx":
        add("onnx", content)
    elif name == "model.json":
        shard = path.parent / "group1-shard1of1.bin"
        add("tfjs", parts(content, shard.read_bytes() if shard.exists() else b""))
    elif suffix in (".o", ".a", ".wasm", ".so"):
        add("metadata", content)


def add_small():
    """Formats of which the tests write their files themselves."""
    weights = [struct.pack("<4f", 1, 2, 3, 4), struct.pack("<2i", -1, 7)]
    header = {
        "__metadata__": {"format": "pt"},
        "w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
        "i": {"dtype": "I32", "shape": [2], "data_offsets": [16, 24]},
    }
    text = json.dumps(header).encode()
    add("safetensors", struct.pack("<Q", len(text)) + text + b"".join(weights))
    add("idx", bytes([0, 0, 8, 2]) + struct.pack(">2I", 2, 3) + bytes(range(6)))
    add("idx", gzip.compress(bytes([0, 0, 13, 1]) + struct.pack(">I2f", 2, 0.5, -1), mtime=0))
    node = lambda name, op, inputs=(), **attributes: {
        "name": name, "op": op, "input": list(inputs), "attr": {"dtype": {"type": "DT_FLOAT"}, **attributes}
    }
    shape = {"shape": {"shape": {"dim": [{"size": "2"}, {"size": "2"}]}}}
    nodes = [node("x", "Placeholder", **shape), node("w", "Const"), node("i", "Const")]
    nodes[2]["attr"]["dtype"]["type"] = "DT_INT32"
    product = {"name": "y", "op": "MatMul", "input": ["x", "w"], "attr": {"T": {"type": "DT_FLOAT"}}}
    specs = [
        {"name": "w", "shape": [2, 2], "dtype": "float32"},
        {"name": "i", "shape": [2], "dtype": "int32"},
    ]
    narrow = {"dtype": "uint8", "min": -1.5, "scale": 0.25, "original_dtype": "float32"}
    for quantized in (False, True):
        tensor = lambda name: {
            "name": f"{name}:0", "dtype": "DT_FLOAT", "tensorShape": {"dim": [{"size": "2"}, {"size": "2"}]}
        }
        data = b"".join(weights)
        if quantized:
            specs[0]["quantization"] = narrow
            data = bytes([1, 2, 3, 4]) + weights[1]
        model = {
            "format": "graph-model",
            "modelTopology": {"node": [*nodes, product], "versions": {"producer": 1882}},
            "signature": {"inputs": {"x": tensor("x")}, "outputs": {"y": tensor("y")}},
            "weightsManifest": [{"paths": ["group1-shard1of1.bin"], "weights": specs}],
        }
        add("tfjs", parts(json.dumps(model).encode(), data))
    limits = ["size = 3000", 'ram = "4 KiB" # bytes', 'latency = "2.5 ms"']
    budget = [*limits, "[error]", '"y" = 1e-3', '"*" = 0.5', ""]
    add("budget", "\n".join(budget).encode())
    choices = ["[x86_64 avx2 1]", "dot f32 8 8 8 => tile 4x2", "# a note", "", "[other]", "k => rows"]
    add("tuning", "\n".join(["tfcompile-tuning 1", "", *choices, ""]).encode())
    layout = bytes(range(32))
    add("metadata", b"TFCCONST" + struct.pack("<2I", 1, 64) + layout + struct.pack("<Q", 4) + bytes(12))


def add_compiled():
    """Objects with metadata and a saved report, if the tool is built."""
    tools = [pathlib.Path("target") / profile / "tfcompile" for profile in ("release", "debug")]
    tool = next((tool for tool in tools if tool.exists()), None)
    if tool is None:
        return
    model = ["tests/artifacts/layer.pbtxt", "--config", "tests/artifacts/layer.config.pbtxt"]
    report = subprocess.run([tool, "report", *model, "--no-time", "--json"], capture_output=True, check=True)
    add("report", report.stdout)
    targets = ["x86-64", "aarch64-macos", "x86_64-windows", "wasm32", "armv7-linux"]
    for target in targets:
        with tempfile.TemporaryDirectory() as folder:
            command = [tool, "build", *model, "--target", target, "-o", f"{folder}/layer"]
            subprocess.run(command, capture_output=True, env={**os.environ, "TFCOMPILE_KERNEL_CACHE": ""})
            for path in sorted(pathlib.Path(folder).rglob("*")):
                if path.suffix in (".o", ".a", ".obj", ".lib", ".wasm"):
                    add("metadata", path.read_bytes())
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--multiversion", "none", "--kernel-cache", f"{folder}/kernels"]
        subprocess.run([tool, "build", *model, *flags, "-o", f"{folder}/layer"], capture_output=True, check=True)
        # What follows the magic number and the hash.
        for entry in sorted(pathlib.Path(folder, "kernels").iterdir()):
            content = entry.read_bytes()[8 + 32 :]
            add("kernel-cache", content)
            # The object without frames.
            add("kernel-cache", bytes(8) + content[content.find(b"\x7fELF") :])


add_small()
add_compiled()
for path in [*tracked(), *sorted((shared / "conformance" / "cases").rglob("*"))[:4000]]:
    add_file(path)
for archive in sorted(pathlib.Path("tests/readers").glob("*.zip")):
    with zipfile.ZipFile(archive) as inputs:
        for name in inputs.namelist():
            folder = out / archive.stem
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(inputs.read(name))
for reader, count in sorted(counts.items()):
    print(f"{reader}: {count}")
