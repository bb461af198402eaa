"""Compiles a model into a repository, from which app.py serves it.

    python repository.py REPOSITORY NAME/VERSION=MODEL... [--batch 64] [--sizes 16,32]

MODEL is anything that `tfcompile build` reads whose rows are independent, such as a SavedModel. The result, with the weights, is
REPOSITORY/NAME/VERSION/model.pickle. It appears when it is complete, so a running server may follow the repository. `--batch` is the
largest number of rows that are computed together; `--sizes` adds code for some numbers of rows.
"""

import argparse
import os
import pickle
import re
import tempfile
from pathlib import Path

import tfcompile
from engines import Compiled


def add(repository: Path, name: str, version: str, model: Path, batch: int, sizes: list[int]) -> Path:
    """Compiles a model, and returns the path of the result."""
    artifact = tfcompile.compile(model, batch=(1, batch), sizes={"batch": sizes} if sizes else {})
    place = repository / name / version
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=repository, prefix=".new-") as directory:
        written = Path(directory) / Compiled.FILE
        written.write_bytes(pickle.dumps(artifact))
        # Loads it as the server will, which says what the server cannot use.
        Compiled(written)
        os.replace(written, place / Compiled.FILE)
    return place / Compiled.FILE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("models", nargs="+", metavar="NAME/VERSION=MODEL")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--sizes", default="")
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",") if size]
    for model in arguments.models:
        parts = re.fullmatch(r"([A-Za-z0-9_.-]+)/(\d+)=(.+)", model)
        if not parts or parts[1].startswith("."):
            parser.error(f"expected NAME/VERSION=MODEL with a whole number as version, got '{model}'")
        name, version, path = parts.groups()
        try:
            written = add(arguments.repository, name, version, Path(path), arguments.batch, sizes)
        except (ValueError, NotImplementedError, OSError) as error:
            raise SystemExit(f"{path}: {error}") from None
        print(f"{written}: {written.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
