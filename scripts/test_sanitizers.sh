#!/usr/bin/env bash
# Runs the small models under AddressSanitizer and ThreadSanitizer. Expects no reports and the
# recorded answers. With ThreadSanitizer, also uses thread pools, so that conflicting kernels are
# found regardless of timing. ORACLE, TOOL, GRAPHS, MODELS, and VERBOSE are as in
# scripts/oracle_checks.sh.
set -eu

MODELS=${MODELS-mlp dscnn_kws resnet8_cifar autoencoder_ad mobilenet_v1_025_96 lstm_train_b32 resnet8_train_b32}
. scripts/oracle_checks.sh tfcompile_tests/tf

# The libraries of some GCC releases fail with a strongly randomized address space.
for sanitizer in address thread; do
  echo "== $sanitizer"
  threads=()
  [ $sanitizer = address ] || threads=(--threads 2)
  judge --flag=--sanitize=$sanitizer --cxx-flag=-fsanitize=$sanitizer "${threads[@]}" \
    --undefined=__asan_ --undefined=__tsan_ --undefined=__start_asan_globals --undefined=__stop_asan_globals \
    --run 'setarch -R'
done
