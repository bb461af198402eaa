#!/usr/bin/env bash
# Tests GPU code on a machine without a GPU: recorded cases through SPIR-V on an OpenCL runtime for
# processors, PTX of the same cases through ptxas, and the host's part on a stand-in for CUDA's
# driver.
#   scripts/test_gpu.sh sample|all
set -euo pipefail
cd "$(dirname "$0")/.."

part=${1:-sample}
shared=${TFCOMPILE_SHARED:-../shared}
case $part in
  sample) cases=120 assembled=150 ;;
  all) cases= assembled= ;;
  *)
    echo "test_gpu: expected sample or all" >&2
    exit 2
    ;;
esac
settings=$(scripts/setup_gpu.sh all)
export_settings() {
  while IFS='=' read -r name value; do
    eval "export $name=$value"
  done <<<"$settings"
}

echo "== the host's part on a stand-in for the driver"
scripts/test_device_runtime.sh

export_settings
folders=(tests/conformance)
for folder in cases cases_raw; do
  [ ! -d "$shared/conformance/$folder" ] || folders+=("$shared/conformance/$folder")
done
echo "== SPIR-V on an OpenCL runtime for processors"
target/release/conformance "${folders[@]}" --device opencl ${cases:+--sample "$cases"} \
  --known tests/conformance/known_failures.toml | tail -n 12
echo "== PTX of every kernel through ptxas, for sm_80 and sm_90a"
target/release/ptx "${folders[@]}" --ptxas "$TFCOMPILE_PTXAS" ${assembled:+--sample "$assembled"} | tail -n 12
