#!/usr/bin/env bash
# Runs recorded cases of each kind of input on each machine that can be emulated here; see table.py.
#   scripts/targets/test.sh TOOL [FLAG...]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
"$here/../setup.sh" cross
"$here/../setup.sh" c-source
"$here/../setup.sh" web
eval "$("$here/../setup_gpu.sh" opencl)"
export OCL_ICD_VENDORS LD_LIBRARY_PATH
python=$("$here/../venv.sh" venv-wasmtime wasmtime==50.0.1 numpy==2.4.6)
exec "$python" "$here/table.py" "$@"
