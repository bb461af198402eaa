#!/usr/bin/env bash
# Tests that others wrote, kept outside of this repository: the HLO texts in XLA's unit tests, read, printed, compared with
# what XLA makes of them, compiled, evaluated; StableHLO's testdata and the tests of its interpreter, compiled and evaluated.
#   scripts/test_external.sh XLA STABLEHLO
# XLA: a clone (bare or not) of TensorFlow's or XLA's repository; STABLEHLO: a checkout. Either may be empty. Prints one table;
# what fails stands in target/external/*.txt. JOBS (the number of processors) parts run at a time; what is done stays in
# target/external, so that a run that was broken off goes on: remove target/external/parts to judge everything anew.
set -u

cd "$(dirname "$0")/.."
xla=$1
stablehlo=$2
out=target/external
mkdir -p $out
bin=target/release
status=0
jobs=${JOBS:-$(nproc)}

# in_parts NAME COMMAND...: runs the command on the files that standard input lists, 100 at a time, each part once. Their outputs
# are target/external/parts/NAME.*.txt.
in_parts() {
  local name=$1
  shift
  mkdir -p $out/parts
  split -l 100 -d -a 3 - $out/parts/$name.list.
  ls $out/parts/$name.list.* | xargs -P "$jobs" -I{} bash -c '
    part=$1; shift
    done=${part/.list./.}.txt
    [ -e $done ] && exit 0
    "$@" $(cat $part) >$done.new || true
    mv $done.new $done' _ {} "$@"
}

# Sums the numbers before the words of the lines that outputs end with, such as "95 passed, 5 unsupported".
sum_of() { tail -q -n 1 "$@" | tr , '\n' | awk 'NF == 2 { n[$2] += $1 } END { for (w in n) printf "%s%d %s", s++ ? ", " : "", n[w], w }'; }

if [ -n "$xla" ]; then
  python=$(scripts/venv.sh venv-xla jax==0.10.2) || exit 1
  texts="$python scripts/hlo_texts.py"
  [ -d $out/texts ] || $texts extract "$xla" $out/texts.new && { [ -d $out/texts ] || mv $out/texts.new $out/texts; }
  # Prints are judged anew.
  rm -rf $out/prints $out/prints.same.json $out/proto_prints $out/proto_prints.same.json
  $texts answers $out/texts $out/answers >$out/answers.txt
  $bin/hlo-texts $out/texts --print $out/prints >$out/prints.txt || status=1
  # A part is a folder of links to its texts.
  judge() {
    local folder
    folder=$(mktemp -d)
    ln -s "$@" "$folder"
    $bin/hlo-texts "$folder" --answers "$PWD/$out/answers" --failures "$folder/failures" >"$folder/table"
    cat "$folder/failures"
    grep '^largest' "$folder/table"
    awk 'NF == 2 && substr($0, 6, 1) ~ /[0-9]/ { printf "%s%s %s", s++ ? ", " : "", $1, $2 } END { print "" }' "$folder/table"
    rm -r "$folder"
  }
  export -f judge
  export bin out
  find "$PWD/$out/texts" -name '*.hlo' | sort | in_parts texts bash -c 'judge "$@"' _
  cat $out/parts/texts.[0-9]*.txt | grep -E '^(wrong|crashed|refused|unsupported)' >$out/hlo_failures.txt
  grep -qE '^(wrong|crashed)' $out/hlo_failures.txt && status=1
  $texts same $out/texts $out/prints --timeout 300 >$out/same.txt || status=1
  $texts protos $out/texts $out/protos --timeout 300 >$out/protos.txt
  $bin/hlo-texts $out/protos --print $out/proto_prints >$out/proto_prints.txt || status=1
  $texts same $out/protos $out/proto_prints --timeout 300 >$out/proto_same.txt || status=1
fi
if [ -n "$stablehlo" ]; then
  for engine in "" --evaluator; do
    ls "$stablehlo"/stablehlo/testdata/*.mlir | in_parts testdata$engine $bin/stablehlo-cases $engine
    ls "$stablehlo"/stablehlo/tests/interpret/*.mlir | in_parts interpret$engine $bin/stablehlo-cases $engine
    for set in testdata interpret; do
      cat $out/parts/$set$engine.[0-9]*.txt >$out/$set$engine.txt
      grep -qE '^(failed|unsupported)' $out/$set$engine.txt && status=1
    done
  done
fi

echo
echo "Tests that others wrote"
if [ -n "$xla" ]; then
  printf '%-44s %s\n' "HLO texts of XLA's unit tests" "$(find $out/texts -name '*.hlo' | wc -l)"
  printf '%-44s %s\n' "  printed, and judged by XLA" "$(head -1 $out/same.txt)"
  printf '%-44s %s\n' "  read as XLA's messages, and printed" "$(head -1 $out/proto_same.txt)"
  printf '%-44s %s\n' "  alone on XLA's CPU client" "$(tail -1 $out/answers.txt)"
  printf '%-44s %s\n' "  compiled, evaluated, compared" "$(sum_of $out/parts/texts.[0-9]*.txt)"
  largest=$(grep -h '^largest' $out/parts/texts.[0-9]*.txt | sed 's/.*: //' | sort -g | tail -n 1)
  printf '%-44s %s\n' "  largest error, of the largest element" "$largest"
fi
if [ -n "$stablehlo" ]; then
  printf '%-44s %s\n' "StableHLO's testdata, compiled" "$(sum_of $out/parts/testdata.[0-9]*.txt)"
  printf '%-44s %s\n' "StableHLO's testdata, evaluated" "$(sum_of $out/parts/testdata--evaluator.[0-9]*.txt)"
  printf '%-44s %s\n' "StableHLO's interpreter tests, compiled" "$(sum_of $out/parts/interpret.[0-9]*.txt)"
  printf '%-44s %s\n' "StableHLO's interpreter tests, evaluated" "$(sum_of $out/parts/interpret--evaluator.[0-9]*.txt)"
fi
echo "failures: $out/*.txt"
exit $status
