#!/usr/bin/env python3
"""Packs the public crates and the crates that they are built on, as `cargo publish` would upload them.

    scripts/dist/crates.py OUT

Public are tfcompile, tfcompile-build, and tfcompile-runtime. The internal crates have short names in
the workspace, some of which other crates have in the registry, so a copy of the tree gives their
packages the prefix `tfcompile-`; sources keep the short names. Writes OUT/*.crate.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = {"tfcompile", "tfcompile-build", "tfcompile-runtime"}


def dependencies(tree, internal):
    """The names of the public crates and of the workspace's crates that they are built on."""
    found, left = set(), sorted(PUBLIC & set(internal))
    while left:
        name = left.pop()
        if name in found:
            continue
        found.add(name)
        manifest = tomllib.loads((tree / "crates" / name / "Cargo.toml").read_text())
        for section in ("dependencies", "build-dependencies"):
            left += [other for other in manifest.get(section, {}) if other in internal]
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = Path(sys.argv[1]).resolve()
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())
    version = workspace["workspace"]["package"]["version"]
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tfcompile"
        parts = ["crates", "runtime", "Cargo.toml", "Cargo.lock"]
        files = subprocess.run(["git", "ls-files", "-z", *parts], cwd=ROOT, check=True, capture_output=True, text=True)
        for name in filter(None, files.stdout.split("\0")):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)

        # A package holds only what is in its directory.
        shutil.copytree(tree / "runtime/include", tree / "crates/tfcompile-runtime/include")
        shutil.copytree(tree / "runtime", tree / "crates/device/runtime")
        shutil.move(tree / "runtime", tree / "crates/aot/runtime")
        for source in [*(tree / "crates/aot/src").rglob("*.rs"), tree / "crates/device/build.rs"]:
            source.write_text(re.sub(r'"(\.\./)?\.\./\.\./runtime/', r'"\1runtime/', source.read_text()))

        text = (tree / "Cargo.toml").read_text().replace(', "fuzz", "python"', "")
        text = re.sub(r"^publish = false$", "publish = true", text, flags=re.M)
        internal = {}

        def dependency(match):
            name, path = match.groups()
            package = name if name in PUBLIC else f"tfcompile-{name}"
            internal[name] = package
            return f'{name} = {{ path = "{path}", version = "{version}", package = "{package}" }}'

        text = re.sub(r'^([a-z-]+) = \{ path = "(crates/[a-z-]+)" \}$', dependency, text, flags=re.M)
        (tree / "Cargo.toml").write_text(text)
        needed = dependencies(tree, internal)
        packed = []
        for name, package in internal.items():
            if name not in needed:
                continue
            manifest = tree / "crates" / name / "Cargo.toml"
            text = manifest.read_text().replace(f'name = "{name}"', f'name = "{package}"', 1)
            text = text.replace("publish = false", "publish = true")
            if "\ndescription" not in text:
                what = "The compiler tfcompile as a library" if name in PUBLIC else "A part of tfcompile, without a stable interface"
                text = text.replace("[package]\n", f'[package]\ndescription = "{what}"\n', 1)
            # A package holds its tests, but not what only they need.
            text = re.sub(r"\n\[(dev-dependencies|\[test\]|\[bench\])\]\n(?:[^\[\n].*\n|\n)*", "\n", text)
            manifest.write_text(text)
            packed += ["--package", package]
        for unused in set(p.name for p in (tree / "crates").iterdir()) - needed - {"tfcompile-build"}:
            shutil.rmtree(tree / "crates" / unused)
        packed += ["--package", "tfcompile-build"]
        manifest = tree / "crates/tfcompile-build/Cargo.toml"
        manifest.write_text(manifest.read_text().replace("publish = false", "publish = true"))
        root = (tree / "Cargo.toml").read_text()
        (tree / "Cargo.toml").write_text(root.replace('"crates/*", "fuzz"', '"crates/*"'))

        command = ["cargo", "package", "--no-verify", "--allow-dirty", "--quiet", *packed]
        subprocess.run(command, cwd=tree, check=True)
        out.mkdir(parents=True, exist_ok=True)
        crates = sorted((tree / "target/package").glob("*.crate"))
        for crate in crates:
            shutil.copy2(crate, out)
        print(f"{out}: {len(crates)} crates, {sum(c.stat().st_size for c in crates) // 1000} kB")


if __name__ == "__main__":
    main()
