#!/usr/bin/env bash
# Compares compiled models with other compilers and runtimes, and kernels with the peak of the
# machine, and measures compile time. `make bench` runs it.
#   scripts/bench/run.sh OUT
# Writes to OUT: table.md, ratios-{1,2}.svg, bench.json, bench.svg, kernels.txt, compile_time.txt.
# To publish a run, copy bench.json and bench.svg to docs/: README.md and docs/benchmarks.md show
# them. The harness is in $TFCOMPILE_SHARED/bench (default ../shared/bench). It installs the peers
# once, in ~/.cache/tfbench. Variables and their defaults:
#   MODELS    models, by the names of make_models.py (all but bert_base_128)
#   PEERS     peers (those that are installed)
#   SETUP     peers to install first, by the parts of the harness's setup.sh
#             (peak conv tfnew litert ort ov tfc-native)
#   THREADS   numbers of threads (1,2)
#   ROUNDS    number of rounds (5)
#   BATCHES   batch sizes ("8 32"), or nothing for none
set -eu

out=$(realpath -m "$1")
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
shared=$(cd "$root" && realpath "${TFCOMPILE_SHARED:-../shared}")
harness=$shared/bench
[ -d "$harness" ] || { echo "bench: cannot find $harness; set TFCOMPILE_SHARED" >&2; exit 1; }
export PEERS_HOME=${PEERS_HOME:-$HOME/.cache/tfbench}
export BENCH_MODELS=${BENCH_MODELS:-$HOME/.cache/tfbench-models}
# Times of compilation are those of code that is generated.
export TFCOMPILE_KERNEL_CACHE=
export TFCOMPILE=${TFCOMPILE:-$root/target/release/tfcompile}
mkdir -p "$out" "$BENCH_MODELS"

"$harness/setup.sh" ${SETUP-peak conv tfnew litert ort ov tfc-native}
python=$PEERS_HOME/venvs/conv/bin/python
models=${MODELS:-mlp autoencoder_ad dscnn_kws resnet8_cifar mobilenet_v1_025_96 mobilenet_v2_224 efficientnet_b0_224 \
  resnet50_224 inception_v3_299 unet_small_128 bert_tiny_128 vit_tiny_224 gpt2_block_decode lstm_2x128_seq100 gru_128_seq100 \
  lstm_train_b32 lstm_train_unrolled_b32 resnet8_train_b32}
models=${models//,/ }
for model in $models; do
  [ -f "$BENCH_MODELS/$model/io.npz" ] || "$python" "$shared/oracle/make_models.py" --out "$BENCH_MODELS" "$model"
done
# Larger batches, for models whose graphs allow them and that run in seconds.
wide=
for batch in ${BATCHES-8 32}; do
  for model in $models; do
    case $model in
      resnet50_224 | inception_v3_299 | bert_base_128) [ "$batch" -le 8 ] || continue ;;
    esac
    name=${model}_b$batch
    if [ ! -f "$BENCH_MODELS/$name/inputs.npz" ]; then
      "$python" "$here/batch.py" "$BENCH_MODELS/$model" "$batch" "$BENCH_MODELS/$name" 2>/dev/null || continue
    fi
    wide="$wide $name"
  done
done

installed=()
for peer in openvino:venvs/ov litert:venvs/litert ort:venvs/ort iree:venvs/iree jax:venvs/jax tvm:venvs/tvm \
  tract:tract/target/release tf-func:venvs/tfnew tf-xla:venvs/tfnew \
  tfc215:tfc/rt215_native/libtfxla.a tfc215-generic:tfc/rt215_generic/libtfxla.a; do
  [ -e "$PEERS_HOME/${peer#*:}" ] && installed+=("${peer%%:*}")
done
peers=${PEERS:-$(IFS=,; echo "${installed[*]}")}
results=$out/results
mkdir -p "$results"
rm -rf "$PEERS_HOME"/art/*/peer
"$harness/peaks.sh" "$results" >/dev/null
for set in "${models// /,}" "$(echo $wide | tr ' ' ',')"; do
  [ -n "$set" ] || continue
  "$python" "$harness/run.py" --models "$(echo "$set" | tr -s ' \n' ',')" --peers "$peers,$here/peer" --threads "${THREADS:-1,2}" \
    --rounds "${ROUNDS:-5}" --results "$results"
done
python3 "$here/cold.py" "$results" "$PEERS_HOME" "$harness" "$here/peer"
python3 "$here/report.py" "$results" "$out"
python3 "$here/record.py" "$results" "$PEERS_HOME" "$out/bench.json"
python3 "$here/chart.py" "$out/bench.json" "$out/bench.svg"

cd "$root"
cargo bench --quiet -p runner --bench kernels | tee "$out/kernels.txt"
cargo bench --quiet -p runner --bench compile_time -- $(for model in $models; do echo "$BENCH_MODELS/$model"; done) |
  tee "$out/compile_time.txt"
echo "bench: $out/table.md"
