#!/usr/bin/env bash
# Runs the small models under AddressSanitizer and ThreadSanitizer. Expects no reports and the
# recorded answers. With ThreadSanitizer, also uses thread pools, so that conflicting kernels are
# found regardless of timing. ORACLE, TOOL, GRAPHS, MODELS, and VERBOSE are as in
# scripts/oracle_checks.sh.
#   scripts/test_sanitizers.sh                 with the strategies that the cost model chooses
#   scripts/test_sanitizers.sh --candidates    each model once for each candidate of its kernels
set -eu

all=${MODELS-mlp dscnn_kws resnet8_cifar autoencoder_ad mobilenet_v1_025_96 lstm_train_b32 resnet8_train_b32}
MODELS=$all
. scripts/oracle_checks.sh tfcompile_tests/tf

# The libraries of some GCC releases fail with a strongly randomized address space.
sanitized() { # sanitized SANITIZER FLAG...
  local sanitizer=$1 threads=()
  shift
  [ "$sanitizer" = address ] || threads=(--threads 2)
  judge --flag=--sanitize="$sanitizer" --cxx-flag=-fsanitize="$sanitizer" "${threads[@]}" \
    --undefined=__asan_ --undefined=__tsan_ --undefined=__start_asan_globals --undefined=__stop_asan_globals \
    --run 'setarch -R' "$@"
}

if [ "${1:-}" != --candidates ]; then
  for sanitizer in address thread; do
    echo "== $sanitizer"
    sanitized "$sanitizer"
  done
  exit
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
runs=0
for model in $all; do
  graphs=$cache/graphs/$model
  if [ ! -f "$graphs/graph.pb" ]; then
    echo "test_sanitizers: no model $model: scripts/models.sh creates it" >&2
    exit 1
  fi
  checks=("models/$model")
  reduced_checks=()
  config=$(echo "$graphs"/*config.pbtxt)
  count=$(python3 scripts/candidates.py "$tool" "$work/$model" "$graphs/graph.pb" --config "$config")
  for ((number = 0; number < count; number++)); do
    for sanitizer in address thread; do
      echo "== $sanitizer: candidate $number of the kernels of $model"
      sanitized "$sanitizer" --flag=--target-cpu=native --flag=--tuning="$work/$model/$number.tuning"
      runs=$((runs + 1))
    done
  done
done
echo "test_sanitizers: $runs programs, no report"
