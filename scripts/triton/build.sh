#!/usr/bin/env bash
# Builds the backend of Triton Inference Server, and lays it out as the server expects it:
# target/backends/tfcompile.
set -eu

cd "$(dirname "$0")/../.."
cargo build --quiet --release -p triton
mkdir -p target/backends/tfcompile
# Renamed into place: a server may have mapped the old file.
cp "${CARGO_TARGET_DIR:-target}/release/libtriton_tfcompile.so" target/backends/tfcompile/new
mv target/backends/tfcompile/new target/backends/tfcompile/libtriton_tfcompile.so
echo "wrote target/backends/tfcompile: copy it to the server's directory of backends"
