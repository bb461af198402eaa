#!/usr/bin/env bash
# Builds the tool for other machines, with LLVM linked statically if its static libraries are
# installed, and packs it with files for build systems: an archive, a Debian package, the bill of
# materials, and the provenance of these files, all in target/package. Verifies that the unpacked
# archive builds a program that runs. Equal trees in different directories give equal files.
#   scripts/release.sh [TOOL]      TOOL: packs this tool instead of building one
set -eu

cd "$(dirname "$0")/.."
libdir=$(llvm-config-22 --libdir)
features=()
static=
if [ -e "$libdir/libLLVMCore.a" ] && llvm-config-22 --link-static --libs core >/dev/null 2>&1; then
  static=yes
  features=(-p codegen --features codegen/static-llvm)
else
  echo "release: LLVM's static libraries are not installed: linking dynamically"
fi
tool=${1:-}
if [ -z "$tool" ]; then
  . scripts/dist/reproducible.sh
  cargo build --release --locked -p cli "${features[@]}"
  tool=$CARGO_TARGET_DIR/release/tfcompile
fi

# Libraries on a machine without LLVM.
needed=$(readelf -d "$tool" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
if [ -n "$static" ]; then
  others=$(grep -vE '^(libc|libm|libgcc_s|ld-linux.*)\.so' <<<"$needed" || true)
  [ -z "$others" ] || { echo "release: the tool also needs" $others >&2; exit 1; }
fi

# Equal files yield equal archives: they have the time of the commit.
version=$("$tool" --version | cut -d' ' -f2)
name=tfcompile-$version-$(rustc -vV | sed -n 's/^host: //p')
rm -rf target/package
scripts/package.sh "$tool" "target/package/$name"
strip "target/package/$name/bin/tfcompile"
materials=()
scripts/dist/crate_licenses.py cli >"target/package/$name/LICENSE-CRATES.txt"
if [ -n "$static" ]; then
  scripts/dist/llvm_license.sh >"target/package/$name/LICENSE-LLVM.txt"
  materials=(--features codegen/static-llvm --static-llvm)
fi
scripts/dist/sbom.py "${materials[@]}" >"target/package/$name/share/tfcompile/sbom.cdx.json"
tar --sort=name --mtime="@$(git log -1 --format=%ct)" --owner=0 --group=0 --numeric-owner -C target/package -cf - "$name" | gzip -9n >"target/package/$name.tar.gz"

# In another directory, without this shell's variables.
elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
tar -xzf "target/package/$name.tar.gz" -C "$elsewhere"
cp examples/builds/{layer.pbtxt,layer.config.pbtxt,main.cc} "$elsewhere"
printed=$(cd "$elsewhere" && env -i PATH=/usr/bin:/bin bash -euc '
  */bin/tfcompile build layer.pbtxt --config=layer.config.pbtxt --class=example::Layer --quiet -o out
  c++ -std=c++17 -O2 -pthread -I out -I out/include main.cc out/layer.o -o main
  ./main')
[ "$printed" = $'23 24 33\n1 0 3' ] || { echo "release: the unpacked tool's program prints '$printed'" >&2; exit 1; }

files=("target/package/$name.tar.gz")
if command -v dpkg-deb >/dev/null; then
  deb=target/package/tfcompile_$version-1_$(dpkg --print-architecture).deb
  scripts/dist/deb.sh "target/package/$name" "$deb"
  files+=("$deb")
fi
scripts/dist/provenance.py "make release" "${files[@]}" >"target/package/$name.intoto.json"
echo "target/package/$name.tar.gz: $(($(stat -c %s "target/package/$name.tar.gz") / 1000000)) MB, unpacked $(du -sm --apparent-size "target/package/$name" | cut -f1) MB"
echo "needs: $(echo $needed), $(objdump -T "$tool" | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -n 1 | sed 's/_/ /') or newer"
echo "the unpacked tool builds a program that runs"
