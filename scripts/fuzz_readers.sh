#!/usr/bin/env bash
# Runs readers of files on inputs that libFuzzer derives from the files of the tests, and prints a
# table. Exits with 1 if a reader panicked, crashed, or took more than 20 s or 2 GiB.
#   scripts/fuzz_readers.sh [SECONDS] [READER...]
#   scripts/fuzz_readers.sh --keep [READER...]
# SECONDS: for each reader (default: 60). An unknown READER lists the names. Corpora stay in
# target/fuzz-readers/corpus and grow with each run; findings are in target/fuzz-readers/findings.
# --keep: reduces the corpora to inputs that reach something new, and writes the smallest of them to
# tests/readers, which `make test` and later runs read.
# `make fuzz-readers` sets up what this needs: a nightly toolchain and cargo-fuzz.
set -eu

cd "$(dirname "$0")/.."
place=target/fuzz-readers
seconds=60
keeps=false
case ${1:-} in
  --keep)
    keeps=true
    shift
    ;;
  [0-9]*)
    seconds=$1
    shift
    ;;
esac

cargo +nightly fuzz build --fuzz-dir fuzz/readers --sanitizer none --target-dir $place --codegen-units 16 readers
host=$(rustc -vV | sed -n 's/^host: //p')
# A run is not disturbed by a later build.
mkdir -p $place/corpus $place/findings $place/logs
fuzzer=$place/running-$$
cp "$place/$host/release/readers" "$fuzzer"
trap 'rm -f "$fuzzer"' EXIT

names=$(READER='' "$fuzzer" 2>&1 | sed -n 's/.*expected one of //p' | tr -d ,)
for name; do
  case " $names " in
    *" $name "*) ;;
    *)
      echo "fuzz_readers: unknown reader '$name': expected one of $names" >&2
      exit 2
      ;;
  esac
done
[ $# -gt 0 ] || set -- $names

# The tool reads files on a stack of this size, too.
ulimit -s 131072
ulimit -c 0
if [ -d /dev/shm ]; then export TMPDIR=/dev/shm; fi
python3 fuzz/readers/seeds.py $place/corpus

if $keeps; then
  for name; do
    rm -rf "$place/kept/$name"
    mkdir -p "$place/kept/$name"
    READER=$name "$fuzzer" -merge=1 -timeout=20 -rss_limit_mb=2048 "$place/kept/$name" "$place/corpus/$name" \
      >"$place/logs/$name.merge" 2>&1
    python3 fuzz/readers/keep.py "$place/kept/$name" "tests/readers/$name.zip" "$place/findings/$name"-*
  done
  exit
fi

run() { # run NAME SECONDS: one run of the fuzzer, which ends at a finding
  READER=$1 "$fuzzer" "$place/corpus/$1" -max_total_time="$2" -timeout=20 -rss_limit_mb=2048 \
    -max_len=65536 -print_final_stats=1 -artifact_prefix="$place/findings/$1-"
}

failed=0
printf '%-16s %12s %8s %8s %8s\n' reader executions edges corpus findings
for name; do
  mkdir -p "$place/corpus/$name"
  executions=0 edges=0 findings=0
  end=$(($(date +%s) + seconds))
  # Goes on after a finding, since the next one may be another.
  while left=$((end - $(date +%s))) && [ $left -gt 0 ] && [ $findings -lt 20 ]; do
    log=$place/logs/$name.$findings
    run "$name" $left >"$log" 2>&1 || findings=$((findings + 1))
    executions=$((executions + $(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1 | grep . || echo 0)))
    reached=$(sed -n 's/.*cov: \([0-9]*\).*/\1/p' "$log" | sort -n | tail -1)
    [ "${reached:-0}" -le $edges ] || edges=$reached
  done
  rm -rf "${TMPDIR:-/tmp}"/fuzz-readers-*
  printf '%-16s %12d %8d %8d %8d\n' "$name" $executions "$edges" "$(ls "$place/corpus/$name" | wc -l)" $findings
  [ $findings -eq 0 ] || failed=1
done
exit $failed
