#!/usr/bin/env python3
"""Parses and runs the programs of a directory with XLA, and compares its results with the stored ones.

    xla_judge.py DIR [--jobs N] [--timeout SECONDS]

DIR holds NAME.hlo, HLO text, NAME.pb, the same as an HloModuleProto, NAME.mlir, StableHLO, and for those that can be run
NAME.npz: `in/<k>`, the arguments, and `out/<k>`, the results of another implementation (a tuple's elements in order), types
without a NumPy name as integers of their width, and for some `tolerance/<k>`, the absolute and the relative one. A proto has to
be the module that the text is. StableHLO has to be accepted as a portable artifact of the version that it states, too.
NAME.refused says why a program has no form in StableHLO, NAME.failed why there is no program. A module that makes XLA abort
costs only itself: modules run in child processes. A failure that `xla_explained.txt` beside this file has (set: the kind of the
file) is counted apart, its reason printed. Prints a table; last line: `N passed, M failed`.
Needs jax, whose jaxlib holds XLA's HLO parser, its CPU backend and StableHLO.
"""

import argparse
import collections
import concurrent.futures
import pathlib
import re
import select
import subprocess
import sys

import explained
import numpy as np

# Tolerance for correct implementations in units of the type's precision: sums of a few hundred
# terms, and functions with an error of two units each, one after the other.
SLACK = 256


KINDS = {"hlo": "HLO text", "pb": "HloModuleProto", "mlir": "StableHLO"}


def kind_of(path):
    """Returns the table row of a file."""
    when = "after optimization" if "-optimized" in path.stem else "before"
    return "%s, %s" % (KINDS[path.suffix[1:]], when)


def same(got, want, dtype, tolerance=(0, 0)):
    """Returns why two arrays of `dtype` differ, or None, and their difference in units of the type's precision."""
    if got.shape != want.shape:
        return "shape %s, ours %s" % (got.shape, want.shape), 0.0
    far = 0.0
    if dtype.kind in "biu" or dtype.name.startswith(("int", "uint")):
        wrong = got != want
    else:
        wide = np.complex128 if dtype.kind == "c" else np.float64
        import ml_dtypes

        eps = float(ml_dtypes.finfo(dtype).eps) if dtype.kind != "c" else float(np.finfo(dtype).eps)
        got, want = got.astype(wide), want.astype(wide)
        with np.errstate(all="ignore"):
            finite = want[np.isfinite(want)]
            scale = float(np.abs(finite).max()) if finite.size else 0.0
            # XLA's CPU code flushes denormals to zero.
            tiny = float(ml_dtypes.finfo(dtype).tiny) if dtype.kind != "c" else float(np.finfo(dtype).tiny)
            apart = np.maximum(np.abs(got - want) - tiny, 0) / (eps * (np.abs(want) + scale / 16))
            near = np.abs(got - want) <= SLACK * eps * (np.abs(want) + scale / 16) + tiny
            measured = apart[near & (apart == apart)]
            far = float(measured.max()) if measured.size else 0.0
            near |= np.abs(got - want) <= tolerance[0] + tolerance[1] * np.abs(want)
        wrong = ~(near | (got == want) | (np.isnan(got) & np.isnan(want)))
    if not wrong.any():
        return None, far
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return "%d of %d elements differ, at %s XLA %s, ours %s" % (wrong.sum(), wrong.size, list(at), got[at], want[at]), far


def renamed(text):
    """Returns XLA's text of a module with numbers for names, because the suffixes of unique names are arbitrary."""
    names = {}
    text = re.sub(r"%[\w.\-]+", lambda name: names.setdefault(name.group(), "%%%d" % len(names)), text)
    # The first line and the signatures of computations contain parameter names without the mark.
    return [re.sub(r" \(.*\{$", " {", line) for line in text.splitlines()[1:]]


def judge_proto(path):
    """Parses a message, which must be the module of the corresponding text."""
    from jaxlib import _hlo

    ours = _hlo.HloModule.from_serialized_hlo_module_proto(path.read_bytes())
    text = _hlo.hlo_module_from_text(path.with_suffix(".hlo").read_text())
    for left, right in zip(renamed(ours.to_string()), renamed(text.to_string())):
        if left != right:
            raise ValueError("not the module of the text: %s / %s" % (left.strip()[:100], right.strip()[:100]))


def stablehlo(path):
    """Returns the bytes of a StableHLO text, which must be valid for the version that it states."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo as dialect

    text = path.read_text()
    version = re.search(r'stablehlo.target_version = "([\d.]+)"', text).group(1)
    with mlir.make_ir_context():
        ir.Module.parse(text).operation.verify()
        artifact = dialect.serialize_portable_artifact_str(text, version)
        if not dialect.deserialize_portable_artifact_str(artifact):
            raise ValueError("the portable artifact is empty")
    return text.encode()


def judge(path):
    """Parses one program, and runs it if it has inputs. Raises on a difference beyond tolerance; otherwise returns the largest one."""
    import jax
    from jax._src.lib import xla_client
    from jaxlib import _hlo, _jax

    jax.config.update("jax_enable_x64", True)
    if path.suffix == ".pb":
        return judge_proto(path)
    is_hlo = path.suffix == ".hlo"
    module = _hlo.hlo_module_from_text(path.read_text()) if is_hlo else None
    code = None if is_hlo else stablehlo(path)
    cases = path.with_suffix(".npz")
    if not cases.exists():
        return None
    arrays = np.load(cases)
    device = jax.devices("cpu")[0]
    if is_hlo:
        code = _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
    program = device.client.compile_and_load(code, _jax.DeviceList((device,)), xla_client.CompileOptions())
    compiled = program.hlo_modules()[0].as_serialized_hlo_module_proto()
    parameters = xla_client.XlaComputation(compiled).program_shape().parameter_shapes()
    inputs = []
    for k, parameter in enumerate(parameters):
        dtype = np.dtype(parameter.numpy_dtype())
        stored = arrays["in/%d" % k]
        inputs.append(stored if stored.dtype == dtype else stored.view(dtype) if stored.itemsize == dtype.itemsize else stored.astype(dtype))
    buffers = [jax.device_put(value, device) for value in inputs]
    results = program.execute_sharded(buffers).disassemble_into_single_device_arrays()
    results = [np.asarray(shards[0]) for shards in results]
    wanted = sum(name.startswith("out/") for name in arrays.files)
    if len(results) != wanted:
        raise ValueError("%d results, ours %d" % (len(results), wanted))
    farthest = 0.0
    for k, got in enumerate(results):
        stored = arrays["out/%d" % k]
        want = stored if stored.dtype == got.dtype else stored.view(got.dtype) if stored.itemsize == got.itemsize else stored.astype(got.dtype)
        tolerance = "tolerance/%d" % k
        why, far = same(got, want, got.dtype, arrays[tolerance] if tolerance in arrays.files else (0, 0))
        farthest = max(farthest, far)
        if why:
            raise ValueError("result %d: %s" % (k, why))
    return farthest


def worker():
    """Reads paths from standard input and answers `ok` or `no REASON` for each."""
    for line in sys.stdin:
        try:
            far = judge(pathlib.Path(line.rstrip("\n")))
            print("ok" if far is None else "ok %.3g" % far, flush=True)
        except Exception as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            print("no " + reason[:300], flush=True)


def feed(paths, timeout):
    """Runs paths in child processes that are replaced when they die. Yields path, reason (None: correct), and largest difference (None: not run)."""
    child = None
    for path in paths:
        if child is None:
            child = subprocess.Popen(
                [sys.executable, __file__, "--worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        try:
            child.stdin.write("%s\n" % path)
            child.stdin.flush()
            ready, _, _ = select.select([child.stdout], [], [], timeout)
            answer = child.stdout.readline().strip() if ready else "no answer within %d s" % timeout
        except BrokenPipeError:
            ready, answer = True, ""
        if not answer or not ready:
            child.kill()
            child.wait()
            child = None
        if answer == "ok" or answer.startswith("ok "):
            yield path, None, float(answer[3:]) if answer[3:] else None
        else:
            yield path, answer.removeprefix("no ") or "XLA aborted", None
    if child:
        child.stdin.close()
        child.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", nargs="?", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker()
    paths = sorted(path for kind in KINDS for path in options.directory.rglob("*." + kind))
    if not paths:
        sys.exit("no programs found in %s" % options.directory)
    rows, known = collections.OrderedDict(), explained.read(pathlib.Path(__file__).with_name("xla_explained.txt"))
    reasons = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        shares = [paths[k :: options.jobs] for k in range(options.jobs)]
        for answers in pool.map(lambda share: list(feed(share, options.timeout)), shares):
            for path, reason, far in answers:
                row = rows.setdefault(kind_of(path), {"files": 0, "accepted": 0, "run": 0, "far": 0.0, "explained": 0, "failed": 0})
                row["files"] += 1
                if reason is None:
                    row["accepted"] += 1
                    row["run"] += far is not None
                    row["far"] = max(row["far"], far or 0.0)
                    continue
                because = explained.why(known, path.suffix[1:], path.stem, reason)
                if because:
                    row["explained"] += 1
                    reasons[because] += 1
                else:
                    row["failed"] += 1
                    print("%s: %s" % (path, reason))
    columns = ("files", "accepted", "run, same", "explained", "failed", "largest difference, in units of precision")
    print("%-36s %7s %9s %9s %9s %8s %s" % ("", *columns))
    for kind, row in sorted(rows.items()):
        print("%-36s %7d %9d %9d %9d %8d %.3g"
              % (kind, row["files"], row["accepted"], row["run"], row["explained"], row["failed"], row["far"]))
    for because, count in reasons.most_common():
        print("explained: %d: %s" % (count, because))
    for why in ("refused", "failed"):
        reasons = collections.Counter(
            re.sub(r"'[^']*'", "'...'", path.read_text()) for path in options.directory.rglob("*." + why)
        )
        for reason, count in reasons.most_common():
            print("%s: %d: %s" % (why, count, reason[:200]))
    passed = sum(row["accepted"] for row in rows.values())
    failed = sum(row["failed"] for row in rows.values())
    print("%d passed, %d failed" % (passed, failed))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
