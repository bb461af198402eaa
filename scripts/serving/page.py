#!/usr/bin/env python3
"""Writes the measured parts of docs/serving.md from the record, docs/serving.json.

    page.py [--check]                write the page; with --check, only compare
    page.py --record BENCH FAULTS    first make the record from those of bench.py and faults.py
"""

import json
import pathlib
import re
import statistics
import sys

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PAGE, RECORD = DOCS / "serving.md", DOCS / "serving.json"
FORMS = {"bytes": "bytes", "json": "JSON"}
TITLES = {"digits": "digits", "mobilenet": "MobileNetV2 0.35, 96x96"}


def measured(record):
    """The section of measurements."""
    bench = record["bench"]
    versions = bench["versions"]
    yield f"Ray {versions['ray']}, ONNX Runtime {versions['onnxruntime']}, {bench['machine']}, two cores that the client (`oha`),"
    yield f"Serve's proxy, and two replicas share. Medians of {bench['rounds']} rounds, in which the servers take turns; a ratio above 1"
    yield "means that the compiled model is faster. Latency is in ms, tfcompile / ONNX Runtime."
    yield ""
    yield "| model | rows, form | clients | requests/s | ratio | p50 | ratio | p99 | ratio |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|"
    for row in bench["load"]:
        name, rows, form = row["workload"].split("-")
        (rate, p50, p99), (other_rate, other_p50, other_p99) = row["tfcompile"], row["onnxruntime"]
        cells = [TITLES[name], f"{rows}, {FORMS[form]}", str(row["clients"]), f"{rate:.0f} / {other_rate:.0f}", f"{rate / other_rate:.2f}"]
        cells += [f"{p50:.1f} / {other_p50:.1f}", f"{other_p50 / p50:.2f}", f"{p99:.1f} / {other_p99:.1f}", f"{other_p99 / p99:.2f}"]
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield "A call of the engine without a server takes far less than a request, so small models are as fast as"
    yield "Serve is, with any engine:"
    yield ""
    yield "| model | rows | tfcompile, ms | ONNX Runtime, ms | ratio |"
    yield "|---|---:|---:|---:|---:|"
    for name, times in bench["calls_ms"].items():
        model, rows = name.split("-")
        ours, other = times["tfcompile"], times["onnxruntime"]
        yield f"| {TITLES[model]} | {rows} | {ours:.3g} | {other:.3g} | {other / ours:.2f} |"
    yield ""
    each = {engine: round(sum(found) / len(found)) for engine, found in bench["memory_mb"].items()}
    yield f"After the load, a replica takes {each['tfcompile']} MB (ONNX Runtime: {each['onnxruntime']} MB), most of which is Ray's."


def faults(record):
    """The section of faults."""
    yield "Memory is that of the two replicas together and of the proxy, before and after. Buffers may stay for later"
    yield "requests: while the memory grew by more than 40 MB, the fault was repeated, at most three times, until it"
    yield "did not."
    yield ""
    yield "| fault | times | answered rightly | repeated by clients | wrong or lost | replicas, MB | proxy, MB |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for row in record["faults"]:
        memory = " | ".join(", ".join(map(str, row[name])) for name in ("mb", "proxy_mb"))
        yield f"| {row['fault']} | {row['times']} | {row['answered']} | {row['repeated']} | {row['wrong'] + row['lost']} | {memory} |"
    soak = record["soak"]
    samples = soak["samples"]
    sixths = [samples[k * len(samples) // 6 : (k + 1) * len(samples) // 6] for k in range(6)]
    medians = [", ".join(f"{statistics.median(sample[column] for sample in part):.0f}" for part in sixths) for column in (1, 2)]
    yield ""
    yield f"In a soak of {soak['seconds'] // 60} minutes, two models were replaced in place {soak['replacements']} times each under load."
    yield f"{soak['answered']} requests were answered rightly, {soak['wrong'] + soak['lost']} wrongly or not at all, and {soak['repeated']} were"
    yield f"repeated. Medians of each sixth of the time, in MB: the replicas together {medians[0]};"
    yield f"the proxy, which runs Ray's code only, {medians[1]}."


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ["--record"]:
        bench, found = (json.loads(pathlib.Path(path).read_text()) for path in arguments[1:])
        RECORD.write_text(json.dumps({"bench": bench, **found}, indent=1) + "\n")
    record = json.loads(RECORD.read_text())
    before = text = PAGE.read_text()
    for name, section in (("measured", measured), ("faults", faults)):
        lines = "\n".join(section(record))
        place = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
        text = re.sub(place, lambda found: f"{found[1]}\n{lines}\n\n{found[2]}", text, flags=re.DOTALL)
    if arguments == ["--check"]:
        if text != before:
            sys.exit("docs/serving.md differs from docs/serving.json: run scripts/serving/page.py")
        return
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
