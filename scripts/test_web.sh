#!/usr/bin/env bash
# Runs programs for WebAssembly: recorded cases as modules in Node and Deno, with relaxed SIMD and
# with threads, too, and complete WASI programs from C++ and Rust in wasmtime.
#   scripts/test_web.sh all|sample
# `sample` takes about a minute. CONFORMANCE, ORACLE, and TOOL select other builds.
set -eu

part=${1:-all}
cd "$(dirname "$0")/.."
scripts/setup.sh web
runner=${CONFORMANCE:-target/release/conformance}
export TOOL=${TOOL:-target/release/tfcompile}
known=(--known tests/conformance/known_failures.toml)
shared=${TFCOMPILE_SHARED:-../shared}/conformance

cases() { # cases TARGET FLAG... DIR...
  local target=$1
  shift
  echo "== $target in Node: $*"
  "$runner" --web "$target" "${known[@]}" "$@" | tail -n 3
  [ "${PIPESTATUS[0]}" = 0 ]
}
deno=$(dirname "$(scripts/venv.sh venv-deno deno==2.9.8)")/deno
cases_deno() { # cases_deno TARGET FLAG... DIR...
  local target=$1
  shift
  echo "== $target in Deno: $*"
  local command="$deno run --quiet --no-prompt --allow-read --allow-write"
  "$runner" --web "$target" --javascript "$command" "${known[@]}" "$@" | tail -n 3
  [ "${PIPESTATUS[0]}" = 0 ]
}

if [ "$part" = sample ]; then
  cases wasm32 tests/conformance --sample 300
  cases wasm32-relaxed tests/conformance --sample 100
  cases wasm32-threads tests/conformance --sample 40
  cases_deno wasm32-relaxed tests/conformance --sample 40
  cases_deno wasm32-threads tests/conformance --sample 100
else
  cases wasm32 tests/conformance
  cases wasm32-relaxed tests/conformance
  cases wasm32-threads tests/conformance
  for target in wasm32 wasm32-relaxed wasm32-threads; do
    cases_deno "$target" tests/conformance
  done
  for set in cases cases_raw; do
    [ ! -d "$shared/$set" ] || cases wasm32 "$shared/$set"
  done
fi

echo "== Deno: from files and from a server, in workers"
scripts/web/deno.sh "$deno"

graphs=tfcompile_tests/tf
[ "$part" = all ] || graphs=tfcompile_tests/tfmatmul
[ "$part" = all ] || export MODELS=mlp
. scripts/oracle_checks.sh "$graphs"
python=$(scripts/venv.sh venv-wasmtime wasmtime==50.0.1)
echo "== wasm32 in wasmtime: complete programs"
judge --flag=--target=wasm32 --cxx "$PWD/scripts/web/wasi_cxx.sh" --nm llvm-nm-22 \
  --run "$python $PWD/scripts/web/run_wasi.py" --undefined __stack_pointer --undefined __indirect_function_table

echo "== wasm32 in wasmtime: Rust programs"
scripts/web/wasi_rust.sh "$python"

echo "== the page of init --build web in Chromium"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/picture.pbtxt" <<'GRAPH'
node { name: "image" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: 1 } dim { size: 8 } dim { size: 8 } dim { size: 1 } } } } }
node { name: "flat_shape" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value {
  tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 1 int_val: 64 } } } }
node { name: "flat" op: "Reshape" input: "image" input: "flat_shape" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "shape" op: "Const" attr { key: "dtype" value { type: DT_INT32 } } attr { key: "value" value {
  tensor { dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: 64 int_val: 10 } } } }
node { name: "zero" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value {
  tensor { dtype: DT_FLOAT tensor_shape { } float_val: 0 } } } }
node { name: "one" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value {
  tensor { dtype: DT_FLOAT tensor_shape { } float_val: 1 } } } }
node { name: "end" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "value" value {
  tensor { dtype: DT_FLOAT tensor_shape { } float_val: 640 } } } }
node { name: "range" op: "Range" input: "zero" input: "end" input: "one" attr { key: "Tidx" value { type: DT_FLOAT } } }
node { name: "sine" op: "Sin" input: "range" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "weights" op: "Reshape" input: "sine" input: "shape" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "logits" op: "MatMul" input: "flat" input: "weights" attr { key: "T" value { type: DT_FLOAT } } }
node { name: "answer" op: "Softmax" input: "logits" attr { key: "T" value { type: DT_FLOAT } } }
GRAPH
"$TOOL" init "$work/page" --build web --model "$work/picture.pbtxt" >/dev/null
TFCOMPILE=$(realpath "$TOOL") sh "$work/page/build.sh"
node scripts/web/page.mjs "$work/page" target/web
