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
tool=${CARGO_TARGET_DIR:-target}/release/tfcompile
ls -l "$tool"

# What a machine without LLVM has.
if [ ${#features[@]} -gt 0 ] && command -v readelf >/dev/null; then
  others=$(readelf -d "$tool" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libgcc_s|ld-linux.*)\.so' || true)
  [ -z "$others" ] || { echo "release: the tool also needs" $others >&2; exit 1; }
fi

# An archive that differs only if its files do.
version=$("$tool" --version | cut -d' ' -f2)
name=tfcompile-$version-$(rustc -vV | sed -n 's/^host: //p')
rm -rf target/package
scripts/package.sh "$tool" "target/package/$name"
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C target/package -czf "target/package/$name.tar.gz" "$name"
ls -l "target/package/$name.tar.gz"
