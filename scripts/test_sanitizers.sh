#!/usr/bin/env bash
# The small models in code that AddressSanitizer and ThreadSanitizer watch: nothing is found, and answers agree. Under the
# latter they run on pools of threads, too, so that kernels that disturb one another are found whatever their timing.
# ORACLE, TOOL, GRAPHS, MODELS and VERBOSE are as in scripts/oracle_checks.sh.
set -eu

MODELS=${MODELS-mlp dscnn_kws resnet8_cifar autoencoder_ad mobilenet_v1_025_96 lstm_train_b32 resnet8_train_b32}
. scripts/oracle_checks.sh tfcompile_tests/tf

# The libraries of some releases of GCC want an address space that is not shuffled much.
for sanitizer in address thread; do
  echo "== $sanitizer"
  threads=()
  [ $sanitizer = address ] || threads=(--threads 2)
  judge --flag=--sanitize=$sanitizer --cxx-flag=-fsanitize=$sanitizer "${threads[@]}" \
    --undefined=__asan_ --undefined=__tsan_ --undefined=__start_asan_globals --undefined=__stop_asan_globals \
    --run 'setarch -R'
done
