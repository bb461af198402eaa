#!/usr/bin/env python3
"""Compares compiled int8 models with LiteRT, ONNX Runtime, and OpenVINO on the same machine.

    int8.py OUT.json --models DIR --harness DIR --tool TFCOMPILE --litert PYTHON --onnx PYTHON [NAME...]

DIR has NAME.int8.tflite for tfcompile and LiteRT, and NAME.int8.onnx, if any, for the other two. All
programs of a model start first. Then they take turns, in an order that rotates, while the others are
stopped. The time of a round is the median call; the best round counts. Prints a table and writes
OUT.json: times in ns for one and two threads, the time of the fastest peer divided by ours, and sizes in
bytes: of the two models, of a stripped program with ours, and of LiteRT's library and its model.
"""

import argparse
import datetime
import json
import math
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
TYPES = {"s8": np.int8, "u8": np.uint8, "s16": np.int16, "s32": np.int32, "s64": np.int64, "f32": np.float32}
PEERS = {"litert": "LiteRT", "ort": "ONNX Runtime", "openvino": "OpenVINO"}


class Program:
    """A running program that measures itself when asked. It is stopped in between."""

    def __init__(self, name, command, threads, log):
        cores = ",".join(map(str, range(threads)))
        self.name, self.best = name, math.inf
        self.process = subprocess.Popen(
            ["taskset", "-c", cores, *map(str, command)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1,
        )
        line = self.process.stdout.readline()
        while line and not line.startswith("ready"):
            line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{name} ended before it was ready")
        self.process.send_signal(signal.SIGSTOP)

    def measure(self, milliseconds):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(f"run {milliseconds}\n")
        answer = self.process.stdout.readline().split()
        self.process.send_signal(signal.SIGSTOP)
        if answer[:1] == ["samples"]:
            self.best = min(self.best, statistics.median(map(float, answer[1:])))

    def end(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()


def compiled(options, model, folder):
    """Compiles a model, links it, and returns the program's command without threads, and its sizes."""
    build = [options.tool, "build", model, "--target-cpu=native", "--name=model", "--class=Comp", "--quiet", "-o", folder]
    subprocess.run(build, check=True)
    checked = subprocess.run([options.tool, "check", "--json", model], check=True, capture_output=True, text=True)
    generator = np.random.default_rng(0)
    lines = []
    for entry in json.loads(checked.stdout)["interface"]:
        if entry["kind"] == "feed":
            element, sizes = entry["shape"].rstrip("]").split("[")
            shape = [int(size) for size in sizes.split(",") if size]
            # Every table has the indices 0 and 1.
            most = 100 if element == "s8" else 2
            values = generator.integers(0, most, shape).astype(TYPES[element])
            name = f"in{len(lines)}.bin"
            values.tofile(folder / name)
            lines.append(f"in {name} {values.nbytes}\n")
    (folder / "sig.txt").write_text("".join(lines))
    program = linked(options.harness, folder)
    linked(options.harness, folder, "small", "-DONLY_RUN", "-s", "-static-libstdc++", "-static-libgcc")
    sizes = {"tflite": model.stat().st_size, "object": (folder / "model.o").stat().st_size,
             "program": (folder / "small").stat().st_size, "litert": runtime_size(options) + model.stat().st_size}
    return [program, folder, folder], sizes


def linked(harness, folder, name="bench", *flags):
    """Links the program of the harness for the object and header in a folder."""
    compiler = ["c++", "-std=c++17", "-O2", "-DNDEBUG", "-w", "-I", folder, "-I", folder / "include", "-I", harness / "native"]
    sources = [HERE / "peer" / "main.cc", folder / "model.o", "-Wl,--gc-sections", "-pthread"]
    subprocess.run([*compiler, *sources, *flags, "-o", folder / name], check=True)
    return folder / name


def runtime_size(options):
    """The size of LiteRT's shared library for programs in C and C++."""
    code = "import ai_edge_litert, pathlib; print(pathlib.Path(ai_edge_litert.__file__).with_name('libLiteRt.so'))"
    found = subprocess.run([options.litert, "-c", code], check=True, capture_output=True, text=True)
    return pathlib.Path(found.stdout.strip()).stat().st_size


def commands(options, name, program, threads, folder):
    """The command of each program that can run a model."""
    peer = lambda python, kind, file: [python, HERE / "python_peer.py", options.harness, kind, file, threads]
    found = {"ours": [*program, threads, folder],
             "litert": peer(options.litert, "litert", options.models / f"{name}.int8.tflite")}
    onnx = options.models / f"{name}.int8.onnx"
    if onnx.exists():
        found.update({kind: peer(options.onnx, kind, onnx) for kind in ("ort", "openvino")})
    return found


def measure(options, name, folder):
    """Times of all programs on a model in ns, by the number of threads, and sizes."""
    program, sizes = compiled(options, options.models / f"{name}.int8.tflite", folder)
    row = {"model": name, "sizes": sizes}
    for threads in options.threads:
        running = []
        with open(folder / "log", "w") as log:
            try:
                for kind, command in commands(options, name, program, threads, folder).items():
                    try:
                        running.append(Program(kind, command, threads, log))
                    except RuntimeError as error:
                        print(f"{name}: {error}", file=sys.stderr)
                for number in range(options.rounds):
                    first = number % len(running)
                    for one in running[first:] + running[:first]:
                        one.measure(options.slice_ms)
            finally:
                for one in running:
                    one.end()
        row[str(threads)] = ratios({one.name: one.best for one in running})
    return row


def ratios(times):
    """The times of the programs that ran, the fastest peer, and its time divided by ours."""
    times = {name: time for name, time in times.items() if math.isfinite(time)}
    fastest = min((name for name in times if name != "ours"), key=times.get)
    return {"ns": {name: round(time) for name, time in times.items()}, "fastest": PEERS[fastest],
            "ratio": round(times[fastest] / times["ours"], 3)}


def geometric_mean(numbers):
    return round(math.exp(sum(map(math.log, numbers)) / len(numbers)), 3)


def table(rows, threads):
    """The lines of a table in Markdown."""
    yield "| model | " + " | ".join(f"fastest, {n} thread{'s' * (n > 1)}" for n in threads) + " | object, kB | object minus `.tflite`, kB |"
    yield "|---|" + "---:|" * (len(threads) + 2)
    for row in rows:
        cells = [f"{row[str(n)]['ratio']:.2f} {row[str(n)]['fastest']}" for n in threads]
        more = (row["sizes"]["object"] - row["sizes"]["tflite"]) / 1000
        yield f"| `{row['model']}` | " + " | ".join(cells) + f" | {row['sizes']['object'] / 1000:.0f} | {more:.0f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    for path in ("models", "harness", "tool", "litert", "onnx"):
        parser.add_argument(f"--{path}", type=pathlib.Path, required=True)
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slice-ms", type=int, default=300)
    options = parser.parse_args()
    names = options.names or sorted(path.name.split(".")[0] for path in options.models.glob("*.int8.tflite"))
    rows = []
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure(options, name, pathlib.Path(folder)))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    means = {str(n): geometric_mean([row[str(n)]["ratio"] for row in rows]) for n in options.threads}
    document = {"date": datetime.date.today().isoformat(), "models": rows, "mean": means}
    options.out.write_text(json.dumps(document, indent=1) + "\n")
    print("\n".join(table(rows, options.threads)))
    print("geometric means:", ", ".join(f"{mean:.2f} ({n} threads)" for n, mean in means.items()))
    smaller = [row["sizes"]["litert"] / row["sizes"]["program"] for row in rows]
    print(f"a program with LiteRT's library and the model is {min(smaller):.1f} to {max(smaller):.1f} times as large")


if __name__ == "__main__":
    main()
