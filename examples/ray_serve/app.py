"""Serves the compiled models of a repository with Ray Serve.

    python app.py REPOSITORY [--port 8501] [--replicas 2] [--wait 0.002] [--timeout 60] [--engine tfcompile|onnxruntime]

repository.py writes the repository: NAME/VERSION/model.pickle. Requests have TensorFlow Serving's form,

    POST /v1/models/NAME[/versions/VERSION]:predict

with JSON or raw bytes (protocol.py); without a version, the highest one answers. The header X-Model-Version of a response names it. The
server follows the repository: new, replaced, and removed versions take effect within a second, and requests that have arrived are
answered by the version that they asked for. It ends on SIGTERM or SIGINT.
"""

import argparse
import asyncio
import json
import logging
import os
import re
import signal
import sys
import threading
from pathlib import Path

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# By default, Ray's workers yield to every other process of the machine.
os.environ.setdefault("RAY_worker_niceness", "0")

import numpy as np
import protocol
import ray
from engines import ENGINES
from protocol import Wrong
from ray import serve
from starlette.requests import Request
from starlette.responses import Response

ROUTE = "/v1/models"
PATH = re.compile(r"/([^/:]+)(?:/versions/([^/:]+))?(?::(\w+))?")


class Version:
    """A loaded version of a model."""

    def __init__(self, number: int, engine, identity: list):
        self.number = number
        self.engine = engine
        # The path and the state of the file.
        self.identity = identity


class Task:
    """A request that waits to be computed together with others."""

    def __init__(self, version: Version, feeds: dict[str, np.ndarray]):
        self.version = version
        self.feeds = feeds
        self.rows = len(next(iter(feeds.values())))


def together(tasks: list[Task]) -> list[list[Task]]:
    """Splits tasks into batches of one version each, with at most as many rows as its engine takes."""
    batches: list[list[Task]] = []
    filled: dict[Version, int] = {}
    open_batches: dict[Version, list[Task]] = {}
    for task in tasks:
        version = task.version
        if filled.get(version, version.engine.limit) + task.rows > version.engine.limit:
            open_batches[version], filled[version] = [], 0
            batches.append(open_batches[version])
        open_batches[version].append(task)
        filled[version] += task.rows
    return batches


def compute(tasks: list[Task]) -> list[dict[str, np.ndarray]]:
    """Computes tasks of one version in one call, and returns their fetches."""
    names = tasks[0].feeds
    feeds = tasks[0].feeds if len(tasks) == 1 else {name: np.concatenate([task.feeds[name] for task in tasks]) for name in names}
    fetches = tasks[0].version.engine(feeds)
    answers, begin = [], 0
    for task in tasks:
        answers.append({name: array[begin : begin + task.rows] for name, array in fetches.items()})
        begin += task.rows
    return answers


def queue(wait: float):
    """Returns a function that computes a task, together with those that arrive within `wait` seconds."""

    @serve.batch(max_batch_size=64, batch_wait_timeout_s=wait)
    async def answer(tasks: list[Task]) -> list:
        answers = {}
        for batch in together(tasks):
            try:
                # The engine releases the GIL, so requests are read meanwhile.
                found = await asyncio.to_thread(compute, batch)
            except Exception as error:  # noqa: BLE001: the other batches must not fail
                found = [error] * len(batch)
            answers.update(zip(map(id, batch), found))
        results = [answers[id(task)] for task in tasks]
        for task in tasks:
            # Ray keeps the last tasks until others arrive. They must not keep a replaced model.
            task.version = task.feeds = None
        return results

    return answer


# With the same version of the code, Serve updates the replicas in place instead of replacing them.
# Ray deprecates `version` here in favor of configuration files, for which its dashboard must run.
@serve.deployment(version="1", max_ongoing_requests=128, max_queued_requests=1000, ray_actor_options={"num_cpus": 1})
class Models:
    """All models, in each replica. Replicas on one machine map the same files of weights."""

    def __init__(self, engine: str, wait: float):
        self.engine = ENGINES[engine]
        self.wait = wait
        self.models: dict[str, dict[int, Version]] = {}
        # Queues outlive the versions of their model.
        self.queues = {}

    async def reconfigure(self, files: dict[str, dict[str, list]]) -> None:
        """Loads the versions that are new in the configuration, then replaces all at once."""
        models = {}
        for name, versions in files.items():
            loaded = {}
            for number, identity in versions.items():
                version = self.models.get(name, {}).get(int(number))
                if version is None or version.identity != identity:
                    try:
                        version = Version(int(number), await asyncio.to_thread(self.engine, Path(identity[0])), identity)
                    except Exception as error:  # noqa: BLE001: anything can be in the file
                        # The other models are served. What is loaded stays.
                        logging.getLogger("ray.serve").error("cannot load %s: %s", identity[0], error)
                if version is not None:
                    loaded[int(number)] = version
            models[name] = loaded
            self.queues.setdefault(name, queue(self.wait))
        self.models = models

    async def __call__(self, request: Request) -> Response:
        try:
            return await self.answer(request)
        except Wrong as error:
            return Response(json.dumps({"error": str(error)}), error.status, media_type=protocol.JSON)

    async def answer(self, request: Request) -> Response:
        path = request.url.path.removeprefix(ROUTE)
        parts = PATH.fullmatch(path)
        if not parts:
            raise Wrong(404, f"expected {ROUTE}/NAME[/versions/VERSION]:predict, got {ROUTE}{path}")
        name, number, verb = parts.groups()
        versions = self.models.get(name)
        if not versions:
            raise Wrong(404, f"unknown model '{name}'; the models are {', '.join(sorted(self.models)) or 'none'}")
        if number is not None and not (number.isdecimal() and int(number) in versions):
            raise Wrong(404, f"unknown version '{number}' of model '{name}'; the versions are {', '.join(map(str, sorted(versions)))}")
        if verb is None and request.method == "GET":
            return self.describe(versions if number is None else {int(number): versions[int(number)]})
        if verb != "predict" or request.method != "POST":
            raise Wrong(405, f"expected POST {ROUTE}/{name}:predict, got {request.method} {ROUTE}{path}")
        version = versions[max(versions) if number is None else int(number)]
        try:
            return await self.predict(name, version, request)
        except Wrong as error:
            raise Wrong(error.status, f"model '{name}', version {version.number}: {error}") from None

    def describe(self, versions: dict[int, Version]) -> Response:
        def arrays(entries):
            return {entry: {"type": str(dtype), "row": list(shape)} for entry, (dtype, shape) in entries.items()}

        described = [
            {"version": str(number), "state": "AVAILABLE", "rows": version.engine.limit, "feeds": arrays(version.engine.feeds), "fetches": arrays(version.engine.fetches)}
            for number, version in sorted(versions.items())
        ]
        return Response(json.dumps({"model_version_status": described}), media_type=protocol.JSON)

    async def predict(self, name: str, version: Version, request: Request) -> Response:
        engine = version.engine
        kind = request.headers.get("content-type", protocol.JSON).partition(";")[0].strip().lower()
        longest = protocol.largest_body(kind, engine.feeds, engine.limit)
        too_long = Wrong(413, f"expected at most {engine.limit} rows, in at most {longest} bytes")
        if int(request.headers.get("content-length", 0)) > longest:
            raise too_long
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > longest:
                raise too_long
        feeds, form = protocol.parse(kind, bytes(body), engine.feeds, engine.limit)
        fetches = await self.queues[name](Task(version, feeds))
        if isinstance(fetches, Exception):
            raise Wrong(500, str(fetches))
        kind, content = protocol.write(form, fetches)
        return Response(content, media_type=kind, headers={"X-Model-Version": str(version.number)})


def found(repository: Path, file: str) -> dict[str, dict[str, list]]:
    """Returns the files of the repository with their states, by name and version."""
    models: dict[str, dict[str, list]] = {}
    for path in sorted(repository.glob(f"*/*/{file}")):
        name, version = path.parts[-3:-1]
        if version.isdecimal() and not name.startswith("."):
            try:
                state = path.stat()
            except FileNotFoundError:
                continue
            models.setdefault(name, {})[str(int(version))] = [str(path.resolve()), state.st_mtime_ns, state.st_ino]
    return models


def report_unusable(files: dict[str, dict[str, list]], seen: dict[str, dict[str, list]], engine) -> None:
    """Prints which new files cannot be loaded. The replicas leave them out."""
    for name, versions in files.items():
        for number, identity in versions.items():
            if identity != seen.get(name, {}).get(number):
                try:
                    engine(Path(identity[0]))
                except Exception as error:  # noqa: BLE001: anything can be in the file
                    print(f"app: cannot load {identity[0]}: {error}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--port", type=int, default=8501)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--wait", type=float, default=0.002, help="seconds for which a request waits for others")
    parser.add_argument("--timeout", type=float, default=60, help="seconds after which Serve answers 408 for a request")
    parser.add_argument("--engine", choices=ENGINES, default="tfcompile")
    arguments = parser.parse_args()
    engine = ENGINES[arguments.engine]
    if not (files := found(arguments.repository, engine.FILE)):
        raise SystemExit(f"app: no {engine.FILE} in {arguments.repository}/NAME/VERSION: run repository.py")
    ray.init(num_cpus=arguments.replicas, include_dashboard=False, log_to_driver=False, logging_level="warning")
    serve.start(http_options={"host": "127.0.0.1", "port": arguments.port, "request_timeout_s": arguments.timeout})
    # After Ray, which has handlers of its own.
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    quiet = {"log_level": "WARNING", "enable_access_log": False}
    seen: dict = {}
    while True:
        if files != seen:
            report_unusable(files, seen, engine)
            deployment = Models.options(num_replicas=arguments.replicas, user_config=files, logging_config=quiet)
            serve.run(deployment.bind(arguments.engine, arguments.wait), name="models", route_prefix=ROUTE)
            told = ", ".join(f"{name}/{number}" for name, versions in files.items() for number in versions)
            print(f"app: serving {told} on port {arguments.port}", flush=True)
            seen = files
        if stop.wait(0.5):
            break
        files = found(arguments.repository, engine.FILE)
    serve.shutdown()
    ray.shutdown()


if __name__ == "__main__":
    main()
