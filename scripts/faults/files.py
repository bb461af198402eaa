#!/usr/bin/env python3
"""Lets each call of the tool that touches a file fail, and kills the tool before each.

  files.py TOOL [--every N] [--jobs N] [--only NAME] [--keep]

Each command below runs once without faults, which gives its files and the number N of its calls on
files. Then it runs again, in a directory of its own, for each call and each kind of fault that
inject.c lists. `--every 9` takes every ninth call.

A run that fails must exit with status 1 and one message with a code, leave no new file, and leave
old files unchanged or remove them. A run that succeeds must write the same files as without faults:
only caches may fail silently. A killed run must leave each file complete, old or new. The same
command, run again in the same directory with the caches that the killed run left, must succeed and
write the right files.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODES = ["fail", "full", "locked", "short", "kill"]
# Names of temporary files, which a killed process cannot remove.
UNFINISHED = re.compile(r"(^|/)(\.tfcompile-|\.unfinished-|\.tmp)[^/]*(/.*)?$")
# Directories of caches: their files may exist after a failure.
CACHES = re.compile(r"^(\.cache/|cache/)")
CODE = re.compile(r"^\(E\d{4}: `tfcompile explain E\d{4}` says more\)$", re.M)

Command = collections.namedtuple("Command", "name arguments environment before timed reads")


def command(name, arguments, environment=None, before=None, timed="", reads=None):
    """A command, in words that spaces separate.

    `before`: commands that make the old files. `timed`: a pattern of files that contain times and
    therefore differ. `reads`: a command that reads the files after a kill, and may refuse them, but
    must not print anything else than for the old or for the new files.
    """
    return Command(name, arguments.split(), environment or {}, before or [], re.compile(timed + "$"), reads)


LAYER = "layer.pbtxt --config=layer.config.pbtxt"
# A variable that each step increases.
COUNTS = "counts.pb --config=counts.config.pbtxt --random=1 --quiet"
COMMANDS = [
    command("build", f"build {LAYER} -o out -q --keep-unchanged --depfile=out/layer.d"),
    command(
        "build-again",
        f"build {LAYER} -o out -q --no-runtime-headers --keep-unchanged --constants=file"
        " --emit=obj,header,c-header,rust,archive,metadata,test,benchmark,hlo-text,html,session-module",
        before=["build layer.pbtxt --config=old.config.pbtxt -o out -q --no-runtime-headers --constants=file"],
    ),
    command("build-shared", f"build {LAYER} -o out -q --emit=shared --no-kernel-cache"),
    command("build-c", f"build {LAYER} -o out -q --emit=c,header --no-runtime-headers"),
    command("build-web", f"build {LAYER} -o out -q --target=wasm32 --kernel-cache=cache"),
    command("build-gpu", f"build {LAYER} -o out -q --target=cuda --no-runtime-headers"),
    command(
        "build-tuned",
        "build counts.pb --config=counts.config.pbtxt -o out -q --no-runtime-headers --autotune=t.tuning"
        " --autotune-seconds=0.1 --target-cpu=native",
        timed=r"t\.tuning|out/.*",
    ),
    command("build-dumped", f"build {LAYER} -o out -q --no-runtime-headers", {"XLA_FLAGS": "--xla_dump_to=dump"}),
    command(
        "original",
        "--graph=layer.pbtxt --config=layer.config.pbtxt --cpp_class=a::Layer --out_header=out.h"
        " --out_function_object=out.o --out_metadata_object=out_metadata.o",
    ),
    command(
        "aot-compile-cpu",
        "aot-compile-cpu --dir=saved_model --output_prefix=out/model --cpp_class=a::Model --dim=batch=1",
    ),
    command(
        "freeze",
        "freeze --input_graph=kept.pb --input_binary --input_checkpoint=kept.ckpt --output_node_names=x_y_sum"
        " --output_graph=frozen.pb",
    ),
    command("extract", "xla-extract --in_graph=layer.pbtxt --target_node=y --shape=x=2,4 --out_graph=layer.hlo"),
    command("hlo", f"hlo {LAYER} --stage=optimized --format=html -o layer.html"),
    command("headers", "headers -o include"),
    command("init", f"init project --build=web --model={LAYER}"),
    command("quantize", f"quantize {LAYER} --scheme=int8-weights -o layer.mlir"),
    command(
        "run-state",
        f"run {COUNTS} --steps=3 --out=results.npz --save=model",
        before=[f"run {COUNTS} --steps=1 --save=model"],
        reads=f"run {COUNTS} --steps=1 --variables=model",
    ),
    command(
        "run-safetensors",
        f"run {COUNTS} --steps=3 --save=model.safetensors",
        before=[f"run {COUNTS} --steps=1 --save=model.safetensors"],
        reads=f"run {COUNTS} --steps=1 --variables=model.safetensors",
    ),
    command(
        "run-session",
        f"run {LAYER} --random=1 --jit=2 --quiet --out=results.npz --timeline=t.json --trace=FULL_TRACE",
        {"TF_XLA_FLAGS": "--tf_xla_persistent_cache_directory=cache"},
        timed=r"t\.json|run_metadata\.pb(txt)?",
    ),
    command("profile", f"profile {LAYER} --random=1 --steps=2 -o p.html", timed=r"p\.html"),
]


def prepare(directory):
    """Copies the inputs of all commands to an empty directory."""
    def copy(source, name):
        shutil.copyfile(ROOT / source, directory / name)

    tests = "tests/oracle/tfcompile_tests"
    copy("examples/builds/layer.pbtxt", "layer.pbtxt")
    copy("examples/builds/layer.config.pbtxt", "layer.config.pbtxt")
    text = (directory / "layer.config.pbtxt").read_text()
    assert "size: 2" in text
    (directory / "old.config.pbtxt").write_text(text.replace("size: 2", "size: 5"))
    copy(f"{tests}/tfvariable_sequential_updates/graph.pb", "counts.pb")
    copy(f"{tests}/tfvariable_sequential_updates/config.pbtxt", "counts.config.pbtxt")
    copy(f"{tests}/tfadd_with_ckpt/graph.pb", "kept.pb")
    copy(f"{tests}/tfadd_with_ckpt/graph.ckpt", "kept.ckpt")
    shutil.copytree(ROOT / "tests/saved_models/keras3", directory / "saved_model")


class Place:
    """A directory with the inputs, in which a command runs."""

    def __init__(self, tool, parent):
        self.tool = tool
        self.path = pathlib.Path(tempfile.mkdtemp(dir=parent))
        self.work = self.path / "work"
        self.work.mkdir()
        (self.work / "tmp").mkdir()
        prepare(self.work)

    def run(self, words, environment, inject=()):
        """Runs the tool; with the words of `inject`, below the injector."""
        inject = [str(part) for part in inject]
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.work), "TMPDIR": str(self.work / "tmp"), **environment}
        # In the name of the user's library path, if LLVM is elsewhere.
        if "LD_LIBRARY_PATH" in os.environ:
            variables["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
        return subprocess.run(
            inject + [self.tool] + words, cwd=self.work, env=variables, capture_output=True, timeout=300
        )

    def files(self):
        """The files, with their contents."""
        found = {}
        for folder, _, names in os.walk(self.work):
            for name in names:
                path = pathlib.Path(folder, name)
                found[str(path.relative_to(self.work))] = path.read_bytes()
        return found

    def log(self):
        return (self.path / "log").read_text().splitlines()

    def remove(self):
        shutil.rmtree(self.path)


def is_complete(name, contents):
    """True if a file whose contents vary is complete."""
    if name.endswith(".json"):
        try:
            return json.loads(contents) is not None
        except ValueError:
            return False
    if name.endswith(".html"):
        return contents.rstrip().endswith(b"</html>")
    return len(contents) > 0


class Case:
    """A command with what it writes if nothing fails."""

    def __init__(self, command, tool, injector, parent):
        self.command, self.tool, self.injector, self.parent = command, tool, injector, parent
        place = Place(tool, parent)
        self.prepare(place)
        self.old = place.files()
        self.old_reading = self.reading(place)
        done = place.run(command.arguments, command.environment, self.words(place, "count"))
        if done.returncode != 0:
            sys.exit(f"{command.name}: without faults, it fails ({done.returncode}): {done.stderr.decode()}")
        self.calls = place.log()
        self.new = place.files()
        self.new_reading = self.reading(place)
        place.remove()

    def prepare(self, place):
        for words in self.command.before:
            done = place.run(words.split(), {})
            assert done.returncode == 0, done.stderr.decode()

    def reading(self, place):
        """What the reading command prints, or None if it refuses the files with a message."""
        if self.command.reads is None:
            return None
        done = place.run(self.command.reads.split(), {})
        if done.returncode == 1 and CODE.search(done.stderr.decode()):
            return None
        return done.stdout if done.returncode == 0 else f"status {done.returncode}"

    def words(self, place, mode, *number):
        return [self.injector, place.work, mode, *number, place.path / "log"]

    def is_allowed(self, name, contents, also_old):
        """True if a file is complete: as without faults or, if `also_old`, as before."""
        return (
            contents == self.new.get(name)
            or (also_old and contents == self.old.get(name))
            or bool(self.command.timed.match(name) and is_complete(name, contents))
        )

    def partial(self, found, also_old):
        """Says which files are not complete."""
        names = [name for name, contents in found.items() if not UNFINISHED.search(name) and not name.startswith("tmp/cc")]
        names = [name for name in names if not self.is_allowed(name, found[name], also_old)]
        return [f"{name} is {'not complete' if name in self.new else 'unexpected'}" for name in names]

    def differences(self, found):
        """Says which files are not as after a run without faults."""
        missing = [name for name in self.new if name not in found and not CACHES.match(name)]
        return self.partial(found, False) + [f"{name} is missing" for name in missing]

    def left_over(self, found, refuses_removal):
        """Says which files a run that fails should not have written."""
        bad = []
        for name, contents in found.items():
            if self.old.get(name) == contents or (refuses_removal and UNFINISHED.search(name)):
                continue
            # Of the linker.
            if name.startswith("tmp/cc"):
                continue
            # Dumps are for examining failures, and a system that refuses to remove a file keeps it.
            if CACHES.match(name) or name.startswith("dump/") or refuses_removal:
                if not self.is_allowed(name, contents, True):
                    bad.append(f"{name} is not complete")
            else:
                bad.append(f"{name} {'changed' if name in self.old else 'exists'}")
        return bad

    def check(self, mode, number):
        """Runs with a fault, and returns what is wrong, and a word for the outcome."""
        place = Place(self.tool, self.parent)
        try:
            self.prepare(place)
            done = place.run(self.command.arguments, self.command.environment, self.words(place, mode, number))
            found = place.files()
            errors = done.stderr.decode(errors="replace")
            if mode == "kill":
                # Threads may have made fewer calls this time.
                if done.returncode != 137:
                    return ([] if done.returncode == 0 else [f"status {done.returncode}: {errors}"]), "survived"
                bad = self.partial(found, True)
                reading = self.reading(place)
                if reading not in (None, self.old_reading, self.new_reading):
                    bad.append(f"reading the files prints {reading}")
                again = place.run(self.command.arguments, self.command.environment)
                if again.returncode == 0:
                    bad += [f"run again, {text}" for text in self.differences(place.files())]
                # A project is never written over files.
                elif self.command.name != "init" or b"already exists: name another directory" not in again.stderr:
                    bad.append(f"run again, it fails: {again.stderr.decode(errors='replace')}")
                return bad, "killed"
            if done.returncode == 0:
                return self.differences(found), "succeeded"
            bad = []
            if done.returncode != 1:
                bad.append(f"status {done.returncode}: {errors}")
            elif len(CODE.findall(errors)) != 1 or "INTERNAL ERROR" in errors:
                bad.append(f"expected one message, got: {errors}")
            call = self.calls[number - 1].split()[0]
            return bad + self.left_over(found, mode == "locked" or (mode == "fail" and call == "unlink")), "failed"
        finally:
            place.remove()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--injector", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    chosen = [c for c in COMMANDS if re.search(arguments.only, c.name)]
    points = runs = 0
    failures = []
    outcomes = collections.Counter()
    with tempfile.TemporaryDirectory() as parent, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        turn = 0
        for chosen_command in chosen:
            case = Case(chosen_command, arguments.tool, arguments.injector, parent)
            tasks = []
            for number in range(1, len(case.calls) + 1):
                for mode in MODES:
                    turn += 1
                    if mode == "short" and not case.calls[number - 1].startswith("write "):
                        continue
                    if turn % arguments.every == 0:
                        tasks.append((mode, number))
            results = list(pool.map(lambda task: case.check(*task), tasks))
            bad_here = 0
            for (mode, number), (bad, outcome) in zip(tasks, results):
                outcomes[outcome] += 1
                if bad:
                    bad_here += 1
                    failures.append(f"{chosen_command.name}: {mode} {number} ({case.calls[number - 1]}): " + "; ".join(bad[:4]))
            points += len(case.calls)
            runs += len(tasks)
            print(f"{chosen_command.name}: {len(case.calls)} calls, {len(tasks)} runs, {bad_here} wrong", flush=True)
    for failure in failures:
        print(failure[:2000])
    counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    print(f"files: {points} calls of {len(chosen)} commands, {runs} runs with a fault ({counts}), {len(failures)} wrong")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
