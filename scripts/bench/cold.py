#!/usr/bin/env python3
"""Measures the time to the first result of a new process, for every model and peer that the harness has measured.

    cold.py RESULTS PEERS_HOME HARNESS OUR_PEER

A peer's program starts as in the harness, on one core. The measured time ends when its first output file is complete, so it includes
loading the program and the model, and one run. The files are in the page cache, and the best of three starts counts. The time is
added to the results as `cold_ns`.
"""

import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

STARTS = 3
LIMIT_SECONDS = 60


def first_answer(command, out, size):
    """Seconds until out/out0.bin has its size; None if the program ends or takes too long."""
    path = os.path.join(out, "out0.bin")
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    try:
        while time.monotonic() - start < LIMIT_SECONDS:
            if os.path.exists(path) and os.path.getsize(path) == size:
                return time.monotonic() - start
            if process.poll() is not None:
                return None
            time.sleep(0.0002)
        return None
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def main():
    results, home, harness, ours = sys.argv[1:5]
    for path in sorted(glob.glob(os.path.join(results, "*.json"))):
        with open(path) as file:
            document = json.load(file)
        if "model" not in document:
            continue
        model = os.path.join(home, "prep", document["model"])
        with open(os.path.join(model, "sig.json")) as file:
            size = json.load(file)["fetches"][0]["bytes"]
        for name, peer in document["peers"].items():
            short = os.path.basename(name)
            if not peer.get("t1", {}).get("best_ns"):
                continue
            program = os.path.join(ours if short == os.path.basename(ours) else os.path.join(harness, "peers", short), "run")
            artifact = os.path.join(home, "art", document["model"], short)
            times = []
            for _ in range(STARTS):
                out = tempfile.mkdtemp()
                times.append(first_answer(["taskset", "-c", "0", program, model, artifact, "1", out], out, size))
                shutil.rmtree(out)
            times = [t for t in times if t is not None]
            if times:
                peer["cold_ns"] = min(times) * 1e9
        with open(path, "w") as file:
            json.dump(document, file, indent=1)


main()
