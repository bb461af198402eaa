#!/usr/bin/env python3
"""Has XLA parse and run the HLO modules of a directory, and compares with the results that lie beside them.

    xla_judge.py DIR [--jobs N] [--timeout SECONDS]

DIR holds NAME.hlo, HLO text, and for those that can be run NAME.npz: `in/<k>`, the arguments, and `out/<k>`, the results
of another implementation (a tuple's elements in order), types without a NumPy name as integers of their width. A module
that makes XLA abort costs only itself: modules run in child processes. Last line: `N passed, M failed`.
Needs jax, whose jaxlib holds XLA's HLO parser and its CPU backend.
"""

import argparse
import concurrent.futures
import pathlib
import select
import subprocess
import sys

import numpy as np

# How far two right implementations may differ, in units of the type's precision: sums of a few hundred terms and
# functions of two units each, one after the other.
SLACK = 256


def same(got, want, dtype):
    """Why two arrays of `dtype` are not the same, or None."""
    if got.shape != want.shape:
        return "shape %s, ours %s" % (got.shape, want.shape)
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
            near = np.abs(got - want) <= SLACK * eps * (np.abs(want) + scale / 16) + tiny
        wrong = ~(near | (got == want) | (np.isnan(got) & np.isnan(want)))
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return "%d of %d elements differ, at %s XLA %s, ours %s" % (wrong.sum(), wrong.size, list(at), got[at], want[at])


def judge(path):
    """Parses and, where there are inputs, runs one module. Raises on any difference."""
    import jax
    from jax._src.lib import xla_client
    from jaxlib import _hlo, _jax

    jax.config.update("jax_enable_x64", True)
    module = _hlo.hlo_module_from_text(path.read_text())
    cases = path.with_suffix(".npz")
    if not cases.exists():
        return
    arrays = np.load(cases)
    device = jax.devices("cpu")[0]
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
    for k, got in enumerate(results):
        stored = arrays["out/%d" % k]
        want = stored if stored.dtype == got.dtype else stored.view(got.dtype) if stored.itemsize == got.itemsize else stored.astype(got.dtype)
        why = same(got, want, got.dtype)
        if why:
            raise ValueError("result %d: %s" % (k, why))


def worker():
    """Takes paths from standard input, answers `ok` or `no REASON` for each."""
    for line in sys.stdin:
        try:
            judge(pathlib.Path(line.rstrip("\n")))
            print("ok", flush=True)
        except Exception as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            print("no " + reason[:300], flush=True)


def feed(paths, timeout):
    """Runs paths in a child, a new one after each that dies; pairs of path and reason (None: right)."""
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
        yield path, None if answer == "ok" else answer.removeprefix("no ") or "XLA aborted"
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
    paths = sorted(options.directory.rglob("*.hlo"))
    if not paths:
        sys.exit("no .hlo files in %s" % options.directory)
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        shares = [paths[k :: options.jobs] for k in range(options.jobs)]
        for answers in pool.map(lambda share: list(feed(share, options.timeout)), shares):
            for path, reason in answers:
                if reason is None:
                    passed += 1
                else:
                    failed += 1
                    print("%s: %s" % (path, reason))
    print("%d passed, %d failed" % (passed, failed))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
