#!/usr/bin/env bash
# Runs the commands of pages in docs/ with this tree's tool, each page in a fresh directory below
# target/docs.
#   scripts/test_docs.sh [--update] PAGE...
# --update rewrites transcripts that differ. Pages that import TensorFlow run in TensorFlow's Python
# environment, others in JAX's.
set -eu

cd "$(dirname "$0")/.."
update=
[ "${1:-}" != --update ] || { update=--update; shift; }
tool=$(realpath "${TFCOMPILE:-target/release/tfcompile}")
bin=$PWD/target/docs/bin
rm -rf target/docs
mkdir -p "$bin"
ln -s "$tool" "$bin/tfcompile"
for page in "$@"; do
  if grep -qE '^(import|from) tensorflow' "$page"; then
    python=$(scripts/venv.sh venv tensorflow-cpu==2.15.1 numpy==1.26.4)
  else
    python=$(scripts/venv.sh venv-jax jax==0.10.2 flatbuffers==25.12.19)
  fi
  directory=target/docs/${page#docs/}; directory=${directory%.md}
  mkdir -p "$directory"
  PATH=$bin:$(dirname "$python"):$PATH TF_CPP_MIN_LOG_LEVEL=3 "$python" scripts/run_page.py $update "$page" "$directory"
done
