#!/usr/bin/env bash
# Runs tests by other projects, which are not part of this repository. The HLO texts in XLA's unit
# tests are parsed, printed, written as messages, compared with XLA's forms, compiled, and
# evaluated. StableHLO's testdata and its interpreter's tests are compiled and evaluated.
#   scripts/test_external.sh XLA STABLEHLO
# XLA: a clone (bare or not) of TensorFlow's or XLA's repository. STABLEHLO: a checkout. Either may
# be empty. Prints a table that counts failures explained in external_explained.txt separately, and
# exits with 1 if there are others. Failures are in target/external. JOBS (default: the number of
# processors) parts run in parallel. Finished parts stay in target/external, so that an interrupted
# run continues; remove target/external/parts to start over.
set -u

cd "$(dirname "$0")/.."
xla=$1
stablehlo=$2
out=target/external
mkdir -p $out
bin=target/release
status=0
jobs=${JOBS:-$(nproc)}

# in_parts NAME COMMAND...: runs the command on the files that standard input lists, in parts of 100
# files, once each. The outputs are target/external/parts/NAME.*.txt.
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
  # Always compares prints again.
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
  # Our form of each text, compared with XLA's.
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
