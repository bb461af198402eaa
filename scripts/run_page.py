#!/usr/bin/env python3
"""Runs the commands of a page: its fenced blocks, in their order, in a directory of its own.

    run_page.py PAGE DIRECTORY

A block `LANGUAGE NAME` is written to the file NAME, a block `sh` is run by bash, which stops at the first command that
fails; other blocks are for reading. Exits with 1 when a command fails.
"""

import pathlib
import re
import subprocess
import sys


def blocks(page):
    """The fenced blocks of a page: the words behind the fence, and what stands in it."""
    fenced = re.compile(r"^```(\w+)(?: +(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return fenced.findall(page)


def main(page, directory):
    directory = pathlib.Path(directory)
    commands = 0
    for language, name, text in blocks(pathlib.Path(page).read_text()):
        if name:
            (directory / name).write_text(text)
        elif language == "sh":
            commands += 1
            script = "set -eux -o pipefail\n" + text
            if subprocess.run(["bash", "-c", script], cwd=directory, check=False).returncode != 0:
                sys.exit(f"{page}: a command fails:\n{text}")
    if commands == 0:
        sys.exit(f"{page}: it has no commands")
    print(f"{page}: {commands} blocks of commands ran")


if __name__ == "__main__":
    main(*sys.argv[1:])
