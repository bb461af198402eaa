#!/usr/bin/env bash
# Checks our HLO output with XLA. Writes every HLO text of the tests, and each form (HLO text,
# protos, StableHLO), before and after optimization, of the oracle's graphs, the fourteen
# experiments, and recorded cases, with inputs and our results. XLA must parse each form, protos
# must equal their texts' modules, and XLA must compute the same results.
#   scripts/test_xla.sh [--sample N]
# --sample N: only N modules and N / 4 recorded cases. CASES=N: number of recorded cases. RELEASE=:
# uses tools of the development profile.
set -eu

cd "$(dirname "$0")/.."
out=target/xla
rm -rf $out
cases=${CASES:-400}
if [ "${1:-}" = --sample ]; then
  cases=${CASES:-$(($2 / 4))}
  models=(examples/experiments/fc.pb examples/experiments/dynamic_rnn.pb)
else
  models=(examples/experiments/*.pb)
fi
graphs=(tests/oracle/tfcompile_tests)
recorded=tests/conformance
shared=${TFCOMPILE_SHARED:-../shared}
if [ -d "$shared" ]; then
  graphs=("$shared/oracle/tfcompile_tests" "$shared/oracle/mnist_softmax" "$shared/oracle/cerebras14")
  recorded=$shared/conformance/cases
fi
# The same command as `make tools`: with `-p conformance` alone, Cargo unifies features differently
# and rebuilds the compiler.
cargo build --quiet ${RELEASE---release} -p cli -p conformance
judged=target/$([ -n "${RELEASE---release}" ] && echo release || echo debug)/hlo-cases
$judged $out --hlo tests/hlo --graphs "${graphs[@]}" \
  --models "${models[@]}" --cases "$recorded" --case-sample "$cases" "$@"
python=$(scripts/venv.sh venv-xla jax==0.10.2)
exec "$python" scripts/xla_judge.py $out
