#!/usr/bin/env python3
"""Runs a WASI program in wasmtime, with all of the file system.

    run_wasi.py PROGRAM ARGUMENT...

Needs the package `wasmtime`. The exit status is the program's; a trap ends with 134.
"""

import os
import sys

import wasmtime


def main() -> int:
    config = wasmtime.Config()
    config.wasm_relaxed_simd = True
    engine = wasmtime.Engine(config)
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    store = wasmtime.Store(engine)
    wasi = wasmtime.WasiConfig()
    wasi.argv = sys.argv[1:]
    wasi.inherit_stdin()
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    wasi.preopen_dir("/", "/")
    # WASI has no working directory. The library resolves relative paths against ".".
    wasi.preopen_dir(os.getcwd(), ".")
    store.set_wasi(wasi)
    module = wasmtime.Module.from_file(engine, sys.argv[1])
    instance = linker.instantiate(store, module)
    try:
        instance.exports(store)["_start"](store)
    except wasmtime.ExitTrap as exit:
        return exit.code
    except wasmtime.Trap as trap:
        print(trap, file=sys.stderr)
        return 134
    return 0


if __name__ == "__main__":
    sys.exit(main())
