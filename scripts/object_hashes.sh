#!/usr/bin/env bash
# Lists SHA-256 hashes of the files that the tool writes, to show that a change does not alter them.
#   scripts/object_hashes.sh LIST
#     builds every input for every target and writes the list
#   scripts/object_hashes.sh --compare OLD NEW
#     prints the lines that differ; exits with status 1 if there are any
#
# Inputs: the oracle's programs, CASES conformance cases (those whose names hash lowest, 300 by
# default), the StableHLO programs, the HLO modules among the file tests, and the models that
# scripts/models.sh has created.
# Targets: TARGETS, by default x86-64-v3, aarch64, and riscv64. For each, the tool writes the
# object, the metadata object, the C++ and C headers, the Rust module, and HLO text: as imported for
# the first target, optimized for the second, and scheduled for the third.
# A line contains a hash, the target, the input, and the file. If the tool rejects an input, the
# line contains the hash of the message. TOOL is the tool, and JOBS the number of concurrent builds.
set -eu

if [ "${1:-}" = --compare ]; then
  if changes=$(diff "$2" "$3"); then
    echo "$(wc -l <"$3") entries, none differ"
    exit 0
  fi
  grep '^[<>]' <<<"$changes" || true
  echo "$(wc -l <"$3") entries, $(grep -c '^>' <<<"$changes") differ or are new, $(grep -c '^<' <<<"$changes") differ or are gone" >&2
  exit 1
fi

list=${1:?usage: object_hashes.sh LIST, or object_hashes.sh --compare OLD NEW}
cd "$(dirname "$0")/.."
tool=$(realpath "${TOOL:-target/release/tfcompile}")
shared=${TFCOMPILE_SHARED:-../shared}
models=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models/graphs
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/inputs" "$scratch/hashes"

# Every input becomes a line "NAME MODEL [CONFIG]" of the index.
index=$scratch/index
oracle=$shared/oracle
[ -d "$oracle" ] || oracle=tests/oracle
for folder in $(find "$oracle" -name graph.pb -printf '%h\n' | sort); do
  name=oracle/${folder#"$oracle"/}
  config=$folder/config.pbtxt
  [ -f "$config" ] || config=
  echo "$name $(realpath "$folder/graph.pb") ${config:+$(realpath "$config")}"
done >"$index"
for folder in $(find "$models" -maxdepth 2 -name graph.pb -printf '%h\n' 2>/dev/null | sort); do
  echo "models/$(basename "$folder") $folder/graph.pb $folder/config.pbtxt"
done >>"$index"
for file in tests/stablehlo/*.mlir $(grep -l '^ENTRY' -r tests/hlo/run tests/hlo/pass tests/hlo/kernel | sort); do
  echo "${file#tests/} $(realpath "$file")"
done >>"$index"

# A conformance case is an archive of NumPy arrays; the graph and the config are arrays of bytes.
python3 - "${CASES:-300}" "$scratch/inputs" >>"$index" <<'PYTHON'
import hashlib, pathlib, sys, zipfile

count, scratch = int(sys.argv[1]), pathlib.Path(sys.argv[2])
root = pathlib.Path("tests/conformance")
names = [path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.npz")]
names.sort(key=lambda name: hashlib.sha256(name.encode()).digest())
for name in sorted(names[:count]):
    folder = scratch / name.replace("/", "__")
    folder.mkdir()
    with zipfile.ZipFile(root / (name + ".npz")) as archive:
        for member in ("graph.pb", "config.pbtxt"):
            data = archive.read(member + ".npy")
            start = 10 + int.from_bytes(data[8:10], "little")
            (folder / member).write_bytes(data[start:])
    print("conformance/" + name, folder / "graph.pb", folder / "config.pbtxt")
PYTHON

# build TARGET STAGE NAME MODEL [CONFIG]: hashes of all files that the tool writes for one input and
# target.
build() {
  local target=$1 stage=$2 name=$3 model=$4 config=${5:-} out
  out=$(mktemp -d "$scratch/build.XXXXXX")
  if ! "$tool" build "$model" ${config:+--config "$config"} --target "$target" --quiet --name program --no-runtime-headers \
    --emit obj,header,c-header,rust,metadata,hlo-text --hlo-stage "$stage" -o "$out" 2>"$out/rejected"; then
    # Excludes the folders of this run and of this checkout.
    sed -i "s|$scratch||g; s|$PWD||g" "$out/rejected"
  else
    rm "$out/rejected"
  fi
  (cd "$out" && sha256sum -- *) | while read -r hash file; do echo "$hash $target $name $file"; done \
    >"$scratch/hashes/$target-${name//\//__}"
  rm -rf "$out"
}
export -f build
export tool scratch

stages=(import optimized scheduled)
read -ra targets <<<"${TARGETS:-x86-64-v3 aarch64-linux riscv64-linux}"
for i in "${!targets[@]}"; do
  sed "s|^|${targets[i]} ${stages[i % 3]} |" "$index"
done | xargs -P "${JOBS:-2}" -L 1 bash -c 'build "$@"' build
cat "$scratch"/hashes/* | LC_ALL=C sort -k 2 >"$list"
echo "$(wc -l <"$list") entries: $(wc -l <"$index") inputs, ${#targets[@]} targets"
