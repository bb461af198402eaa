#!/usr/bin/env python3
"""Writes the smallest inputs of a folder to an archive, and all that were once findings.
  fuzz/readers/keep.py FOLDER ARCHIVE [FINDING...]
The archive takes at most about MOST_BYTES beside the findings."""

import pathlib
import sys
import zipfile

MOST_BYTES = 110_000
# What an archive needs for a member with the name of a hash, besides its content.
MEMBER_BYTES = 156

folder, archive, *findings = map(pathlib.Path, sys.argv[1:])
archive.parent.mkdir(parents=True, exist_ok=True)
inputs = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
inputs |= {f"finding-{path.name.rpartition('-')[2]}": path.read_bytes() for path in findings if path.is_file()}
if archive.exists():
    with zipfile.ZipFile(archive) as old:
        inputs |= {name: old.read(name) for name in old.namelist() if name.startswith("finding-")}
order = sorted(inputs, key=lambda name: (not name.startswith("finding-"), len(inputs[name]), name))
kept = 0
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
    for name in order:
        if out.fp.tell() + MEMBER_BYTES // 2 * kept > MOST_BYTES and not name.startswith("finding-"):
            break
        # A fixed time makes the archive the same on each run.
        member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        out.writestr(member, inputs[name], zipfile.ZIP_DEFLATED, 9)
        kept += 1
print(f"{archive}: {kept} of {len(inputs)} inputs, {archive.stat().st_size} bytes")
