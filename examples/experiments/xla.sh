#!/usr/bin/env bash
# Second half of the study: extracts the XLA program of each experiment as HLO text, proto, and
# StableHLO, before and after optimization. XLA parses and runs each form, and its results are
# compared with those of our compiled code.
#   examples/experiments/xla.sh [NAME...]
# RELEASE=: uses tools of the development profile.
set -eu

cd "$(dirname "$0")/../.."
example=examples/experiments
out=target/experiments-xla
rm -rf $out
[ $# -gt 0 ] || set -- fc fc_adam fc_batchnorm fc_batchnorm_adam fc_batchnorm_notrain fc_kerasbatchnorm \
  conv_fc conv_fc_adam conv_fc_batchnorm conv_fc_batchnorm_adam conv_fc_batchnorm_notrain \
  dynamic_rnn keras_rnn rnn_seq_length
# The same command as `make tools`: alone, `-p conformance` unifies features otherwise and compiles
# the compiler again.
cargo build --quiet ${RELEASE---release} -p cli -p conformance
cases=target/$([ -n "${RELEASE---release}" ] && echo release || echo debug)/hlo-cases
python=$(scripts/venv.sh venv-xla jax==0.10.2)
failed=0
printf '%-28s' experiment
echo '     files  accepted  run, same    failed'
for name in "$@"; do
  $cases "$out/$name" --models "$example/$name.pb" >/dev/null
  "$python" scripts/xla_judge.py "$out/$name" >"$out/$name.log" || failed=1
  awk -v name="$name" '/^(HLO|Hlo|Stable)/ { f += $(NF - 4); a += $(NF - 3); r += $(NF - 2); x += $(NF - 1) }
    END { printf "%-28s %9d %9d %10d %9d\n", name, f, a, r, x }' "$out/$name.log"
done
grep -h '^HLO\|^Hlo\|^Stable' "$out"/*.log | awk '{ k = $0; sub(/  +[0-9].*/, "", k); n = NF
    f[k] += $(n - 4); a[k] += $(n - 3); r[k] += $(n - 2); x[k] += $(n - 1); if ($n + 0 > d[k] + 0) d[k] = $n }
  END { for (k in f) printf "%-36s %7d %9d %9d %8d   %s\n", k, f[k], a[k], r[k], x[k], d[k] }' | sort
[ $failed = 0 ] || { grep -h ': ' "$out"/*.log >&2; exit 1; }
echo "$# experiments: XLA takes each form of each and computes the same"
