#!/usr/bin/env python3
"""Compiles a decoder of 1.1 billion parameters, and compares its words with a reference.

    PYTHON scripts/test_large_decoder.py TOOL DIR [--weights int8,int4] [--size 1b]

PYTHON has NumPy. For each form of the weights, examples/decoder/model.py writes the decoder into DIR, the tool builds
`prefill` and `decode` into one object and one constants file, and examples/decoder/main.cc reads a prompt, once with
each function, and generates words. reference.py compares words and scores. The script also fails if a file, or the
peak memory of the build or of the program, is larger than one copy of the weights and of the cache explains. DIR needs
4 GB of disk, which are free again at the end.
"""

import argparse
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
DECODER = ROOT / "examples/decoder"
PROMPT = [3, 14, 15, 92, 65]
COUNT = 4  # words to generate
NEEDED = 4e9  # bytes of disk
MB = 1e6


def run(*command):
    """Runs a command. Returns what it prints and its peak memory in bytes."""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{text}\nfailed: {' '.join(map(str, command))}")
    return text, usage.ru_maxrss * 1024


def sizes_of(size, kind):
    """Bytes of the weights in a constants file, and bytes of the cache."""
    specification = importlib.util.spec_from_file_location("model", DECODER / "model.py")
    model = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(model)
    size = model.SIZES[size]
    weights = size["words"] * (size["width"] + 4) + 4 * size["width"] * (2 * size["layers"] + 1)
    for _, summands, columns in model.matrices(size):
        if kind == "int8":
            weights += columns * (summands + 4)
        else:
            weights += columns * (summands // 2 + 2 * summands // model.BLOCK)
    head = size["width"] // size["heads"]
    return weights, 2 * size["layers"] * size["kv_heads"] * size["positions"] * head * 4


def test(tool, directory, kind, size):
    run(sys.executable, DECODER / "model.py", directory, "--size", size, "--weights", kind)
    out, stored = directory / "out", (directory / "decoder.safetensors").stat().st_size
    model = [directory / "decoder.mlir", "--weights", directory / "decoder.safetensors"]
    flags = ["--signature", "prefill,decode", "--constants=file", "--class", "Decoder", "--quiet", "-o", out]
    _, build_memory = run(tool, "build", *model, *flags)
    (object_file,), (constants,) = out.glob("*.o"), out.glob("*.constants")
    main = directory / "main"
    run("c++", "-std=c++17", "-O2", "-pthread", "-I", out, "-I", out / "include", DECODER / "main.cc", object_file, "-o", main)
    memory = 0
    for flag in ([], ["--one-by-one"]):
        scores = directory / "scores.f32"
        text, used = run(main, constants, COUNT, "--threads", 2, *flag, "--scores", scores, *PROMPT)
        memory = max(memory, used)
        print(f"{kind} {' '.join(flag)}: {text.strip().replace(chr(10), ', ')}", flush=True)
        text, _ = run(sys.executable, DECODER / "reference.py", directory, scores, COUNT, *PROMPT)
        print(f"  {text.strip()}", flush=True)
    weights, cache = sizes_of(size, kind)
    checks = [
        ("object", object_file.stat().st_size, 2 * MB),
        ("constants file", constants.stat().st_size, 1.001 * weights + MB),
        ("memory of the build", build_memory, stored + 1.5 * weights + 256 * MB),
        ("memory of the program", memory, weights + cache + 64 * MB),
    ]
    for what, bytes_of, limit in checks:
        print(f"  {what}: {bytes_of / MB:.1f} MB, at most {limit / MB:.1f} MB")
    return [f"{kind}: the {what} has more" for what, bytes_of, limit in checks if bytes_of > limit]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--weights", default="int8,int4")
    parser.add_argument("--size", default="1b")
    arguments = parser.parse_args()
    directory = arguments.directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(directory).free
    if free < NEEDED:
        sys.exit(f"{directory} needs {NEEDED / 1e9:.0f} GB of disk, and {free / 1e9:.1f} GB are free")
    failures = []
    for kind in arguments.weights.split(","):
        place = directory / kind
        try:
            failures += test(arguments.tool.absolute(), place, kind, arguments.size)
        finally:
            shutil.rmtree(place, ignore_errors=True)
    if failures:
        sys.exit("; ".join(failures))


if __name__ == "__main__":
    main()
