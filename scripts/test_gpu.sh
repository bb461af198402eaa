#!/usr/bin/env bash
# Tests GPU code on a machine without a GPU: whole programs and recorded cases through SPIR-V on an
# OpenCL runtime for processors, the cases in OpenCL C there and on PoCL, some of them and a network
# on Oclgrind, which finds races, and the PTX of the cases through ptxas.
#   scripts/test_gpu.sh sample|all
set -euo pipefail
cd "$(dirname "$0")/.."

part=${1:-sample}
shared=${TFCOMPILE_SHARED:-../shared}
case $part in
  sample)
    cases=150 assembled=100 texts=60 on_intel=40 on_pocl=12
    models=(mlp dscnn_kws lstm_train_b32)
    ;;
  all)
    cases='' assembled='' texts='' on_intel='' on_pocl=''
    models=(mlp dscnn_kws resnet8_cifar autoencoder_ad mobilenet_v1_025_96 lstm_train_b32 resnet8_train_b32)
    ;;
  *)
    echo "test_gpu: expected sample or all" >&2
    exit 2
    ;;
esac
eval "$(scripts/setup_gpu.sh all)"
eval "$(scripts/setup_gpu.sh opencl-c)"
export OCL_ICD_VENDORS TFCOMPILE_OCLGRIND

# Only programs that open the driver see its libraries.
with_driver() { LD_LIBRARY_PATH=$LD_LIBRARY_PATH "$@"; }

folders=(tests/conformance)
for folder in cases cases_raw; do
  [ ! -d "$shared/conformance/$folder" ] || folders+=("$shared/conformance/$folder")
done
echo "== recorded cases through SPIR-V"
with_driver target/release/conformance "${folders[@]}" --device opencl ${cases:+--sample "$cases"} --known tests/conformance/known_failures.toml | tail -n 12
echo "== whole programs through SPIR-V"
with_driver scripts/gpu/oracle.sh tests/oracle --tool target/release/tfcompile | tail -n 3
if [ "$part" = all ] && [ -d "$shared/oracle" ]; then
  with_driver scripts/gpu/oracle.sh "$shared/oracle" --tool target/release/tfcompile | tail -n 3
fi
echo "== models through SPIR-V"
if [ -d "$shared/oracle" ]; then
  ORACLE=scripts/gpu/oracle.sh ORACLE_THREADS='' with_driver scripts/models.sh "$shared/oracle" "${models[@]}" | tail -n 12
else
  [ "${CI:-}" != true ] || { echo "test_gpu: missing $shared/oracle, which CI=true requires" >&2; exit 1; }
  echo "skipped: missing $shared/oracle (set TFCOMPILE_SHARED)"
fi
known=(--known tests/conformance/known_failures.toml)
echo "== OpenCL C 1.2 through Clang"
target/release/opencl-c tests/conformance --compiler 'clang-22 -x cl -cl-std=CL1.2 -fsyntax-only -Wall -Xclang -finclude-default-header' ${texts:+--sample "$texts"} | tail -n 5
echo "== recorded cases through OpenCL C, on Intel's runtime and on PoCL"
with_driver target/release/conformance tests/conformance --device opencl:c ${on_intel:+--sample "$on_intel"} "${known[@]}" | tail -n 4
OCL_ICD_VENDORS=$TFCOMPILE_POCL target/release/conformance tests/conformance --device opencl:c --timeout 120 ${on_pocl:+--sample "$on_pocl"} "${known[@]}" | tail -n 4
echo "== races and wrong calls in OpenCL C, on Oclgrind"
scripts/gpu/races.sh target/release/conformance tests/conformance \
  --only '^(Conv2D|MatMul|Softmax|TopKV2|Cumsum|Sum|BatchMatMulV2|ScatterNd|Transpose|GRUBlockCell|Where|While)/' --sample 14 | tail -n 3
scripts/gpu/races.sh target/release/tfcompile verify tests/saved_models/keras3 --batch 4 --quiet | tail -n 3
echo "== PTX through ptxas, for sm_80 and sm_90a"
target/release/ptx "${folders[@]}" --ptxas "$TFCOMPILE_PTXAS" ${assembled:+--sample "$assembled"} | tail -n 12
