#!/usr/bin/env bash
# Packs what a machine with CUDA needs to check and measure device programs: target/gpu-check, and
# target/gpu-check.tar.gz below 60 MiB. On that machine: `sh run.sh` writes report.json.
#   scripts/gpu/pack.sh [CASES]    number of recorded cases (default 300)
set -euo pipefail
cd "$(dirname "$0")/../.."

cases=${1:-300}
shared=${TFCOMPILE_SHARED:-../shared}
out=target/gpu-check
limit=$((60 << 20))

cargo build --release --quiet -p gpu-check -p conformance
rm -rf "$out" "$out.tar.gz"
mkdir -p "$out/bin"
python3 scripts/gpu/models.py "$out/source"
models=()
for file in "$out"/source/*.mlir; do
  models+=(--model "$(basename "$file" .mlir)=$file")
done
folders=(tests/conformance)
[ ! -d "$shared/conformance/cases" ] || folders+=("$shared/conformance/cases")
target/release/gpu-pack "${folders[@]}" --sample "$cases" --out "$out" "${models[@]}" | tail -n 12
cp target/release/gpu-check scripts/gpu/peers.py scripts/gpu/merge.py "$out/"
cp scripts/gpu/run.sh "$out/run.sh"
git rev-parse HEAD >"$out/commit"
tar -C target -czf "$out.tar.gz" gpu-check
bytes=$(stat -c %s "$out.tar.gz")
echo "$out.tar.gz: $bytes bytes"
[ "$bytes" -le "$limit" ] || {
  echo "gpu-check: the pack exceeds $limit bytes: pack fewer cases" >&2
  exit 1
}
