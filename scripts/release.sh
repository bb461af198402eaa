#!/usr/bin/env bash
# Builds target/release/tfcompile for other machines: LLVM linked statically where its static libraries are here.
set -eu

features=()
libdir=$(llvm-config-22 --libdir)
if [ -e "$libdir/libLLVMCore.a" ] && llvm-config-22 --link-static --libs core >/dev/null 2>&1; then
  features=(-p codegen --features codegen/static-llvm)
else
  echo "release: LLVM's static libraries are not here; linking dynamically"
fi
cargo build --release -p cli "${features[@]}"
ls -l target/release/tfcompile
