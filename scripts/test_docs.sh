#!/usr/bin/env bash
# Runs the commands of pages in docs/, each page in a fresh directory, with the tool of this tree.
#   scripts/test_docs.sh PAGE...
set -eu

cd "$(dirname "$0")/.."
python=$(scripts/venv.sh venv-jax jax==0.10.2 flatbuffers==25.12.19)
bin=$PWD/target/docs/bin
rm -rf target/docs
mkdir -p "$bin"
ln -s "$PWD/${TFCOMPILE:-target/release/tfcompile}" "$bin/tfcompile"
for page in "$@"; do
  directory=target/docs/$(basename "$page" .md)
  mkdir -p "$directory"
  PATH=$bin:$(dirname "$python"):$PATH "$python" scripts/run_page.py "$page" "$directory"
done
