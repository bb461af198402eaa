#!/usr/bin/env bash
# XLA as judge of our HLO: writes every HLO text of the tests, and the modules that the oracle's graphs become, each with
# seeded inputs and our evaluator's results; XLA has to parse each, and to compute the same.
#   scripts/test_xla.sh [--sample N]
set -eu

cd "$(dirname "$0")/.."
out=target/xla
rm -rf $out
graphs=(tests/oracle/tfcompile_tests)
shared=${TFCOMPILE_SHARED:-../shared}/oracle
if [ -d "$shared" ]; then
  graphs=("$shared/tfcompile_tests" "$shared/mnist_softmax")
fi
cargo run --quiet --release -p conformance --bin hlo-cases -- $out --hlo tests/hlo --graphs "${graphs[@]}" "$@"
python=$(scripts/venv.sh venv-xla jax==0.10.2)
exec "$python" scripts/xla_judge.py $out
