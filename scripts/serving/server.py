"""A server of examples/ray_serve in processes of its own, its log, and the memory of its parts."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid

APP = pathlib.Path(__file__).resolve().parents[2] / "examples/ray_serve/app.py"
# Name of the variable that marks the processes of a server, which inherit it.
MARK = "TFCOMPILE_SERVING_MARK"


class Server:
    """A running server. A context manager, which stops it."""

    def __init__(self, repository, port, *options):
        self.mark = uuid.uuid4().hex
        self.port = port
        self.log = pathlib.Path(repository).parent / f"server-{port}.log"
        with self.log.open("w") as log:
            command = [sys.executable, str(APP), str(repository), "--port", str(port), *options]
            self.process = subprocess.Popen(command, env={**os.environ, MARK: self.mark}, stdout=log, stderr=subprocess.STDOUT)
        self.wait_for_updates(1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        # Normally, these have ended.
        for pid in self._marked():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def url(self, path):
        return f"http://127.0.0.1:{self.port}/v1/models/{path}"

    def updates(self):
        """Returns how many times the server has reported new models."""
        return self.log.read_text().count("app: serving ")

    def wait_for_updates(self, count):
        """Waits until the server has reported new models this many times, so that all replicas have them."""
        for _ in range(900):
            if self.updates() >= count:
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise SystemExit(f"serving: the server did not take its models:\n{self.log.read_text()}")

    def processes(self, name):
        """Returns the processes of the server with this name of Ray's, such as `ServeReplica`."""
        return [pid for pid in self._marked() if _read(pid, "cmdline").startswith(f"ray::{name}".encode())]

    def memory(self):
        """Returns the resident memory in MB: each replica's, and the proxy's."""
        return [_resident(pid) for pid in self.processes("ServeReplica")], sum(map(_resident, self.processes("ProxyActor")))

    def answers(self, path="digits"):
        """True if the server describes a model."""
        try:
            with urllib.request.urlopen(self.url(path), timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def _marked(self):
        wanted = f"{MARK}={self.mark}".encode()
        numbers = [int(place.name) for place in pathlib.Path("/proc").iterdir() if place.name.isdecimal()]
        return [pid for pid in numbers if wanted in _read(pid, "environ").split(b"\0")]


def _read(pid, file):
    try:
        return pathlib.Path(f"/proc/{pid}/{file}").read_bytes()
    except OSError:
        return b""


def _resident(pid):
    lines = _read(pid, "status").decode().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1e3
