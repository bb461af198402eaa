"""The processes of a job: those that a command starts, and which of them to kill. Reads /proc."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Callable, NamedTuple


class Process(NamedTuple):
    number: int
    parent: int
    command: str


def descendants(root: int) -> list[Process]:
    """Returns the processes below another one."""
    found = {}
    for directory in Path("/proc").iterdir():
        if not directory.name.isdigit():
            continue
        try:
            stat = (directory / "stat").read_text()
            command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        # The name, in parentheses, may contain spaces.
        found[int(directory.name)] = Process(int(directory.name), int(stat.rpartition(")")[2].split()[1]), command)
    below = []
    for process in found.values():
        parent = process.parent
        while parent in found and parent != root:
            parent = found[parent].parent
        if parent == root:
            below.append(process)
    return below


class Kill(NamedTuple):
    """A kill during a job."""

    what: str
    # True for processes to choose from, given them all.
    is_victim: Callable[[Process, dict[int, Process]], bool]
    # True when the job has gone far enough.
    is_time: Callable[[], bool]


def run(command: list[str], environment: dict[str, str], kills: list[Kill], log: Path, limit: float) -> list[str]:
    """Runs a job, kills processes of it one after the other with SIGKILL, and returns a line for each kill.

    Raises `RuntimeError` if the job fails, if it takes more seconds than the limit, or if it ends before all kills.
    """
    lines = []
    end = time.monotonic() + limit
    with log.open("wb") as out:
        job = subprocess.Popen(command, env={**os.environ, **environment}, stdout=out, stderr=subprocess.STDOUT)
    try:
        remaining = list(kills)
        while job.poll() is None:
            if time.monotonic() > end:
                raise RuntimeError(f"the job took more than {limit:.0f} s: {tail(log)}")
            if remaining and remaining[0].is_time():
                below = {process.number: process for process in descendants(job.pid)}
                victims = [process for process in below.values() if remaining[0].is_victim(process, below)]
                if victims:
                    os.kill(victims[0].number, signal.SIGKILL)
                    lines.append(f"killed {remaining.pop(0).what}")
            time.sleep(0.02)
    finally:
        if job.poll() is None:
            for process in descendants(job.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.number, signal.SIGKILL)
            job.kill()
            job.wait()
    if job.returncode != 0:
        raise RuntimeError(f"the job failed: {tail(log)}")
    if remaining:
        raise RuntimeError(f"the job ended before {remaining[0].what} was killed; it needs more rows")
    return lines


def tail(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:]
