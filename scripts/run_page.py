#!/usr/bin/env python3
"""Runs the commands of a page: its fenced blocks, in their order, in a directory of its own.

    run_page.py PAGE DIRECTORY

A block `LANGUAGE NAME` is written to the file NAME, a block `sh` is run by bash, which stops at the first command that
fails. Of a block `console` the lines after `$ ` are run, and what they print, errors too, must be what stands below them,
where a line `...` stands for any lines; they may fail. Other blocks are for reading. A line `<!-- files of PAGE -->` writes the files of another
page of the same folder. Exits with 1 when a command fails or prints something else.
"""

import pathlib
import re
import subprocess
import sys


def blocks(page):
    """The fenced blocks of a page, the words behind the fence and what stands in it; of a page that is named in a comment, those with a file's name."""
    fenced = re.compile(r"^```(\w+)(?: +(\S+))?\n(.*?)^```$|^<!-- files of (\S+) -->$", re.MULTILINE | re.DOTALL)
    for language, name, text, other in fenced.findall(page.read_text()):
        if other:
            yield from (block for block in blocks(page.with_name(other)) if block[1])
        else:
            yield language, name, text


def transcripts(text):
    """The commands of a console's block, each with the lines that it prints."""
    return [(command, printed.splitlines()) for command, printed in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)]


def is_printed(wanted, printed):
    """Whether these lines were printed, where `...` stands for any lines."""
    pattern = "".join("(?:.*\n)*" if line.strip() == "..." else re.escape(line.rstrip()) + r" *\n" for line in wanted)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def main(page, directory):
    page, directory = pathlib.Path(page), pathlib.Path(directory)
    commands = 0
    for language, name, text in blocks(page):
        if name:
            (directory / name).write_text(text)
        elif language == "sh":
            commands += 1
            script = "set -eux -o pipefail\n" + text
            if subprocess.run(["bash", "-c", script], cwd=directory, check=False).returncode != 0:
                sys.exit(f"{page}: a command fails:\n{text}")
        elif language == "console":
            for command, wanted in transcripts(text):
                commands += 1
                ran = subprocess.run(["bash", "-c", command], cwd=directory, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                if not is_printed(wanted, ran.stdout.splitlines()):
                    sys.exit(f"{page}: $ {command}\nprints\n{ran.stdout}\nand not\n" + "\n".join(wanted))
    if commands == 0:
        sys.exit(f"{page}: it has no commands")
    print(f"{page}: {commands} blocks of commands ran")


if __name__ == "__main__":
    main(*sys.argv[1:])
