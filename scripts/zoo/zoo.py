#!/usr/bin/env python3
"""Compares models that others made, compiled by tfcompile, with what runs them elsewhere.

    zoo.py [--tool TFCOMPILE] [--judge NAME] [--only REGEX] [--record FILE.json] [--keep] [--bench [PHASE]]
           [--sizes COUNT]

The models are those of tests/zoo/models.toml. Packages are downloaded once, with their usual clients, to
~/.cache/tfcompile-models/zoo. Prints a line for each model: the largest difference of its results. A
rejected model must be rejected for the stated reason. The exit status is 1 if any model does not do what
the table says.

--keep keeps the models that frameworks write, in ~/.cache/tfcompile-models/zoo/made, so that a later run
starts with them. --bench also measures each model next to what else runs its file; its phases prepare and
measure do one of the two, so that a machine has to be quiet for the second only. --record updates a record,
whose other models stay.

--sizes takes the models whose batch or texts have open sizes, of ONNX and TensorFlow. Each is compiled for ranges and
run at that many random sizes. Its results, and those of programs for these sizes alone, are compared with the judge's.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
for folder in ("tflite", "tfjs"):
    sys.path.append(str(ROOT / "scripts" / folder))
import graph_models
import lite_models
import packages
import sizes
import speed
import speed_ratios
from cases import Case, difference, interface, allowed_steps


def lite(source, options):
    """The models of packages, which LiteRT judges, or MediaPipe those with its custom operators."""
    mediapipe = lambda: packages.environment("venv-zoo-mediapipe", options.table["environment"]["mediapipe"])

    def case(path, flags):
        feeds, fetches = interface(options.tool, path, flags)
        sizes_of = lambda feed: [int(size) for size in re.findall(r"\d+", feed["shape"].split("[")[1])]
        shapes = [sizes_of(feed) for feed in feeds] if flags else None
        inputs, wanted, note = lite_models.reference(path, mediapipe, shapes)
        names = [[entry["name"] for entry in entries] for entries in (feeds, fetches)]
        inputs, wanted = [dict(zip(own, arrays)) for own, arrays in zip(names, (inputs, wanted))]
        # Other programs would run with the sizes of the file.
        peers = {} if note or flags else {"litert": path, "openvino": path}
        return Case(path, flags, inputs, wanted, note, peers)

    for package in source["packages"]:
        for path in sorted(packages.files(package, ".tflite").rglob("*.tflite")):
            name = f"{packages.name_of(package)}/{path.stem}"
            flags = source.get("flags", {}).get(name, "").split()
            yield name, package, lambda _, path=path, flags=flags: case(path, flags)


def graph(source, options):
    """The models of packages of npm, which TensorFlow.js judges. Keras converts layers models to SavedModels."""
    modules = packages.node_modules(source["packages"], source.get("scripts", {}))

    def case(path, flags):
        compiled = path
        if '"model_config"' in path.read_text():
            compiled = path.parent / "saved_model"
            python = packages.environment("venv-zoo-tf", options.table["environment"]["tf"])
            command = [python, ROOT / "scripts/tfjs/layers_model.py", path, compiled]
            subprocess.run(command, check=True, capture_output=True, text=True)
        inputs, wanted = graph_models.reference(options.tool, modules, path, flags, compiled)
        return Case(compiled, flags, inputs, wanted)

    for package in source["packages"]:
        name = packages.name_of(package)
        for path in sorted((modules / "node_modules" / name).rglob("*.json")):
            is_manifest = path.stem.endswith("weights_manifest")
            is_model = path.stat().st_size <= 1 << 26 and '"modelTopology"' in path.read_text(errors="replace")
            if not is_model and not is_manifest:
                continue
            own = f"{name}/{path.stem.removesuffix('-weights_manifest')}"
            if path.stem in ("model", "weights_manifest"):
                own = f"{name}/{path.relative_to(modules / 'node_modules' / name).parent}".replace("/.", "/model")
            flags = ["--dim", "batch=1", *source.get("flags", {}).get(own, "").split()]
            yield own, package, lambda _, path=path, flags=flags: case(path, flags)


def onnx(source, options):
    """The ONNX models of packages, which ONNX Runtime judges."""
    python = packages.environment("venv-onnx", speed.ONNX)

    def case(path, flags, ranges, **kinds):
        if options.sizes:
            return case_of_ranges(path, ranges, **kinds) if ranges else case_of_sizes(path, flags, **kinds)
        inputs, wanted, tensors, fixed = answers(path, flags, **kinds)
        return Case(path, flags, inputs, wanted, "", {"ort": path, "openvino": path}, {**tensors, **fixed})

    def case_of_ranges(path, flags, **kinds):
        # Flags of dimensions that the model does not name.
        equal = [flag for flag in flags if not re.search(r"=\d+\.\.\d+$", flag) and flag != "--dim"]
        words = lambda chosen: [word for flag in [*equal, *chosen] for word in ("--dim", flag)]
        runs = []
        for chosen in sizes.within(flags, options.sizes):
            fixed = words(f"{name}={size}" for name, size in chosen.items())
            inputs, wanted, *_ = answers(path, fixed, **kinds)
            runs.append((fixed, inputs, wanted))
        return Case(path, flags, {}, {}, runs=runs)

    def case_of_sizes(path, flags, **kinds):
        # The flags with ? for the size of the batch.
        open_flags = re.sub(r"(?<==)1(?=,)", "?", re.sub(r"--batch 1\b", "", " ".join(flags))).split()
        with_dims = lambda names, size: [*open_flags, *(word for name in names for word in ("--dim", f"{name}={size}"))]
        # Dimensions that the flags equate with the batch need its range.
        own = ["batch"] if any(flag.endswith("=batch") for flag in flags) else []
        whole = with_dims(own, "1..64")
        names = own or sizes.names(options.tool, path, whole)
        feeds, _ = interface(options.tool, path, with_dims(names, 1))
        runs = []
        for size in sizes.choose(feeds, options.sizes):
            inputs, wanted, *_ = answers(path, with_dims(names, size), **kinds)
            runs.append((with_dims(names, size), inputs, wanted))
        return Case(path, whole, {}, {}, runs=runs)

    def answers(path, flags, **kinds):
        feeds, fetches = interface(options.tool, path, flags)
        generator = np.random.default_rng(0)
        inputs = {feed["name"]: graph_models.random_input(generator, feed["shape"], **kinds) for feed in feeds}
        tensors = {feed["node"].removesuffix(":0"): inputs[feed["name"]] for feed in feeds}
        fixed = {name: np.float64(value) for name, value in graph_models.constants(flags).items()}
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            np.savez(folder / "feeds.npz", **tensors, **fixed)
            command = [python, HERE / "onnx_model.py", path, folder / "feeds.npz", folder / "want.npz"]
            subprocess.run(command, check=True, capture_output=True, text=True)
            with np.load(folder / "want.npz") as archive:
                wanted = {fetch["name"]: archive[str(k)] for k, fetch in enumerate(fetches)}
        return inputs, wanted, tensors, fixed

    for package in source["packages"]:
        own = packages.name_of(package)
        place = packages.files(package, (".onnx", ".onnx.data", ".onnx.gz"))
        chosen = source.get("files", {}).get(own, "")
        paths = [path for path in sorted(place.rglob("*.onnx")) if re.search(chosen, str(path.relative_to(place)))]
        for path, name in zip(paths, names_of(paths)):
            name = f"{own}/{name}"
            flags = source.get("flags", {}).get(name, "--batch 1").split()
            flags = source.get("open", {}).get(name, " ".join(flags)).split() if options.sizes else flags
            ranges = [flags for key, flags in source.get("ranges", {}).items() if fnmatch.fnmatch(name, key)]
            kinds = {"indices": source.get("indices", {}).get(name, 256), "kind": source.get("inputs", {}).get(name, "normal")}
            kinds["ranges"] = " ".join(ranges).split()
            yield name, package, lambda _, path=path, flags=flags, kinds=kinds: case(path, flags, **kinds)


def names_of(paths):
    """The names of files without their ends, with those of directories where they are equal otherwise."""
    stems = [path.stem for path in paths]
    alike = {path.stem: [other.parent for other in paths if other.stem == path.stem] for path in paths}
    shared = {stem: os.path.commonpath(folders) for stem, folders in alike.items()}
    return [str(path.relative_to(shared[path.stem]).with_suffix("")) if stems.count(path.stem) > 1 else path.stem for path in paths]


def packaged(source, options):
    """The SavedModels, frozen graphs, and networks of Keras in packages, which TensorFlow judges."""
    python = packages.environment("venv-zoo-tf", options.table["environment"]["tf"])
    script = [python, HERE / "tensorflow_model.py"]
    run_script = lambda *arguments: subprocess.run([*script, *arguments], check=True, capture_output=True, text=True)

    def case(folder, path, flags, **kinds):
        folder.mkdir(parents=True, exist_ok=True)
        if path.suffix in (".h5", ".hdf5"):
            run_script("--save", path, folder / "model")
            path = folder / "model"
        feeds, fetches = interface(options.tool, path, flags)
        generator = np.random.default_rng(0)
        inputs = {feed["name"]: graph_models.random_input(generator, feed["shape"], **kinds) for feed in feeds}
        file, results = folder / "feeds.npz", folder / "results.npz"
        named = "name" if path.is_dir() else "node"
        np.savez(file, **{feed[named]: inputs[feed["name"]] for feed in feeds})
        run_script(path, file, results, *(fetch[named] for fetch in fetches))
        with np.load(results) as archive:
            wanted = {fetch["name"]: archive[str(k)] for k, fetch in enumerate(fetches)}
        return Case(path, flags, inputs, wanted, "", {"openvino": path, "ort": path} if path.is_dir() else {})

    parts = (".pb", ".h5", ".hdf5", ".index", ".data-00000-of-00001")
    for package in source["packages"]:
        place = packages.files(package, parts)
        saved = [path.parent for path in place.rglob("saved_model.pb")]
        frozen = [path for path in place.rglob("*.pb") if path.parent not in saved]
        # Other files of Keras have weights without a network.
        networks = [path for end in ("h5", "hdf5") for path in place.rglob(f"*.{end}") if b"model_config" in path.read_bytes()]
        for path in sorted(saved + frozen + networks):
            name = f"{packages.name_of(package)}/{path.stem}"
            flags = source.get("flags", {}).get(name, "--batch 1").split()
            kinds = {"indices": source.get("indices", {}).get(name, 256), "kind": source.get("inputs", {}).get(name, "normal")}
            yield name, package, lambda folder, path=path, flags=flags, kinds=kinds: case(folder, path, flags, **kinds)


def made(source, options):
    """Networks of frameworks, most with random weights, which the framework judges."""
    family, environment = source["family"], options.table["environment"][source["environment"]]
    python = packages.environment(f"venv-zoo-{source['environment']}", environment)

    def case(name, folder):
        if not (folder / "want.npz").exists():
            folder.mkdir(parents=True, exist_ok=True)
            paths = [packages.sources(package) for package in source.get("sources", [])]
            command = [python, HERE / "frameworks/make.py", family, name, folder, *paths]
            command += ["--sizes", str(options.sizes)] if options.sizes else []
            command += ["--exporter", source["exporter"]] if "exporter" in source else []
            subprocess.run(command, check=True, capture_output=True, text=True)
        with np.load(folder / "in.npz") as inputs, np.load(folder / "want.npz") as wanted:
            inputs, wanted = dict(inputs), dict(wanted)
        path = folder / "model.jax"
        if path.exists():
            return Case(path, [], inputs, wanted, "", {"xla": path})
        path = folder / ("model.onnx" if "exporter" in source else "model")
        if options.sizes:
            flags, runs = sizes.split(path, inputs, wanted)
            return Case(path, flags, {}, {}, runs=runs)
        return Case(path, [], inputs, wanted, "", {"openvino": path, "ort": path})

    # What PyTorch writes with open sizes is not all that it writes.
    with_sizes = source.get("models_open", [] if "exporter" in source else source["models"])
    for name in with_sizes if options.sizes else source["models"]:
        yield f"{source['name']}/{name}", source["package"], lambda folder, name=name: case(name, folder)


SOURCES = {"litert": lite, "tfjs": graph, "onnx": onnx}


def run(options, path, flags, feeds):
    """Results of tfcompile, by name."""
    with tempfile.TemporaryDirectory() as folder:
        file, results = pathlib.Path(folder) / "in.npz", pathlib.Path(folder) / "out.npz"
        np.savez(file, **feeds)
        command = [options.tool, "run", path, *flags, "--feed", f"@{file}", "--out", results]
        subprocess.run(command, check=True, capture_output=True, text=True)
        with np.load(results) as archive:
            return dict(archive)


def compare(options, case, tolerance, scale):
    """The largest difference of a case's results, whether all agree, and what to print."""
    runs = case.runs or [(case.flags, case.feeds, case.wanted)]
    pairs, wide, equal = [], [], 0
    for flags, feeds, wanted in runs:
        # With open sizes, also a program for the size.
        found = [run(options, case.path, way, feeds) for way in ([case.flags, flags] if case.runs else [case.flags])]
        for results in found:
            if missing := sorted(set(wanted) - set(results)):
                raise ValueError(f"results {missing} are missing")
            pairs += [(results[name], want) for name, want in wanted.items()]
        equal += all(found[0][name].tobytes() == found[-1][name].tobytes() for name in wanted)
        wide += [want for want in wanted.values() if want.size > 1]
    if wide and not any(is_varied(want) for want in wide):
        raise ValueError("no result has two different numbers: choose other inputs or weights")
    values = [difference(*pair, scale) for pair in pairs]
    agrees = all(value <= (tolerance if np.issubdtype(want.dtype, np.inexact) else allowed_steps(want.dtype))
                 for value, (_, want) in zip(values, pairs))
    floats = [value for value, (_, want) in zip(values, pairs) if np.issubdtype(want.dtype, np.inexact)]
    steps = [value for value, (_, want) in zip(values, pairs) if not np.issubdtype(want.dtype, np.inexact)]
    texts = [f"{max(floats):.1e}"] if floats else []
    texts += [f"{max(steps):.0f} steps"] if steps and (max(steps) > 0 or not floats) else []
    texts += [f"{len(runs)} sizes, {equal} with the bits of programs for the size"] if case.runs else []
    return ", ".join(texts) or "no results", agrees


def is_varied(array):
    """True if an array has two numbers that clearly differ."""
    finite = array[np.isfinite(array)].astype(np.complex128)
    return finite.size > 1 and np.abs(finite - finite[0]).max() > 1e-5 * np.abs(finite).max()


def reason(error):
    """The line of a failed command's messages that says why."""
    lines = error.stderr.strip().splitlines()
    wrong = [line for line in lines if re.search(r"[Ee]rror|[A-Z]{4}|invalid|unsupported", line)]
    return (wrong or lines or [str(error)])[-1]


def stated(options, source, table, name, default=None):
    """What a table of a source says about a model, or with open batches the table for these."""
    tables = (f"{table}_open", table) if options.sizes else (table,)
    return next((source[table][name] for table in tables if name in source.get(table, {})), default)


def judge(options, source, package, name, prepare):
    """The row of a model."""
    rejected = stated(options, source, "rejected", name)
    # The table says where models come from that frameworks build.
    row = {"model": name, **({"package": package, "judge": source["judge"]} if "packages" in source else {})}
    with tempfile.TemporaryDirectory() as folder:
        # Models with an open batch have other inputs and results.
        kept = packages.CACHE / ("open" if options.sizes else "made") / name
        place = kept if options.keep else pathlib.Path(folder) / "made"
        try:
            case = prepare(place)
            tolerance = stated(options, source, "tolerances", name, source["tolerance"])
            scale = source.get("scales", {}).get(name, 1e-30)
            row["difference"], row["as_stated"] = compare(options, case, tolerance, scale)
            if case.note:
                row["note"] = case.note
        except sizes.NoOpenSize as error:
            print(f"{name}: skipped: {error}")
            return None
        except (subprocess.CalledProcessError, ValueError, RuntimeError) as error:
            text = reason(error) if isinstance(error, subprocess.CalledProcessError) else str(error)
            # Records name files as packages do, wherever they are here.
            row.update(rejected=text.replace(f"{packages.CACHE}/", ""), as_stated=False)
        if rejected:
            row["as_stated"] = rejected in row.get("rejected", "")
            row.update({"rejected": rejected} if row["as_stated"] else {})
        elif options.bench and row["as_stated"] and case.peers:
            speed.prepare(options, case, place / "program")
            if options.bench == "all":
                row["times"] = speed.measure(options, place / "program")
    return row


def measured(options, name):
    """The recorded row of a prepared model with new times, or None."""
    place = packages.CACHE / "made" / name / "program"
    if not (place / "commands.json").exists():
        return None
    rows = {row["model"]: row for row in json.loads(options.record.read_text())}
    if name not in rows:
        return None
    return {"as_stated": True, **rows[name], "times": speed.measure(options, place)}


def text_of(row, rejected):
    """A row as a line, without its name."""
    if "rejected" in row:
        return f"rejected: {row['rejected']}" if row["as_stated"] else f"FAILED: {row['rejected']}"
    if rejected:
        return f"NOT REJECTED: {row['difference']}"
    times = "".join(f"; {speed_ratios.text(times, threads)}" for threads, times in row.get("times", {}).items())
    return row["difference"] + ("" if row["as_stated"] else " TOO LARGE") + times


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "target/release/tfcompile")
    parser.add_argument("--judge", help="run the models of one judge only")
    parser.add_argument("--only", type=re.compile, default=re.compile(""), help="run the models with such names")
    parser.add_argument("--record", type=pathlib.Path, help="update a table in JSON")
    parser.add_argument("--keep", action="store_true", help="keep the models that frameworks write")
    parser.add_argument(
        "--bench", choices=("all", "prepare", "measure"), nargs="?", const="all",
        help="also measure the models, next to what else runs them; or only prepare that; or only measure what is prepared",
    )
    parser.add_argument("--sizes", type=int, default=0, help="run models with open sizes at that many sizes")
    parser.add_argument("--harness", type=pathlib.Path, help="directory of the bench harness, for --bench")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slice-ms", type=int, default=150)
    options = parser.parse_args()
    options.tool = options.tool.absolute()
    options.keep |= options.bench == "prepare"
    options.table = tomllib.loads((ROOT / "tests/zoo/models.toml").read_text())
    rows = []
    for source in options.table["source"]:
        if options.judge not in (None, source["judge"]):
            continue
        if source.get("open_only") and not options.sizes:
            continue
        models = SOURCES.get(source["judge"], packaged if "packages" in source else made)
        if options.sizes and (models in (lite, graph, packaged) or source["judge"] == "jax"):
            continue
        for name, package, prepare in models(source, options):
            if not options.only.search(name):
                continue
            start = time.monotonic()
            if name in source.get("skipped", {}):
                print(f"{name}: skipped: {source['skipped'][name]}")
                continue
            row = measured(options, name) if options.bench == "measure" else judge(options, source, package, name, prepare)
            if row is None:
                continue
            rows.append(row)
            text = text_of(rows[-1], stated(options, source, "rejected", name))
            print(f"{name}: {text} ({time.monotonic() - start:.0f} s)", flush=True)
            if options.record:
                update(options.record, rows[-1])
    count = sum(row["as_stated"] for row in rows)
    print(f"{count} of {len(rows)} models do what the table says")
    return 0 if rows and count == len(rows) else 1


def update(path, row):
    """Puts a row into a record. Recorded times with other numbers of threads stay."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = {old["model"]: old for old in json.loads(path.read_text())} if path.exists() else {}
    times = {**rows.get(row["model"], {}).get("times", {}), **row.get("times", {})}
    row = {**row, **({"times": times} if times and "rejected" not in row else {})}
    rows[row["model"]] = row
    # Most rows are as stated, which needs no words.
    rows = {name: {key: value for key, value in row.items() if (key, value) != ("as_stated", True)} for name, row in rows.items()}
    lines = [json.dumps(rows[name], separators=(", ", ": ")) for name in sorted(rows)]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    sys.exit(main())
