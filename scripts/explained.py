"""Failures that are not our defects, with reasons, in a file of lines `set | name | what it says | why`.

`*` stands for anything in the first three; what is said is a part of the message, so that a failure of another kind still counts.
"""

import os
import re
import sys


def read(path):
    """Returns the lines of such a file as lists of four fields. Skips empty lines and lines that begin with `#`."""
    found = []
    with open(path) as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            parts = [part.strip() for part in line.split(" | ")]
            if len(parts) != 4 or not all(parts):
                sys.exit("%s:%d: not `set | name | what it says | why`" % (os.path.basename(path), number))
            found.append(parts)
    return found


def fits(pattern, text, whole=True):
    """True if a text contains the pattern, in which `*` matches anything."""
    pattern = ".*".join(re.escape(part) for part in pattern.split("*"))
    return bool((re.fullmatch if whole else re.search)(pattern, text, re.S))


def why(found, kind, name, message):
    """Returns the reason of the first line that matches a failure, or None."""
    for of, names, says, reason in found:
        if fits(of, kind) and fits(names, name) and fits(says, message, whole=False):
            return reason
    return None
