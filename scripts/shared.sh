#!/usr/bin/env bash
# Runs a command on a folder of the large test sets. The command refers to the folder as `{}`.
#   scripts/shared.sh FOLDER COMMAND...
# The sets are in $TFCOMPILE_SHARED (default: ../shared). If FOLDER is absent, prints one line, or
# fails if CI=true.
set -eu

folder=${TFCOMPILE_SHARED:-../shared}/$1
shift
if [ ! -d "$folder" ]; then
  if [ "${CI:-}" = true ]; then
    echo "shared: missing $folder, which CI=true requires (set TFCOMPILE_SHARED)" >&2
    exit 1
  fi
  echo "skipped: missing $folder (set TFCOMPILE_SHARED)"
  exit 0
fi
exec "${@//\{\}/$folder}"
