#!/usr/bin/env python3
"""Writes the results of the harness as a table and as pictures.

    report.py RESULTS OUT      reads RESULTS/*.json, writes OUT/table.md, OUT/ratios-1.svg, OUT/ratios-2.svg

Each time is the median call of a program's best round. The column `times` is the time of the best peer divided by ours: above 1, we
are faster. The limit is the larger of two times: operations of the direct algorithm divided by the measured peak of multiply-adds,
and bytes (constants, arguments, results; recurrent models read their constants once per step) divided by the measured bandwidth for
that working set.
"""

import glob
import html
import json
import math
import os
import sys

OURS = "peer"
# Recurrent models, and their steps.
STEPS = {"lstm_2x128_seq100": 100, "gru_128_seq100": 100}
COLORS = ["#1b6ca8", "#d1495b", "#66a182", "#edae49", "#8d6a9f", "#00798c", "#b5651d", "#5f6f7a", "#c08497", "#2e4057", "#7fb069"]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def milliseconds(ns):
    if ns is None:
        return "-"
    value = ns / 1e6
    return "%.0f ns" % ns if ns < 1000 else "%.*f" % (4 if value < 1 else 3 if value < 10 else 2 if value < 100 else 1, value)


def megabytes(size):
    return "-" if not size else "%.2f" % (size / 1e6) if size < 1e8 else "%.0f" % (size / 1e6)


def bandwidth(machine, threads, size):
    """Read bandwidth in bytes per second for a working set of `size` bytes, divided among threads; interpolated on a logarithmic scale."""
    points = []
    for key, value in machine[str(threads)].items():
        if key.startswith("read_"):
            number = key[len("read_"):-len("_GBps")]
            points.append((int(number[:-1]) * {"K": 1 << 10, "M": 1 << 20}[number[-1]], value * 1e9))
    points.sort()
    size = max(size, 1) / threads
    for (low, slow), (high, fast) in zip(points, points[1:]):
        if size <= high:
            part = max(0.0, math.log(size / low) / math.log(high / low))
            return slow + part * (fast - slow)
    return points[-1][1]


def limit(machine, document, threads):
    """The minimum time in nanoseconds on this machine, and what determines it: operations or bytes."""
    stats, rates = document["stats"], machine[str(threads)]
    peak = max(rates.get("fma512_gflops", 0), rates.get("fma256_gflops", 0))
    size = stats["const_bytes"] + stats["io_bytes"] + stats.get("var_bytes", 0)
    arithmetic = stats["flops"] / peak
    memory = STEPS.get(document["model"], 1) * size / bandwidth(machine, threads, size) * 1e9
    return (arithmetic, "operations") if arithmetic >= memory else (memory, "bytes")


def is_right(measured):
    check = measured.get("check", {})
    return "error" not in check and check.get("max_rel_to_peak", 0) <= 1e-2


def times(document, threads):
    """Nanoseconds by peer, without peers that failed or returned wrong results."""
    found = {}
    for name, peer in document["peers"].items():
        measured = peer.get("t%d" % threads, {})
        if measured.get("best_ns") and is_right(measured):
            found[os.path.basename(name)] = measured["best_ns"]
    return found


def original(found):
    return min((ns for name, ns in found.items() if name.startswith("tfc")), default=None)


def table(machine, documents, threads):
    lines = ["## %d thread%s" % (threads, "" if threads == 1 else "s"), "",
             "| model | ours, ms | limit, ms | of the limit | best peer | its ms | times | the original, ms | times |", "|---|" + "---:|" * 8]
    ratios, originals = [], []
    for document in documents:
        found = times(document, threads)
        ours = found.pop(OURS, None)
        if ours is None:
            lines.append("| %s | failed |" % document["model"] + " |" * 7)
            continue
        least, _ = limit(machine, document, threads)
        best = min(found, key=found.get) if found else None
        old = original(found)
        if best:
            ratios.append(found[best] / ours)
        if old:
            originals.append(old / ours)
        lines.append("| %s | %s | %s | %.0f %% | %s | %s | %s | %s | %s |" % (
            document["model"], milliseconds(ours), milliseconds(least), least / ours * 100, best or "-",
            milliseconds(found[best]) if best else "-", "%.2f" % (found[best] / ours) if best else "-", milliseconds(old),
            "%.2f" % (old / ours) if old else "-"))
    means = ["%.2f times the best peer (%d models, %d of them faster than it)" % (geometric_mean(ratios), len(ratios), sum(r > 1 for r in ratios))] if ratios else []
    means += ["%.2f times the original (%d models)" % (geometric_mean(originals), len(originals))] if originals else []
    return lines + ["", "Geometric means: " + ", ".join(means or ["nothing to compare with"]) + ".", ""]


def peers_table(documents):
    names = sorted({os.path.basename(name) for d in documents for name in d["peers"]} - {OURS})
    lines = ["## Every peer, ms with 1 / 2 threads", "", "| model | ours | " + " | ".join(names) + " |", "|---|" + "---:|" * (len(names) + 1)]
    for document in documents:
        one, two = times(document, 1), times(document, 2)
        cell = lambda name: "%s / %s" % (milliseconds(one.get(name)), milliseconds(two.get(name))) if name in one or name in two else "-"
        lines.append("| %s | %s | " % (document["model"], cell(OURS)) + " | ".join(map(cell, names)) + " |")
    return lines + [""]


def build_table(documents):
    lines = ["## Compiling, sizes, memory, cold start", "", "tfcompile / TensorFlow's tfcompile, where it was measured. Seconds and peak megabytes of the "
             "compiler; megabytes of the object and of a stripped program; megabytes at run time; milliseconds from the start of a process to its first "
             "result, and those of the fastest peer.", "",
             "| model | compile, s | its memory, MB | object, MB | code, MB | program, MB | at run time, MB | first answer, ms | quickest peer's |", "|---|" + "---:|" * 8]
    for document in documents:
        peers = {os.path.basename(name): peer for name, peer in document["peers"].items()}
        ours = peers.get(OURS)
        if not ours or not ours.get("build", {}).get("ok"):
            continue
        old = next((peers[name] for name in ("tfc215", "tfc215-generic") if peers.get(name, {}).get("build", {}).get("ok")), {})
        pair = lambda show, mine, theirs: "%s / %s" % (show(mine), show(theirs)) if theirs is not None else show(mine)
        seconds = lambda value: "%.2f" % value
        memory = lambda peer: peer.get("t1", {}).get("rss", {}).get("peak_kb", 0) * 1024 or None
        others = {name: peer["cold_ns"] for name, peer in peers.items() if name != OURS and peer.get("cold_ns")}
        quickest = min(others, key=others.get) if others else None
        build, old_build = ours["build"], old.get("build", {})
        lines.append("| %s | %s | %s | %s | %s | %s | %s | %s | %s |" % (
            document["model"], pair(seconds, build["build_cpu_s"], old_build.get("build_cpu_s")), megabytes(build.get("build_peak_kb", 0) * 1024),
            pair(megabytes, build["artifact"], old_build.get("artifact")), megabytes(build.get("code")),
            pair(megabytes, build["deploy"], old_build.get("deploy")), pair(megabytes, memory(ours), memory(old)), milliseconds(ours.get("cold_ns")),
            "%s %s" % (quickest, milliseconds(others[quickest])) if quickest else "-"))
    return lines + [""]


def picture(machine, documents, threads):
    """A chart with a row for each model and a dot for each peer: its time as a multiple of ours, on a logarithmic axis."""
    rows = [(d, times(d, threads)) for d in documents]
    rows = [(d, found, found[OURS]) for d, found in rows if OURS in found]
    names = sorted({name for _, found, _ in rows for name in found} - {OURS})
    left, top, height, width = 210, 46, 24, 640
    low, high = 0.25, 64.0
    place = lambda ratio: left + width * (math.log(min(max(ratio, low), high) / low) / math.log(high / low))
    bottom = top + height * len(rows)
    total = bottom + 46 + 18 * math.ceil(len(names) / 4)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">' % (left + width + 30, total),
           '<rect width="100%" height="100%" fill="#fff"/>',
           '<text x="10" y="20" font-size="15">Time of each peer as a multiple of the time of tfcompile, %d thread%s (right of 1: slower than tfcompile)</text>' % (threads, "" if threads == 1 else "s")]
    ratio = low
    while ratio <= high:
        strong = ratio == 1
        out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s" stroke-width="%s"/>' % (place(ratio), place(ratio), top - 6, bottom, "#000" if strong else "#ddd", "1.5" if strong else "1"))
        out.append('<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%g</text>' % (place(ratio), bottom + 16, ratio))
        ratio *= 2
    for number, (document, found, ours) in enumerate(rows):
        y = top + height * number + height / 2
        least, kind = limit(machine, document, threads)
        out.append('<text x="%d" y="%.1f" text-anchor="end">%s</text>' % (left - 10, y + 4, html.escape(document["model"])))
        out.append('<rect x="%.1f" y="%.1f" width="3" height="16" fill="#000"><title>limit by %s: %.3f of the time of tfcompile</title></rect>' % (place(least / ours) - 1.5, y - 8, kind, least / ours))
        for name, ns in sorted(found.items()):
            if name != OURS:
                out.append('<circle cx="%.1f" cy="%.1f" r="5" fill="%s" fill-opacity="0.8"><title>%s: %.3f</title></circle>' % (place(ns / ours), y, COLORS[names.index(name) % len(COLORS)], html.escape(name), ns / ours))
    for number, name in enumerate(names):
        x, y = left + 150 * (number % 4), bottom + 40 + 18 * (number // 4)
        out.append('<circle cx="%d" cy="%d" r="5" fill="%s"/><text x="%d" y="%d">%s</text>' % (x, y - 4, COLORS[number % len(COLORS)], x + 10, y, html.escape(name)))
    out.append('<rect x="%d" y="%d" width="3" height="14" fill="#000"/><text x="%d" y="%d">the limit of the machine</text>' % (10, bottom + 29, 20, bottom + 40))
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    results, target = sys.argv[1], sys.argv[2]
    with open(os.path.join(results, "machine.json")) as file:
        machine = json.load(file)
    documents = []
    for path in sorted(glob.glob(os.path.join(results, "*.json"))):
        with open(path) as file:
            document = json.load(file)
        if "model" in document:
            documents.append(document)
    lines = ["# Comparison with other compilers and runtimes", "", "Processor: %s." % machine.get("cpu", "?"), ""]
    for threads in (1, 2):
        if any(times(d, threads) for d in documents):
            lines += table(machine, documents, threads)
            with open(os.path.join(target, "ratios-%d.svg" % threads), "w") as file:
                file.write(picture(machine, documents, threads))
    lines += peers_table(documents) + build_table(documents)
    failed = ["%s: %s: %s" % (d["model"], os.path.basename(name), " ".join(str(why).split())[-160:]) for d in documents for name, peer in d["peers"].items()
              for why in [peer.get("build", {}).get("error") or peer.get("t1", {}).get("error")] if why]
    if failed:
        lines += ["## Failed", ""] + ["- " + line for line in failed] + [""]
    with open(os.path.join(target, "table.md"), "w") as file:
        file.write("\n".join(lines))


if __name__ == "__main__":
    main()
