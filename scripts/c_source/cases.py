#!/usr/bin/env python3
"""Runs recorded cases as C source with several C compilers, and compares with TensorFlow's answers.

    scripts/c_source/cases.py TOOL DIRECTORY [--count N] [--vectors gcc|none] [COMPILER...]

DIRECTORY has cases (.npz) with arguments and results of fixed sizes. COMPILER is a command such as
"gcc -std=c11 -O2", or starts with arm-none-eabi-gcc: then the program runs on a Cortex-M in QEMU,
without a C library. Prints one line for each compiler: N of N."""
import argparse
import json
import pathlib
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from limited import OutOfTime, run_limited  # noqa: E402
# Data of a case that fit in the memory of the board.
MAX_BYTES = 64 << 10
KINDS = {"<f4": "float", "<f8": "double", "|i1": "int8_t", "|u1": "uint8_t", "<i2": "int16_t", "<u2": "uint16_t",
         "<i4": "int32_t", "<u4": "uint32_t", "<i8": "int64_t", "<u8": "uint64_t", "|b1": "uint8_t"}


class Skipped(Exception):
    """The case is not for this test."""


def array(archive, name):
    """Returns the type and the bytes of an array."""
    data = archive.read(name)
    (length,) = struct.unpack("<H", data[8:10])
    header = data[10 : 10 + length].decode()
    return re.search(r"'descr': '([^']+)'", header).group(1), data[10 + length :]


def ordered(archive, folder):
    names = [n for n in archive.namelist() if n.startswith(folder + "/")]
    return sorted(names, key=lambda n: int(re.search(r"(\d+)\.npy$", n).group(1)))


def read(path):
    """Returns graph, config, arguments, results, and tolerances of a case."""
    with zipfile.ZipFile(path) as archive:
        meta = json.loads(array(archive, "meta.json.npy")[1])
        if meta.get("variables") or meta.get("dynamic_output") or meta.get("compare", "values") != "values" or not meta["xla_ok"]:
            raise Skipped
        texts = [array(archive, name + ".npy")[1] for name in ("graph.pb", "config.pbtxt")]
        arguments = [array(archive, n) for n in ordered(archive, "feed")]
        results = [array(archive, n) for n in ordered(archive, "fetch_tf")]
    everything = arguments + results
    if not results or any(kind not in KINDS for kind, _ in everything) or sum(len(b) for _, b in everything) > MAX_BYTES:
        raise Skipped
    return texts, arguments, results, (meta["atol"], meta["rtol"])


def initializer(data):
    return ", ".join(map(str, data))


def program(arguments, results, tolerances):
    """A program that runs the function on the arguments and compares the results."""
    out = ['#include <stddef.h>\n#include <stdint.h>\n#include "model_c.h"\nint puts(const char*);',
           "static unsigned char memory[MODEL_ARENA_BYTES];",
           "static inline __attribute__((unused)) double size(double x) { return x < 0 ? -x : x; }"]
    align = "__attribute__((aligned(64)))"
    for side, arrays in (("argument", arguments), ("expected", results)):
        for k, (kind, data) in enumerate(arrays):
            if data:  # Compilers warn about loops of no steps.
                out.append(f"static const unsigned char {side}{k}[{len(data)}] {align} = {{{initializer(data)}}};")
    out.append("int main(void) {\n  model_state* state = model_init(memory);\n  int wrong = 0;")
    for k, (kind, data) in enumerate(arguments):
        if data:
            out.append(f"  for (size_t i = 0; i < {len(data)}u; i++) ((unsigned char*)state->args[{k}])[i] = argument{k}[i];")
    out.append('  if (model_run(state) != 0) { puts("the run failed"); return 2; }')
    for k, (kind, data) in enumerate(results):
        if not data:
            continue
        c = KINDS[kind]
        item = struct.calcsize(kind[1:].replace("f4", "f").replace("f8", "d").replace("i1", "b").replace("u1", "B")
                               .replace("b1", "B").replace("i2", "h").replace("u2", "H").replace("i4", "i")
                               .replace("u4", "I").replace("i8", "q").replace("u8", "Q"))
        out.append(f"  {{ const {c}* got = (const {c}*)state->results[{k}]; const {c}* want = (const {c}*)(const void*)expected{k};\n"
                   f"    for (size_t i = 0; i < {len(data) // item}u; i++) {{")
        if kind in ("<f4", "<f8"):
            absolute, relative = tolerances
            out.append("      const double a = (double)got[i], b = (double)want[i];\n"
                       f"      const int same = a == b || (a != a && b != b) || size(a - b) <= {absolute!r} + {relative!r} * size(b);\n"
                       "      wrong += !same;")
        else:
            out.append("      wrong += got[i] != want[i];")
        out.append("    } }")
    out.append('  if (wrong != 0) puts("results differ");\n  return wrong != 0;\n}')
    return "\n".join(out)


def target(compiler):
    """The machine that a compiler makes programs for, or nothing for this one. Loops on threads depend on its addresses."""
    if not compiler.startswith("arm-none-eabi"):
        return None
    return "cortex-m7" if "cortex-m7" in compiler else "cortex-m4f"


def build(tool, case, vectors, machine, work):
    texts, arguments, results, tolerances = case
    (work / "graph.pb").write_bytes(texts[0])
    (work / "config.pbtxt").write_bytes(texts[1])
    (work / "main.c").write_text(program(arguments, results, tolerances))
    done = subprocess.run(
        [tool, "build", work / "graph.pb", "--config", work / "config.pbtxt", "--name=model", "--emit=c,c-header",
         f"--c-vectors={vectors}", *(["--target", machine] if machine else []), "--quiet", "-o", work], capture_output=True, text=True)
    return done.stderr.strip() if done.returncode else None


def run(compiler, work):
    """Compiles and runs a program. Returns a message, or nothing if the results are right."""
    words = shlex.split(compiler)
    if words[0].startswith("arm-none-eabi"):
        sources = ["model.c", "main.c", HERE.resolve() / "cortex_m.c"]
        link = ["-nostdlib", "-ffreestanding", "-fno-builtin", "-T", HERE.resolve() / "cortex_m.ld"]
        after = ["-lgcc"]
        board = "mps2-an500" if "cortex-m7" in compiler else "mps2-an386"
        start = ["qemu-system-arm", "-M", board, "-nographic", "-semihosting", "-kernel", "program"]
    else:
        sources, link, after, start = ["model.c", "main.c"], [], [], ["./program"]
    made = subprocess.run([*words, *link, *sources, *after, "-o", "program"], cwd=work, capture_output=True, text=True)
    if made.returncode:
        return made.stderr.strip()[:500]
    try:
        done = run_limited(start, 60, cwd=work, stdin=subprocess.DEVNULL)
    except OutOfTime as problem:
        return str(problem)
    return None if done.returncode == 0 else f"status {done.returncode}: {(done.stdout + done.stderr).strip()[:500]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("compilers", nargs="+")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--vectors", default="none")
    options = parser.parse_args()
    paths = sorted(options.directory.rglob("*.npz"))
    counts = {compiler: [0, 0] for compiler in options.compilers}
    step = max(len(paths) // (2 * options.count), 1) if options.count else 1
    for path in paths[::step]:
        if options.count and min(total for _, total in counts.values()) >= options.count:
            break
        try:
            case = read(path)
        except Skipped:
            continue
        with tempfile.TemporaryDirectory() as work:
            works = {machine: pathlib.Path(work) / (machine or "host") for machine in map(target, counts)}
            messages = {}
            for machine, place in works.items():
                place.mkdir()
                messages[machine] = build(options.tool, case, options.vectors, machine, place)
            for compiler, count in counts.items():
                problem = messages[target(compiler)] or run(compiler, works[target(compiler)])
                count[0] += problem is None
                count[1] += 1
                if problem:
                    print(f"{path.relative_to(options.directory)}: {compiler}: {problem}", flush=True)
    for compiler, (passed, total) in counts.items():
        print(f"{passed} of {total}: {compiler}")
    return 0 if all(passed == total > 0 for passed, total in counts.values()) else 1


sys.exit(main())
