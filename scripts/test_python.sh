#!/usr/bin/env bash
# Tests the Python package with TensorFlow and with JAX, in separate environments.
#   scripts/test_python.sh [WHEEL]      without WHEEL, builds one in the development profile
set -eu

cd "$(dirname "$0")/.."
wheel=${1:-}
if [ -z "$wheel" ]; then
  scripts/wheel.sh --dev >&2
  wheel=$(ls -t "${CARGO_TARGET_DIR:-target}"/wheels/tfcompile-*.whl | head -n 1)
fi
tests=$PWD/python/tests
# Tests of devices run if the OpenCL driver for processors is installed, and always in CI.
if [ "${CI:-}" = true ] || [ -e "${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile/opencl-venv/.packages" ]; then
  eval "$(scripts/setup_gpu.sh opencl)"
  export OCL_ICD_VENDORS LD_LIBRARY_PATH
fi
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
for beside in "tensorflow-cpu==2.15.1 numpy==1.26.4" "jax==0.10.2"; do
  name=venv-python-${beside%%[-=]*}
  # shellcheck disable=SC2086 # packages are words
  python=$(scripts/venv.sh "$name" $beside pytest==9.0.2)
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$site/$name" "$wheel"
  # Runs in another directory: python/ contains the sources, and Python searches the current
  # directory first.
  (cd "$site" && PYTHONPATH=$site/$name TF_CPP_MIN_LOG_LEVEL=3 "$python" -m pytest -q -p no:cacheprovider "$tests")
done
