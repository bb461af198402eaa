#!/usr/bin/env python3
"""The table of `scripts/test_external.sh`: how many of each set that others wrote hold, which do not, and why.

    external_table.py OUT

Reads what the script left in OUT. A failure is explained if a line of `external_explained.txt` beside this file has its set,
its name and what it says; explained ones are counted in a column of their own, and their reasons printed below. Exits with 1 if
there is one without an explanation.
"""
import glob
import json
import os
import re
import sys

import explained

HERE = os.path.dirname(os.path.abspath(__file__))


def lines(path):
    if not os.path.exists(path):
        return []
    with open(path, errors="replace") as file:
        return file.read().splitlines()


def failures_of_texts(paths):
    """Parses lines `kind<tab>name<tab>message` of hlo-texts."""
    failed = []
    for path in paths:
        for line in lines(path):
            parts = line.split("\t", 2)
            if len(parts) == 3 and parts[0] in ("wrong", "crashed", "refused", "unsupported", "not read", "not written"):
                failed.append((parts[1], "%s: %s" % (parts[0], parts[2])))
    return failed


def sums(paths):
    """Sums last lines such as `95 passed, 5 unsupported`."""
    count = {}
    for path in paths:
        said = lines(path)
        for part in said[-1].split(",") if said else []:
            words = part.split()
            if len(words) == 2 and words[0].isdigit():
                count[words[1]] = count.get(words[1], 0) + int(words[0])
    return count


def said_by_xla(path):
    """What XLA said to each text, in the file that hlo_texts.py keeps: how many were fine, and the rest."""
    said = json.load(open(path)) if os.path.exists(path) else {}
    bad = [(name, message) for name, message in sorted(said.items()) if message != "ok"]
    return len(said), len(said) - len(bad), bad


def texts_rows(out):
    texts = len(glob.glob(out + "/texts/*.hlo"))
    if not texts:
        return
    unread = failures_of_texts([out + "/prints_failures.txt"])
    yield "print", "HLO texts of XLA's unit tests, read", texts, texts - len(unread), unread
    yield ("same", "  printed, the same to XLA") + said_by_xla(out + "/prints.same.json")
    messages = len(glob.glob(out + "/protos/*.pb"))
    unread = failures_of_texts([out + "/proto_prints_failures.txt"])
    yield "message", "  as XLA's messages, read", messages, messages - len(unread), unread
    yield ("message same", "  printed, the same to XLA") + said_by_xla(out + "/proto_prints.same.json")
    unwritten = failures_of_texts([out + "/messages_failures.txt"])
    yield "write", "  written as messages", texts, texts - len(unwritten), unwritten
    yield ("write same", "  the same to XLA as its own") + said_by_xla(out + "/messages.same.json")
    parts = sorted(glob.glob(out + "/parts/texts.[0-9]*.txt"))
    failed = failures_of_texts(parts)
    count = sums(parts)
    yield "answer", "  compiled, evaluated, compared with XLA's answers", sum(count.values()), count.get("agrees", 0), failed


def stablehlo_rows(out):
    for name, title in (("testdata", "StableHLO's testdata"), ("interpret", "tests of StableHLO's interpreter")):
        for engine, how in (("", "compiled"), ("--evaluator", "evaluated")):
            parts = sorted(glob.glob("%s/parts/%s%s.[0-9]*.txt" % (out, name, engine)))
            if not parts:
                continue
            failed = []
            for line in (line for path in parts for line in lines(path)):
                found = re.match(r"(failed|unsupported) (\S+) (.*)", line)
                if found:
                    of = os.path.basename(found.group(2)).replace(".mlir:0", "").replace(".mlir", "")
                    failed.append((of, "%s: %s" % (found.group(1), found.group(3))))
            count = sums(parts)
            yield name + engine, "%s, %s" % (title, how), sum(count.values()), count.get("passed", 0), failed


def main():
    out = sys.argv[1]
    found = explained.read(os.path.join(HERE, "external_explained.txt"))
    reasons, open_ones = {}, []
    print("\nTests that others wrote")
    print("%-52s %7s %7s %9s %11s" % ("", "all", "hold", "explained", "unexplained"))
    for kind, title, count, good, failed in list(texts_rows(out)) + list(stablehlo_rows(out)):
        known = 0
        for name, message in failed:
            reason = explained.why(found, kind, name, message)
            if reason is None:
                open_ones.append("%s: %s: %s" % (kind, name, message[:200]))
            else:
                known += 1
                reasons.setdefault((title.strip(), reason), []).append(name)
        # Every failure must have a name; otherwise the report is incomplete.
        lost = count - good - len(failed)
        if lost:
            open_ones.append("%s: %d that do not hold and have no name" % (kind, lost))
        print("%-52s %7d %7d %9d %11d" % (title, count, good, known, len(failed) - known + max(lost, 0)))
    asked, answered, silent = said_by_xla(out + "/answers.answers.json")
    if asked:
        late = sum(message == "timeout" for _, message in silent)
        aborts = sum(message == "XLA aborted" for _, message in silent)
        print("XLA's CPU client: %d queries, %d answers, %d rejections, %d aborts, %d timeouts"
              % (asked, answered, len(silent) - late - aborts, aborts, late))
        texts = len(glob.glob(out + "/texts/*.hlo"))
        if asked < texts:
            print("XLA's CPU client has not run %d texts yet" % (texts - asked))
    largest = [(float(found.group(1)), found.group(2))
               for path in glob.glob(out + "/parts/texts.[0-9]*.txt") for line in lines(path)
               for found in [re.match(r"largest error.*: (\S+) \((.*)\)", line)] if found]
    if largest:
        print("largest error, of the largest element: %.1e (%s)" % max(largest))
    if reasons:
        print("\nExplained")
        for (title, reason), names in sorted(reasons.items()):
            shown = names[0] if len(names) == 1 else "%d, such as %s" % (len(names), names[0])
            print("%s: %s: %s" % (title, shown, reason))
    if open_ones:
        print("\nWithout an explanation")
        print("\n".join(open_ones))
    return 1 if open_ones else 0


sys.exit(main())
