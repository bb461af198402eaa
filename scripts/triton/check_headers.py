#!/usr/bin/env python3
"""Compares the declarations of crates/triton with Triton's own headers.

    check_headers.py DIRECTORY

DIRECTORY is `include` of a checkout of triton-inference-server/core. Every function, number, and entry point becomes a C++
declaration that a compiler checks against the headers.
"""

import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "crates/triton/src"
ALIASES = {
    "u32": "uint32_t", "u64": "uint64_t", "i32": "int32_t", "i64": "int64_t", "usize": "size_t", "bool": "bool",
    "c_char": "char", "c_int": "int", "c_void": "void", "()": "void",
    "DataType": "TRITONSERVER_DataType", "MemoryType": "TRITONSERVER_MemoryType", "ErrorCode": "TRITONSERVER_Error_Code",
    "LogLevel": "TRITONSERVER_LogLevel", "InstanceKind": "TRITONSERVER_InstanceGroupKind",
    "ArtifactType": "TRITONBACKEND_ArtifactType", "ServerError": "TRITONSERVER_Error", "Message": "TRITONSERVER_Message",
    "Answer": "TRITONSERVER_Error*",
}


def c_type(rust):
    """Returns the C type of a Rust type."""
    rust = rust.strip().removeprefix("api::")
    for prefix, form in (("*mut ", "{}*"), ("*const ", "const {}*")):
        if rust.startswith(prefix):
            inner = c_type(rust.removeprefix(prefix))
            if prefix == "*const " and inner.endswith("*"):
                return f"{inner} const*"
            return form.format(inner)
    return ALIASES.get(rust) or f"TRITONBACKEND_{rust}"


def declarations():
    """Yields a C declaration of each function and number."""
    api, entry = ((SOURCE / name).read_text() for name in ("api.rs", "entry.rs"))
    found = re.findall(r"^\s+\w+: (TRITON\w+)\(([^)]*)\) -> ([^;]+);", api, re.MULTILINE)
    for name, arguments, result in found:
        yield f"{c_type(result)} (*check_{name})({', '.join(map(c_type, arguments.split(',')))}) = &{name};"
    entries = re.findall(r"extern \"C\" fn (TRITON\w+)\(([^)]*)\) -> (\w+)", entry)
    for name, arguments, result in entries:
        types = [c_type(argument.split(":", 1)[1]) for argument in arguments.split(",") if argument.strip()]
        yield f"{c_type(result)} (*check_{name})({', '.join(types)}) = &{name};"
    numbers = re.findall(r"pub const (TRITON\w+): \w+ = (\d+);", api)
    for name, value in numbers:
        yield f'static_assert({name} == {value}, "{name}");'
    written = len(re.findall(r"\bTRITON(?:BACKEND|SERVER)_\w+\(", api))
    if min(len(found), len(entries), len(numbers)) == 0 or len(found) != written:
        sys.exit(f"check_headers: {written} functions are declared, but {len(found)} were understood")


def main(directory):
    lines = ["#include <cstddef>", "#include <cstdint>"]
    lines += ['#include "triton/core/tritonbackend.h"', '#include "triton/core/tritonserver.h"', *declarations()]
    command = ["c++", "-std=c++17", "-fsyntax-only", "-Wall", "-fmax-errors=5", "-I", directory, "-x", "c++", "-"]
    text = "\n".join(lines) + "\n"
    if subprocess.run(command, input=text, text=True, check=False).returncode != 0:
        sys.exit("check_headers: crates/triton/src/api.rs differs from the headers")
    print(f"check_headers: {len(lines) - 4} declarations agree with the headers")


if __name__ == "__main__":
    main(*sys.argv[1:])
