#!/usr/bin/env bash
# Tests the runtime of device programs (runtime/include/tfcompile/device.h) on a machine without a
# GPU: with a stand-in for CUDA's driver, under sanitizers too, and with Intel's OpenCL runtime for
# processors. Without that runtime, prints one line, or installs it if CI=true or INSTALL=1.
#   scripts/test_device_runtime.sh [--kernels]
# `--kernels` writes tests/device/kernels.spv.hex from kernels.ll, with llc-22.
set -eu

cd "$(dirname "$0")/.."
source=tests/device
if [ "${1:-}" = --kernels ]; then
  llc-22 -mtriple=spirv64-unknown-unknown -filetype=obj $source/kernels.ll -o - | od -An -v -tx1 -w32 | tr -d ' ' >$source/kernels.spv.hex
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
include=(-Iruntime/include)

# The headers as C and as C++, with each compiler that is installed.
check() { # check COMPILER FLAG...
  command -v "$1" >/dev/null || return 0
  for program in cuda opencl; do
    "$@" "${warnings[@]}" "${include[@]}" -fsyntax-only $source/$program.c
  done
}
check gcc -x c -std=c99 &
pids=($!)
check g++ -x c++ -std=c++17 &
pids+=($!)
wait "${pids[0]}"
wait "${pids[1]}"
check clang -x c -std=c99 &
pids=($!)
check clang++ -x c++ -std=c++17 &
pids+=($!)
wait "${pids[0]}"
wait "${pids[1]}"

# build NAME COMPILER FLAG...: a test program and the stand-in's library
build() {
  local name=$1
  shift
  "$@" -std=c99 -g "${include[@]}" $source/cuda.c -o "$work/cuda_$name" -lpthread -ldl
  "$@" -std=c11 -g "${warnings[@]}" -shared -fPIC -fvisibility=hidden $source/standin_cuda.c -o "$work/standin_$name.so" -lpthread
}
# The libraries of some GCC releases fail with a strongly randomized address space.
fixed=()
! setarch -R true 2>/dev/null || fixed=(setarch -R)

build plain gcc -O2 "${warnings[@]}" &
pids=($!)
build address gcc -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined &
pids+=($!)
for pid in "${pids[@]}"; do wait "$pid"; done
build thread gcc -O1 -fsanitize=thread &
pids=($!)
"$work/cuda_plain" "$work/standin_plain.so"
echo "== address and undefined behavior"
ASAN_OPTIONS=detect_leaks=1 "${fixed[@]}" "$work/cuda_address" "$work/standin_address.so"
wait "${pids[0]}"
echo "== threads"
TSAN_OPTIONS=halt_on_error=1 "${fixed[@]}" "$work/cuda_thread" "$work/standin_thread.so" threads

echo "== OpenCL"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile
if [ ! -e "$cache/opencl-venv/.packages" ] && [ "${CI:-}" != true ] && [ "${INSTALL:-}" != 1 ]; then
  echo "skipped: Intel's OpenCL runtime is not installed (scripts/setup_gpu.sh opencl)"
  exit 0
fi
assignments=$(scripts/setup_gpu.sh opencl)
gcc -std=c99 -O1 -g "${warnings[@]}" "${include[@]}" $source/opencl.c -o "$work/opencl" -lpthread -ldl
(
  eval "$assignments"
  export OCL_ICD_VENDORS LD_LIBRARY_PATH
  "$work/opencl" $source/kernels.spv.hex
)
