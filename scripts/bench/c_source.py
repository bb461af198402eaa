#!/usr/bin/env python3
"""Compares the speed of C source (`build --emit c`) with that of objects, and their results.

    scripts/bench/c_source.py TOOL MODELS [NAME...] [--cc COMMAND] [--vectors gcc|none] [--seconds S]

TOOL is tfcompile. MODELS has a directory for each model, with graph.pb and config.pbtxt, or files
NAME.tflite. One program
links both: the object for this processor, and the C source compiled by COMMAND. Their runs alternate
on one thread; the time of each is the least of all. Prints a table with the geometric mean of the
ratios, and fails if results differ by more than rounding explains."""
import argparse
import math
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

MAIN = r"""
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "object_c.h"
#include "source_c.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *file(const char *name, size_t *size) {
  FILE *f = fopen(name, "rb");
  if (f == NULL) return NULL;
  fseek(f, 0, SEEK_END);
  *size = (size_t)ftell(f);
  rewind(f);
  void *data = aligned_alloc(64, (*size + 63) / 64 * 64);
  if (data == NULL || fread(data, 1, *size, f) != *size) exit(2);
  fclose(f);
  return data;
}

int main(int argc, char **argv) {
  const double limit = atof(argv[argc - 1]);
  object_state *a = object_init(malloc(object_size()));
  source_state *b = source_init(malloc(source_size()));
  size_t size;
  void *constants;
CONSTANTS
  unsigned seed = 1;
ARGUMENTS
  double least_a = 1e30, least_b = 1e30;
  const double start = now();
  for (int k = 0; k < 5 || now() - start < limit; k++) {
    double t = now();
    if (object_run(a) != 0) return 3;
    t = now() - t;
    least_a = t < least_a ? t : least_a;
    t = now();
    if (source_run(b) != 0) return 3;
    t = now() - t;
    least_b = t < least_b ? t : least_b;
  }
  double worst = 0;
  int same = 1;
RESULTS
  printf("%.9g %.9g %.3g %d\n", least_a, least_b, worst, same);
  return 0;
}
"""


def run(words, **more):
    done = subprocess.run(words, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(map(str, words))}: {done.stderr or done.stdout}")
    return done.stdout


def program(header, loads_constants):
    """The harness for the arguments and results of a header."""
    arguments = []
    for element, name in re.findall(r"static inline ([\w ]+)\* object_((?:arg|var)\w*)\(object_state", header):
        count = f"OBJECT_{name}_COUNT"
        value = "1"
        if element in ("float", "double"):
            value = "(float)((int)(seed >> 16) % 2000 - 1000) * 1e-3f"
        elif element in ("int8_t", "uint8_t"):
            value = "seed >> 24"
        arguments.append(
            f"  for (size_t i = 0; i < {count}; i++) {{ seed = seed * 1664525u + 1013904223u; "
            f"object_{name}(a)[i] = source_{name}(b)[i] = ({element})({value}); }}"
        )
    results = []
    for element, name in re.findall(r"static inline (?:const )?(\w+)\* object_(result\w*)\(const object_state", header):
        bytes_ = f"OBJECT_{name}_BYTES"
        results.append(f"  same &= memcmp(object_{name}(a), source_{name}(b), {bytes_}) == 0;")
        if element in ("float", "double", "int8_t", "uint8_t"):
            results.append(
                f"  {{ double most = 1e-30, off = 0; for (size_t i = 0; i < OBJECT_{name}_COUNT; i++) {{ "
                f"const double x = object_{name}(a)[i], y = source_{name}(b)[i]; "
                "most = fmax(most, fabs(x)); off = fmax(off, fabs(x - y)); } worst = fmax(worst, off / most); }"
            )
    constants = []
    for side, state in (("object", "a"), ("source", "b")):
        if loads_constants:
            constants += [
                f'  constants = file("{side}.constants", &size);',
                f"  if ({side}_set_constants({state}, constants, size) != NULL) return 4;",
            ]
    text = MAIN.replace("CONSTANTS", "\n".join(constants) or "  (void)size; (void)constants; (void)file;", 1)
    return text.replace("ARGUMENTS", "\n".join(arguments), 1).replace("RESULTS", "\n".join(results), 1)


def measure(tool, model, cc, vectors, seconds):
    with tempfile.TemporaryDirectory() as work:
        files = [model] if model.is_file() else [model / "graph.pb", "--config", model / "config.pbtxt"]
        common = [tool, "build", *files, "--constants=file", "--quiet"]
        cpu = ["--target-cpu=native"]
        run([*common, *cpu, "--name=object", "--emit=obj,c-header", "-o", work])
        more = [] if vectors == "none" else cpu
        run([*common, *more, "--name=source", "--emit=c,c-header", f"--c-vectors={vectors}", "-o", work])
        header = (pathlib.Path(work) / "object_c.h").read_text()
        (pathlib.Path(work) / "main.c").write_text(program(header, "object_set_constants" in header))
        run([*shlex.split(cc), "-c", "source.c", "-o", "source.o"], cwd=work)
        run(["gcc", "-O2", "main.c", "object.o", "source.o", "-lm", "-o", "main"], cwd=work)
        a, b, worst, same = run([f"{work}/main", str(seconds)], cwd=work).split()
        lines = sum(1 for _ in open(f"{work}/source.c"))
        return float(a), float(b), float(worst), same == "1", lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--cc", default="gcc -std=c11 -O3 -march=native")
    parser.add_argument("--vectors", default="gcc")
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    found = [path.parent.name for path in options.models.glob("*/graph.pb")]
    names = options.names or sorted(found + [path.name for path in options.models.glob("*.tflite")])
    ratios = []
    print(f"| model | object, ms | C, ms | speed of C | lines of C | same bits |\n|---|---|---|---|---|---|")
    for name in names:
        a, b, worst, same, lines = measure(
            options.tool, options.models / name, options.cc, options.vectors, options.seconds
        )
        ratios.append(a / b)
        bits = "yes" if same else f"within {worst:.0e}"
        print(f"| {name} | {1e3 * a:.3f} | {1e3 * b:.3f} | {a / b:.2f} | {lines} | {bits} |", flush=True)
        if worst > 1e-3:
            sys.exit(f"{name}: results differ by {worst} of the largest")
    print(f"| geometric mean | | | {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} | | |")


main()
