#!/usr/bin/env bash
# Creates a Python environment with the given packages if it does not exist, and prints the path of
# its interpreter.
#   scripts/venv.sh NAME PACKAGE... [--no-deps PACKAGE...]      in ~/.cache/tfcompile-models/NAME
# Packages after --no-deps are installed without those that they require.
set -eu

name=$1
shift
venv=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models/$name
if [ "$(cat "$venv/.packages" 2>/dev/null)" != "$*" ]; then
  # Wheels exist only for some versions of Python. Use the first one installed.
  python=
  for candidate in ${TFCOMPILE_PYTHON:-} python3.11 python3.10 python3; do
    if command -v "$candidate" >/dev/null && "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
      python=$candidate
      break
    fi
  done
  [ -n "$python" ] || {
    echo "venv: no Python with the venv module: install python3-venv" >&2
    exit 1
  }
  echo "venv: creating $name with $* (once)" >&2
  rm -rf "$venv"
  "$python" -m venv "$venv" >&2
  complete=() bare=() is_bare=
  for package; do
    if [ "$package" = --no-deps ]; then
      is_bare=1
    elif [ -n "$is_bare" ]; then
      bare+=("$package")
    else
      complete+=("$package")
    fi
  done
  install=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
  "${install[@]}" "${complete[@]}" >&2
  [ ${#bare[@]} = 0 ] || "${install[@]}" --no-deps "${bare[@]}" >&2
  echo "$*" >"$venv/.packages"
fi
echo "$venv/bin/python"
