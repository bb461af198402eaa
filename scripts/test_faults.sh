#!/usr/bin/env bash
# Runs the tool while the system fails: each call on files in turn, too little memory, refused
# threads, and clocks that jump. Expects complete files or none, and one message. See
# docs/design/faults.md.
#   scripts/test_faults.sh TOOL [all|sample]
# `sample` takes a few faults of three commands. Only for Linux on x86-64.
set -eu

cd "$(dirname "$0")/.."
tool=$1
amount=${2:-all}
if [ "$(uname -sm)" != "Linux x86_64" ]; then
  echo "faults: skipped: this is not Linux on x86-64"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
warnings=(-std=gnu11 -O1 -Wall -Wextra -Werror)
cc "${warnings[@]}" scripts/faults/inject.c -o "$work/inject"
cc "${warnings[@]}" -shared -fPIC scripts/faults/shim.c -o "$work/shim.so" -ldl
# A container may forbid tracing.
if ! "$work/inject" "$work" count "$work/log" true 2>"$work/why"; then
  echo "faults: skipped: $(cat "$work/why")"
  [ "${CI:-}" != true ] || exit 1
  exit 0
fi
case $amount in
  all) files=() limits=() ;;
  sample) files=(--every 9 --only '^(build-again|run-state)$') limits=(--every 9 --only '^build$') ;;
  *) echo "faults: expected all or sample, got '$amount'" >&2; exit 1 ;;
esac
status=0
scripts/faults/files.py "$tool" --injector "$work/inject" "${files[@]}" || status=1
scripts/faults/limits.py "$tool" --shim "$work/shim.so" "${limits[@]}" || status=1
exit $status
