# What scripts that run the oracle on other code have in common; sourced, from the repository's root.
# Sets `oracle` and `tool` (ORACLE and TOOL if given), `data`, `graphs` and `checks`: the small graphs whose names contain
# GRAPHS or else the first argument, and those of MODELS that are made.

oracle=${ORACLE:-target/release/oracle}
tool=${TOOL:-target/release/tfcompile}
data=${TFCOMPILE_SHARED:-../shared}/oracle
graphs=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models/graphs
if [ ! -d "$data" ]; then
  [ "${CI:-}" != true ] || { echo "$0: no $data" >&2; exit 1; }
  echo "$0: no $data; the committed graphs only"
  data=tests/oracle
fi

checks=("${GRAPHS-$1}")
for name in ${MODELS-mlp dscnn_kws resnet8_cifar autoencoder_ad mobilenet_v1_025_96}; do
  [ ! -f "$graphs/$name/graph.pb" ] || checks+=("models/$name")
done
