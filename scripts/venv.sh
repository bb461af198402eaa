#!/usr/bin/env bash
# Makes a Python environment of its own with the given packages, once, and prints its interpreter's path.
#   scripts/venv.sh NAME PACKAGE...      in ~/.cache/tfcompile-models/NAME
set -eu

name=$1
shift
venv=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models/$name
if [ "$(cat "$venv/.packages" 2>/dev/null)" != "$*" ]; then
  # Wheels exist for some versions of Python only; take the first that is here.
  python=
  for candidate in ${TFCOMPILE_PYTHON:-} python3.11 python3.10 python3; do
    if command -v "$candidate" >/dev/null && "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
      python=$candidate
      break
    fi
  done
  [ -n "$python" ] || {
    echo "venv: no Python with the venv module; install python3-venv" >&2
    exit 1
  }
  echo "venv: making $name with $* (once)" >&2
  rm -rf "$venv"
  "$python" -m venv "$venv" >&2
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >&2
  echo "$*" >"$venv/.packages"
fi
echo "$venv/bin/python"
