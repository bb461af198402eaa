#!/usr/bin/env python3
"""Runs recorded cases of each kind of input on each machine, and counts those that are right.

    scripts/targets/table.py TOOL [--count N] [--only REGEX] [--kind REGEX] [--case REGEX]
        [--page FILE]

Takes up to N cases of each kind (default 12). A case is right if all of its results are within its
tolerances of the answers recorded from TensorFlow, JAX, LiteRT, or ONNX Runtime. Prints a table, and
the message of each failure. --page replaces the table of a page, which follows a line <!-- table -->. A machine whose compiler or emulator is missing is listed as not run,
and so are cases that an emulator ends by an assertion of its own. An OpenCL device is listed if
OCL_ICD_VENDORS names a driver. Exit status 1 if a case failed or
nothing ran.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import sys
import tempfile

import numpy as np
from inputs import KINDS, select
from machines import EmulatorDefect, Failure, Module, as_array, call, is_installed, machines, program


def compare(case, name, want, got):
    """Raises a failure if a result is not within tolerances of one of the answers `want`."""
    good = np.zeros(got.shape, bool)
    for answer in want:
        if answer.dtype.kind == "f":
            with np.errstate(all="ignore"):
                near = np.abs(got - answer) <= case.atol + case.rtol * np.abs(answer)
            good |= near | (got == answer) | (np.isnan(got) & np.isnan(answer))
        else:
            good |= np.abs(got.astype(object) - answer.astype(object)) <= case.step
    if not good.all():
        at = np.unravel_index(np.argmin(good), good.shape) if good.ndim else ()
        raise Failure(f"{name}{list(map(int, at))} is {got[at]}, expected {want[0][at]}")


class LeftOut(Exception):
    """A case that the program of this test cannot judge."""


def cell(passed, total, not_run):
    """The text of a cell of the table."""
    return f"{passed} of {total}" + (f", {not_run} not run" if not_run else "")


class Prepared:
    """A case with its files in a directory, and its arguments in the order of the program's."""

    def __init__(self, tool, case, directory):
        self.tool, self.case, self.directory = tool, case, directory
        for name, content in case.files.items():
            (directory / name).write_bytes(content)
        self.model = case.model or directory / next(iter(case.files))
        self.flags = [str(directory / flag) if flag in case.files else flag for flag in case.flags]
        self.build("x86-64", "obj,c-header", directory, [])
        described = json.loads(call([tool, "inspect", directory / "model.o", "--json"]))["programs"][0]["metadata"]
        arguments = described["arguments"]
        feeds = [a for a in arguments if a["kind"] == "feed"]
        self.variables = len(arguments) - len(feeds)
        fetches = [r for r in described["results"] if r["kind"] == "fetch"]
        if any("<=" in r["shape"] for r in fetches):
            raise LeftOut("a size of a result depends on the arguments")
        if isinstance(case.feeds, dict):
            feeds_by_name, fetches_by_name = (
                {re.sub(r"\W", "_", name): array for name, array in arrays.items()} for arrays in (case.feeds, case.fetches)
            )
            self.feeds = [feeds_by_name[a["name"]] for a in feeds]
            self.fetches = [(fetches_by_name[r["name"]],) for r in fetches]
        else:
            self.feeds, self.fetches = list(case.feeds), case.fetches
        values = [before for before, _ in case.variables]
        if self.variables and len(values) != self.variables:
            raise Failure(f"{len(values)} values of {self.variables} variables")
        if len(self.feeds) != len(feeds) or len(self.fetches) != len(fetches):
            raise Failure(f"a program of {len(feeds)} feeds and {len(fetches)} fetches")
        self.feeds = [np.ascontiguousarray(a) for a in self.feeds + values]
        self.program = program(self.feeds, [want[0].nbytes for want in self.fetches], self.variables)

    def build(self, target, emitted, directory, flags):
        chosen = ["--target", target] if target else []
        chosen += ["--emit", emitted] if emitted else []
        call([self.tool, "build", self.model, *self.flags, "--name", "model", *chosen, *flags, "-o", directory, "-q"])

    def judge(self, machine):
        """Runs the case on a machine. Returns nothing, or why it failed."""
        try:
            with tempfile.TemporaryDirectory(dir=self.directory) as scratch:
                extra = {"feeds": self.feeds, "variables": self.variables} if isinstance(machine, Module) else {}
                got = machine.run(self.build, self.program, pathlib.Path(scratch), **extra)
            wanted = [(f"result {k}", want) for k, want in enumerate(self.fetches)]
            wanted += [(f"variable {k}", None if after is None else (after,)) for k, (_, after) in enumerate(self.case.variables)]
            if len(got) != len(wanted):
                raise Failure(f"{len(got)} results, expected {len(wanted)}")
            for (name, want), raw in zip(wanted, got, strict=True):
                if want is not None:
                    compare(self.case, name, want, as_array(raw, want[0]))
        except (Failure, OSError) as error:
            return str(error)
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--only", default="", help="machines whose name matches")
    parser.add_argument("--kind", default="", help="kinds of input that match")
    parser.add_argument("--case", default="", help="cases whose name matches, of those that --count selects")
    parser.add_argument("--page", type=pathlib.Path)
    options = parser.parse_args()
    tool = options.tool.resolve()
    # Only programs that open the driver see its libraries.
    opencl = {key: os.environ.pop(key) for key in ("OCL_ICD_VENDORS", "LD_LIBRARY_PATH") if key in os.environ}
    found = machines(opencl if "OCL_ICD_VENDORS" in opencl else None)
    found = [entry for entry in found if re.search(options.only, entry[0])]
    kinds = [kind for kind in KINDS if re.search(options.kind, kind)]
    counts = {(name, kind): [0, 0, 0] for name, _, _ in found for kind in kinds}
    missing = [name for name, _, machine in found if not is_installed(machine)]

    def run(kind, case):
        failures, problem = [], None
        with tempfile.TemporaryDirectory() as scratch:
            try:
                prepared = Prepared(tool, case, pathlib.Path(scratch))
            except LeftOut as reason:
                print(f"left out: {kind} {case.name}: {reason}", flush=True)
                return kind, case, None, []
            except Failure as error:
                prepared, problem = None, str(error)
            for name, _, machine in found:
                if name not in missing:
                    try:
                        failures.append((name, prepared.judge(machine) if prepared else "the case cannot run"))
                    except EmulatorDefect as defect:
                        failures.append((name, defect))
        return kind, case, problem, failures

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        cases = [(kind, case) for kind in kinds for case in select(kind, options.count) if re.search(options.case, case.name)]
        jobs = [pool.submit(run, kind, case) for kind, case in cases]
        for job in concurrent.futures.as_completed(jobs):
            kind, case, problem, failures = job.result()
            if problem:
                print(f"FAILED {kind} {case.name}: {problem}", flush=True)
            for name, failure in failures:
                if isinstance(failure, EmulatorDefect):
                    counts[name, kind][2] += 1
                    print(f"not run: {name}, {kind} {case.name}: {failure}", flush=True)
                    continue
                counts[name, kind][0] += failure is None
                counts[name, kind][1] += 1
                if failure and not problem:
                    print(f"FAILED {name}, {kind} {case.name}: {failure}", flush=True)

    rows = [["target", "run by", *kinds]]
    for name, runner, _ in found:
        cells = ["not run" if name in missing else cell(*counts[name, kind]) for kind in kinds]
        rows.append([f"`{name}`" if " " not in name else name, runner, *cells])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    rows.insert(1, ["-" * width for width in widths])
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows]
    print("\n".join(lines))
    if options.page:
        before, _, after = options.page.read_text().partition("<!-- table -->\n")
        _, _, after = after.partition("<!-- end of table -->\n")
        table = "\n".join(["<!-- table -->", *lines, "<!-- end of table -->", ""])
        options.page.write_text(before + table + after)
    passed, total = (sum(count[k] for count in counts.values()) for k in (0, 1))
    print(f"{passed} of {total}" + (f"; not run: {', '.join(missing)}" if missing else ""))
    return 0 if passed == total > 0 else 1


sys.exit(main())
