#!/usr/bin/env python3
"""Runs the fenced code blocks of a page in order, in one directory.

    run_page.py PAGE DIRECTORY             fails if a command fails or prints something else
    run_page.py --update PAGE DIRECTORY    replaces transcripts that differ by what the commands print

- A block "```LANGUAGE NAME" is written to the file NAME.
- A block "```sh" runs in bash, which stops at the first command that fails.
- In a block "```console", each line after "$ " runs. Its output, including errors, must equal the lines below it. A line "..."
  stands for any number of lines; sizes and times with a unit may differ. These commands may fail.
- A line "<!-- files of PAGE -->" writes the files of another page, whose path is relative to this page.
- Other blocks are ignored.
"""

import pathlib
import re
import subprocess
import sys

FENCED = re.compile(r"^```(\w+)(?: +(\S+))?\n(.*?)^```$|^<!-- files of (\S+) -->$", re.MULTILINE | re.DOTALL)
QUANTITY = re.compile(r" *\b[\d.]+ (?:B|kB|MB|ns|us|ms|s)\b *")
TRANSCRIPT = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def blocks(page):
    """Returns the fenced blocks of a page (language, file name, text), including the files of referenced pages."""
    for language, name, text, other in FENCED.findall(page.read_text()):
        if other:
            yield from (block for block in blocks(page.parent / other) if block[1])
        else:
            yield language, name, text


def is_printed(expected, printed):
    """True if the lines match, where `...` stands for any lines and sizes and times count as equal."""
    expected, printed = (
        [QUANTITY.sub(" # ", line).rstrip() + "\n" for line in lines]
        for lines in (expected, printed)
    )
    pattern = "".join(r"(?:.*\n)*" if line.strip() == "..." else re.escape(line) for line in expected)
    return re.fullmatch(pattern, "".join(printed)) is not None


def run(command, directory):
    """Returns the output of a transcript's command as lines without trailing spaces."""
    ran = subprocess.run(["bash", "-c", command], cwd=directory, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return [line.rstrip() for line in ran.stdout.splitlines()]


def main(arguments):
    update = arguments[0] == "--update"
    page, directory = map(pathlib.Path, arguments[1:] if update else arguments)
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
            for command, expected in TRANSCRIPT.findall(text):
                commands += 1
                printed = run(command, directory)
                if is_printed(expected.splitlines(), printed):
                    continue
                output = "".join(line + "\n" for line in printed)
                if not update:
                    sys.exit(f"{page}: $ {command}\nexpected\n{expected}\ngot\n{output}")
                old = f"$ {command}\n{expected}"
                page.write_text(page.read_text().replace(old, f"$ {command}\n{output}", 1))
    if commands == 0:
        sys.exit(f"{page}: no commands found")
    print(f"{page}: ran {commands} commands")


if __name__ == "__main__":
    main(sys.argv[1:])
