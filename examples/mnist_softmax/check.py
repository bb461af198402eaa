#!/usr/bin/env python3
"""Compares the runs without and with just-in-time compilation: their losses, accuracies, and
timelines.

    python3 check.py OUT [LOSSES]

OUT contains {off,on}.txt and {off,on}.json. LOSSES contains one line with the loss of each step.
Fails if losses differ by more than float32's rounding explains, if the accuracies differ, if the
timeline of a clustered step does not have exactly one launch, or if that of a step without clusters
has no box for a matrix product.
"""
import json
import os
import re
import sys

# Tolerance: sums of 784 products in another order, over a thousand steps.
TOLERANCE = 1e-5


def losses_of(path):
    with open(path) as file:
        return [float(m[1]) for m in re.finditer(r"^step \d+  loss:0: (\S+)$", file.read(), re.M)]


def accuracy_of(path):
    with open(path) as file:
        return re.search(r"^accuracy over (\d+) test images: (\S+)$", file.read(), re.M)


def boxes_of(path):
    """Returns the ops of a timeline's boxes, and the time from the first box to the last."""
    with open(path) as file:
        events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X" and e["cat"] == "Op"]
    end = max(e["ts"] + e["dur"] for e in events)
    return [e["name"] for e in events], end - min(e["ts"] for e in events)


def main():
    out = sys.argv[1]
    wanted = None
    if len(sys.argv) > 2:
        with open(sys.argv[2]) as file:
            wanted = [float(line) for line in file]
    failed, accuracies = [], {}
    device = os.environ.get("DEVICE", "")
    plain = losses_of(os.path.join(out, "off.txt"))
    for jit in "off", "on":
        losses = losses_of(os.path.join(out, jit + ".txt"))
        accuracies[jit] = accuracy_of(os.path.join(out, jit + ".txt"))
        name, other = ("TensorFlow's", wanted) if wanted else ("those without", plain)
        # Compares the steps that both have, since a run may have more or fewer steps than the
        # recording.
        if not losses or len(losses) != len(plain):
            sys.exit("check: %d losses with --jit %s, %d to compare with" % (len(losses), jit, len(other)))
        off = max(abs(a - b) for a, b in zip(losses, other))
        ops, span = boxes_of(os.path.join(out, jit + ".json"))
        print(
            "--jit %-3s  %d losses, %.6f to %.6f, at most %.1e from %s; %s of %s test images right; a step: %d boxes "
            "(%d MatMul, %d _XlaLaunch) in %d us"
            % (jit, len(losses), losses[0], losses[-1], off, name, accuracies[jit][2], accuracies[jit][1],
               len(ops), ops.count("MatMul"), ops.count("_XlaLaunch"), span)
        )
        if off > TOLERANCE:
            failed.append("losses with --jit %s are up to %g from %s" % (jit, off, name))
        launches = ops.count("_XlaLaunch")
        seen = (ops.count("MatMul") > 0, launches > 0 and "GPU" in device or launches)
        # As in TensorFlow, nodes on XLA_GPU are clustered at every level.
        if seen != ((True, 0) if jit == "off" and not device else (False, True if "GPU" in device else 1)):
            failed.append("the timeline with --jit %s has the wrong boxes: %s" % (jit, sorted(set(ops))))
    if accuracies["off"][0] != accuracies["on"][0]:
        failed.append("accuracies differ")
    if failed:
        sys.exit("check: " + "; ".join(failed))


if __name__ == "__main__":
    main()
