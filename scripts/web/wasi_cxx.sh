#!/usr/bin/env bash
# Compiles and links a C++ program for WASI with Clang, without threads, which WASI has not.
#   scripts/web/wasi_cxx.sh ARGUMENT...
set -eu
arguments=()
for argument; do
  [ "$argument" = -pthread ] || arguments+=("$argument")
done
# Debian's C library is in the directory of the old name of the target.
exec clang++-22 --target=wasm32-wasi -Wno-deprecated -fno-exceptions -msimd128 "${arguments[@]}"
