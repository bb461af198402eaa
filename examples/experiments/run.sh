#!/usr/bin/env bash
# The study: compiles each experiment from its graph, links a program around it, and trains it.
#   examples/experiments/run.sh [NAME...]
# TOOL=FILE: another tfcompile. STEPS=N: number of steps.
# DEVICE=XLA_GPU:0: instead trains each graph in a session on this device, and compares the losses
# with those on XLA_CPU:0 or CPU:0 (TFCOMPILE_DEVICE_DRIVER=opencl for a device of OpenCL). The
# examples are random, so the losses diverge and multiply differences of rounding: 5 steps by
# default.
set -eu

cd "$(dirname "$0")/../.."
example=examples/experiments
tool=${TOOL:-target/release/tfcompile}
steps=${STEPS:-200}
out=target/experiments
mkdir -p $out
[ $# -gt 0 ] || set -- fc fc_adam fc_batchnorm fc_batchnorm_adam fc_batchnorm_notrain fc_kerasbatchnorm \
  conv_fc conv_fc_adam conv_fc_batchnorm conv_fc_batchnorm_adam conv_fc_batchnorm_notrain \
  dynamic_rnn keras_rnn rnn_seq_length

if [ -n "${DEVICE:-}" ]; then
  steps=${STEPS:-5}
  failed=0
  for name in "$@"; do
    train() { # train FLAG...: prints the loss of each step
      "$tool" run "$example/$name.pb" --fetch loss --jit on --random 1 --steps "$steps" --quiet "$@" |
        sed -n 's/^step [0-9]*  loss:0: //p'
    }
    train --device "${DEVICE/GPU/CPU}" >"$out/$name.host" && train --device "$DEVICE" >"$out/$name.device" &&
      paste "$out/$name.host" "$out/$name.device" | awk -v name="$name" -v device="$DEVICE" '
        { off = $1 - $2; if (off < 0) off = -off; if (off > most) most = off }
        !($1 == $1 + 0 && $2 == $2 + 0) || off > 1e-4 * ($1 > 1 ? $1 : 1) { wrong = 1 }
        END { printf "%-26s %d steps on %s: losses at most %.1e from those on the host\n", name, NR, device, most
              exit wrong || NR == 0 }' || { echo "$name: fails on $DEVICE" >&2; failed=1; }
  done
  exit $failed
fi
$tool headers -o $out/include
printf '%-26s %10s %12s %10s %9s %9s\n' experiment 'compile ms' 'object bytes' 'ns/step' 'first' 'last loss'
failed=0
for name in "$@"; do
  work=$out/$name
  rm -rf "$work"
  mkdir -p "$work"
  result=
  start=$(date +%s%N)
  if ! "$tool" build "$example/$name.pb" --fetch loss --class experiment::Step --name model -o "$work" \
    --emit=obj,header,metadata --quiet 2>"$work/log"; then
    echo "$name: tfcompile fails: $(cat "$work/log")" >&2
    failed=1
    continue
  fi
  compile_ms=$((($(date +%s%N) - start) / 1000000))
  if ! g++ -std=c++17 -O2 -Wall -Wextra -Werror -I"$work" -I$out/include $example/train.cc "$work"/*.o \
    -o "$work/train"; then
    failed=1
    continue
  fi
  if ! result=$("$work/train" "$steps"); then
    echo "$name: training fails" >&2
    failed=1
  fi
  printf '%-26s %10d %12d %s\n' "$name" $compile_ms "$(stat -c %s "$work/model.o")" "${result:-}"
done
[ $failed = 0 ] || exit 1
echo "$# experiments compiled and trained for $steps steps each; every loss fell"
