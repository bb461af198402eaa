#!/usr/bin/env python3
"""Updates the context of the diffs in docs/contributing after the surrounding lines changed.

    scripts/mend_recipes.py

Rewrites the hunks whose place is still clear, and names the others, which are to be mended by hand. The changes
themselves stay as they are; `scripts/test_recipes.sh --build` says whether they still compile.
"""

import glob
import os
import re

CONTEXT = 2
NEARBY = 25
HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


def places(lines, part, near):
    """Returns the positions of a list of lines, nearest to a line number first."""
    count = len(part)
    found = [at for at in range(len(lines) - count + 1) if lines[at : at + count] == part]
    return sorted(found, key=lambda at: abs(at - near))


def mend(hunk, start, lines):
    """Returns the hunk without its first line, with the file's current context, or nothing if its position is ambiguous."""
    changes = [at for at, line in enumerate(hunk) if line[:1] in ("+", "-")]
    first, last = changes[0], changes[-1] + 1
    lead, core, trail = hunk[:first], hunk[first:last], hunk[last:]
    text = lambda part: [line[1:] for line in part if line[:1] != "+"]
    old = text(core)
    before = start - 1 + len(lead)
    strip = lambda part: [line.strip() for line in part]
    # Replaced lines with as much unchanged context as possible. Lines that are only added may have
    # another indentation.
    for form in (list, strip) if not old else (list,):
        for left in range(len(lead) + 1):
            for right in range(len(trail) + 1):
                around = text(lead[left:]) + old + text(trail[: len(trail) - right])
                near = before - len(lead) + left
                found = places(form(lines), form(around), near) if around else []
                # Brackets occur everywhere, so lines of brackets match only nearby.
                is_distinct = any(line.strip(" })];,") for line in around)
                if found and (is_distinct or abs(found[0] - near) < NEARBY):
                    width = indent(lines[found[0]]) - indent(around[0])
                    at = found[0] + len(lead) - left
                    end = at + len(old)
                    shown = lambda part: [f" {line}".rstrip() for line in part]
                    context = (shown(lines[max(at - CONTEXT, 0) : at]), shown(lines[end : end + CONTEXT]))
                    return context[0] + [indented(line, width) for line in core] + context[1]
    return None


def indent(line):
    return len(line) - len(line.lstrip())


def indented(line, width):
    """Returns a line of a diff with another indentation."""
    text = line[1:]
    return line[0] + (" " * width + text if width >= 0 else text[min(-width, indent(text)) :]) if text else line


def mend_section(path, section, where):
    """Returns a file's part of a diff with updated context."""
    lines = open(path).read().split("\n")
    out, shift = [], 0
    for hunk in re.split(r"\n(?=@@)", "\n".join(section)):
        head, *body = hunk.split("\n")
        body = [line or " " for line in body]
        start = int(HUNK.match(head).group(1))
        old = [line[1:] for line in body if line[0] != "+"]
        mended = body
        if not places(lines, old, start - 1):
            mended = mend(body, start, lines)
            print(f"{where}: {path}:{start}: {'updated' if mended else 'UPDATE BY HAND'}")
            mended = mended or body
        mended = [line or " " for line in mended]
        old = [line[1:] for line in mended if line[0] != "+"]
        found = places(lines, old, start - 1)
        start = found[0] + 1 if found else start
        added = sum(line[0] != "-" for line in mended)
        out.append(f"@@ -{start},{len(old)} +{start + shift},{added} @@")
        out += [line.rstrip() for line in mended]
        shift += added - len(old)
    return out


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    for page in sorted(glob.glob("docs/contributing/*.md") + glob.glob("docs/contributing/*.diff")):
        lines = open(page).read().split("\n")
        out, at, inside = [], 0, page.endswith(".diff")
        while at < len(lines):
            line = lines[at]
            inside = inside if not line.startswith("```") else line == "```diff"
            out.append(line)
            at += 1
            if not (inside and line.startswith("+++ b/") and not lines[at - 2].endswith("/dev/null")):
                continue
            end = at
            while end < len(lines) and not lines[end].startswith(("--- ", "diff --git", "```")):
                end += 1
            # The final newline of a file is not a line of its diff.
            section = lines[at:end] if end < len(lines) else lines[at : end - 1]
            out += mend_section(line[len("+++ b/") :], section, page)
            at = at + len(section)
        if out != lines:
            open(page, "w").write("\n".join(out))


if __name__ == "__main__":
    main()
