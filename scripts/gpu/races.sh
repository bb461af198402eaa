#!/usr/bin/env bash
# Runs a command with kernels in OpenCL C on Oclgrind, a simulator that finds races, accesses out of
# bounds, and wrong calls of OpenCL. Fails if it finds any, or if the command fails.
#   scripts/gpu/races.sh conformance DIR... [flags]
#   scripts/gpu/races.sh tfcompile verify MODEL [flags]
# Oclgrind 21.10 has no memory that is shared with the host, so the runtime uses buffers. Code is
# not optimized, because its LLVM does not know some functions that optimization introduces. Its
# check of uninitialized memory is off: it takes what the host writes into the middle of a buffer
# for uninitialized.
set -eu
log=$(mktemp)
trap 'rm -f "$log"' EXIT
case ${1##*/} in
  # One process, because each overwrites the log.
  conformance) flags=(--device opencl:c --jobs 1 --timeout 300) ;;
  *) flags=(--target opencl:c) ;;
esac
export TFCOMPILE_OPENCL_DRIVER=${TFCOMPILE_OCLGRIND:-/usr/lib/oclgrind/liboclgrind-rt.so}
status=0
oclgrind --check-api --data-races --max-errors 20 --build-options -cl-opt-disable --log "$log" "$@" "${flags[@]}" ||
  status=$?
if [ -s "$log" ]; then
  echo "races: Oclgrind reports:" >&2
  head -n 40 "$log" >&2
  exit 1
fi
exit "$status"
