#!/usr/bin/env python3
"""Writes docs/zoo.md and docs/zoo-pytorch.md from the record of runs of the zoo, docs/zoo.json. The record must not
have models that tests/zoo/models.toml does not name.

    page.py [--check]    with --check, only compares
"""

import json
import math
import pathlib
import sys
import tomllib

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import speed_ratios as ratios

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = 7
# Time in ns of a model in which a call from Python hardly counts.
LARGE = 200_000

HEAD = """# Models of others

`make test-zoo` compiles models that others made and compares the results with those of a judge: the
framework that made the model, or the runtime for which it was made. `tests/zoo/models.toml` says
where the models come from and how much they may differ. Models in packages have trained weights;
those that frameworks build have random ones.

The heading of each table names the judge. A difference is the largest one of all results, relative
to the largest element of its result. Whole numbers and booleans must be equal, bytes may differ by
one step. Inputs are random with a fixed seed.

A speed is the time of the fastest other program on the same file divided by ours, on one thread:
above 1 we are faster. ONNX models also run in ONNX Runtime (O) and OpenVINO (V; it computes in
float32, also with int8 weights), `.tflite` models in LiteRT (L) and OpenVINO, SavedModels in
OpenVINO and, through tf2onnx, in ONNX Runtime, and artifacts of `jax.export` in XLA (X). Programs
take turns, in an order that rotates, and a time is the median round; `make test-zoo BENCH=1`
measures. No speed means no other program, or no measurement yet. Python calls the other programs:
that takes about 5 us, and 20 us for XLA, which counts only in models as small as that.

Keras converts layers models of TensorFlow.js (in `nsfwjs` and `@upscalerjs`) to
SavedModels; TensorFlow.js judges with the original. It also saves the networks of Keras files (in
`spliceai` and `nakdimon`).

[Models that PyTorch writes](zoo-pytorch.md) have a page of their own. The record is
[`zoo.json`](zoo.json); `scripts/zoo/page.py` writes both pages.

"""

PYTORCH = """# Models that PyTorch writes

`make test-zoo JUDGE=torch` compiles ONNX models that PyTorch writes from modules with random weights,
and compares the results with those of the modules. PyTorch writes ONNX in two ways, and both are here:
`torch.onnx.export(.., dynamo=False)` traces a module with TorchScript, and `dynamo=True` takes
`torch.export`. What one of them cannot write, or writes with other numbers than the module's (tfcompile
and ONNX Runtime then agree), is not here. [Models of others](zoo.md) says what the columns mean.

"""


def cells(row):
    """The cells of a model."""
    name = row["model"].split("/", 1)[-1] if not row["model"].startswith("@") else row["model"].split("/", 2)[-1]
    if "rejected" in row:
        return [f"`{name}`", "rejected", ""]
    found = ratios.best(row.get("times", {}).get("1", {}))
    return [f"`{name}`", row["difference"], f"{found[1]:.2f} {ratios.LETTERS[found[0]]}" if found else ""]


def summary(rows):
    """What the record shows in numbers."""
    right = sum("rejected" not in row and row.get("as_stated", True) for row in rows)
    yield f"{len(rows)} models: {right} agree with their judge, {len(rows) - right} do not or are rejected."
    for threads in ("1", "2"):
        times = [row.get("times", {}).get(threads, {}) for row in rows]
        found = [(best[1], own["ours"] * best[1]) for own in times if (best := ratios.best(own))]
        if found:
            mean = lambda values: math.exp(sum(map(math.log, values)) / max(len(values), 1))
            slow = sum(ratio < 0.97 for ratio, _ in found)
            large = [ratio for ratio, other in found if other >= LARGE]
            yield (f"Speed on {threads} thread{'s' * (threads != '1')}: {len(found)} models, geometric mean "
                   f"{mean([ratio for ratio, _ in found]):.2f}, {slow} below 0.97;")
            yield f"{mean(large):.2f} for the {len(large)} models that take the fastest other program at least 200 us."


def page(head, rows):
    """A page."""
    text = head + "\n".join(summary(rows)) + "\n"
    sections = {}
    for row in rows:
        # Packages with models, by their judge, and the other sources.
        held = "@" in row["package"] or "==" in row["package"]
        name = "Models in packages" if held else row["package"]
        label = f"{row['package'].removeprefix('npm:')} " if held else ""
        first, *rest = cells(row)
        sections.setdefault((name, ratios.JUDGES[row["judge"]]), []).append([label + first, *rest])
    for name, judge in sorted(sections):
        text += f"\n## {name}: {judge}\n\n" + table(sections[name, judge])
    rejected = [row for row in rows if "rejected" in row]
    if rejected:
        text += "\n## Rejected\n\n" + "".join(f"- `{row['model']}`: {row['rejected']}\n" for row in rejected)
    return text


def table(entries):
    """A table with several models in a line."""
    lines = ["|" + " model | difference | speed |" * COLUMNS, "|" + "---|---:|---:|" * COLUMNS]
    for start in range(0, len(entries), COLUMNS):
        part = entries[start : start + COLUMNS]
        part += [["", "", ""]] * (COLUMNS - len(part))
        lines.append("| " + " | ".join(cell for entry in part for cell in entry) + " |")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def sources():
    """What tests/zoo/models.toml says about packages and frameworks."""
    found = tomllib.loads((ROOT / "tests/zoo/models.toml").read_text())["source"]
    return [source for source in found if not source.get("open_only")]


def named():
    """Packages that the table names."""
    return {package.removeprefix("npm:") for source in sources() for package in source.get("packages", [])}


def built():
    """The package and the judge of models that frameworks build, by the name of the model."""
    parts = [(source, name) for source in sources() for name in source.get("models", [])]
    return {f"{source['name']}/{name}": {"package": source["package"], "judge": source["judge"]} for source, name in parts}


def main():
    recorded = json.loads((ROOT / "docs/zoo.json").read_text())
    models, packages = built(), named()
    held = {row["package"].removeprefix("npm:") for row in recorded if "package" in row}
    found = {row["model"] for row in recorded if "package" not in row}
    if gone := sorted(found - set(models)) + sorted(held - packages):
        sys.exit(f"docs/zoo.json has {', '.join(gone)}, which tests/zoo/models.toml does not name")
    if left := sorted(set(models) - found) + sorted(packages - held):
        sys.exit(f"docs/zoo.json has no {', '.join(left)}: run scripts/zoo/zoo.sh --record docs/zoo.json")
    rows = [{**models.get(row["model"], {}), **row} for row in recorded]
    pages = {
        "zoo": page(HEAD, [row for row in rows if row["judge"] != "torch"]),
        "zoo-pytorch": page(PYTORCH, [row for row in rows if row["judge"] == "torch"]),
    }
    for name, text in pages.items():
        path = ROOT / f"docs/{name}.md"
        if sys.argv[1:] != ["--check"]:
            path.write_text(text)
        elif path.read_text() != text:
            sys.exit(f"docs/{name}.md differs from docs/zoo.json: run scripts/zoo/page.py")


if __name__ == "__main__":
    main()
