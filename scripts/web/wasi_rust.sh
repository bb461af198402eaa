#!/usr/bin/env bash
# Builds a Rust program for WASI with a compiled model, in several forms, and runs it in wasmtime.
#   scripts/web/wasi_rust.sh PYTHON      with an interpreter that has the package `wasmtime`
# TOOL selects another build.
set -eu

python=$1
here=$(cd "$(dirname "$0")" && pwd)
TFCOMPILE=$(realpath "${TOOL:-target/release/tfcompile}")
export TFCOMPILE
CARGO_TARGET_DIR=$(mktemp -d)
export CARGO_TARGET_DIR
trap 'rm -rf "$CARGO_TARGET_DIR"' EXIT
unset RUSTFLAGS CARGO_ENCODED_RUSTFLAGS

# Computed by hand: x w + b with w = [[1, -1], [2, -2], [3, 0.5]] and b = [0.25, 4], negative values
# replaced by 0.
[ "${python#/}" != "$python" ] || python=$PWD/$python
expected='scores [[14.25, 0.5], [32.25, 0.0]]
scores [[3.25, 4.5], [0.0, 5.0]]
rows 4
rows 102'
no_threads='the system cannot start another thread'

program=$CARGO_TARGET_DIR/wasm32-wasip1/debug/wasi-rust.wasm
for FORM in plain simd relaxed no-std file; do
  export FORM
  cargo build --quiet --offline --target wasm32-wasip1 --manifest-path "$here/wasi_rust/Cargo.toml"
  # Rust's library looks up absolute paths in the working directory, too.
  text=$(cd / && "$python" "$here/run_wasi.py" "$program")
  # Code without the standard library has no method that starts threads.
  all=$expected
  [ "$FORM" = no-std ] || all+=$'\n'$no_threads
  [ "$text" = "$all" ] || {
    printf 'wasi_rust: %s: expected\n%s\ngot\n%s\n' "$FORM" "$all" "$text" >&2
    exit 1
  }
  echo "$FORM: right"
done
