#!/usr/bin/env bash
# Tests that others wrote, kept outside of this repository: the HLO texts in XLA's unit tests, read, printed, written as messages,
# compared with what XLA makes of them, compiled, evaluated; StableHLO's testdata and the tests of its interpreter, compiled and evaluated.
#   scripts/test_external.sh XLA STABLEHLO
# XLA: a clone (bare or not) of TensorFlow's or XLA's repository; STABLEHLO: a checkout. Either may be empty. Prints one table,
# in which failures that external_explained.txt explains are counted apart; exits with 1 if there are others. What fails stands
# in target/external. JOBS (the number of processors) parts run at a time; what is done stays in
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

if [ -n "$xla" ]; then
  python=$(scripts/venv.sh venv-xla jax==0.10.2) || exit 1
  texts="$python scripts/hlo_texts.py"
  [ -d $out/texts ] || $texts extract "$xla" $out/texts.new && { [ -d $out/texts ] || mv $out/texts.new $out/texts; }
  # Prints are judged anew.
  rm -rf $out/prints $out/prints.same.json $out/proto_prints $out/proto_prints.same.json $out/messages $out/messages.same.json
  $texts answers $out/texts $out/answers >$out/answers.txt
  $bin/hlo-texts $out/texts --print $out/prints --failures $out/prints_failures.txt >$out/prints.txt || status=1
  # A part is a folder of links to its texts.
  judge() {
    local folder
    folder=$(mktemp -d)
    ln -s "$@" "$folder"
    $bin/hlo-texts "$folder" --answers "$PWD/$out/answers" --failures "$folder/failures" --timeout 300 >"$folder/table"
    cat "$folder/failures"
    grep '^largest' "$folder/table"
    awk 'NF == 2 && substr($0, 6, 1) ~ /[0-9]/ { printf "%s%s %s", s++ ? ", " : "", $1, $2 } END { print "" }' "$folder/table"
    rm -r "$folder"
  }
  export -f judge
  export bin out
  find "$PWD/$out/texts" -name '*.hlo' | sort | in_parts texts bash -c 'judge "$@"' _
  $texts same $out/texts $out/prints --timeout 300 >$out/same.txt
  $texts protos $out/texts $out/protos --timeout 300 >$out/protos.txt
  $bin/hlo-texts $out/protos --print $out/proto_prints --failures $out/proto_prints_failures.txt >$out/proto_prints.txt || status=1
  $texts same $out/protos $out/proto_prints --timeout 300 >$out/proto_same.txt
  # Ours of each text beside XLA's of it.
  $bin/hlo-texts $out/texts --messages $out/messages --failures $out/messages_failures.txt >$out/messages.txt || status=1
  $texts same $out/protos $out/messages --timeout 300 >$out/messages_same.txt
fi
if [ -n "$stablehlo" ]; then
  for engine in "" --evaluator; do
    ls "$stablehlo"/stablehlo/testdata/*.mlir | in_parts testdata$engine $bin/stablehlo-cases $engine
    ls "$stablehlo"/stablehlo/tests/interpret/*.mlir | in_parts interpret$engine $bin/stablehlo-cases $engine
  done
fi

python3 scripts/external_table.py $out || status=1
echo "failures: $out/*.txt"
exit $status
