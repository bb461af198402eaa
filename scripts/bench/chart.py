#!/usr/bin/env python3
"""Draws a record of the benchmarks as a chart.

    chart.py RECORD SVG            writes SVG
    chart.py --check RECORD SVG    exits with 1 if SVG is not what RECORD gives
    chart.py --table RECORD        prints the record as a Markdown table

`record.py` writes a record. The chart follows the reader's light or dark mode, and has a background of its own.
"""

import html
import json
import math
import sys

WIDTH = 840
LABELS = 178           # right end of the models' names
LEFT, SCALE = 192, 138  # first panel: start of the bars, and pixels per 1.0
RIGHT, DECADE = 608, 75  # second panel, logarithmic: start of the bars, and pixels per factor of 10
TOP, ROW, BAR = 118, 34, 12

STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .title { font-size: 18px; font-weight: 600; }
  .head { font-weight: 600; }
  .soft { fill: #59636e; }
  .small { font-size: 12px; fill: #59636e; }
  .page { fill: #ffffff; stroke: #d1d9e0; }
  .one { fill: #8fbcf5; }
  .two { fill: #1f6feb; }
  .line { stroke: #1f2328; stroke-width: 1.5; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .soft, .small { fill: #9198a1; }
    .page { fill: #0d1117; stroke: #3d444d; }
    .one { fill: #2c5fa8; }
    .two { fill: #6cb0ff; }
    .line { stroke: #e6edf3; }
  }
"""


def number(value):
    return "%.1f" % value if value >= 10 else "%.2f" % value


def short(peer):
    return "tfcompile (TensorFlow)" if peer == "tfcompile of TensorFlow" else peer


def picture(record):
    models = record["models"]
    bottom = TOP + ROW * len(models)
    height = bottom + 78
    out = []

    def text(x, y, words, kind="", anchor="start"):
        out.append('<text x="%g" y="%g" class="%s" text-anchor="%s">%s</text>' % (x, y, kind, anchor, html.escape(words)))

    text(20, 34, "Speed of tfcompile relative to other compilers and runtimes", "title")
    text(20, 56, "Time of the other program divided by the time of tfcompile: above 1, tfcompile is faster. Inference, batch 1, float32.", "soft")
    for x, kind, words in ((20, "one", "1 thread"), (100, "two", "2 threads")):
        out.append('<rect x="%g" y="82" width="12" height="12" rx="2" class="%s"/>' % (x, kind))
        text(x + 17, 93, words)
    others = len(record["peers"])
    text(LEFT, 93, "Fastest of %d others, named beside the bar" % others, "head")
    text(RIGHT, 93, "TensorFlow's tfcompile (log)", "head")

    for index, model in enumerate(models):
        y = TOP + ROW * index
        text(LABELS, y + 17, model["model"], anchor="end")
        for threads, kind, shift in (("1", "one", 0), ("2", "two", BAR + 1)):
            found = model.get(threads)
            if not found:
                continue
            width = SCALE * found["ratio"]
            out.append('<rect x="%g" y="%g" width="%.1f" height="%d" rx="1" class="%s"/>' % (LEFT, y + shift, width, BAR, kind))
            text(LEFT + width + 5, y + shift + 10, "%s %s" % (number(found["ratio"]), short(found["fastest"])), "small")
            if found["original"]:
                width = max(1, DECADE * math.log10(max(found["original"], 0.1) * 2))
                out.append('<rect x="%g" y="%g" width="%.1f" height="%d" rx="1" class="%s"/>' % (RIGHT, y + shift, width, BAR, kind))
                text(RIGHT + width + 5, y + shift + 10, number(found["original"]), "small")
            elif threads == "1":
                text(RIGHT + DECADE * math.log10(2) + 6, y + shift + 17, "not measured", "small")
    for x in (LEFT + SCALE, RIGHT + DECADE * math.log10(2)):
        out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" class="line"/>' % (x, x, TOP - 8, bottom - 2))
        text(x, TOP - 11, "1", "small", "middle")

    one, two = record["means"]["1"], record["means"]["2"]
    mean = lambda key, form: "%s and %s" % tuple(form % found[key] if found[key] else "–" for found in (one, two))
    text(20, bottom + 20, "Geometric mean with 1 and 2 threads: %s against the fastest, %s against TensorFlow's tfcompile." % (
        mean("ratio", "%.2f"), mean("original", "%.1f")))
    text(20, bottom + 42, "Machine: %s. Measured %s by \"make bench\"." % (record["machine"], record["date"]), "small")
    text(20, bottom + 60, "Versions: %s." % ", ".join(" ".join(filter(None, peer)) for peer in record["peers"].items()), "small")
    head = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">' % (WIDTH, height, WIDTH, height),
            "<title>Speed of tfcompile relative to other compilers and runtimes</title>", "<style>%s</style>" % STYLE,
            '<rect x="0.5" y="0.5" width="%d" height="%d" rx="8" class="page"/>' % (WIDTH - 1, height - 1)]
    return "\n".join(head + out + ["</svg>"]) + "\n"


def table(record):
    lines = ["| model | fastest, 1 thread | fastest, 2 threads | TensorFlow's tfcompile, 1 thread | 2 threads |", "|---|---:|---:|---:|---:|"]
    for model in record["models"]:
        one, two = model.get("1"), model.get("2")
        fastest = ["%s %s" % (number(found["ratio"]), short(found["fastest"])) if found else "–" for found in (one, two)]
        original = [number(found["original"]) if found and found["original"] else "–" for found in (one, two)]
        lines.append("| " + " | ".join(["`%s`" % model["model"], *fastest, *original]) + " |")
    return "\n".join(lines) + "\n"


def main(arguments):
    flag = arguments.pop(0) if arguments[0].startswith("--") else None
    with open(arguments[0]) as file:
        record = json.load(file)
    if flag == "--table":
        print(table(record), end="")
        return
    drawn = picture(record)
    if flag == "--check":
        with open(arguments[1]) as file:
            if file.read() != drawn:
                sys.exit("%s is out of date: run scripts/bench/chart.py %s %s" % (arguments[1], *arguments))
        return
    with open(arguments[1], "w") as file:
        file.write(drawn)


main(sys.argv[1:])
