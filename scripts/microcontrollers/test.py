#!/usr/bin/env python3
"""Runs compiled models on emulated microcontrollers and compares them with recorded answers.

    scripts/microcontrollers/test.py TOOL sample|all [--models DIR] [--only REGEX] [--table FILE]

- Cases of tests/tflite, which have LiteRT's answers: `all` runs each twentieth on every board,
  `sample` each hundredth on one board in turn. Small ones also run on a Cortex-M0.
- A case whose weights a linker script places in a memory of their own (`--constants-section`).
- The four networks of MLPerf Tiny with random weights, as f32 and int8. DIR has their graphs, LiteRT
  models, and recorded inputs; scripts/microcontrollers/test.sh makes them. Answers in int8 must be
  LiteRT's, those in f32 TensorFlow's within rounding.

Each run also checks that the stack that it used is within the bound that `tfcompile inspect` states.
"""

import argparse
import concurrent.futures
import json
import pathlib
import re
import sys
import tempfile

import numpy as np
from boards import BOARDS, MICROBIT, ROOT, Failure, call, execute, link, model, source

NETWORKS = {
    "dscnn_kws": "keyword spotting, DS-CNN",
    "mobilenet_v1_025_96": "visual wake words, MobileNetV1 0.25",
    "resnet8_cifar": "image classification, ResNet-8",
    "autoencoder_ad": "anomaly detection, autoencoder",
}
# Bytes of memory and of code below which a case runs on the smallest board, too.
SMALL = (8 << 10, 128 << 10)
# Another memory of two boards, for weights in a section of their own, and the case that has them.
WEIGHTS = {"cortex-m4f": 0x21000000, "rv32imc": 0x81000000}
WEIGHTS_CASE = "conv_2d/int8_per_channel_int32_bias_valid_3x3"


def run(board, described, feeds, out):
    """Runs a compiled model. Returns its results as bytes, its instructions, and its stack."""
    lines = execute(board, link(board, [source(described, feeds, out)], [out / "model.o"], out))
    stack = int(lines["stack"][0], 16)
    bound = described["memory"]["stack"]
    if stack > bound:
        raise Failure(f"a run used {stack} bytes of stack, more than the stated {bound}")
    results = [bytes.fromhex(line) for line in lines.get("result", [])]
    return results, int(lines["ticks"][0], 16) * board[3], stack


def compare(meta, expected, results):
    """Raises a failure if results are not within the tolerances of a case."""
    if len(results) != len(expected):
        raise Failure(f"{len(results)} results, expected {len(expected)}")
    for k, (want, raw) in enumerate(zip(expected, results)):
        if len(raw) != want.nbytes:
            raise Failure(f"result {k} has {len(raw)} bytes, expected {want.nbytes}")
        got = np.frombuffer(raw, want.dtype).reshape(want.shape)
        if want.dtype.kind in "iub":
            least = np.abs(got.astype(np.int64) - want.astype(np.int64))
            good = least <= meta.get("step", 0)
        else:
            near = np.abs(got - want) <= meta.get("atol", 0) + meta.get("rtol", 0) * np.abs(want)
            good = near | (got == want) | (np.isnan(got) & np.isnan(want))
        if not good.all():
            at = np.unravel_index(np.argmin(good), good.shape) if good.ndim else ()
            raise Failure(f"result {k}{list(map(int, at))} is {got[at]}, expected {want[at]}")


def cases():
    """The recorded cases that a single run of fixed sizes answers: name, and how to load one."""
    known = (ROOT / "tests" / "tflite" / "known_failures.toml").read_text()
    known = set(re.findall(r'^"(.*?)" =', known, re.M))
    for archive in sorted((ROOT / "tests" / "tflite").glob("*.npz")):
        stored = np.load(archive)
        for member in sorted(name for name in stored.files if name.endswith("/meta.json")):
            name = member.removesuffix("/meta.json")
            meta = json.loads(bytes(stored[member]))
            types = [t["dtype"] for t in meta["feeds"] + meta["fetches"]]
            simple = not meta.get("dynamic") and meta.get("runs", 1) == 1 and not meta.get("signature")
            simple = simple and f"{archive.stem}/{name}" not in known
            if simple and not {"bfloat16", "int4", "string", "complex64"} & set(types):
                yield f"{archive.stem}/{name}", (archive, name, meta)


def case(tool, target, board, where, is_small=False):
    """Runs a recorded case. Returns false if it is too large for the board."""
    archive, name, meta = where
    stored = np.load(archive)

    def arrays(kind):
        count = sum(1 for member in stored.files if member.startswith(f"{name}/{kind}/"))
        return [np.ascontiguousarray(stored[f"{name}/{kind}/{k}"]) for k in range(count)]

    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch)
        (out / "case.tflite").write_bytes(bytes(stored[f"{name}/model.tflite"]))
        described = model(tool, out / "case.tflite", target, out)
        if is_small:
            memory = described["memory"]
            size = sum(a["bytes"] for a in described["arguments"] + described["results"]) + memory["temps"]
            code = memory["constants"] + sum(f["bytes"] for f in described["functions"])
            if size > SMALL[0] or code > SMALL[1]:
                return False
        results, _, _ = run(board, described, arrays("feed"), out)
        compare(meta, arrays("fetch"), results)
    return True


def placed_weights(tool, target, where):
    """Runs a recorded case whose weights are in a section that a linker script places elsewhere."""
    archive, name, meta = where
    stored, board, origin = np.load(archive), BOARDS[target], WEIGHTS[target]
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch)
        (out / "case.tflite").write_bytes(bytes(stored[f"{name}/model.tflite"]))
        described = model(tool, out / "case.tflite", target, out, flags=["--constants-section", ".flash_weights"])
        main = source(described, [stored[f"{name}/feed/0"]], out)
        place = [f"-Wl,--defsym=weights_origin={origin}"]
        program = link(board, [main], [out / "model.o"], out, place, "weights.ld")
        (symbol,) = (line for line in call(["nm", program]).splitlines() if line.endswith(" model_constants"))
        if int(symbol.split()[0], 16) != origin:
            raise Failure(f"the weights are at {symbol}, expected {origin:x}")
        results = [bytes.fromhex(line) for line in execute(board, program)["result"]]
        compare(meta, [stored[f"{name}/fetch/0"]], results)
    return True


def network(tool, target, name, kind, models, keep):
    """Runs a network. Returns a row of the table."""
    recorded = np.load(models / "graphs" / name / "io.npz")
    if kind == "int8":
        answers = np.load(models / "int8" / f"{name}.answers.npz")
        feeds, expected, meta = [answers["x"]], [answers["y"]], {"step": 0}
        path, flags = models / "int8" / f"{name}.int8.tflite", []
    else:
        feeds = [np.ascontiguousarray(recorded["x:0"])]
        (fetch,) = [key for key in recorded.files if key.endswith(":0") and "/" not in key and key != "x:0"]
        expected, meta = [recorded[fetch]], {"rtol": 1e-4, "atol": 1e-5}
        path = models / "graphs" / name / "graph.pb"
        flags = ["--config", path.with_name("config.pbtxt")]
    out = keep / f"{name}.{kind}.{target}"
    out.mkdir(parents=True, exist_ok=True)
    described = model(tool, path, target, out, flags=flags)
    results, count, stack = run(BOARDS[target], described, feeds, out)
    compare(meta, expected, results)
    memory = described["memory"]
    arena = int(re.search(r"ARENA_BYTES (\d+)u", (out / "model_c.h").read_text())[1])
    code = sum(function["bytes"] for function in described["functions"])
    return {
        "network": name,
        "type": kind,
        "target": target,
        "instructions": int(count),
        "ram": arena + stack,
        "arena": arena,
        "stack": stack,
        "stack_bound": memory["stack"],
        "flash": code + memory["constants"],
        "code": code,
        "constants": memory["constants"],
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", type=pathlib.Path)
    parser.add_argument("extent", choices=["sample", "all"])
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--table", type=pathlib.Path)
    arguments = parser.parse_args()
    tool, is_sample = arguments.tool.resolve(), arguments.extent == "sample"
    jobs = []
    for k, (name, where) in enumerate(cases()):
        if name == WEIGHTS_CASE:
            for target in WEIGHTS:
                placed = lambda t=target, w=where: placed_weights(tool, t, w)
                jobs.append((f"{target} {name} placed", placed))
        if k % (100 if is_sample else 20):
            continue
        turn = k // 100 % len(BOARDS)
        for number, (target, board) in enumerate(BOARDS.items()):
            if not is_sample or number == turn:
                jobs.append((f"{target} {name}", lambda t=target, b=board, w=where: case(tool, t, b, w)))
        if not is_sample or turn == 0:
            small = lambda w=where: case(tool, "cortex-m0plus", MICROBIT, w, is_small=True)
            jobs.append((f"microbit {name}", small))
    keep = ROOT / "target" / "microcontrollers"
    if arguments.models:
        for target in BOARDS:
            for name in NETWORKS:
                for kind in ("f32", "int8"):
                    is_slow = kind == "f32" and target in ("cortex-m0plus", "rv32imc")
                    if not is_sample or target == "cortex-m4f" and kind == "int8" or not is_slow and name == "dscnn_kws":
                        row = lambda a=(target, name, kind): network(tool, *a, arguments.models, keep)
                        jobs.append((f"{target} {name} {kind}", row))
    jobs = [job for job in jobs if re.search(arguments.only, job[0])]
    rows, failures, ran, left_out = [], [], 0, 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        futures = [(label, pool.submit(job)) for label, job in jobs]
        for label, future in futures:
            try:
                result = future.result()
            except Failure as failure:
                failures.append(label)
                print(f"FAILED {label}: {failure}", flush=True)
                continue
            if isinstance(result, dict):
                rows.append(result)
            ran += result is not False
            left_out += result is False
    for row in rows:
        print(
            f"{row['target']:13} {row['network']:20} {row['type']:4} {row['instructions'] / 1e6:9.2f} M instructions, "
            f"RAM {row['ram']:7} ({row['stack']} of {row['stack_bound']} stack), flash {row['flash']:7} ({row['code']} code)"
        )
    if arguments.table:
        arguments.table.write_text(json.dumps(rows, indent=1) + "\n")
    print(f"microcontrollers: {ran} of {ran + len(failures)} runs passed; {left_out} too large for the smallest board")
    return 1 if failures or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
