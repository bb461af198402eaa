#!/usr/bin/env python3
"""Measures examples/ray_serve with compiled models and with ONNX Runtime, by `oha`.

    bench.py OHA MODELS REPOSITORY RECORD [--only PART] [--calls] [--rounds 3] [--seconds 4]

MODELS is the directory that models.py wrote, REPOSITORY the one that repository.py compiled from it. Both servers run, and take turns
in each round. Numbers are medians of rounds. Results replace those of the same workloads in RECORD, a JSON file. With --calls, no server runs: only the calls of engines in
RECORD are measured again.
"""

import argparse
import json
import pathlib
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version

from load import BYTES, JSON, Answers
from server import APP, Server

sys.path.append(str(APP.parent))
from engines import ENGINES

# Model, rows in a request, its form.
WORKLOADS = [("digits", 1, BYTES), ("digits", 1, JSON), ("mobilenet", 1, BYTES), ("mobilenet", 8, BYTES)]
CLIENTS = [1, 8, 32]
PORTS = {"tfcompile": 8720, "onnxruntime": 8730}


def measure(oha, server, name, kind, body, clients, seconds):
    """Returns requests/s, and the 50th and 99th percentile of the latency in ms."""
    command = [oha, "--no-tui", "--output-format", "json", "-z", f"{seconds}s", "-w", "-c", str(clients), "-m", "POST", "-T", kind]
    ran = subprocess.run([*command, "-D", str(body), server.url(f"{name}:predict")], check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(ran.stdout)
    statuses = found["statusCodeDistribution"]
    if list(statuses) != ["200"] or found["errorDistribution"]:
        raise SystemExit(f"bench: {name}: {statuses} {found['errorDistribution']}")
    latency = found["latencyPercentiles"]
    return found["summary"]["requestsPerSec"], latency["p50"] * 1e3, latency["p99"] * 1e3


def alone(engine, x, seconds=0.3):
    """Returns the time of a call without a server, in ms."""
    engine(x)
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        engine(x)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def calls(models, repositories, only, rounds=9):
    """Returns the median time of a call in ms by workload and engine. The engines take turns."""
    found = {}
    for name in ("digits", "mobilenet"):
        x = Answers(models, name).x
        loaded = {engine: ENGINES[engine](path / name / "2" / ENGINES[engine].FILE) for engine, path in repositories.items()}
        for count in (1, 8, 64):
            if only not in f"{name}-{count}":
                continue
            times = {engine: [] for engine in loaded}
            for number in range(rounds):
                for engine in list(loaded)[:: 1 - 2 * (number % 2)]:
                    times[engine].append(alone(loaded[engine], {"x": x[:count]}))
            found[f"{name}-{count}"] = {engine: float(f"{statistics.median(each):.4g}") for engine, each in times.items()}
    return found


def medians(rounds):
    return [float(f"{statistics.median(values):.4g}") for values in zip(*rounds)]


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("oha")
    for name in ("models", "repository", "record"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--only", default="", help="part of the name of the workloads to measure, such as mobilenet-8")
    parser.add_argument("--calls", action="store_true", help="measure only calls without a server")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4)
    arguments = parser.parse_args()
    repositories = {"tfcompile": arguments.repository, "onnxruntime": arguments.models / "onnx"}
    if arguments.calls:
        record = json.loads(arguments.record.read_text())
        record["calls_ms"].update(calls(arguments.models, repositories, arguments.only))
        arguments.record.write_text(json.dumps(record, indent=1) + "\n")
        return
    servers = {engine: Server(repositories[engine], PORTS[engine], "--engine", engine) for engine in PORTS}
    rows = []
    try:
        for name, count, kind in WORKLOADS:
            label = f"{name}-{count}-{'json' if kind == JSON else 'bytes'}"
            if arguments.only not in label:
                continue
            answers = Answers(arguments.models, name)
            body = arguments.record.parent / f"{label}.body"
            body.write_bytes(answers.body(kind, slice(0, count)))
            for clients in CLIENTS:
                rounds = {engine: [] for engine in servers}
                for number in range(arguments.rounds):
                    for engine in list(servers)[:: 1 - 2 * (number % 2)]:
                        if number == 0:
                            measure(arguments.oha, servers[engine], name, kind, body, clients, 1)
                        rounds[engine].append(measure(arguments.oha, servers[engine], name, kind, body, clients, arguments.seconds))
                row = {"workload": label, "clients": clients, **{engine: medians(found) for engine, found in rounds.items()}}
                rows.append(row)
                print(json.dumps(row), flush=True)
        memory = {engine: [round(number) for number in server.memory()[0]] for engine, server in servers.items()}
    finally:
        for server in servers.values():
            server.__exit__()
    record = json.loads(arguments.record.read_text()) if arguments.record.exists() else {"load": []}
    record["versions"] = {package: version(package) for package in ("ray", "onnxruntime", "numpy")}
    record["machine"], record["rounds"], record["memory_mb"] = processor(), arguments.rounds, memory
    record["calls_ms"] = calls(arguments.models, repositories, "")
    measured = {row["workload"] for row in rows}
    kept = [row for row in record["load"] if row["workload"] not in measured]
    order = [f"{name}-{count}-{'json' if kind == JSON else 'bytes'}" for name, count, kind in WORKLOADS]
    record["load"] = sorted(kept + rows, key=lambda row: (order.index(row["workload"]), row["clients"]))
    arguments.record.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
