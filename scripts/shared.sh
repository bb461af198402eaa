#!/usr/bin/env bash
# Runs a command over a folder of the large test sets, `{}` in it being the folder.
#   scripts/shared.sh FOLDER COMMAND...
# The sets lie in $TFCOMPILE_SHARED (default ../shared). Absent: one line, or, under CI=true, a failure.
set -eu

folder=${TFCOMPILE_SHARED:-../shared}/$1
shift
if [ ! -d "$folder" ]; then
  if [ "${CI:-}" = true ]; then
    echo "shared: $folder is not there, and under CI=true it has to be" >&2
    exit 1
  fi
  echo "skipped: $folder is not there (set TFCOMPILE_SHARED)"
  exit 0
fi
exec "${@//\{\}/$folder}"
