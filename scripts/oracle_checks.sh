# What scripts that run the oracle on other code have in common; sourced, from the repository's root.
# Sets `oracle` and `tool` (ORACLE and TOOL if given), and makes the function `judge FLAG...`, which runs the oracle on the
# small graphs whose names contain GRAPHS or else the first argument, and on those of MODELS that scripts/models.sh has
# made. It prints failures and sums; with VERBOSE=1 everything. No compilation or program may take longer than LIMIT seconds
# (default 600, enough in emulators on a machine that has nothing else to do).

oracle=${ORACLE:-target/release/oracle}
tool=${TOOL:-target/release/tfcompile}
data=${TFCOMPILE_SHARED:-../shared}/oracle
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models
if [ ! -d "$data" ]; then
  [ "${CI:-}" != true ] || { echo "$0: no $data" >&2; exit 1; }
  echo "$0: no $data; the committed graphs only"
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
