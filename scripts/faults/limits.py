#!/usr/bin/env python3
"""Runs the tool with little memory, few threads, and clocks that jump.

  limits.py TOOL --shim SHIM.so [--every N] [--jobs N] [--only NAME]

A run must succeed with the same files and the same output as without a limit, or exit with status 1
and one message with a code, and leave no file. It never ends by a signal.

- memory: `ulimit -v`, from what `tfcompile --version` needs, and 1 MiB for the growing stack, up to
  what the command needs: below, libraries fail before the tool begins;
  and one failing allocation, for allocations all over the run
- threads: only so many start, or a single one does not
- clocks: the time of day and the time since the machine started jump with every call
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

import files

# As in files.py. Their files must not contain times.
COMMANDS = [c for c in files.COMMANDS if c.name in (
    "build", "build-again", "build-shared", "build-c", "build-web", "build-gpu", "original", "aot-compile-cpu", "freeze",
    "extract", "hlo", "init", "quantize", "run-state")]
COMMANDS += [
    files.command("run-threads", f"run {files.LAYER} --random=1 --threads=3 -q --out=results.npz"),
    files.command(
        "run-clusters",
        f"run {files.LAYER} --random=1 --jit=2 --threads=3 --steps=3 -q --out=results.npz",
        {"TF_XLA_FLAGS": "--tf_xla_async_compilation --tf_xla_persistent_cache_directory=cache"},
    ),
    files.command("verify", f"verify {files.LAYER} -q"),
    files.command("check", f"check {files.LAYER}"),
]
# What these print contains times, and so do the choices for which they take time.
TIMED = ["bench", "build-tuned", "profile", "run-session"]
COMMANDS += [c for c in files.COMMANDS if c.name in TIMED]
COMMANDS += [files.command("bench", f"bench {files.LAYER} --random=1 --seconds=0.05 --threads=1,3 --kernels")]

# What the standard library of Rust says before it ends the process because it has no memory for a
# thread's handle, which it does not take from the tool's allocator. No other sizes are accepted.
THREAD_HANDLE = b"memory allocation of 48 bytes failed"
# Steps from the least to the greatest limit of memory.
MEMORY_STEPS = 24
# Allocations of a run that fail, each in a run of its own; and the sizes that count.
FAILING_ALLOCATIONS = 40
SIZES = [1, 4096, 100_000]
CLOCKS = 8


class Limited(files.Place):
    """A directory in which the tool runs with a limit."""

    def __init__(self, tool, parent, shim):
        super().__init__(tool, parent)
        self.shim = shim

    def start(self, command, memory=None, **faults):
        variables = {**command.environment, **{name: str(value) for name, value in faults.items()}}
        if faults:
            variables["LD_PRELOAD"] = self.shim
        variables.update({"PATH": os.environ["PATH"], "HOME": str(self.work), "TMPDIR": str(self.work / "tmp")})
        limit = None if memory is None else lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        try:
            return subprocess.run(
                [self.tool] + command.arguments, cwd=self.work, env=variables, capture_output=True, timeout=120, preexec_fn=limit
            )
        except subprocess.TimeoutExpired as error:
            return subprocess.CompletedProcess(error.cmd, -1000, error.stdout or b"", error.stderr or b"")


class Case(files.Case):
    """A command with its files and its output without limits."""

    def __init__(self, command, tool, shim, parent):
        self.command, self.tool, self.shim, self.parent = command, tool, shim, parent
        place = Limited(tool, parent, shim)
        self.prepare(place)
        self.old = place.files()
        counts = place.path / "counts"
        done = place.start(command, FAULT_COUNTS=counts)
        if done.returncode != 0:
            sys.exit(f"{command.name}: without limits, it fails ({done.returncode}): {done.stderr.decode()}")
        self.new = place.files()
        self.printed = done.stdout
        self.threads, self.allocations = (int(number) for number in re.findall(r"\d+", counts.read_text()))
        place.remove()
        self.large = {1: self.allocations}
        for size in SIZES[1:]:
            place = Limited(tool, parent, shim)
            self.prepare(place)
            counts = place.path / "counts"
            place.start(command, FAULT_COUNTS=counts, FAULT_MEMORY_SIZE=size)
            self.large[size] = int(re.findall(r"\d+", counts.read_text())[1])
            place.remove()

    def is_timed(self):
        return self.command.name in TIMED

    def check(self, memory, faults):
        """Returns what is wrong, and a word for the outcome."""
        place = Limited(self.tool, self.parent, self.shim)
        try:
            self.prepare(place)
            done = place.start(self.command, memory, **faults)
            errors = done.stderr.decode(errors="replace")
            if "FAULT_MEMORY" in faults and done.stderr.startswith(THREAD_HANDLE):
                return [], "ended by the standard library"
            found = place.files()
            if done.returncode == 0:
                bad = self.differences(found)
                if done.stdout != self.printed and not self.is_timed():
                    bad.append(f"prints {done.stdout.decode(errors='replace')!r}")
                return bad, "succeeded"
            bad = []
            if done.returncode != 1:
                bad.append(f"status {done.returncode}: {errors}")
            elif len(files.CODE.findall(errors)) != 1 or "INTERNAL ERROR" in errors:
                bad.append(f"expected one message, got: {errors}")
            # The message about memory may come while temporary files exist.
            return bad + self.left_over(found, "E0107" in errors), "failed"
        finally:
            place.remove()

    def needed_memory(self, command, low):
        """Bytes of address space with which a command succeeds, to 1 MiB."""
        high = 8 << 30
        while high - low > 1 << 20:
            middle = (low + high) // 2
            place = Limited(self.tool, self.parent, self.shim)
            self.prepare(place)
            if place.start(command, middle).returncode == 0:
                high = middle
            else:
                low = middle
            place.remove()
        return high

    def tasks(self):
        """Limits and faults to run with."""
        least = self.needed_memory(files.command("version", "--version"), 16 << 20) + (1 << 20)
        needed = self.needed_memory(self.command, least)
        tasks = [("memory", least + (needed - least) * step // MEMORY_STEPS, {}) for step in range(MEMORY_STEPS)]
        for size, count in self.large.items():
            step = max(1, count // FAILING_ALLOCATIONS)
            tasks += [
                ("allocation", None, {"FAULT_MEMORY": number, "FAULT_MEMORY_SIZE": size}) for number in range(0, count, step)
            ]
        tasks += [("threads", None, {"FAULT_THREAD": number}) for number in range(self.threads)]
        tasks += [("thread", None, {"FAULT_THREAD_ONCE": number}) for number in range(self.threads)]
        tasks += [("clock", None, {"FAULT_CLOCK": seed}) for seed in range(1, CLOCKS + 1)]
        return tasks


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--shim", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    chosen = [c for c in COMMANDS if re.search(arguments.only, c.name)]
    counts, failures = collections.Counter(), []
    with tempfile.TemporaryDirectory() as parent, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        turn = 0
        for command in chosen:
            case = Case(command, arguments.tool, arguments.shim, parent)
            tasks = []
            for task in case.tasks():
                turn += 1
                if turn % arguments.every == 0:
                    tasks.append(task)
            results = pool.map(lambda task: case.check(*task[1:]), tasks)
            before = len(failures)
            for (kind, memory, faults), (bad, outcome) in zip(tasks, results):
                counts[kind, outcome] += 1
                if bad:
                    failures.append(f"{command.name}: {kind} {memory or ''} {faults or ''}: " + "; ".join(bad[:4]))
            print(f"{command.name}: {case.threads} threads, {case.allocations} allocations, {len(tasks)} runs, {len(failures) - before} wrong", flush=True)
    for failure in failures:
        print(failure[:2000])
    for (kind, outcome), count in sorted(counts.items()):
        print(f"{kind}: {count} {outcome}")
    print(f"limits: {sum(counts.values())} runs of {len(chosen)} commands, {len(failures)} wrong")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
