#!/usr/bin/env python3
"""Prints the licenses of the crates of a program, which accompany its binary.

  scripts/dist/crate_licenses.py PACKAGE [--manifest Cargo.toml]

Covers what is linked into the binary on this machine: not macros, build scripts, and tests. Equal
texts are printed once, below the names of their crates. Exits with status 1 if a crate contains no
license text.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import sys

NAMES = ("LICEN", "COPYING", "NOTICE", "UNLICENSE")


def linked(metadata, root):
    """The packages linked into a program, by their identifiers."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    seen = {}
    waiting = [identifier for identifier, package in packages.items() if package["name"] == root]
    assert len(waiting) == 1, f"no package '{root}'"
    while waiting:
        identifier = waiting.pop()
        package = packages[identifier]
        is_macro = any("proc-macro" in target["kind"] for target in package["targets"])
        if identifier in seen or is_macro:
            continue
        seen[identifier] = package
        for dependency in nodes[identifier]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return seen.values()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("package")
    parser.add_argument("--manifest", default=pathlib.Path(__file__).resolve().parents[2] / "Cargo.toml")
    arguments = parser.parse_args()
    version = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    host = next(line.split()[1] for line in version.splitlines() if line.startswith("host: "))
    command = ["cargo", "metadata", "--locked", "--format-version=1", f"--filter-platform={host}"]
    command += ["--manifest-path", str(arguments.manifest)]
    metadata = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    texts = collections.defaultdict(list)
    missing = []
    # Crates of this workspace have its license.
    others = [package for package in linked(metadata, arguments.package) if package["source"]]
    for package in sorted(others, key=lambda package: (package["name"], package["version"])):
        name = f"{package['name']} {package['version']} ({package['license']})"
        folder = pathlib.Path(package["manifest_path"]).parent
        files = sorted(path for path in folder.iterdir() if path.is_file() and path.name.upper().startswith(NAMES))
        if not files:
            missing.append(name)
        for path in files:
            texts[path.read_text(encoding="utf-8", errors="replace").strip()].append(name)
    if missing:
        sys.exit("crate_licenses: no license text in: " + ", ".join(missing))
    for text, names in texts.items():
        print("==== " + "\n     ".join(names) + " ====\n")
        print(text + "\n")


if __name__ == "__main__":
    main()
