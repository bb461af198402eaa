#!/usr/bin/env bash
# Runs zoo.py, with the packages that it needs.
#   scripts/zoo/zoo.sh [ARGUMENT...]
set -eu

cd "$(dirname "$0")/../.."
python=$(scripts/venv.sh venv-litert ai-edge-litert==2.3.0 numpy==2.4.6)
"$python" scripts/zoo/zoo.py --tool "${TFCOMPILE:-target/release/tfcompile}" --harness "${TFCOMPILE_SHARED:-../shared}/bench" "$@"
