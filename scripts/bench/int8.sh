#!/usr/bin/env bash
# Quantizes the models of the bench to int8 and compares them with LiteRT, ONNX Runtime, and
# OpenVINO. `make bench-int8` runs it.
#   scripts/bench/int8.sh OUT [NAME...]
# Writes OUT/int8.json and prints a table. To publish a run, copy the file to docs/ and the table to
# docs/benchmarks.md. Models, environments, and quantized files are made once, in
# ~/.cache/tfcompile-models. TFCOMPILE selects another tool, THREADS and ROUNDS the measurement.
set -eu

out=$(realpath -m "$1")
shift
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
shared=$(cd "$root" && realpath "${TFCOMPILE_SHARED:-../shared}")
[ -d "$shared/bench" ] || { echo "int8: cannot find $shared/bench; set TFCOMPILE_SHARED" >&2; exit 1; }
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models
export CUDA_VISIBLE_DEVICES='' TF_CPP_MIN_LOG_LEVEL=3
names=("$@")
[ $# != 0 ] || names=(mlp autoencoder_ad dscnn_kws resnet8_cifar mobilenet_v1_025_96 mobilenet_v2_224
  efficientnet_b0_224 resnet50_224 inception_v3_299 unet_small_128 bert_tiny_128 vit_tiny_224 lstm_2x128_seq100)

tensorflow=$("$root/scripts/venv.sh" venv tensorflow-cpu==2.15.1 numpy==1.26.4)
to_onnx=$("$root/scripts/venv.sh" venv-to-onnx tensorflow-cpu==2.15.1 numpy==1.26.4 tf2onnx==1.16.1 onnx==1.16.2 'protobuf<4.26')
litert=$("$root/scripts/venv.sh" venv-litert ai-edge-litert==2.3.0 numpy==2.4.6)
onnx=$("$root/scripts/venv.sh" venv-onnx onnxruntime==1.32.0 openvino==2026.4.1 onnx==1.23.2 sympy==1.14.0 numpy==2.4.6)

mkdir -p "$cache/int8" "$out"
for name in "${names[@]}"; do
  saved=$cache/graphs/$name/saved_model
  [ -d "$saved" ] || "$tensorflow" "$shared/oracle/make_models.py" --out "$cache/graphs" "$name"
  [ -f "$cache/int8/$name.int8.tflite" ] ||
    "$tensorflow" "$root/scripts/tflite/convert_models.py" --kinds int8 "$cache/int8" "$name=$saved"
  if [ ! -f "$cache/int8/$name.int8.onnx" ]; then
    scratch=$(mktemp -d)
    # Without a model for ONNX, a row has LiteRT only.
    if ! { "$to_onnx" -m tf2onnx.convert --saved-model "$saved" --signature_def serving_default --opset 17 \
      --output "$scratch/float.onnx" >/dev/null 2>&1 &&
      "$onnx" "$here/int8_onnx.py" "$scratch/float.onnx" "$scratch/int8.onnx" &&
      mv "$scratch/int8.onnx" "$cache/int8/$name.int8.onnx"; }; then
      echo "int8: $name has no model for ONNX" >&2
    fi
    rm -rf "$scratch"
  fi
done
"$litert" "$here/int8.py" "$out/int8.json" "${names[@]}" --models "$cache/int8" --harness "$shared/bench" \
  --tool "${TFCOMPILE:-$root/target/release/tfcompile}" --litert "$litert" --onnx "$onnx" \
  --threads "${THREADS:-1,2}" --rounds "${ROUNDS:-5}"
