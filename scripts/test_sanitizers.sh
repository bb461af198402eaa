#!/usr/bin/env bash
# The small models in code that AddressSanitizer and ThreadSanitizer watch: nothing is found, and answers agree.
# ORACLE and TOOL are the programs to use; MODELS the models to run beside the small graphs, if they are made.
set -eu

oracle=${ORACLE:-target/release/oracle}
tool=${TOOL:-target/release/tfcompile}
data=${TFCOMPILE_SHARED:-../shared}/oracle
graphs=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models/graphs
if [ ! -d "$data" ]; then
  [ "${CI:-}" != true ] || { echo "test_sanitizers: no $data" >&2; exit 1; }
  echo "test_sanitizers: no $data; the committed graphs only"
  data=tests/oracle
fi

checks=(tfcompile_tests/tf)
for name in ${MODELS-mlp dscnn_kws resnet8_cifar autoencoder_ad mobilenet_v1_025_96}; do
  [ ! -f "$graphs/$name/graph.pb" ] || checks+=("models/$name")
done

for sanitizer in address thread; do
  echo "== $sanitizer"
  # The libraries of some releases of GCC want an address space that is not shuffled much.
  "$oracle" "$data" "${checks[@]}" --models "$graphs" --tool "$tool" --build \
    --flag=--sanitize=$sanitizer --cxx-flag=-fsanitize=$sanitizer --cxx-flag=-pthread \
    --undefined=__asan_ --undefined=__tsan_ --undefined=__start_asan_globals --undefined=__stop_asan_globals \
    --run 'setarch -R' | grep -v '^ok '
  [ "${PIPESTATUS[0]}" = 0 ]
done
