#!/usr/bin/env bash
# Runs the commands of docs/scale.md, kills workers of batch scoring and of data-parallel training,
# and counts. Work is in target/scale.
#   scripts/test_scale.sh [--wheel WHEEL] [ray|spark|dask|train]...
# Without WHEEL, builds one in the development profile.
set -eu

cd "$(dirname "$0")/.."
wheel=
[ "${1:-}" != --wheel ] || { wheel=$2; shift 2; }
[ $# -gt 0 ] || set -- ray spark dask train
if [ -z "$wheel" ]; then
  scripts/wheel.sh --dev >&2
  wheel=$(ls -t "${CARGO_TARGET_DIR:-target}"/wheels/tfcompile-*.whl | head -n 1)
fi
python=$(scripts/venv.sh venv-scale tensorflow-cpu==2.15.1 numpy==1.26.4 'ray[data]==2.60.0' pyspark==4.3.0 \
  pyarrow==25.0.1 pandas==2.3.3 'dask[distributed]==2026.7.1' mpi4py==4.1.2 mpich==5.0.1)
work=$PWD/target/scale
rm -rf "$work"
mkdir -p "$work/page"
trap 'rm -rf "$work/site" "$work/constants"' EXIT
"$python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$work/site" "$wheel"

export PATH=$(dirname "$python"):$PATH
export PYTHONPATH=$work/site PYTHONDONTWRITEBYTECODE=1 TFCOMPILE_CONSTANTS_DIR=$work/constants
# By default, Ray's workers yield to every other process of the machine, and on a busy one they
# do not start in time.
export RAY_worker_niceness=0
# Everything stays on this machine.
export RAY_USAGE_STATS_ENABLED=0 RAY_AUTH_MODE=disabled SPARK_LOCAL_IP=127.0.0.1 PYSPARK_PYTHON=$python
export TF_CPP_MIN_LOG_LEVEL=3
PYTHONPATH=$PYTHONPATH:$PWD/examples/batch_scoring "$python" scripts/scale/test_scoring.py
"$python" scripts/run_page.py docs/scale.md "$work/page" >"$work/page.log" 2>&1 || {
  tail -n 40 "$work/page.log" >&2
  exit 1
}
tail -n 1 "$work/page.log"
"$python" scripts/scale/network.py save "$work/network" 2>"$work/network.log" || {
  cat "$work/network.log" >&2
  exit 1
}
for part; do
  if [ "$part" = train ]; then
    "$python" scripts/scale/data_parallel.py --work "$work/train" --judge "$python"
  else
    "$python" scripts/scale/batch_scoring.py "$part" --model "$work/network" --work "$work/$part" --judge "$python"
    rm -rf "${work:?}/$part"
  fi
done
echo "test-scale: passed"
