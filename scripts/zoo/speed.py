"""The speed of a model next to what else runs its file.

All programs of a model start first. Then they take turns, in an order that rotates, while the others are
stopped. The time of a round is the median call; the time of a program is the median round.
"""

import json
import pathlib
import statistics
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts/bench"))
import packages
from cases import interface
from int8 import Program, linked

ONNX = ["onnxruntime==1.32.0", "openvino==2026.4.1", "onnx==1.23.2", "sympy==1.14.0", "numpy==2.4.6"]
TO_ONNX = ["tensorflow-cpu==2.15.1", "numpy==1.26.4", "tf2onnx==1.16.1", "onnx==1.16.2", "protobuf<4.26"]


def as_onnx(path):
    """A SavedModel as ONNX, or None if tf2onnx cannot convert it. The file stays beside the model."""
    place = path.with_suffix(".onnx")
    if not place.exists():
        python = packages.environment("venv-to-onnx", TO_ONNX)
        command = [python, "-m", "tf2onnx.convert", "--saved-model", path, "--opset", "18", "--output", place]
        converted = subprocess.run(command, capture_output=True, text=True)
        if converted.returncode:
            place.write_bytes(b"")
    return place if place.stat().st_size else None


def prepare(options, case, folder):
    """Compiles and links our program, converts the model for peers, and writes all commands, without threads."""
    folder.mkdir(parents=True, exist_ok=True)
    build = [options.tool, "build", case.path, *case.flags, "--target-cpu=native", "--name=model", "--class=Comp"]
    subprocess.run([*build, "--quiet", "-o", folder], check=True)
    feeds, _ = interface(options.tool, case.path, case.flags)
    lines = []
    for k, feed in enumerate(feeds):
        array = np.ascontiguousarray(case.feeds[feed["name"]])
        array.tofile(folder / f"in{k}.bin")
        lines.append(f"in in{k}.bin {array.nbytes}\n")
    (folder / "sig.txt").write_text("".join(lines))
    found = {"ours": [linked(options.harness.absolute(), folder), folder, folder]}
    np.savez(folder / "peer.npz", **(case.inputs or case.feeds))
    for peer, path in case.peers.items():
        if peer == "ort" and path.is_dir():
            path = as_onnx(path)
        if path:
            script = [ROOT / "scripts/bench/python_peer.py", options.harness.absolute(), peer, path]
            found[peer] = [interpreter(options, peer), *script]
    (folder / "commands.json").write_text(json.dumps(found, default=str))


def interpreter(options, peer):
    """The Python of a peer's environment."""
    if peer == "litert":
        return sys.executable
    if peer == "xla":
        return packages.environment("venv-zoo-jax", options.table["environment"]["jax"])
    return packages.environment("venv-onnx", ONNX)


def measure(options, folder):
    """Times of the prepared programs in ns, by the number of threads."""
    found, rows = json.loads((folder / "commands.json").read_text()), {}
    for threads in options.threads:
        running = []
        with open(folder / "log", "w") as log:
            try:
                for kind, command in found.items():
                    last = [threads, folder] if kind == "ours" else [threads, folder / "peer.npz"]
                    try:
                        running.append(Program(kind, [*command, *last], threads, log))
                    except RuntimeError as error:
                        print(f"zoo: {error}; {last_line(folder / 'log')}", file=sys.stderr)
                rounds = {one.name: [] for one in running}
                for number in range(options.rounds):
                    first = number % len(running)
                    for one in running[first:] + running[:first]:
                        one.best = float("inf")
                        one.measure(options.slice_ms)
                        rounds[one.name].append(one.best)
            finally:
                for one in running:
                    one.end()
        times = {name: statistics.median(values) for name, values in rounds.items()}
        rows[str(threads)] = {name: round(time) for name, time in times.items() if np.isfinite(time)}
    return rows


def last_line(path):
    return (pathlib.Path(path).read_text(errors="replace").strip().splitlines() or [""])[-1]
