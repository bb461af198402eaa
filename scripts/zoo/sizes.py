"""Runs of models whose batch is open, at random sizes."""

import json
import re
import subprocess

import numpy as np


class NoOpenSize(Exception):
    """A model whose sizes are fixed."""


def names(tool, path, flags):
    """The names of a model's open dimensions."""
    described = subprocess.run([tool, "check", "--json", *flags, path], check=True, capture_output=True, text=True)
    found = [dimension["name"] for dimension in json.loads(described.stdout).get("dimensions", [])]
    if not found:
        raise NoOpenSize("no dimension is open")
    return found


def choose(feeds, count):
    """Different random sizes, smaller ones for large feeds."""
    elements = sum(int(np.prod([int(size) for size in re.findall(r"\d+", feed["shape"].split("[")[1])])) for feed in feeds)
    largest = int(np.clip(2_000_000 // max(elements, 1), 4, 64))
    return sorted(np.random.default_rng(0).permutation(np.arange(1, largest + 1))[:count].tolist())


def within(flags, count):
    """Different random sizes for flags with ranges, such as `--dim tokens=1..48`: sizes by name."""
    ranges = {name: (int(low), int(high)) for name, low, high in re.findall(r"(\S+)=(\d+)\.\.(\d+)", " ".join(flags))}
    generator, found = np.random.default_rng(0), {}
    for _ in range(100 * count):
        sizes = {name: int(generator.integers(low, high + 1)) for name, (low, high) in ranges.items()}
        found.setdefault(tuple(sizes.values()), sizes)
    return list(found.values())[:count]


def split(path, inputs, wanted):
    """Flags of the range, and the runs that frameworks/make.py wrote: flags, feeds, and expected results of each."""
    labels = list(dict.fromkeys(name.rpartition("/")[0] for name in inputs))
    of = lambda arrays, label: {name.removeprefix(f"{label}/"): value for name, value in arrays.items()
                                if name.startswith(f"{label}/")}
    whole = (path.parent / "flags").read_text().split()
    # Names of dimensions of inputs, without ranges.
    equal = [flag for flag in whole if re.fullmatch(r"\w+\.\d+=\w+", flag)]
    words = lambda label: [word for flag in [*equal, *label.split(",")] for word in ("--dim", flag)]
    return whole, [(words(label), of(inputs, label), of(wanted, label)) for label in labels]
