"""Requests whose answers are compared with those that TensorFlow computed (models.py)."""

import asyncio
import json
import random

import aiohttp
import numpy as np

# Largest difference from TensorFlow's answer, relative to the largest number in it.
TOLERANCE = 1e-4
JSON, BYTES = "application/json", "application/octet-stream"

# Seconds after which a client or the server gives up, also on a machine that does other work.
TIMEOUT = 300


class Answers:
    """Rows of a model, and the right results by version."""

    def __init__(self, directory, name):
        stored = {version: np.load(directory / name / str(version) / "answers.npz") for version in (1, 2)}
        self.x = stored[1]["x"]
        self.y = {version: arrays["y"] for version, arrays in stored.items()}
        assert all(np.array_equal(arrays["x"], self.x) for arrays in stored.values())
        # An answer must show which version computed it.
        for row in range(len(self.x)):
            assert not self.is_right(1, slice(row, row + 1), self.y[2][row : row + 1])

    def is_right(self, version, rows, got):
        want = self.y[version][rows]
        return got.shape == want.shape and bool(np.abs(got - want).max() <= TOLERANCE * np.abs(want).max())

    def body(self, kind, rows):
        """Returns the bytes of a request for these rows."""
        x = self.x[rows]
        return x.tobytes() if kind == BYTES else json.dumps({"instances": x.tolist()}).encode()

    def read(self, kind, content):
        """Returns the array of a response."""
        if kind == BYTES:
            return np.frombuffer(content, np.float32).reshape(-1, self.y[1].shape[1])
        return np.array(json.loads(content)["predictions"], np.float32)


class Load:
    """Clients that each send one request after another, until the load is stopped.

    A request that fails because its connection or its replica is gone, or because the server has too many, is sent again, as a client
    in production would. `counts` has requests that were answered, attempts that failed and were repeated, wrong answers, and requests
    that were never answered.
    """

    def __init__(self, server, answers, clients=8, seed=0):
        self.server, self.answers = server, answers
        self.counts = {"answered": 0, "repeated": 0, "wrong": 0, "lost": 0}
        # What failed first, for the report.
        self.failures = []
        # By model: versions that clients ask for, versions that may answer if a client asks for
        # none, and, for each version, those of `answers` whose results are right.
        self.asked = {name: [1, 2] for name in answers}
        self.latest = {name: {2} for name in answers}
        self.results = {name: {1: {1}, 2: {2}} for name in answers}
        self.seed, self.clients = seed, clients

    async def __aenter__(self):
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=TIMEOUT))
        self.is_stopped = False
        self.tasks = [asyncio.create_task(self._client(random.Random(self.seed * 1000 + number))) for number in range(self.clients)]
        return self

    async def __aexit__(self, *_):
        self.is_stopped = True
        await asyncio.gather(*self.tasks)
        await self.session.close()

    async def _client(self, choose):
        while not self.is_stopped:
            # Most requests are for the small model: they load the server, not the processor.
            name = choose.choices(list(self.answers), [9] + [1] * (len(self.answers) - 1))[0]
            version = choose.choice([None, *self.asked[name]])
            first = choose.randrange(56)
            await self.request(name, version, slice(first, first + choose.randint(1, 8)), choose.choice([JSON, BYTES]))

    async def request(self, name, version, rows, kind):
        """Sends a request until it is answered, and counts."""
        path = f"{name}:predict" if version is None else f"{name}/versions/{version}:predict"
        answers = self.answers[name]
        body = answers.body(kind, rows)
        allowed = set(self.latest[name]) if version is None else {version}
        results = {number: set(can) for number, can in self.results[name].items()}
        for _ in range(240):
            try:
                async with self.session.post(self.server.url(path), data=body, headers={"content-type": kind}) as response:
                    content = await response.read()
            except (aiohttp.ClientError, OSError, asyncio.TimeoutError) as error:
                self._failed("repeated", f"{path}: {error!r}")
                await asyncio.sleep(0.25)
                continue
            if response.status >= 500:
                self._failed("repeated", f"{path}: {response.status} {content[:300]!r}")
                await asyncio.sleep(0.25)
                continue
            break
        else:
            return self._failed("lost", path)
        allowed |= set(self.latest[name]) if version is None else set()
        answering = int(response.headers.get("x-model-version", 0))
        possible = results.get(answering, set()) | self.results[name].get(answering, set())
        if response.status != 200 or answering not in allowed:
            return self._failed("wrong", f"{path}: {response.status} from version {answering}, not {allowed}: {content[:300]!r}")
        got = answers.read(kind, content)
        if not any(answers.is_right(result, rows, got) for result in possible):
            return self._failed("wrong", f"{path}: the numbers differ from those of {possible}")
        self.counts["answered"] += 1

    def _failed(self, count, what):
        self.counts[count] += 1
        if len(self.failures) < 20:
            self.failures.append(f"{count}: {what}")
