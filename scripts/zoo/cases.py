"""What a comparison of a model needs."""

import dataclasses
import json
import pathlib
import subprocess

import numpy as np


@dataclasses.dataclass
class Case:
    """A model for tfcompile, its feeds and expected results by name, and who else runs it."""

    path: pathlib.Path
    flags: list
    feeds: dict
    wanted: dict
    note: str = ""
    # Files of peers, and their inputs by the peers' names if they have others.
    peers: dict = dataclasses.field(default_factory=dict)
    inputs: dict | None = None
    # With sizes that change: the flags for each size, and feeds and expected results of each run.
    runs: list = dataclasses.field(default_factory=list)


def interface(tool, path, flags):
    """Feeds and fetches of a model: name, tensor, and shape of each."""
    command = [tool, "check", "--json", *flags, path]
    described = subprocess.run(command, check=True, capture_output=True, text=True)
    entries = json.loads(described.stdout)["interface"]
    return [[entry for entry in entries if entry["kind"] == kind] for kind in ("feed", "fetch")]


def difference(actual, wanted, scale=1e-30):
    """The largest difference of two arrays, relative to the largest element; in steps for integers.

    Infinities do not differ from equal ones, nor does "not a number" from itself. If all elements are smaller
    than `scale`, the difference is relative to that.
    """
    if actual.shape != wanted.shape:
        raise ValueError(f"shape {actual.shape}, not {wanted.shape}")
    if wanted.size == 0:
        return 0.0
    wide = np.complex128 if np.iscomplexobj(wanted) else np.float64
    actual, expected = actual.astype(wide), wanted.astype(wide)
    with np.errstate(invalid="ignore"):
        is_same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        distance = np.where(is_same, 0.0, np.abs(actual - expected)).max()
    if not np.issubdtype(wanted.dtype, np.inexact):
        return float(distance)
    finite = np.abs(expected[np.isfinite(expected)])
    return float(distance / max(finite.max(initial=0.0), scale))


def allowed_steps(dtype):
    """The steps by which integers may differ: narrow ones are quantized numbers, wide ones are indices."""
    return 1 if dtype.itemsize <= 2 and dtype != np.bool_ else 0
