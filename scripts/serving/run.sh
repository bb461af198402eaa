#!/usr/bin/env bash
# Tests or measures examples/ray_serve with the Python package: `make test-serving`,
# `make bench-serving`.
#   scripts/serving/run.sh test [--soak SECONDS] [--record FILE]
#   scripts/serving/run.sh bench RECORD [ARGUMENT OF bench.py...]
# WHEEL selects a wheel of the package. By default, `test` builds one in the development profile,
# and `bench` a release. Models are made once, in ~/.cache/tfcompile-models/serving; `bench` also
# installs `oha` there.
set -eu

cd "$(dirname "$0")/../.."
mode=$1
shift
wheel=${WHEEL:-}
if [ -z "$wheel" ]; then
  if [ "$mode" = test ]; then scripts/wheel.sh --dev >&2; else scripts/wheel.sh >&2; fi
  wheel=$(ls -t "${CARGO_TARGET_DIR:-target}"/wheels/tfcompile-*.whl | head -n 1)
fi
# Ray 2.55 does not work with version 7 of protobuf.
python=$(scripts/venv.sh venv-serving 'ray[serve]==2.55.1' protobuf==6.33.6 onnxruntime==1.32.0 numpy==2.4.6)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models/serving
models=$cache/$(cat scripts/serving/models.py examples/digits/digits.csv | sha256sum | cut -c 1-16)
if [ ! -d "$models" ]; then
  tensorflow=$(scripts/venv.sh venv-to-onnx tensorflow-cpu==2.15.1 numpy==1.26.4 tf2onnx==1.16.1 onnx==1.16.2 'protobuf<4.26')
  echo "serving: creating models (once)" >&2
  rm -rf "$cache/.making"
  "$tensorflow" scripts/serving/models.py "$cache/.making" >&2
  mv "$cache/.making" "$models"
fi

out=$PWD/target/serving
rm -rf "$out"
mkdir -p "$out/site"
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$out/site" "$wheel"
export PYTHONPATH=$out/site TFCOMPILE_CONSTANTS_DIR=$out/constants
versions=()
for version in digits/1 digits/2 mobilenet/1 mobilenet/2 wide/1 wide/2; do
  versions+=("$version=$models/$version/saved_model")
done
"$python" examples/ray_serve/repository.py "$out/repository" "${versions[@]}"

if [ "$mode" = test ]; then
  # The page's commands start from a SavedModel, and run the example's programs.
  mkdir "$out/page"
  cp -r "$models/digits/1/saved_model" "$out/page/digits_1"
  cp -r "$models/digits/2/saved_model" "$out/page/digits_2"
  ln -s "$PWD/examples" "$out/page/examples"
  trap 'if kill "$(cat "$out/page/server.pid")"; then echo "serving: a command of the page failed" >&2; fi 2>/dev/null' EXIT
  PATH=$(dirname "$python"):$PATH "$python" scripts/run_page.py docs/serving.md "$out/page"
  trap - EXIT
  "$python" scripts/serving/faults.py "$models" "$out/repository" "$@"
else
  record=$1
  shift
  oha=$cache/tools/bin/oha
  [ -x "$oha" ] || cargo install --quiet --locked --root "$cache/tools" oha@1.16.0
  "$python" scripts/serving/bench.py "$oha" "$models" "$out/repository" "$record" "$@"
fi
