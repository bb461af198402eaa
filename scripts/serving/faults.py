#!/usr/bin/env python3
"""Serves models with examples/ray_serve, causes faults under load, and checks every answer.

    faults.py MODELS REPOSITORY [--soak SECONDS] [--record FILE]

MODELS is the directory that models.py wrote, REPOSITORY the one that repository.py compiled from it. The directory of REPOSITORY
receives the server's log. Requests to both models run during each fault; each must be answered, with the numbers that TensorFlow
computed for the version that answers. With --soak, models are replaced under load for so long, and the memory of the server is
sampled. --record writes the results to a JSON file. Fails if an answer is wrong or missing, or if memory grows.
"""

import argparse
import asyncio
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import statistics
import sys
import time

from load import BYTES, JSON, TIMEOUT, Answers, Load
from server import Server

PORT = 8710
# Memory in MB by which the replicas or the proxy may differ after a fault.
ROOM = 40


async def kill_replica(load, server):
    """A replica is killed"""
    for _ in range(4):
        old = server.processes("ServeReplica")
        os.kill(old[0], signal.SIGKILL)
        await until(lambda: len(set(server.processes("ServeReplica")) - set(old)) == 1)
        await asyncio.sleep(2)
    return 4


async def kill_proxy(load, server):
    """The proxy, which has the connections, is killed"""
    (old,) = server.processes("ProxyActor")
    os.kill(old, signal.SIGKILL)
    await until(lambda: set(server.processes("ProxyActor")) - {old} and server.answers())
    return 1


async def add_version(load, server):
    """A version is added and removed"""
    place = server.repository / "digits/2"
    kept = server.repository.parent / "kept"
    load.asked["digits"] = [1]
    for _ in range(5):
        load.latest["digits"] = {1, 2}
        await updated(server, lambda: place.rename(kept))
        load.latest["digits"] = {1}
        await asyncio.sleep(1)
        load.latest["digits"] = {1, 2}
        await updated(server, lambda: kept.rename(place))
        load.latest["digits"] = {2}
        await asyncio.sleep(1)
    return 10


async def replace_in_place(load, server):
    """The file of a version is replaced"""
    results = load.results["digits"]
    load.latest["digits"] = {2, 7}
    results[7] = {2}
    for turn in range(10):
        wanted = 2 - turn % 2
        results[7] = results[7] | {wanted}
        await updated(server, lambda: put(server.repository / f"digits/{wanted}/model.pickle", server.repository / "digits/7"))
        results[7], load.latest["digits"], load.asked["digits"] = {wanted}, {7}, [1, 7]
        await asyncio.sleep(1)
    load.asked["digits"], load.latest["digits"] = [1], {2, 7}
    await asyncio.sleep(2)
    await updated(server, lambda: shutil.rmtree(server.repository / "digits/7"))
    return 10


async def damaged_files(load, server):
    """A version whose file is damaged is added"""
    good = (server.repository / "digits/1/model.pickle").read_bytes()
    for content in (b"", good[: len(good) // 2], b"not a pickle"):
        place = server.repository / "digits/9"

        def write():
            place.mkdir()
            (place / "model.pickle").write_bytes(content)

        await updated(server, write)
        assert "digits/9/model.pickle" in server.log.read_text().rpartition("cannot load ")[2]
        await asyncio.sleep(1)
        await updated(server, lambda: shutil.rmtree(place))
    return 3


async def slow_readers(load, server):
    """Clients read slowly, or not at all"""
    # More than what the buffers of connections hold.
    answers, rows = server.wide, slice(0, 64)
    body = answers.body(JSON, rows)
    request = head("wide", JSON, body) + body
    right = []

    async def slow():
        reader, writer = await connect(server)
        writer.write(request)
        await asyncio.sleep(8)
        content = bytearray()
        while part := await reader.read(65536):
            content += part
            await asyncio.sleep(0.002)
        writer.close()
        told, _, content = bytes(content).partition(b"\r\n\r\n")
        if b" 200 " not in told.partition(b"\r\n")[0]:
            raise SystemExit(f"faults: a slow reader expected status 200, got {told!r} {content[:300]!r}")
        right.append(answers.is_right(2, rows, answers.read(JSON, content)))

    async def never():
        _, writer = await connect(server)
        writer.write(request)
        await asyncio.sleep(20)
        writer.transport.abort()

    await asyncio.gather(*[slow() for _ in range(8)], *[never() for _ in range(8)])
    if right != [True] * 8:
        raise SystemExit(f"faults: slow readers got wrong answers: {right}")
    return 16


async def disconnects(load, server):
    """Clients disconnect within a request, before the response, and within it"""
    choose = random.Random(3)
    for number in range(150):
        name = choose.choice(["digits", "digits", "mobilenet"])
        body = load.answers[name].body(BYTES, slice(0, 8))
        reader, writer = await connect(server)
        request = head(name, BYTES, body) + body
        whole = len(request) if number % 3 else choose.randrange(len(request))
        writer.write(request[:whole])
        await asyncio.sleep(choose.uniform(0, 0.05))
        if number % 3 == 2:
            await reader.read(10)
        writer.transport.abort()
    return 150


async def wrong_requests(load, server):
    """Requests are wrong"""
    row = [0.5] * 64
    cases = [
        ("GET", "nope", JSON, b"", 404, "unknown model 'nope'"),
        ("POST", "nope:predict", JSON, b"{}", 404, "unknown model 'nope'"),
        ("POST", "digits/versions/99:predict", JSON, b"{}", 404, "unknown version '99' of model 'digits'"),
        ("POST", "digits/versions/two:predict", JSON, b"{}", 404, "unknown version 'two'"),
        ("POST", "digits/rows", JSON, b"{}", 404, "expected /v1/models/NAME"),
        ("POST", "digits", JSON, b"{}", 405, "expected POST"),
        ("GET", "digits:predict", JSON, b"", 405, "expected POST"),
        ("POST", "digits:classify", JSON, b"{}", 405, "expected POST"),
        ("POST", "digits:predict", JSON, b"", 400, "the body is not JSON"),
        ("POST", "digits:predict", JSON, b"\xff\xfe", 400, "the body is not JSON"),
        ("POST", "digits:predict", JSON, b"[" * 8000, 400, "the body is not JSON"),
        ("POST", "digits:predict", JSON, b"[1]", 400, "either"),
        ("POST", "digits:predict", JSON, b'{"instances": 3}', 400, "not a list"),
        ("POST", "digits:predict", JSON, b'{"instances": []}', 400, "at least one row"),
        ("POST", "digits:predict", JSON, json.dumps({"instances": [row[1:]]}).encode(), 400, "feed 'x': expected rows of shape [64], got [63]"),
        ("POST", "digits:predict", JSON, json.dumps({"instances": [row, row[1:]]}).encode(), 400, "different shapes"),
        ("POST", "digits:predict", JSON, json.dumps({"instances": [["a"] * 64]}).encode(), 400, "expected numbers of type float32"),
        ("POST", "digits:predict", JSON, json.dumps({"instances": [{"x": row}, row]}).encode(), 400, "different feeds"),
        ("POST", "digits:predict", JSON, json.dumps({"inputs": {"z": [row]}}).encode(), 400, "expected the feeds x, got z"),
        ("POST", "digits:predict", JSON, json.dumps({"inputs": 1}).encode(), 400, "got one number"),
        ("POST", "digits:predict", JSON, json.dumps({"instances": [row] * 65}).encode(), 413, "at most 64 rows, got 65"),
        ("POST", "digits:predict", BYTES, bytes(255), 400, "expected a multiple of 256 bytes, the size of a row, got 255 bytes"),
        ("POST", "digits:predict", BYTES, b"", 400, "at least one row"),
        ("POST", "digits:predict", BYTES, bytes(65 * 256), 413, "at most 64 rows"),
        ("POST", "digits:predict", JSON, b" " * 20_000_000, 413, "at most 64 rows"),
    ]
    for method, path, kind, body, status, words in cases:
        async with load.session.request(method, server.url(path), data=body, headers={"content-type": kind}) as response:
            text = await response.text()
        if response.status != status or words not in json.loads(text)["error"]:
            raise SystemExit(f"faults: {method} {path} {body[:60]!r}: expected {status} with {words!r}, got {response.status} {text}")
    choose = random.Random(5)
    for _ in range(100):
        # A length that is no multiple of a row's.
        body = choose.randbytes(choose.randrange(100) * 256 % 8192 + choose.randrange(1, 256))
        for kind in (JSON, BYTES):
            async with load.session.post(server.url("digits:predict"), data=body, headers={"content-type": kind}) as response:
                if response.status != 400:
                    raise SystemExit(f"faults: expected 400 for random bytes, got {response.status}: {await response.text()}")
    return len(cases) + 200


FAULTS = [wrong_requests, disconnects, slow_readers, add_version, replace_in_place, damaged_files, kill_replica, kill_proxy]


async def connect(server):
    """Opens a connection with little room for what is not yet read."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", server.port))
    return await asyncio.open_connection(sock=connection, limit=4096)


def head(name, kind, body):
    lines = [f"POST /v1/models/{name}:predict HTTP/1.1", "host: localhost", "connection: close", f"content-type: {kind}", f"content-length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def put(file, place):
    """Copies a file of the repository so that it appears whole."""
    place.mkdir(exist_ok=True)
    shutil.copy(file, place / ".new")
    (place / ".new").rename(place / file.name)


async def until(is_so):
    for _ in range(600):
        if await asyncio.to_thread(is_so):
            return
        await asyncio.sleep(0.1)
    raise SystemExit("faults: the server did not recover within a minute")


async def updated(server, change):
    """Changes the repository, and waits until all replicas have the change."""
    before = server.updates()
    change()
    await asyncio.to_thread(server.wait_for_updates, before + 1)


async def under_load(fault, server, answers, seed):
    """Runs a fault under load, and returns the counts and memory.

    Buffers that a fault needs may stay, and are used again. So while the memory grows, the fault is repeated, at most three times, until
    it grows no more.
    """
    replicas, proxy = [], []

    def sample():
        each, shared = server.memory()
        replicas.append(round(sum(each)))
        proxy.append(round(shared))

    def has_grown():
        return replicas[-1] > replicas[-2] + ROOM or proxy[-1] > proxy[-2] + ROOM

    sample()
    async with Load(server, answers, seed=seed) as load:
        while len(replicas) == 1 or len(replicas) < 5 and has_grown():
            await asyncio.sleep(1)
            times = await fault(load, server)
            await asyncio.sleep(2)
            sample()
    runs = len(replicas) - 1
    row = {"fault": fault.__doc__, "times": runs * times, **load.counts, "mb": replicas, "proxy_mb": proxy}
    print(json.dumps(row), flush=True)
    for line in load.failures:
        print(f"  {line}", file=sys.stderr)
    if load.counts["wrong"] or load.counts["lost"]:
        raise SystemExit(f"faults: {fault.__doc__}: requests were lost or answered wrongly")
    if load.counts["repeated"] and fault not in (kill_replica, kill_proxy):
        raise SystemExit(f"faults: {fault.__doc__}: requests failed")
    if has_grown():
        raise SystemExit(f"faults: {fault.__doc__}: memory grew")
    return row


async def soak(server, answers, seconds):
    """Replaces models under load for a time, and samples the memory."""
    samples = []
    begin = time.monotonic()
    replacements = 0
    async with Load(server, answers, seed=99) as load:
        for name in answers:
            load.results[name][7], load.latest[name] = {1, 2}, {2, 7}
        while time.monotonic() < begin + seconds:

            def change():
                for name in answers:
                    put(server.repository / f"{name}/{1 + replacements % 2}/model.pickle", server.repository / name / "7")

            change()
            replacements += 1
            await asyncio.sleep(5)
            replicas, proxy = server.memory()
            samples.append([round(time.monotonic() - begin), round(sum(replicas), 1), round(proxy, 1)])
            for name in answers:
                load.asked[name], load.latest[name] = [1, 2, 7], {7}
    return {"seconds": seconds, "replacements": replacements, **load.counts, "samples": samples}


def growth(samples):
    """Returns by how many MB the replicas grew in the second half, from the medians of its first and its last third."""
    half = [total for _, total, _ in samples[len(samples) // 2 :]]
    third = len(half) // 3
    return round(statistics.median(half[-third:]) - statistics.median(half[:third]), 1)


async def run(arguments):
    answers = {name: Answers(arguments.models, name) for name in ("digits", "mobilenet")}
    # Faults change the repository.
    changed = arguments.repository.parent / "changed"
    shutil.rmtree(changed, ignore_errors=True)
    shutil.copytree(arguments.repository, changed)
    record = {"faults": []}
    with Server(changed, PORT, "--timeout", str(TIMEOUT)) as server:
        server.repository, server.wide = changed, Answers(arguments.models, "wide")
        async with Load(server, answers):
            await asyncio.sleep(10)
        for number, fault in enumerate(fault for fault in FAULTS if arguments.only in fault.__name__):
            record["faults"].append(await under_load(fault, server, answers, number))
        if arguments.soak:
            record["soak"] = found = await soak(server, answers, arguments.soak)
            found["grown_mb"] = growth(found["samples"])
            print(json.dumps({key: value for key, value in found.items() if key != "samples"}), flush=True)
        if arguments.record:
            arguments.record.write_text(json.dumps(record, indent=1) + "\n")
        if arguments.soak:
            if found["wrong"] or found["lost"] or found["repeated"] or found["grown_mb"] > ROOM:
                raise SystemExit("faults: the soak failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("repository", type=pathlib.Path)
    parser.add_argument("--soak", type=int, default=0)
    parser.add_argument("--record", type=pathlib.Path)
    parser.add_argument("--only", default="", help="part of the name of the faults to cause")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
