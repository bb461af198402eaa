# Common part of the scripts that run the oracle on other code. Source it in the repository's root.
# Sets `oracle` and `tool` (from ORACLE and TOOL if set) and defines `judge FLAG...`, which runs the
# oracle on the small graphs whose names contain GRAPHS or else the first argument, and on those of
# MODELS that scripts/models.sh has created. Prints failures and totals, or everything if VERBOSE=1.
# LIMIT is the time limit per compilation and program in seconds (default: 600, which suffices in
# emulators on an idle machine).

oracle=${ORACLE:-target/release/oracle}
tool=${TOOL:-target/release/tfcompile}
data=${TFCOMPILE_SHARED:-../shared}/oracle
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models
if [ ! -d "$data" ]; then
  [ "${CI:-}" != true ] || { echo "$0: no $data" >&2; exit 1; }
  echo "$0: missing $data: using only the committed graphs"
  data=tests/oracle
fi

checks=("${GRAPHS-$1}")
reduced_checks=()
for name in ${MODELS-mlp dscnn_kws resnet8_cifar autoencoder_ad mobilenet_v1_025_96}; do
  if [ -f "$cache/graphs/$name/graph.pb" ]; then
    checks+=("models/$name")
  elif [ -f "$cache/reduced/graphs/$name/graph.pb" ]; then
    reduced_checks+=("models/$name")
  fi
done

judge_one() { # judge_one ANSWERS GRAPHS NAME... FLAG...
  local answers=$1 graphs=$2
  shift 2
  "$oracle" "$answers" --models "$graphs" --tool "$tool" --build --limit "${LIMIT:-600}" "$@" |
    if [ "${VERBOSE:-}" = 1 ]; then cat; else grep -v '^ok '; fi
  [ "${PIPESTATUS[0]}" = 0 ]
}
judge() {
  judge_one "$data" "$cache/graphs" "${checks[@]}" "$@"
  [ ${#reduced_checks[@]} = 0 ] || judge_one "$cache/reduced" "$cache/reduced/graphs" "${reduced_checks[@]}" "$@"
}
