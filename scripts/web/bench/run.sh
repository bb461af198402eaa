#!/usr/bin/env bash
# Compares modules for the web with other runtimes in headless Chromium: docs/web.json, and the
# table of docs/web.md. `make bench-web` runs it. The harness is in $TFCOMPILE_SHARED/bench; it is
# asked to prepare the models, which scripts/models.sh creates.
#   scripts/web/bench/run.sh OUT
# Variables and their defaults:
#   MODELS   names of models
#   ROUNDS   number of rounds (2)
#   SECONDS_EACH   seconds of each measurement (1)
set -eu

cd "$(dirname "$0")/../../.."
out=$(mkdir -p "$1" && realpath "$1")
tool=${TOOL:-target/release/tfcompile}
shared=${TFCOMPILE_SHARED:-../shared}
graphs=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models/graphs
models=${MODELS:-mlp dscnn_kws resnet8_cifar autoencoder_ad mobilenet_v1_025_96 mobilenet_v2_224 bert_tiny_128}
python=$(scripts/venv.sh venv-web tensorflow-cpu==2.15.1 numpy==1.26.4 tf2onnx==1.16.1 onnx==1.16.2 'protobuf<4.26' packaging six \
  --no-deps tensorflowjs==4.22.0)
# Packages beside the models, not in the tree.
mkdir -p "$out/packages"
[ -d "$out/packages/node_modules" ] ||
  (cd "$out/packages" && npm init -y >/dev/null && npm install --no-fund --no-audit onnxruntime-web@1.30.0 \
    @tensorflow/tfjs@4.22.0 @tensorflow/tfjs-backend-wasm@4.22.0 @litertjs/core@2.5.3)
ln -sfn "$out/packages/node_modules" "$out/npm"
for model in $models; do
  [ -f "$graphs/$model/graph.pb" ] || scripts/models.sh "$shared/oracle" "$model"
  if [ ! -f "$out/models/$model/io.json" ]; then
    mkdir -p "$out/prepared/$model"
    "$python" "$shared/bench/prepare.py" "$graphs/$model" "$out/prepared/$model" >/dev/null
    "$python" scripts/web/bench/convert.py "$out/prepared/$model" "$out/models/$model"
  fi
  build() { "$tool" build "$graphs/$model/graph.pb" --config "$graphs/$model/config.pbtxt" --name "$model" --quiet "$@"; }
  for target in wasm32 wasm32-relaxed wasm32-threads; do
    build --target "$target" --output "$out/ours/$target/$model"
  done
  # The size of the code alone.
  build --target wasm32 --constants=file --output "$out/code/$model"
done
node scripts/web/bench/measure.mjs "$out" "$out/web.json" "${models// /,}" '' 1,2 "${ROUNDS:-2}" "${SECONDS_EACH:-1}"
cp "$out/web.json" docs/web.json
node scripts/web/bench/table.mjs docs/web.json docs/web.md
