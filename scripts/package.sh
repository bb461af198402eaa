#!/usr/bin/env bash
# Lays out a distributable directory that works in any location: the tool, headers, and files for
# build systems.
#   scripts/package.sh TOOL DIRECTORY
set -eu

cd "$(dirname "$0")/.."
tool=$1
to=$2
version=$("$tool" --version | cut -d' ' -f2)
install_file() { # install_file FROM TO: installs a file and inserts the version
  mkdir -p "$(dirname "$to/$2")"
  sed "s/@VERSION@/$version/g" "$1" >"$to/$2"
}

mkdir -p "$to/bin"
install -m 755 "$tool" "$to/bin/tfcompile"
"$tool" headers -o "$to/include"
install_file build_systems/cmake/tfcompileConfig.cmake lib/cmake/tfcompile/tfcompileConfig.cmake
install_file build_systems/cmake/tfcompileConfigVersion.cmake.in lib/cmake/tfcompile/tfcompileConfigVersion.cmake
install_file build_systems/make/tfcompile.pc.in lib/pkgconfig/tfcompile.pc
install_file build_systems/make/tfcompile.mk share/tfcompile/tfcompile.mk
for file in BUILD.bazel MODULE.bazel WORKSPACE tfcompile.bzl; do
  install_file "build_systems/bazel/$file" "$file"
done
install_file LICENSE LICENSE
# Dependencies of Rust programs. These crates have no dependencies, so a copy suffices.
for crate in tfcompile-build tfcompile-runtime; do
  mkdir -p "$to/share/tfcompile/crates/$crate"
  cp -r "crates/$crate/Cargo.toml" "crates/$crate/src" "$to/share/tfcompile/crates/$crate"
done
# Its feature `device` compiles the runtime of GPUs.
cp -r crates/tfcompile-runtime/build.rs crates/tfcompile-runtime/c "$to/share/tfcompile/crates/tfcompile-runtime"
mkdir -p "$to/share/man/man1" "$to/share/bash-completion/completions" "$to/share/zsh/site-functions" \
  "$to/share/fish/vendor_completions.d"
"$tool" man >"$to/share/man/man1/tfcompile.1"
# The main page refers to the commands' pages.
for command in $(sed -n 's/^tfcompile\\-\(.*\)(1)$/\1/p' "$to/share/man/man1/tfcompile.1" | tr -d '\\'); do
  "$tool" man "$command" >"$to/share/man/man1/tfcompile-$command.1"
done
"$tool" completions bash >"$to/share/bash-completion/completions/tfcompile"
"$tool" completions zsh >"$to/share/zsh/site-functions/_tfcompile"
"$tool" completions fish >"$to/share/fish/vendor_completions.d/tfcompile.fish"
