#!/usr/bin/env python3
"""Runs MLPerf Tiny's networks in int8 with TensorFlow Lite Micro and CMSIS-NN, and compares.

    scripts/microcontrollers/peer.py SOURCES MODELS OURS [--optimize FLAG] [--only REGEX] [--page PAGE]

SOURCES has checkouts, each in a directory of its repository's name: tflite-micro, CMSIS-NN,
CMSIS_6, flatbuffers (of the version that tflite-micro's schema states), gemmlowp, and ruy. MODELS
has what scripts/microcontrollers/test.sh makes, and OURS is the table that test.py writes. GCC
needs its C++ library for ARM (libstdc++-arm-none-eabi-newlib).

The peer is built without messages of errors, with the operators that a network has, for bytes only
where it offers that, and without what the linker finds unused. Its answers must be LiteRT's within
one step. Instructions are those of one call of `Invoke` (ours: of `run`). RAM is the part of its
arena in use, its variables, and the stack of that call (ours: the arena and the stack). Flash is
the program with the model (ours: code and constants), less the test's input. `--page` writes the
table between two marks of a page.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import sys

import numpy as np
from boards import BOARDS, ROOT, SOURCES, Failure, call, execute, link

PROCESSORS = {"cortex-m4f": "M4F", "cortex-m7": "M7", "cortex-m33": "M33", "cortex-m55": "M55"}
NETWORKS = {
    "dscnn_kws": "keyword spotting, DS-CNN",
    "mobilenet_v1_025_96": "visual wake words, MobileNetV1 0.25, 96x96",
    "resnet8_cifar": "image classification, ResNet-8",
    "autoencoder_ad": "anomaly detection, autoencoder",
}
OPERATORS = {
    "dscnn_kws": "Conv2D DepthwiseConv2D AveragePool2D Reshape FullyConnected Softmax",
    "mobilenet_v1_025_96": "Conv2D DepthwiseConv2D Pad Mean Reshape Softmax",
    "resnet8_cifar": "Conv2D Add AveragePool2D Reshape FullyConnected Softmax",
    "autoencoder_ad": "FullyConnected",
}
# Operators of which the peer has a version for bytes only.
BYTES = {
    "Conv2D": "CONV_2D", "DepthwiseConv2D": "DEPTHWISE_CONV_2D", "FullyConnected": "FULLY_CONNECTED",
    "AveragePool2D": "AVERAGE_POOL_2D", "Softmax": "SOFTMAX", "Add": "ADD",
}  # fmt: skip
ARENA = 512 << 10
KERNELS = "add conv depthwise_conv fully_connected pad pooling reduce reshape softmax".split()
GROUPS = "BasicMath Convolution FullyConnected NNSupport Pad Pooling Softmax Transpose".split()
MARKS = ("<!-- table of the peer -->", "<!-- end of table -->")


def sources(root):
    """The files of the peer's library: its core, the networks' kernels, and CMSIS-NN."""
    lite = root / "tflite-micro" / "tensorflow" / "lite"
    folders = [lite / "micro" / part for part in ("", "arena_allocator", "memory_planner", "tflite_bridge")]
    folders += [lite / "core" / part for part in ("c", "api")] + [lite / "kernels", lite / "kernels" / "internal"]
    folders += [lite.parent / "compiler" / "mlir" / "lite" / part for part in ("core/api", "schema")]
    core = [file for folder in folders for file in folder.glob("*.cc")]
    kernels = lite / "micro" / "kernels"
    core += [file for name in KERNELS for file in kernels.glob(f"{name}_common.cc")]
    core += [kernels / "kernel_util.cc", kernels / "micro_tensor_utils.cc"]
    for name in KERNELS:
        fast = kernels / "cmsis_nn" / f"{name}.cc"
        core.append(fast if fast.exists() else kernels / f"{name}.cc")
    core = [file for file in core if not re.search(r"_test\.cc|test_helpers|mock_|fake_|recording_|debug_log|micro_time", file.name)]
    cmsis = root / "CMSIS-NN" / "Source"
    fast = [file for group in GROUPS for file in (cmsis / f"{group}Functions").glob("*.c")]
    return core + [file for file in fast if not re.search(r"_f(16|32)\.c$|_flt\.c$", file.name)]


def flags(root, board, optimize):
    """Flags of GCC for the peer's files."""
    folders = ["tflite-micro", "flatbuffers/include", "gemmlowp", "ruy", "CMSIS_6"]
    folders += ["CMSIS_6/CMSIS/Core/Include", "CMSIS-NN", "CMSIS-NN/Include"]
    defines = ["NDEBUG", "TF_LITE_STATIC_MEMORY", "TF_LITE_STRIP_ERROR_STRINGS", "CMSIS_NN", "KERNELS_OPTIMIZED_FOR_SPEED"]
    defines += ["TF_LITE_DISABLE_X86_NEON", "ARM_NN_ENABLE_F16=0", "ARM_NN_ENABLE_F32=0"]
    every = [*board[1][1:], optimize, "-w", "-ffunction-sections", "-fdata-sections", "-fno-unwind-tables"]
    every += ["-fno-asynchronous-unwind-tables", "-fno-exceptions"]
    return every + [f"-I{root / folder}" for folder in folders] + [f"-D{name}" for name in defines]


PLUS = ["-std=c++17", "-fno-rtti", "-fno-threadsafe-statics", "-fno-use-cxa-atexit"]


def library(root, target, optimize, work):
    """Builds the peer's library, each file once for each set of flags."""
    own = flags(root, BOARDS[target], optimize)
    key = lambda value: hashlib.sha256(repr(value).encode()).hexdigest()[:12]
    folder = work / f"{target}.{key(own)}"
    folder.mkdir(parents=True, exist_ok=True)

    def compile_one(file):
        made = folder / f"{file.stem}.{key(str(file))}.o"
        language = ["arm-none-eabi-gcc", "-std=gnu11"] if file.suffix == ".c" else ["arm-none-eabi-g++", *PLUS]
        if not made.exists() or made.stat().st_mtime < file.stat().st_mtime:
            part = made.with_suffix(".part")
            call([*language, *own, "-c", file, "-o", part])
            part.rename(made)
        return made

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, sources(root)))
    archive = folder / "peer.a"
    archive.unlink(missing_ok=True)
    call(["arm-none-eabi-ar", "rcs", archive, *objects])
    return archive


def measure(root, models, target, name, optimize, work):
    """Builds and runs a network with the peer. Returns a row of the table."""
    board, archive = BOARDS[target], library(root, target, optimize, work)
    answers = np.load(models / "int8" / f"{name}.answers.npz")
    out = work / f"{name}.{target}"
    out.mkdir(exist_ok=True)
    (out / "feed.bin").write_bytes(answers["x"].tobytes())
    files = {"model": models / "int8" / f"{name}.int8.tflite", "feed": out / "feed.bin"}
    lines = [
        f'.section .rodata.{symbol}, "a"\n.balign 16\n.global {symbol}\n{symbol}: .incbin "{file}"\n'
        for symbol, file in files.items()
    ]
    (out / "files.s").write_text("".join(lines))
    only = lambda operator: f"tflite::Register_{BYTES[operator]}_INT8()" if operator in BYTES else ""
    add = "; ".join(f"r->Add{operator}({only(operator)})" for operator in OPERATORS[name].split())
    own = [*flags(root, board, optimize), f"-I{SOURCES}", f"-DADD_OPERATORS(r)={add}", f"-DARENA_BYTES={ARENA}"]
    call(["arm-none-eabi-g++", *PLUS, *own, "-c", SOURCES / "peer.cc", "-o", out / "main.o"])
    used = ["-Wl,--gc-sections", "-lm", "-lc", "-lgcc"]
    program = link(board, [out / "files.s"], [out / "main.o", archive], out, used)
    lines = execute(board, program)
    number = lambda word: int(lines[word][0], 16)
    got = np.frombuffer(bytes.fromhex(lines["result"][0]), np.int8).reshape(answers["y"].shape)
    step = int(np.abs(got.astype(int) - answers["y"].astype(int)).max())
    if step > 1:
        raise Failure(f"the peer's answer differs from LiteRT's by {step} steps")
    sections = dict(re.findall(r"^(\.\S+)\s+(\d+)", call(["arm-none-eabi-size", "-A", program]), re.M))
    size = lambda *names: sum(int(sections.get(section, 0)) for section in names)
    return {
        "network": name,
        "target": target,
        "instructions": int(number("ticks") * board[3]),
        "ram": number("arena") + size(".data", ".bss") - ARENA + number("stack"),
        "flash": size(".vectors", ".text", ".ARM.exidx", ".data") - answers["x"].nbytes,
        "step": step,
    }


def table(rows, ours):
    """The table of a page: each figure next to the peer's."""
    lines = ["| | processor | instructions | peer | RAM | peer | flash | peer |", "|---|---|---:|---:|---:|---:|---:|---:|"]
    for row in rows:
        own = next(own for own in ours if (own["network"], own["target"], own["type"]) == (row["network"], row["target"], "int8"))
        counts = [f"{side['instructions'] / 1e6:.3g} M" for side in (own, row)]
        sizes = [f"{side[key] / 1e3:.{digits}f} KB" for key, digits in (("ram", 1), ("flash", 0)) for side in (own, row)]
        lines.append(f"| {NETWORKS[row['network']]} | {PROCESSORS[row['target']]} | {' | '.join(counts + sizes)} |")
        more = [key for key in ("instructions", "ram", "flash") if own[key] >= row[key]]
        if more:
            print(f"{row['target']} {row['network']}: more {', '.join(more)} than the peer: {own} {row}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    for name in ("sources", "models", "ours"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--optimize", default="-O3")
    parser.add_argument("--only", default="")
    parser.add_argument("--page", type=pathlib.Path)
    arguments = parser.parse_args()
    work = ROOT / "target" / "microcontrollers" / "peer"
    rows, failed = [], 0
    for name in NETWORKS:
        for target in PROCESSORS:
            if re.search(arguments.only, f"{target} {name}"):
                try:
                    rows.append(measure(arguments.sources.resolve(), arguments.models, target, name, arguments.optimize, work))
                except Failure as failure:
                    failed += 1
                    print(f"FAILED {target} {name}: {failure}", flush=True)
    written = table(rows, json.loads(arguments.ours.read_text()))
    print(written)
    (work / "peer.json").write_text(json.dumps(rows, indent=1) + "\n")
    if arguments.page and not failed:
        text = arguments.page.read_text()
        begin, end = (text.index(mark) for mark in MARKS)
        arguments.page.write_text(text[: begin + len(MARKS[0])] + f"\n{written}\n" + text[end:])
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
