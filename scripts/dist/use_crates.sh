#!/usr/bin/env bash
# Writes a Rust program over packed crates instead of this tree, with all other crates that it
# needs, so that `cargo run --offline` compiles it. The program reads a model, runs it in a session,
# and runs code that `tfcompile-build` compiles with the tool on PATH or in $TFCOMPILE.
#   scripts/dist/use_crates.sh CRATES DIRECTORY
set -eu

crates=$(realpath "$1")
mkdir -p "$2/crates" "$2/src" "$2/.cargo"
cd "$(dirname "$0")/../.."
root=$PWD
cd "$2"
for crate in "$crates"/*.crate; do
  tar -xzf "$crate" -C crates
done
{
  printf '%s\n' '[package]' 'name = "program"' 'version = "0.1.0"' 'edition = "2024"' 'build = "build.rs"' '[dependencies]' \
    'tfcompile = "0.1.0"' 'tfcompile-runtime = "0.1.0"' '[build-dependencies]' 'tfcompile-build = "0.1.0"' \
    '[profile.dev]' 'debug = false' '[patch.crates-io]'
  for directory in crates/*; do
    name=$(basename "$directory")
    echo "${name%-[0-9]*} = { path = \"$directory\" }"
  done
} >Cargo.toml
# The same versions as in the tree.
cp "$root/Cargo.lock" .
cp "$root/examples/cargo/model/"scorer* .
cp "$root/scripts/dist/use_crates.rs" src/main.rs
cat >build.rs <<'END'
fn main() {
    tfcompile_build::Model::new("scorer.pbtxt").config("scorer.config.pbtxt").name("scorer").compile();
}
END
cargo vendor >.cargo/config.toml
