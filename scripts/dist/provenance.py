#!/usr/bin/env python3
"""Prints the provenance of released files: an in-toto statement (v1) with SLSA's predicate (v1).

    scripts/dist/provenance.py COMMAND FILE...

States the hash of each file, the command that wrote them, the commit and the lock file that they
were built from, and the compilers. The statement is not signed; sign it with the key of the
publisher, for example with
`cosign sign-blob`.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def digest(path):
    with open(path, "rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    command, *files = sys.argv[1], *map(Path, sys.argv[2:])
    is_clean = output("git", "status", "--porcelain") == ""
    tools = {"rustc": output("rustc", "--version"), "llvm": output("llvm-config-22", "--version")}
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": file.name, "digest": digest(file)} for file in files],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:tfcompile:make:1",
                "externalParameters": {"command": command, "treeIsClean": is_clean},
                "internalParameters": tools,
                "resolvedDependencies": [
                    {"name": "source", "digest": {"gitCommit": output("git", "rev-parse", "HEAD")}},
                    {"name": "Cargo.lock", "digest": digest(ROOT / "Cargo.lock")},
                ],
            },
            "runDetails": {"builder": {"id": "urn:tfcompile:local"}},
        },
    }
    print(json.dumps(statement, indent=1))


if __name__ == "__main__":
    main()
