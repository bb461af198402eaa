#!/usr/bin/env bash
# Creates models that are too large for the repository, once, and runs the oracle's checks on them.
#   scripts/models.sh ORACLE NAME...
# NAME: a model of ORACLE's make_models.py or of scripts/reduced_models.py. Programs also run on
# pools of ORACLE_THREADS threads (default: 2 and 3). `make tools` builds the runner; ORACLE selects
# another one.
set -eu

oracle=$1
shift
here=$(dirname "$0")
judge=${ORACLE:-$here/../target/release/oracle}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models
reduced=$(python3 "$here/reduced_models.py" --list)
python() {
  CUDA_VISIBLE_DEVICES='' TF_CPP_MIN_LOG_LEVEL=3 "$("$here/venv.sh" venv tensorflow-cpu==2.15.1 numpy==1.26.4)" "$@"
}
large_checks=()
reduced_checks=()
for name in "$@"; do
  if grep -qx "$name" <<<"$reduced"; then
    reduced_checks+=("models/$name")
    place=$cache/reduced
  else
    large_checks+=("models/$name")
    place=$cache
  fi
  [ ! -f "$place/graphs/$name/graph.pb" ] || continue
  echo "models: creating $name (once)"
  scratch=$place/graphs/.making-$name-$$
  mkdir -p "$scratch"
  if [ "$place" = "$cache" ]; then
    python "$oracle/make_models.py" --out "$scratch/graphs" "$name"
  else
    python "$here/reduced_models.py" "$oracle" "$scratch" "$name"
    rm -rf "${place:?}/models/$name"
    mkdir -p "$place/models"
    mv "$scratch/models/$name" "$place/models/$name"
  fi
  rm -rf "${place:?}/graphs/$name"
  mv "$scratch/graphs/$name" "$place/graphs/$name"
  rm -rf "$scratch"
done
threads=()
for count in ${ORACLE_THREADS-2 3}; do threads+=("--threads=$count"); done
check() { # check ANSWERS GRAPHS NAME...
  local answers=$1 graphs=$2
  shift 2
  [ $# = 0 ] || "$judge" "$answers" "$@" --models "$graphs" "${threads[@]}"
}
check "$oracle" "$cache/graphs" "${large_checks[@]}"
check "$cache/reduced" "$cache/reduced/graphs" "${reduced_checks[@]}"
