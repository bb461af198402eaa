"""Boards that QEMU emulates, and programs that run on them without an operating system."""

import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tests" / "microcontrollers"
sys.path.insert(0, str(ROOT / "scripts"))
from limited import OutOfTime, run_limited  # noqa: E402

ARM = ["arm-none-eabi-gcc", "-mthumb"]
# Vectors, code and its size, data and its size.
MPS2 = (0x0, 0x400, (4 << 20) - 0x400, 0x20000000, 4 << 20)
# Target of the compiler: board, flags of GCC, memory, and nanoseconds of a tick of the timer. The
# emulator counts one nanosecond for each instruction.
BOARDS = {
    "cortex-m0plus": ("qemu-system-arm -M mps2-an385", [*ARM, "-mcpu=cortex-m0plus"], MPS2, 40),
    "cortex-m4f": (
        "qemu-system-arm -M mps2-an386",
        [*ARM, "-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"],
        MPS2,
        40,
    ),
    "cortex-m7": (
        "qemu-system-arm -M mps2-an500",
        [*ARM, "-mcpu=cortex-m7", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard"],
        MPS2,
        40,
    ),
    "cortex-m33": (
        "qemu-system-arm -M mps2-an505",
        [*ARM, "-mcpu=cortex-m33", "-mfpu=fpv5-sp-d16", "-mfloat-abi=hard"],
        (0x10000000, 0x10000400, (4 << 20) - 0x400, 0x38000000, 4 << 20),
        50,
    ),
    "cortex-m55": (
        "qemu-system-arm -M mps3-an547",
        [*ARM, "-mcpu=cortex-m55", "-mfloat-abi=hard"],
        (0x10000000, 0x11000000, 2 << 20, 0x31000000, 4 << 20),
        31.25,
    ),
    "rv32imc": (
        "qemu-system-riscv32 -M virt -bios none -cpu rv32,f=false,d=false,a=false",
        ["riscv64-unknown-elf-gcc", "-march=rv32imc_zicsr", "-mabi=ilp32", "-mcmodel=medany"],
        (0x80000000, 0x80000400, (8 << 20) - 0x400, 0x80800000, 8 << 20),
        1,
    ),
}
# A board with a processor without 32-bit Thumb instructions, and little memory.
MICROBIT = ("qemu-system-arm -M microbit", BOARDS["cortex-m0plus"][1], (0x0, 0x400, (256 << 10) - 0x400, 0x20000000, 16 << 10), 62.5)


class Failure(Exception):
    """A step that failed, with its output."""


def call(command, limit=600, environment=None):
    """Runs a command, with additions to the environment, and returns its output."""
    environment = {**os.environ, **environment} if environment else None
    try:
        done = run_limited(command, limit, env=environment)
    except OutOfTime as problem:
        raise Failure(str(problem)) from None
    if done.returncode != 0:
        output = (done.stdout + done.stderr)[-2000:]
        raise Failure(f"{shlex.join(map(str, command))}: status {done.returncode}\n{output}")
    return done.stdout


def model(tool, source, target, out, name="model", flags=()):
    """Compiles a model and returns its description."""
    call([tool, "build", source, "--name", name, "--target", target, "--emit=obj,c-header", "-o", out, "-q", *flags])
    described = json.loads(call([tool, "inspect", out / f"{name}.o", "--json"]))
    return described["programs"][0]["metadata"]


def source(described, feeds, out, name="model"):
    """Writes the C program that runs a model once and prints its results."""
    upper = name.upper()
    feed_names = [a["accessor"] for a in described["arguments"]]
    results = [r["accessor"] for r in described["results"]]
    lines = ['#include "board.h"', f'#include "{name}_c.h"', ""]
    for k, feed in enumerate(feeds):
        file = out / f"feed{k}.bin"
        file.write_bytes(feed.tobytes())
        lines += [
            f'__asm__(".section .rodata.feed{k}, \\"a\\"\\n.balign 64\\nfeed{k}: .incbin \\"{file}\\"\\n.text");',
            f"extern const unsigned char feed{k}[];",
        ]
    lines += [
        f"static unsigned char memory[{upper}_ARENA_BYTES];",
        "int run(void) {",
        f"  {name}_state* state = {name}_init(memory);",
    ]
    for k, accessor in enumerate(feed_names):
        lines.append(
            f"  for (unsigned i = 0; i < {upper}_{accessor}_BYTES; ++i)"
            f" ((unsigned char*){name}_{accessor}(state))[i] = feed{k}[i];"
        )
    lines += [
        "  paint_stack();",
        "  const uint64_t begin = ticks();",
        f"  const int32_t status = {name}_run(state);",
        "  const uint64_t end = ticks();",
        '  write_number("stack", stack_used());',
        '  write_number("ticks", end - begin);',
        "  if (status != 0) {",
        f"    write_text({name}_error(state));",
        "    return 1;",
        "  }",
    ]
    lines += [
        f'  write_bytes("result", {name}_{accessor}(state), {upper}_{accessor}_BYTES);' for accessor in results
    ]
    lines += ["  return 0;", "}", ""]
    (out / "main.c").write_text("\n".join(lines))
    return out / "main.c"


def link_flags(board, script="memory.ld"):
    """Flags that place code and data in a board's memory with a linker script of `SOURCES`."""
    _, _, (vectors, code, code_bytes, data, data_bytes), _ = board
    places = {"vectors_origin": vectors, "code_origin": code, "code_bytes": code_bytes, "data_origin": data, "data_bytes": data_bytes}
    symbols = [f"-Wl,--defsym={name}={value}" for name, value in places.items()]
    return [*symbols, "-Wl,--no-warn-rwx-segments", "-Wl,-z,noexecstack", f"-L{SOURCES}", f"-T{SOURCES / script}"]


def link(board, sources, objects, out, flags=(), script="memory.ld"):
    """Links a program for a board with a linker script of `SOURCES`."""
    call(
        [
            *board[1], "-std=gnu11", "-O1", "-ffreestanding", "-fno-builtin", "-nostdlib", "-nostartfiles", "-Wall", "-Werror",
            f"-I{SOURCES}", f"-I{out}", SOURCES / "board.c", *sources, *objects, *link_flags(board, script), *flags,
            "-o", out / "program.elf",
        ]
    )  # fmt: skip
    return out / "program.elf"


def execute(board, program, limit=600):
    """Runs a program. Returns the lines that it prints, by their first word."""
    command = shlex.split(board[0]) + ["-icount", "shift=0", "-nographic", "-monitor", "none", "-serial", "none"]
    command += ["-semihosting-config", "enable=on,target=native", "-kernel", str(program)]
    try:
        done = run_limited(command, limit, stdin=subprocess.DEVNULL)
    except OutOfTime as problem:
        raise Failure(str(problem)) from None
    output = done.stdout + done.stderr
    if done.returncode != 0:
        raise Failure(f"{shlex.join(command)}: status {done.returncode}\n{output[-2000:]}")
    lines = {}
    for line in output.splitlines():
        word, _, rest = line.partition(" ")
        lines.setdefault(word, []).append(rest)
    return lines
