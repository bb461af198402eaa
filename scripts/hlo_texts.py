#!/usr/bin/env python3
"""HLO texts of XLA's own unit tests: extracts them from its repository, compares printed forms, and runs them.

    hlo_texts.py extract REPOSITORY OUT       every module in the tests of a (bare) clone of TensorFlow or XLA that jaxlib's
                                              parser accepts, as OUT/NAME.hlo
    hlo_texts.py protos TEXTS OUT             each as a message that XLA serializes, OUT/NAME.pb
    hlo_texts.py same TEXTS PRINTS            is PRINTS/NAME.hlo, or PRINTS/NAME.pb, the same module to XLA as TEXTS/NAME.hlo,
                                              or TEXTS/NAME.pb?
    hlo_texts.py answers TEXTS OUT            runs each on XLA's CPU client with seeded arguments: OUT/NAME.npz with in/0, ...
                                              and out/0, ... (types that NumPy lacks as bytes)

`protos`, `same` and `answers` go on where an earlier run stopped, and work in --jobs child processes (the number of processors):
a module that makes XLA abort, or that takes longer than --timeout seconds, costs itself only. Needs jaxlib.
"""
import argparse
import hashlib
import json
import os
import queue
import re
import select
import subprocess
import sys
import threading
import zipfile

BLOCK = re.compile(r'R"(\w*)\((.*?)\)\1"', re.S)


def parse(text):
    from jaxlib import _hlo
    return _hlo.hlo_module_from_text(text)


def extract(repository, out):
    os.makedirs(out, exist_ok=True)
    git = ["git", "-C", repository]
    listed = subprocess.run(git + ["ls-tree", "-r", "--name-only", "HEAD"], capture_output=True, check=True, text=True)
    paths = [p for p in listed.stdout.splitlines() if "xla/" in p and p.endswith(("_test.cc", ".hlo"))]
    batch = subprocess.Popen(git + ["cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    seen, kept, refused = set(), 0, 0
    for path in paths:
        batch.stdin.write(b"HEAD:%s\n" % path.encode())
        batch.stdin.flush()
        header = batch.stdout.readline().split()
        if len(header) != 3:
            continue
        source = batch.stdout.read(int(header[2])).decode("utf-8", "replace")
        batch.stdout.read(1)
        bodies = [source] if path.endswith(".hlo") else [body for _, body in BLOCK.findall(source)]
        for body in bodies:
            start = body.find("HloModule")
            # Texts with a dollar sign are templates of a test.
            if start < 0 or "$" in body:
                continue
            text = body[start:].strip() + "\n"
            digest = hashlib.sha1(text.encode()).hexdigest()[:12]
            if digest in seen:
                continue
            seen.add(digest)
            try:
                parse(text)
            except Exception:
                refused += 1
                continue
            kept += 1
            name = "%s_%s.hlo" % (os.path.basename(path).split(".")[0], digest)
            with open(os.path.join(out, name), "w") as file:
                file.write(text)
    print("%d texts; XLA rejects %d more" % (kept, refused))


def is_same(text, printed):
    def canonical(path):
        with open(path, "rb") as file:
            read = file.read()
        if path.endswith(".pb"):
            # XLA's own reading of its message, which omits some information of the text.
            from jax._src.lib import xla_client
            return xla_client.XlaComputation(read).get_hlo_module().to_string()
        return parse(read.decode()).to_string()
    return canonical(text) == canonical(printed)


def as_bytes(array):
    """Returns the array in a type that NumPy can store."""
    import numpy as np
    if array.dtype.isbuiltin == 1:
        return array
    return array.view("u%d" % array.dtype.itemsize) if array.dtype.itemsize < 8 else array.astype(np.uint8)


def argument(rng, shape, dtype):
    """Generates small values, so that integers are useful as indices."""
    import numpy as np
    if dtype.name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind == "c":
        return (rng.uniform(-2, 2, shape) + 1j * rng.uniform(-2, 2, shape)).astype(dtype)
    if dtype.name.startswith("uint"):
        return rng.integers(0, 2 if dtype.name in ("uint1", "uint2") else 6, shape).astype(dtype)
    if dtype.name.startswith("int"):
        return rng.integers(-1, 2, shape).astype(dtype) if dtype.name in ("int1", "int2") else rng.integers(-3, 6, shape).astype(dtype)
    return rng.uniform(-2, 2, shape).astype(np.float32).astype(dtype)


def answer(text, out):
    import jax
    import numpy as np
    from jax._src.lib import xla_client
    from jaxlib import _jax
    jax.config.update("jax_enable_x64", True)
    device = jax.devices("cpu")[0]
    with open(text, "rb") as file:
        module = parse(file.read().decode())
    code = _jax.mlir.hlo_to_stablehlo(module.as_serialized_hlo_module_proto())
    program = device.client.compile_and_load(code, _jax.DeviceList((device,)), xla_client.CompileOptions())
    compiled = program.hlo_modules()[0].as_serialized_hlo_module_proto()
    rng = np.random.default_rng(0)
    arguments = []
    for shape in xla_client.XlaComputation(compiled).program_shape().parameter_shapes():
        arguments.append(argument(rng, shape.dimensions(), np.dtype(shape.numpy_dtype())))
    given = [jax.device_put(a, device) for a in arguments]
    made = program.execute_sharded(given).disassemble_into_single_device_arrays()
    members = {"in/%d" % k: as_bytes(a) for k, a in enumerate(arguments)}
    members.update({"out/%d" % k: as_bytes(np.asarray(r[0])) for k, r in enumerate(made)})
    # Renamed into place when complete, because a child that takes too long is killed. Random
    # arguments do not compress well, so the fastest level is used.
    part = out[:-len(".npz")] + ".part.npz"
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in members.items():
            with archive.open(name + ".npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array))
    os.replace(part, out)


def proto(text, out):
    with open(text, "rb") as file:
        module = parse(file.read().decode())
    message = module.as_serialized_hlo_module_proto()
    # A text may omit the elements of huge constants, but the message contains them.
    if len(message) > 1 << 26:
        raise ValueError("a message of %d MiB" % (len(message) >> 20))
    with open(out, "wb") as file:
        file.write(message)


def serve(what):
    asked = {"same": is_same, "answers": answer, "protos": proto}[what]
    for line in sys.stdin:
        one, other = line.rstrip("\n").split("\t")
        try:
            result = asked(one, other)
            print("not the same module" if result is False else "ok", flush=True)
        except Exception as error:
            print((str(error).strip().splitlines() or [type(error).__name__])[0][:200], flush=True)


class Child:
    """A child process that answers one query at a time. It is restarted after a query without an answer."""

    def __init__(self, what, timeout):
        self.command = [sys.executable, os.path.abspath(__file__), "serve", what]
        self.timeout = timeout
        self.process = None

    def ask(self, text, other):
        if self.process is None:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        answer = ""
        try:
            self.process.stdin.write("%s\t%s\n" % (text, other))
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], self.timeout)
            answer = self.process.stdout.readline().strip() if ready else "timeout"
        except BrokenPipeError:
            pass
        if answer in ("", "timeout"):
            self.process.kill()
            self.process.wait()
            self.process = None
        return answer or "XLA aborted"


def each(what, texts, others, suffix, timeout, jobs):
    """Queries child processes about every text, and stores the answers in a file."""
    os.makedirs(others, exist_ok=True)
    log = others.rstrip("/") + "." + what + ".json"
    said = json.load(open(log)) if os.path.exists(log) else {}
    questions = queue.SimpleQueue()
    for text in sorted(n for n in os.listdir(texts) if n.endswith((".hlo", ".pb"))):
        name = os.path.splitext(text)[0]
        other = os.path.join(others, name + suffix)
        if what == "same" and not os.path.exists(other):
            other = os.path.join(others, name + ".pb")
        if name not in said and (what != "same" or os.path.exists(other)):
            questions.put((name, os.path.join(texts, text), other))
    lock = threading.Lock()

    def keep():
        with open(log + ".new", "w") as file:
            json.dump(said, file)
        os.replace(log + ".new", log)

    def work():
        child = Child(what, timeout)
        while True:
            try:
                name, text, other = questions.get_nowait()
            except queue.Empty:
                return
            answer = child.ask(text, other)
            with lock:
                said[name] = answer
                if len(said) % 100 == 0:
                    keep()

    workers = [threading.Thread(target=work) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    keep()
    good = sum(message == "ok" for message in said.values())
    said_of = {"same": "the same to XLA", "answers": "run on XLA's CPU client", "protos": "serialized by XLA"}
    print("%d %s, %d not" % (good, said_of[what], len(said) - good))
    if what == "same":
        for name, message in sorted(said.items()):
            if message != "ok":
                print("    %s: %s" % (name, message))
        return int(good < len(said))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("extract", "protos", "same", "answers", "serve"))
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if options.what == "serve":
        return serve(options.paths[0])
    if options.what == "extract":
        return extract(*options.paths)
    suffix = {"same": ".hlo", "answers": ".npz", "protos": ".pb"}[options.what]
    return each(options.what, options.paths[0], options.paths[1], suffix, options.timeout, options.jobs)


sys.exit(main())
