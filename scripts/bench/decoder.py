#!/usr/bin/env python3
"""Measures a decoder of 1.1 billion parameters next to llama.cpp, and the bandwidth of memory.

    decoder.py TOOL DIR PYTHON [--rounds N] [--threads 1,2] [--prompt N] [--count N]

DIR receives the models (6 GB). PYTHON has llama-cpp-python, gguf, and numpy, for llama.py. All programs read a prompt
and generate words in turns. Each figure is the best of all rounds, because other work on the machine only slows them
down.
"""

import argparse
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
DECODER = ROOT / "examples/decoder"


def output(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def prepare(tool, directory, python):
    """Creates the models, and compiles ours and the loop that reads memory."""
    bytes_of = {}
    for kind, peer in (("int8", "q8"), ("int4", "q4")):
        place = directory / kind
        if not (place / "decoder.safetensors").exists():
            output(python, DECODER / "model.py", place, "--size", "1b", "--weights", kind)
        model = [place / "decoder.mlir", "--signature", "prefill,decode", "--weights", place / "decoder.safetensors"]
        output(tool, "build", *model, "--constants=file", "--target-cpu", "native", "--quiet", "-o", place)
        flags = ["-std=c++17", "-O2", "-pthread", "-I", place, "-I", place / "include"]
        output("c++", *flags, DECODER / "main.cc", place / "decoder.o", "-o", place / "main")
        if not (directory / f"{peer}.gguf").exists():
            output(python, ROOT / "scripts/bench/llama.py", "write", peer, directory / f"{peer}.gguf")
        # A word reads one row of the table of words, which has a byte for each number.
        bytes_of[kind] = (place / "decoder.constants").stat().st_size - 32000 * 2048
    output("cc", "-O3", "-march=native", "-pthread", ROOT / "scripts/bench/bandwidth.c", "-o", directory / "bandwidth")
    return bytes_of


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("python", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--prompt", type=int, default=128, help="words of the prompt")
    parser.add_argument("--count", type=int, default=24, help="words to generate")
    arguments = parser.parse_args()
    directory = arguments.directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    bytes_of = prepare(arguments.tool.absolute(), directory, arguments.python.absolute())
    threads = [int(number) for number in arguments.threads.split(",")]
    best = {}

    def keep(key, figures):
        best[key] = [max(pair) for pair in zip(best.get(key, figures), figures)]

    rates = re.compile(r"read ([\d.]+) words/s, generated ([\d.]+) words/s")
    words = range(3, 3 + arguments.prompt)
    for _ in range(arguments.rounds):
        for count in threads:
            keep(("bandwidth", count), [float(output(directory / "bandwidth", count))])
            for kind, peer in (("int8", "q8"), ("int4", "q4")):
                place = directory / kind
                ours = output(place / "main", place / "decoder.constants", arguments.count, "--threads", count, *words)
                keep((kind, count), [float(x) for x in rates.search(ours).groups()])
                theirs = [arguments.python.absolute(), ROOT / "scripts/bench/llama.py", "run", directory / f"{peer}.gguf"]
                theirs = output(*theirs, count, arguments.prompt, arguments.count)
                keep((peer, count), [float(x) for x in rates.search(theirs).groups()])
    print("| weights | threads | words/s | share of bandwidth | llama.cpp | ratio | prefill | llama.cpp |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for kind, peer in (("int8", "q8"), ("int4", "q4")):
        for count in threads:
            (read, ours), (their_read, theirs) = best[kind, count], best[peer, count]
            share = ours * bytes_of[kind] / best["bandwidth", count][0] / 1e9
            print(
                f"| {kind} | {count} | {ours:.1f} | {share:.0%} | {theirs:.1f} | {ours / theirs:.2f} | "
                f"{read:.0f} | {their_read:.0f} |"
            )
    print("memory:", ", ".join(f"{best['bandwidth', n][0]:.1f} GB/s with {n} threads" for n in threads))


if __name__ == "__main__":
    main()
