#!/usr/bin/env bash
# Searches for misused memory in the Rust code: runs the unit tests of the runtime and of the pure
# parts of `jit` and `support` under Miri, and the tool under AddressSanitizer on all programs of
# tests/oracle. Needs a nightly toolchain with the component miri.
#   scripts/test_memory.sh [miri|address]...
set -eu

cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- miri address
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/memory

miri() {
  # Time is simulated, so that spinning threads end soon, and threads change often.
  export MIRIFLAGS="-Zmiri-preemption-rate=0.1"
  (cd crates/tfcompile-runtime && cargo +nightly miri test --quiet --lib)
  cargo +nightly miri test --quiet --lib -p support -p jit
}

# `run` loads generated code, and `build` writes all kinds of files.
address() {
  local host tool runs=0
  host=$(rustc -vV | sed -n 's/^host: //p')
  RUSTFLAGS="-Zsanitizer=address" cargo +nightly build --quiet -p cli --target "$host"
  tool=$PWD/$CARGO_TARGET_DIR/$host/debug/tfcompile
  case $CARGO_TARGET_DIR in /*) tool=$CARGO_TARGET_DIR/$host/debug/tfcompile ;; esac
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # LLVM keeps memory until the end.
  export ASAN_OPTIONS=detect_leaks=0
  checked() { # checked COMMAND CASE FLAG...
    local command=$1 case=$2
    shift 2
    (cd "$work" && TFCOMPILE_KERNEL_CACHE=cache "$tool" "$command" "$case/graph.pb" "--config=$case/config.pbtxt" -q "$@") \
      >"$work/out.txt" 2>"$work/errors.txt" || { cat "$work/errors.txt" >&2; echo "memory: $command $case failed" >&2; exit 1; }
    runs=$((runs + 1))
  }
  for case in "$PWD"/tests/oracle/tfcompile_tests/tf*/; do
    # Its variable is only in a checkpoint.
    [ "$(basename "$case")" != tfadd_with_ckpt ] || continue
    checked verify "$case"
    checked run "$case" --random=1 --threads=3 --save=model.npz
    checked run "$case" --random=1 --jit=2 --threads=3
    checked build "$case" -o out --emit=obj,header,c-header,rust,shared,hlo-text,html,metadata
    checked build "$case" -o out --emit=c,header
  done
  echo "memory: $runs runs of the tool under AddressSanitizer, no report"
}

for part in "$@"; do
  "$part"
done
