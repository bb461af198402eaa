#!/usr/bin/env bash
# Tests of the Python package: beside TensorFlow, and beside JAX, which want environments of their own.
#   scripts/test_python.sh [WHEEL]      without one, a wheel of the development profile is built
set -eu

cd "$(dirname "$0")/.."
wheel=${1:-}
if [ -z "$wheel" ]; then
  scripts/wheel.sh --dev >&2
  wheel=$(ls -t "${CARGO_TARGET_DIR:-target}"/wheels/tfcompile-*.whl | head -n 1)
fi
tests=$PWD/python/tests
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
for beside in "tensorflow-cpu==2.15.1 numpy==1.26.4" "jax==0.10.2"; do
  name=venv-python-${beside%%[-=]*}
  # shellcheck disable=SC2086 # packages are words
  python=$(scripts/venv.sh "$name" $beside pytest==9.0.2)
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$site/$name" "$wheel"
  # From elsewhere: the package's sources lie in python/, and Python looks where it stands first.
  (cd "$site" && PYTHONPATH=$site/$name TF_CPP_MIN_LOG_LEVEL=3 "$python" -m pytest -q -p no:cacheprovider "$tests")
done
