#!/usr/bin/env bash
# Makes models that are too large to keep, once, and runs the oracle's checks on them.
#   scripts/models.sh ORACLE NAME...
# Programs run on pools of ORACLE_THREADS threads, too (default 2 and 3).
set -eu

oracle=$1
shift
graphs=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models/graphs
for name in "$@"; do
  if [ ! -f "$graphs/$name/graph.pb" ]; then
    python=$("$(dirname "$0")/venv.sh" venv tensorflow-cpu==2.15.1 numpy==1.26.4)
    echo "models: making $name (once)"
    scratch=$graphs/.making-$name-$$
    mkdir -p "$scratch"
    CUDA_VISIBLE_DEVICES= TF_CPP_MIN_LOG_LEVEL=3 "$python" "$oracle/make_models.py" --out "$scratch" "$name"
    rm -rf "${graphs:?}/$name"
    mv "$scratch/$name" "$graphs/$name"
    rm -rf "$scratch"
  fi
done
checks=()
for name in "$@"; do checks+=("models/$name"); done
threads=()
for count in ${ORACLE_THREADS-2 3}; do threads+=("--threads=$count"); done
exec cargo run --quiet --release -p conformance --bin oracle -- "$oracle" "${checks[@]}" --models "$graphs" "${threads[@]}"
