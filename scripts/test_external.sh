#!/usr/bin/env bash
# Tests that others wrote, kept outside of this repository: the HLO texts in XLA's unit tests, read, printed, compared with
# what XLA makes of them, compiled, evaluated; StableHLO's testdata and the tests of its interpreter, compiled and evaluated.
#   scripts/test_external.sh XLA STABLEHLO
# XLA: a clone (bare or not) of TensorFlow's or XLA's repository; STABLEHLO: a checkout. Either may be empty. What takes long
# (XLA's answers) stays in target/external. Prints one table; what fails stands in target/external/*.txt.
set -u

cd "$(dirname "$0")/.."
xla=$1
stablehlo=$2
out=target/external
mkdir -p $out
bin=target/release
status=0

if [ -n "$xla" ]; then
  python=$(scripts/venv.sh venv-xla jax==0.10.2) || exit 1
  texts="$python scripts/hlo_texts.py"
  [ -d $out/texts ] || $texts extract "$xla" $out/texts.new && { [ -d $out/texts ] || mv $out/texts.new $out/texts; }
  # Prints are judged anew.
  rm -rf $out/prints $out/prints.same.json
  $texts answers $out/texts $out/answers >$out/answers.txt
  $bin/hlo-texts $out/texts --print $out/prints --answers $out/answers --failures $out/hlo_failures.txt >$out/hlo.txt || status=1
  $texts same $out/texts $out/prints --timeout 300 >$out/same.txt || status=1
fi
if [ -n "$stablehlo" ]; then
  for engine in "" --evaluator; do
    $bin/stablehlo-cases $engine "$stablehlo"/stablehlo/testdata/*.mlir >$out/testdata$engine.txt || status=1
    $bin/stablehlo-cases $engine "$stablehlo"/stablehlo/tests/interpret/*.mlir >$out/interpret$engine.txt || status=1
  done
fi

echo
echo "Tests that others wrote"
if [ -n "$xla" ]; then
  printf '%-44s %s\n' "HLO texts of XLA's unit tests" "$(find $out/texts -name '*.hlo' | wc -l)"
  printf '%-44s %s\n' "  printed, and judged by XLA" "$(head -1 $out/same.txt)"
  printf '%-44s %s\n' "  alone on XLA's CPU client" "$(tail -1 $out/answers.txt)"
  sed 's/^/  /' $out/hlo.txt
fi
if [ -n "$stablehlo" ]; then
  printf '%-44s %s\n' "StableHLO's testdata, compiled" "$(tail -1 $out/testdata.txt)"
  printf '%-44s %s\n' "StableHLO's testdata, evaluated" "$(tail -1 $out/testdata--evaluator.txt)"
  printf '%-44s %s\n' "StableHLO's interpreter tests, compiled" "$(tail -1 $out/interpret.txt)"
  printf '%-44s %s\n' "StableHLO's interpreter tests, evaluated" "$(tail -1 $out/interpret--evaluator.txt)"
fi
echo "failures: $out/*.txt"
exit $status
