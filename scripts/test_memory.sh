#!/usr/bin/env bash
# Searches for misused memory in Rust code: runs the unit tests of the runtime and of the pure
# parts of `jit` and `support` under Miri, and the tool under AddressSanitizer and ThreadSanitizer
# on all programs of tests/oracle. Needs a nightly toolchain with the components miri and rust-src.
#   scripts/test_memory.sh [miri|address|thread]...
set -eu

cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- miri address thread
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/memory

miri() {
  # Time is simulated, so that spinning threads end soon, and threads change often.
  export MIRIFLAGS="-Zmiri-preemption-rate=0.1"
  (cd crates/tfcompile-runtime && cargo +nightly miri test --quiet --lib)
  cargo +nightly miri test --quiet --lib -p support -p jit
}

# `run` loads generated code, and `build` writes all kinds of files.
sanitized() { # sanitized SANITIZER FLAG...: the flags are for cargo
  local sanitizer=$1
  shift
  local host tool runs=0
  host=$(rustc -vV | sed -n 's/^host: //p')
  RUSTFLAGS="-Zsanitizer=$sanitizer" CARGO_TARGET_DIR=$CARGO_TARGET_DIR/$sanitizer \
    cargo +nightly build --quiet -p cli --target "$host" "$@"
  tool=$(realpath "$CARGO_TARGET_DIR/$sanitizer/$host/debug/tfcompile")
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  # LLVM keeps memory until the end.
  export ASAN_OPTIONS=detect_leaks=0
  checked() { # checked COMMAND CASE FLAG...
    local command=$1 case=$2
    shift 2
    # ThreadSanitizer fails with a strongly randomized address space.
    (cd "$work" && TFCOMPILE_KERNEL_CACHE=cache setarch -R "$tool" "$command" "$case/graph.pb" "--config=$case/config.pbtxt" -q "$@") \
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
  echo "memory: $runs runs of the tool with -Zsanitizer=$sanitizer, no report"
  rm -rf "$work"
}
address() { sanitized address; }
# The standard library must be instrumented, too.
thread() { sanitized thread -Zbuild-std; }

for part in "$@"; do
  "$part"
done
