#!/usr/bin/env bash
# Runs all node tests of ONNX's package, which its scripts generate once, and the models of ONNX
# Runtime's ops with its answers, compiled and with the evaluator. Then runs the tests with open
# sizes, and compares layers and images of open sizes with ONNX Runtime.
#   scripts/test_onnx.sh
set -eu

cd "$(dirname "$0")/.."
python=$(scripts/venv.sh venv-onnx onnxruntime==1.32.0 openvino==2026.4.1 onnx==1.23.2 sympy==1.14.0 numpy==2.4.6)
cases=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models/onnx-cases
mark=$(cat scripts/onnx/make_cases.py scripts/onnx/contrib.py | sha256sum)
if [ "$(cat "$cases/.complete" 2>/dev/null)" != "$mark" ]; then
  rm -rf "$cases"
  "$python" scripts/onnx/make_cases.py "$cases"
  "$python" scripts/onnx/make_cases.py --contrib "$cases"
  echo "$mark" >"$cases/.complete"
fi
tool=${ONNX_CASES:-target/release/onnx-cases}
"$tool" --known tests/onnx/known_failures.toml "$cases"
"$tool" --known tests/onnx/known_failures.toml --evaluator "$cases"
"$python" scripts/onnx/open_cases.py "${TFCOMPILE:-target/release/tfcompile}" "$cases"
"$python" scripts/onnx/open_sizes.py "${TFCOMPILE:-target/release/tfcompile}"
