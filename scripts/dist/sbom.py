#!/usr/bin/env python3
"""Prints the software bill of materials of the released tool, in CycloneDX 1.6 JSON.

    scripts/dist/sbom.py [--package cli] [--features codegen/static-llvm] [--static-llvm]

Lists the crates that are linked into the package, with their licenses and the checksums of
Cargo.lock, and, with --static-llvm, LLVM and the C libraries that are linked with it. Build and test
dependencies are not part of the product. The output depends only on the tree and the installed LLVM.
"""

import argparse
import json
import subprocess
import tomllib
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def linked(metadata, root):
    """Packages reachable from `root` by ordinary dependencies, as ids with their dependencies."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    procedural = {p["id"] for p in metadata["packages"] if any("proc-macro" in t["kind"] for t in p["targets"])}
    found, left = {}, [root]
    while left:
        package = left.pop()
        if package in found:
            continue
        found[package] = sorted(
            dep["pkg"]
            for dep in nodes[package]["deps"]
            if any(kind["kind"] is None for kind in dep["dep_kinds"]) and dep["pkg"] not in procedural
        )
        left.extend(found[package])
    return found


def version_of(package):
    """Version of an installed Debian package, or of no package elsewhere."""
    try:
        return output("dpkg-query", "--show", "--showformat=${Version}", package)
    except (OSError, subprocess.CalledProcessError):
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", default="cli")
    parser.add_argument("--features", default="")
    parser.add_argument("--static-llvm", action="store_true")
    arguments = parser.parse_args()

    host = next(line[6:] for line in output("rustc", "-vV").splitlines() if line.startswith("host: "))
    command = ["cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={host}"]
    if arguments.features:
        command.append(f"--features={arguments.features}")
    metadata = json.loads(output(*command))
    packages = {package["id"]: package for package in metadata["packages"]}
    root = next(p["id"] for p in metadata["packages"] if p["name"] == arguments.package and p["source"] is None)
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    checksums = {(p["name"], p["version"]): p.get("checksum") for p in lock["package"]}

    def reference(package):
        return f"pkg:cargo/{package['name']}@{package['version']}"

    def component(package):
        is_ours = package["source"] is None
        entry = {
            "type": "library",
            "bom-ref": reference(package),
            "name": package["name"],
            "version": package["version"],
            "licenses": [{"expression": package["license"].replace("/", " OR ")}],
            "purl": reference(package),
        }
        checksum = checksums.get((package["name"], package["version"]))
        if checksum:
            entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        if is_ours:
            del entry["purl"]
        return entry

    graph = linked(metadata, root)
    components = [component(packages[id]) for id in graph if id != root]
    dependencies = [
        {"ref": reference(packages[id]), "dependsOn": [reference(packages[to]) for to in graph[id]]} for id in graph
    ]
    if arguments.static_llvm:
        native = [
            ("llvm", output("llvm-config-22", "--version"), "Apache-2.0 WITH LLVM-exception"),
            ("zlib", version_of("zlib1g-dev"), "Zlib"),
            ("zstd", version_of("libzstd-dev"), "BSD-3-Clause"),
        ]
        for name, version, license in native:
            entry = {"type": "library", "bom-ref": f"native/{name}", "name": name, "licenses": [{"expression": license}]}
            components.append(entry | ({"version": version} if version else {}))
        codegen = next(entry for entry in dependencies if entry["ref"].startswith("pkg:cargo/codegen@"))
        codegen["dependsOn"] += [f"native/{name}" for name, _, _ in native]

    tool = component(packages[root]) | {"type": "application", "name": "tfcompile"}
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": tool, "lifecycles": [{"phase": "build"}]},
        "components": sorted(components, key=lambda entry: entry["bom-ref"]),
        "dependencies": sorted(dependencies, key=lambda entry: entry["ref"]),
    }
    # The same contents have the same serial number.
    contents = json.dumps(bom, sort_keys=True)
    bom["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, contents)}"
    print(json.dumps(bom, indent=1))


if __name__ == "__main__":
    main()
