#!/usr/bin/env bash
# Tests the backend of Triton Inference Server: with a stand-in for the server, under sanitizers and
# valgrind; in the server itself, which comes from the package nvidia-pytriton; and the commands of
# docs/triton.md.
#   scripts/triton/test.sh TOOL
# TRITON_CORE_INCLUDE=DIR: `include` of a checkout of triton-inference-server/core, with whose
# headers the backend's declarations are compared.
set -eu -o pipefail

tool=$(realpath "$1")
cd "$(dirname "$0")/../.."
scripts/triton/build.sh >/dev/null
library=$PWD/target/backends/tfcompile/libtriton_tfcompile.so
if [ -n "${TRITON_CORE_INCLUDE:-}" ]; then
  scripts/triton/check_headers.py "$TRITON_CORE_INCLUDE"
else
  echo "skipped: comparison with the server's headers (set TRITON_CORE_INCLUDE)"
fi

# The models of the tests of devices are built if the OpenCL driver for processors is installed, and
# always in CI.
if [ "${CI:-}" = true ] || [ -e "${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile/opencl-venv/.packages" ]; then
  eval "$(scripts/setup_gpu.sh opencl)"
  export OCL_ICD_VENDORS LD_LIBRARY_PATH
fi
python=$(scripts/triton/venv.sh)
work=$PWD/target/triton
rm -rf "$work"
mkdir -p "$work"

echo "== in Triton Inference Server"
"$python" scripts/triton/test_server.py "$tool" "$library" "$work/server"

host() { # host NAME FLAG...
  c++ -std=c++20 -O1 -g -Wall -Wextra -Werror -Wno-format-security -rdynamic -pthread "${@:2}" tests/triton/host.cc -o "$work/$1"
}
run() { "$@" "$library" "$work/server/repository" | tail -n 1; }
echo "== in a stand-in for the server, with address, undefined behavior, and thread sanitizers"
host host_address -fsanitize=address,undefined -fno-sanitize-recover=all
ASAN_OPTIONS=detect_leaks=1 run "$work/host_address"
host host_thread -fsanitize=thread
run "$work/host_thread"
if command -v valgrind >/dev/null; then
  echo "== in the stand-in, with valgrind"
  host host
  run valgrind --quiet --error-exitcode=3 --leak-check=full --errors-for-leak-kinds=definite "$work/host"
else
  echo "skipped: valgrind is not installed"
fi

echo "== the commands of docs/triton.md"
mkdir -p "$work/page" "$work/bin"
trap '[ ! -e "$work/page/server.pid" ] || kill "$(cat "$work/page/server.pid")" 2>/dev/null || true' EXIT
ln -sf "$tool" "$work/bin/tfcompile"
server=$("$python" -c 'import sys; sys.path.insert(0, "scripts/triton"); import server; print(server.program().parent)')
PATH=$work/bin:$(dirname "$python"):$server:$PATH "$python" scripts/run_page.py docs/triton.md "$work/page"
