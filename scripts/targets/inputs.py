"""Recorded cases of each kind of input, with the answers of the programs that they come from."""

import dataclasses
import json
import pathlib
import re
import zipfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
# Types that every C compiler has.
TYPES = {"bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float32", "float64"}
# Largest size of all arrays of a case, so that it fits in the memory of a microcontroller.
MAX_BYTES = 64 << 10


@dataclasses.dataclass
class Case:
    """A model with arguments and expected results."""

    name: str
    files: dict  # Contents by name. The first one is the model, unless `model` is set.
    feeds: dict | list  # By name, or in order.
    fetches: dict | list  # The same. A list has alternatives for each result.
    flags: list = dataclasses.field(default_factory=list)
    model: pathlib.Path | None = None
    variables: list = dataclasses.field(default_factory=list)  # Values before and after the run.
    atol: float = 0
    rtol: float = 0
    step: int = 0  # Largest difference of integers.


def arrays(stored, prefix):
    """The arrays with names of a prefix and a number, in order."""
    found = [name for name in stored.files if re.fullmatch(re.escape(prefix) + r"\d+", name)]
    return [stored[name] for name in sorted(found, key=lambda name: int(name[len(prefix) :]))]


def is_suitable(groups):
    """Whether arrays have types that C has, and are small."""
    everything = [array for group in groups for array in group]
    return all(str(a.dtype) in TYPES for a in everything) and sum(a.nbytes for a in everything) <= MAX_BYTES


def recorded(path):
    """A case of tests/conformance, or nothing if the program of a test cannot run it."""
    stored = np.load(path)
    meta = json.loads(bytes(stored["meta.json"]))
    if meta.get("dynamic_output") or meta.get("compare", "values") != "values" or not meta["xla_ok"]:
        return None
    types = {described["dtype"] for key in ("feeds", "fetches", "variables") for described in meta.get(key, ())}
    feeds, before = arrays(stored, "feed/"), arrays(stored, "var_in/")
    answers = [answers for answers in (arrays(stored, "fetch_tf/"), arrays(stored, "fetch_xla/")) if answers]
    after = {int(name.split("/")[1]): stored[name] for name in stored.files if name.startswith("var_out/")}
    if not types <= TYPES or not (answers or after) or not is_suitable([feeds, before, *answers]):
        return None
    return Case(
        name=f"{path.parent.name}/{path.stem}",
        files={name: bytes(stored[name]) for name in ("graph.pb", "config.pbtxt")},
        flags=["--config", "config.pbtxt"],
        feeds=feeds,
        fetches=list(zip(*answers, strict=True)),
        variables=[(value, after.get(k)) for k, value in enumerate(before)],
        atol=meta["atol"],
        rtol=meta["rtol"],
    )


def graphs():
    for path in sorted((TESTS / "conformance").rglob("*.npz")):
        if not path.parent.name.startswith(("training_", "gradients_")):
            yield lambda path=path: recorded(path)


def training_steps():
    for path in sorted((TESTS / "conformance").glob("training_*/*.npz")):
        yield lambda path=path: (case := recorded(path)) and (case if case.variables else None)


# Model, array file, signature, and the flags that make all sizes fixed. The signature that writes
# variables is missing, because the program would need their initial values.
SAVED_MODELS = [
    ("builder", "builder", "predict", ["--signature=predict", "--shape=x=3", "--tag-set=serve"]),
    ("builder/saved_model.pbtxt", "builder", "debug", ["--shape=x=3", "--tag-set=debug,serve"]),
    ("flow", "flow", "branches", ["--signature=branches"]),
    ("flow", "flow", "loop", ["--signature=loop"]),
    ("keras2", "keras2", "serving_default", ["--batch=3"]),
    ("keras3", "keras3", "serving_default", ["--batch=2"]),
    ("meta/model.meta", "builder", "predict", ["--shape=x=3", "--fetch=y"]),
    ("module", "module", "serving_default", ["--batch=2"]),
    ("tables", "tables", "find", ["--signature=find", "--shape=keys=2,4"]),
]


def saved_models():
    for model, file, signature, flags in SAVED_MODELS:

        def load(model=model, file=file, signature=signature, flags=flags):
            stored = np.load(TESTS / "saved_models" / f"{file}.npz")

            def named(side):
                prefix = f"{signature}/{side}/"
                return {name.removeprefix(prefix): stored[name] for name in stored.files if name.startswith(prefix)}

            return Case(
                name=f"{model}:{signature}",
                model=TESTS / "saved_models" / model,
                files={},
                flags=flags,
                feeds=named("in"),
                fetches=named("out"),
                atol=1e-5,
                rtol=1e-5,
            )

        yield load


def programs(extension):
    """Programs that JAX exported."""
    for path in sorted((TESTS / "stablehlo").glob(f"*.{extension}")):
        if not path.with_suffix(".npz").exists():
            continue

        def load(path=path):
            stored = np.load(path.with_suffix(".npz"))
            feeds, fetches = arrays(stored, "in"), arrays(stored, "out")
            if not fetches or not is_suitable([feeds, fetches]):
                return None
            tolerance = 1e-5 * max([1.0, *(float(np.abs(a).max()) for a in fetches if a.dtype.kind == "f" and a.size)])
            files = {path.name: path.read_bytes()}
            return Case(path.name, files, feeds, [(a,) for a in fetches], atol=tolerance, rtol=1e-5)

        yield load


def archived(folder, model, is_excluded):
    """Cases of tests/tflite and tests/onnx: many in an archive."""
    known = (TESTS / folder / "known_failures.toml").read_text()
    known = set(re.findall(r'^"(.*?)" =', known, re.M))
    for archive in sorted((TESTS / folder).glob("*.npz")):
        with zipfile.ZipFile(archive) as file:
            members = [name.removesuffix("/meta.json.npy") for name in file.namelist() if name.endswith("/meta.json.npy")]
        for name in sorted(members):

            def load(archive=archive, name=name):
                stored = np.load(archive)
                meta = json.loads(bytes(stored[f"{name}/meta.json"]))
                feeds, fetches = arrays(stored, f"{name}/feed/"), arrays(stored, f"{name}/fetch/")
                types = {described["dtype"] for described in meta["feeds"] + meta["fetches"]}
                if not types <= TYPES or not fetches or not is_suitable([feeds, fetches]):
                    return None
                if is_excluded(meta, feeds) or {name, f"{archive.stem}/{name}"} & known:
                    return None
                files = {model: bytes(stored[f"{name}/{model}"])}
                tolerances = {key: meta.get(key, 0) for key in ("atol", "rtol", "step")}
                return Case(f"{archive.stem}/{name}", files, feeds, [(a,) for a in fetches], **tolerances)

            yield load


def lite_models():
    # A case of several runs needs variables of its own; one of open sizes, a size for each run.
    return archived(
        "tflite", "model.tflite", lambda meta, _: meta.get("dynamic") or meta.get("runs", 1) != 1 or meta.get("signature")
    )


def onnx_models():
    # The tests of the package feed axes and shapes, which a compiler has to know: integers of rank
    # 0 and 1.
    return archived(
        "onnx", "model.onnx", lambda meta, feeds: meta.get("constants") or any(a.dtype == np.int64 and a.ndim < 2 for a in feeds)
    )


KINDS = {
    "GraphDef": graphs,
    "SavedModel": saved_models,
    "StableHLO": lambda: programs("mlir"),
    "jax.export": lambda: programs("jax"),
    "training step": training_steps,
    ".tflite": lite_models,
    ".onnx": onnx_models,
}


def select(kind, count):
    """Every n-th suitable case of a kind, at least `count` if there are as many."""
    loaders = list(KINDS[kind]())
    chosen = []
    for start in range(max(len(loaders) // (2 * count), 1)):
        for loader in loaders[start :: max(len(loaders) // (2 * count), 1)]:
            if len(chosen) == count:
                return chosen
            if case := loader():
                chosen.append(case)
    return chosen
