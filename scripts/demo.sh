#!/usr/bin/env bash
# The main job, on real data: compiles the two graphs of examples/digits, links a program around them, runs it.
#   scripts/demo.sh [DIGITS]
set -eu

cd "$(dirname "$0")/.."
example=examples/digits
digits=${1:-$example/digits.csv}
[ -f "$digits" ] || {
  echo "demo: there is no file $digits" >&2
  exit 1
}
tool=target/release/tfcompile
out=target/demo
mkdir -p $out

$tool headers -o $out/include
milliseconds() { echo $(($(date +%s%N) / 1000000)); }
compile_ms=()
for name in train classify; do
  graph=$example/$name.pb
  [ -f $graph ] || graph=$example/$name.pbtxt
  class=digits::$(echo ${name:0:1} | tr a-z A-Z)${name:1}
  start=$(milliseconds)
  $tool --graph=$graph --config=$example/$name.config.pbtxt --cpp_class="$class" --entry_point=digits_$name \
    --out_header=$out/$name.h --out_function_object=$out/$name.o --out_metadata_object=${out}/${name}_metadata.o
  compile_ms+=($(($(milliseconds) - start)))
done
g++ -std=c++17 -O2 -I$out -I$out/include $example/main.cc $out/{train,classify}.o $out/{train,classify}_metadata.o -o $out/digits
size() { stat -c %s "$1" 2>/dev/null || stat -f %z "$1"; }
for i in 0 1; do
  name=$([ $i = 0 ] && echo train || echo classify)
  echo "$name: object $(size $out/$name.o) bytes, compiled in ${compile_ms[$i]} ms"
done
echo "program: $(size $out/digits) bytes"
exec $out/digits "$digits"
