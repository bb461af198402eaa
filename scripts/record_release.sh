#!/usr/bin/env bash
# Records what this version writes, as test data that every later version links and runs:
# tests/releases/VERSION, with the programs of tests/consumer, the program for GPUs, and the Rust
# program of tests/rust. Part of making a release; tests/releases/README.md describes the files.
#   scripts/record_release.sh TOOL
set -eu

cd "$(dirname "$0")/.."
tool=$(realpath "$1")
version=$("$tool" --version | cut -d' ' -f2)
to=$PWD/tests/releases/$version
[ ! -e "$to" ] || {
  echo "record_release: $to exists: a recorded release never changes" >&2
  exit 1
}
mkdir -p "$to/consumer"
cp tests/consumer/check.h "$to/consumer"
for case in tests/consumer/*/; do
  name=$(basename "$case")
  out=$to/consumer/$name/built
  mkdir -p "$out"
  cp "$case"/*.cc "$to/consumer/$name"
  number=0
  while read -r directive words; do
    read -ra words <<<"$words"
    case $directive in
      compile)
        mkdir -p "$(dirname "$out/${words[2]}")"
        (cd "$case" && "$tool" --graph="${words[0]}" --config="${words[1]}" --out_header="$out/${words[2]}" \
          --out_function_object="$out/$number.o" --out_metadata_object="$out/${number}_metadata.o" "${words[@]:3}")
        number=$((number + 1))
        ;;
      build)
        (cd "$case" && "$tool" build "${words[@]}" --quiet --output "$out")
        ;;
    esac
  done <"$case/case.txt"
  # What is left of the directives: how to build the program.
  grep -E '^(cxx|needs) ' "$case/case.txt" >"$to/consumer/$name/case.txt" || true
done

mkdir -p "$to/device/built"
cp tests/device/programs/layer.cc tests/artifacts/expect.h "$to/device"
layer=tests/artifacts/layer train=tests/consumer/variables
"$tool" build $layer.pbtxt --config $layer.config.pbtxt --target opencl --name layer --class ns::Layer --quiet --output "$to/device/built"
"$tool" build $train/graph.pbtxt --config $train/config.pbtxt --target opencl --name train --class ns::Train --quiet --output "$to/device/built"

# Programs are built with the runtime headers of the version that tests them.
find "$to" -type d -name include -prune -exec rm -r {} +

# The program of tests/rust, with the files that its build scripts made.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r tests/rust/. "$scratch"
cp examples/cargo/model/scorer*.pbtxt "$scratch/model"
cp tests/consumer/quantized/maximum.tflite "$scratch/model/row.tflite"
sed -i "s|\.\./\.\./crates|$PWD/crates|" "$scratch/Cargo.toml" "$scratch/core/Cargo.toml"
(cd "$scratch" && TFCOMPILE=$tool CARGO_TARGET_DIR=$scratch/target cargo build --quiet --offline)
for part in . core; do
  package=$(sed -n 's/^name = "\(.*\)"/\1/p' "tests/rust/$part/Cargo.toml")
  mkdir -p "$to/rust/$part/built"
  cp -r "tests/rust/$part/src" "tests/rust/$part/Cargo.toml" "$to/rust/$part"
  cp "$scratch"/target/debug/build/"$package"-*/out/* "$to/rust/$part/built"
done
