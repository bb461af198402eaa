#!/usr/bin/env bash
# Compiles models for microcontrollers, runs them in QEMU, and compares them with recorded answers
# and with LiteRT's; see test.py. Models and environments are made once, in
# ~/.cache/tfcompile-models.
#   scripts/microcontrollers/test.sh TOOL sample|all [FLAG...]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models
shared=$(cd "$root" && realpath "${TFCOMPILE_SHARED:-../shared}")
export CUDA_VISIBLE_DEVICES='' TF_CPP_MIN_LOG_LEVEL=3
networks=(dscnn_kws mobilenet_v1_025_96 resnet8_cifar autoencoder_ad)

python=$("$root/scripts/venv.sh" venv-litert ai-edge-litert==2.3.0 numpy==2.4.6)
models=()
if [ -d "$shared/oracle" ]; then
  missing=()
  for name in "${networks[@]}"; do
    [ -f "$cache/graphs/$name/io.npz" ] && [ -f "$cache/int8/$name.int8.tflite" ] || missing+=("$name")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    tensorflow=$("$root/scripts/venv.sh" venv tensorflow-cpu==2.15.1 numpy==1.26.4)
    mkdir -p "$cache/int8"
    for name in "${missing[@]}"; do
      saved=$cache/graphs/$name/saved_model
      [ -d "$saved" ] || "$tensorflow" "$shared/oracle/make_models.py" --out "$cache/graphs" "$name"
      [ -f "$cache/int8/$name.int8.tflite" ] ||
        "$tensorflow" "$root/scripts/tflite/convert_models.py" --kinds int8 "$cache/int8" "$name=$saved"
    done
  fi
  "$python" "$here/answers.py" "$cache/int8" "${networks[@]}" 2>/dev/null
  models=(--models "$cache")
elif [ "${CI:-}" = true ]; then
  echo "microcontrollers: missing $shared/oracle, which CI=true requires (set TFCOMPILE_SHARED)" >&2
  exit 1
else
  echo "skipped: networks, which need $shared/oracle (set TFCOMPILE_SHARED)"
fi
"$python" "$here/test.py" "$@" "${models[@]}"
