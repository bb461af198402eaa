"""Machines that run compiled models here: how to build a program for each, and how to run it."""

import os
import pathlib
import shlex
import shutil
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "microcontrollers"))
import boards  # noqa: E402
from boards import Failure, call  # noqa: E402

PROGRAM = """\
#include <stddef.h>
#include <stdint.h>
#include "model_c.h"
#ifdef ON_BOARD
#include "board.h"
#else
#include <stdio.h>
static void write_bytes(const char* name, const void* bytes, size_t count) {{
  printf("%s ", name);
  for (size_t i = 0; i < count; ++i) printf("%02x", ((const unsigned char*)bytes)[i]);
  printf("\\n");
}}
static void write_text(const char* text) {{ printf("%s\\n", text); }}
int run(void);
int main(void) {{ return run(); }}
#endif
{data}
static unsigned char memory[MODEL_ARENA_BYTES];
int run(void) {{
  model_state* state = model_init(memory);
{copies}
  if (model_run(state) != 0) {{
    write_text(model_error(state));
    return 1;
  }}
{prints}
  return 0;
}}
"""


def program(feeds, results, variables):
    """A C program that runs a model once and prints `results` arrays and its variables."""
    data, copies = [], []
    for k, feed in enumerate(feeds):
        content = ", ".join(map(str, feed.tobytes())) or "0"
        data.append(f"static const unsigned char feed{k}[] = {{{content}}};")
        copies.append(f"  for (size_t i = 0; i < {feed.nbytes}u; ++i) ((unsigned char*)state->args[{k}])[i] = feed{k}[i];")
    prints = [f'  write_bytes("result", state->results[{k}], {count}u);' for k, count in enumerate(results)]
    first = len(feeds) - variables
    prints += [f'  write_bytes("result", state->args[{k}], {feeds[k].nbytes}u);' for k in range(first, len(feeds))]
    return PROGRAM.format(data="\n".join(data), copies="\n".join(copies), prints="\n".join(prints))


def results_of(output):
    return [bytes.fromhex(line.split(" ")[1]) for line in output.splitlines() if line.startswith("result ")]


class EmulatorDefect(Exception):
    """The emulator ended by an assertion of its own."""


class Hosted:
    """A machine with an operating system or a runtime that has one's functions."""

    def __init__(self, target, cc, run=(), flags=(), libraries=(), needs=(), environment=None):
        self.target, self.cc, self.run_with, self.flags = target, shlex.split(cc), list(run), list(flags)
        self.libraries, self.needs, self.environment = libraries, [self.cc[0], *run[:1], *needs], environment

    def run(self, build, text, directory):
        build(self.target, "obj,c-header", directory, self.flags)
        (directory / "main.c").write_text(text)
        (model,) = (path for path in directory.iterdir() if path.suffix in (".o", ".obj"))
        program = directory / "program.exe"  # Windows runs no other name.
        call([*self.cc, "-O1", "-w", directory / "main.c", model, *self.libraries, "-o", program])
        try:
            return results_of(call([*self.run_with, program], environment=self.environment))
        except Failure as failure:
            # QEMU 7.2 cannot translate conversions of vectors to narrower integers (vfncvt.rtz).
            if "decode_save_opc: Assertion" in str(failure):
                raise EmulatorDefect(str(failure).splitlines()[-1]) from None
            raise


class Source:
    """A C compiler for `build --emit c`."""

    def __init__(self, cc, vectors="none"):
        self.cc, self.vectors, self.needs = shlex.split(cc), vectors, [shlex.split(cc)[0]]

    def run(self, build, text, directory):
        build(None, "c,c-header", directory, [f"--c-vectors={self.vectors}"])
        (directory / "main.c").write_text(text)
        program = directory / "program"
        call([*self.cc, directory / "main.c", directory / "model.c", "-o", program])
        return results_of(call([program]))


class Board:
    """A microcontroller in QEMU, from an object or from C source."""

    def __init__(self, target, is_source=False):
        self.target, self.board, self.is_source = target, boards.BOARDS[target], is_source
        self.needs = [self.board[0].split()[0], self.board[1][0]]

    def run(self, build, text, directory):
        # By default, C source has no vectors for Cortex-M55.
        emitted, flags = ("c,c-header", []) if self.is_source else ("obj,c-header", [])
        build(self.target, emitted, directory, flags)
        (directory / "main.c").write_text("#define ON_BOARD 1\n" + text)
        sources = [directory / "main.c"] + ([directory / "model.c"] if self.is_source else [])
        objects = [] if self.is_source else [directory / "model.o"]
        # Code of GCC calls functions of its own library and of C's.
        flags = ["-lc", "-lgcc"] if self.is_source else []
        program = boards.link(self.board, sources, objects, directory, flags)
        return [bytes.fromhex(line) for line in boards.execute(self.board, program).get("result", [])]


class Module:
    """WebAssembly in Node, through the generated JavaScript."""

    needs = ["node"]

    def __init__(self, target):
        self.target = target

    def run(self, build, text, directory, feeds=(), variables=0):
        build(self.target, None, directory, [])
        for k, feed in enumerate(feeds):
            (directory / f"feed{k}.bin").write_bytes(feed.tobytes())
        return results_of(call(["node", HERE / "run_module.mjs", directory, str(variables)]))


def wine():
    """The command of Wine, which Debian installs outside of the path."""
    return shutil.which("wine64", path=os.environ["PATH"] + ":/usr/lib/wine") or "wine64"


def machines(opencl):
    """Name of a machine, what runs it, and the machine. `opencl` is the environment of an OpenCL driver."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tfcompile-models"
    windows = {"WINEPREFIX": str(cache / "wine"), "WINEDEBUG": "-all"}
    emulated = [
        ("aarch64-linux", "aarch64-linux-gnu", "qemu-aarch64"),
        ("armv7-linux", "arm-linux-gnueabihf", "qemu-arm"),
        ("riscv64-linux-v", "riscv64-linux-gnu", "qemu-riscv64 -cpu rv64,v=true,vlen=128,vext_spec=v1.0"),
    ]
    found = [("x86-64", "this machine", Hosted("x86-64", "gcc"))]
    for target, prefix, emulator in emulated:
        machine = Hosted(target, f"{prefix}-gcc", [*shlex.split(emulator), "-L", f"/usr/{prefix}"])
        found.append((target, emulator.split()[0], machine))
    found += [
        ("x86_64-windows", "Wine", Hosted("x86_64-windows", "x86_64-w64-mingw32-gcc -static", [wine()], environment=windows)),
        ("wasm32", "Node", Module("wasm32")),
        (
            "wasm32, WASI",
            "wasmtime",
            Hosted("wasm32", "clang-22 --target=wasm32-wasi -msimd128", [sys.executable, HERE.parent / "web" / "run_wasi.py"]),
        ),
    ]
    found += [(target, "QEMU", Board(target)) for target in boards.BOARDS]
    found += [
        ("C source, gcc", "this machine", Source("gcc -std=c11 -O2 -mavx2 -mfma", "gcc")),
        ("C source, clang", "this machine", Source("clang-22 -std=c11 -O2 -mavx2 -mfma", "gcc")),
        ("C source, plain, gcc", "this machine", Source("gcc -std=c11 -O2")),
        ("C source, plain, tcc", "this machine", Source("tcc")),
        ("C source, arm-none-eabi-gcc", "QEMU, Cortex-M4F", Board("cortex-m4f", is_source=True)),
        ("C source, the same compiler", "QEMU, Cortex-M55", Board("cortex-m55", is_source=True)),
    ]
    if opencl is not None:
        libraries = ["-pthread", "-ldl", "-lm"]
        for target in ("opencl", "opencl:c"):
            machine = Hosted(target, "gcc", libraries=libraries, environment=opencl)
            found.append((target, "Intel's runtime", machine))
    return found


def is_installed(machine):
    return all(shutil.which(str(need)) for need in machine.needs)


def as_array(raw, like):
    if len(raw) != like.nbytes:
        raise Failure(f"a result of {len(raw)} bytes, expected {like.nbytes}")
    return np.frombuffer(raw, like.dtype).reshape(like.shape)
