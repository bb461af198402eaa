#!/usr/bin/env bash
# Compiles the two graphs of examples/digits, links a program around them, and runs it on real data.
#   scripts/demo.sh [DIGITS]
set -eu

cd "$(dirname "$0")/.."
example=examples/digits
digits=${1:-$example/digits.csv}
[ -f "$digits" ] || {
  echo "demo: no such file: $digits" >&2
  exit 1
}
tool=target/release/tfcompile
out=target/demo
mkdir -p $out

$tool headers -o $out/include
start=$(date +%s%N)
for model in train:digits::Train classify:digits::Classify; do
  name=${model%%:*}
  $tool --graph=$example/$name.pbtxt --config=$example/$name.config.pbtxt --cpp_class="${model#*:}" \
    --entry_point=digits_$name --out_header=$out/$name.h --out_function_object=$out/$name.o \
    --out_metadata_object=$out/${name}_metadata.o
done
compile_ms=$((($(date +%s%N) - start) / 1000000))
g++ -std=c++17 -O2 -I$out -I$out/include $example/main.cc $out/*.o -o $out/digits
exec $out/digits "$digits" --compile-ms=$compile_ms --object=$out/train.o --object=$out/classify.o
