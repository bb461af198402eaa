#!/usr/bin/env bash
# The small models in code that AddressSanitizer and ThreadSanitizer watch: nothing is found, and answers agree.
# ORACLE, TOOL, GRAPHS and MODELS are as in scripts/oracle_checks.sh.
set -eu

. scripts/oracle_checks.sh tfcompile_tests/tf

for sanitizer in address thread; do
  echo "== $sanitizer"
  # The libraries of some releases of GCC want an address space that is not shuffled much.
  "$oracle" "$data" "${checks[@]}" --models "$graphs" --tool "$tool" --build \
    --flag=--sanitize=$sanitizer --cxx-flag=-fsanitize=$sanitizer --cxx-flag=-pthread \
    --undefined=__asan_ --undefined=__tsan_ --undefined=__start_asan_globals --undefined=__stop_asan_globals \
    --run 'setarch -R' | grep -v '^ok '
  [ "${PIPESTATUS[0]}" = 0 ]
done
