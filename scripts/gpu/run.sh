#!/bin/sh
# Checks and measures the packed device programs on this machine, and writes report.json. Needs
# NVIDIA's driver; uses compute-sanitizer, JAX, and PyTorch where they are installed.
#   sh run.sh [REPORT]
cd "$(dirname "$0")" || exit 2
report=${1:-report.json}

# Times of kernels are those of CUPTI, which is often outside the paths of libraries.
if [ -z "${TFCOMPILE_CUPTI:-}" ]; then
  for folder in extras/CUPTI/lib64 lib64 targets/x86_64-linux/lib; do
    library=/usr/local/cuda/$folder/libcupti.so
    [ -e "$library" ] || continue
    export TFCOMPILE_CUPTI="$library"
    break
  done
fi

./gpu-check . --json cases.json
status=$?
[ "$status" != 2 ] || exit 2

# The sanitizers slow kernels down by a factor of ten to a hundred, so they get a part of the cases.
: >sanitizers.txt
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    echo "== $tool" >>sanitizers.txt
    timeout 120 compute-sanitizer --tool "$tool" --error-exitcode 9 \
      ./gpu-check . --json sanitized.json --no-speed --only test_0 >>sanitizers.txt 2>&1
    echo "== $tool exit status $?" >>sanitizers.txt
  done
fi
python3 peers.py --json peers.json
python3 merge.py --out "$report"
exit "$status"
