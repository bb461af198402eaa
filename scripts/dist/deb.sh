#!/usr/bin/env bash
# Packs a directory that scripts/package.sh laid out as a Debian package. The directory is installed
# in /usr/lib/tfcompile as it is; the tool, its manual pages, completions, and files for CMake and
# pkg-config are where Debian's programs look for them.
#   scripts/dist/deb.sh DIRECTORY OUT.deb
set -eu

here=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(realpath "$1")
out=$(realpath -m "$2")
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
# Files have the time of the commit, so that equal trees yield equal packages.
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$here" log -1 --format=%ct)}

version=$("$tree/bin/tfcompile" --version | cut -d' ' -f2)
place=$stage/usr/lib/tfcompile
mkdir -p "$place" "$stage/DEBIAN" "$stage/usr/bin"
cp -r "$tree/." "$place"
ln -s ../lib/tfcompile/bin/tfcompile "$stage/usr/bin/tfcompile"
move() { # move FROM TO: moves a directory to where Debian expects it
  mkdir -p "$(dirname "$stage/usr/$2")"
  mv "$place/$1" "$stage/usr/$2"
}
move share/man share/man
move share/bash-completion share/bash-completion
move share/zsh/site-functions share/zsh/vendor-completions
move share/fish share/fish
rmdir "$place/share/zsh"
find "$stage/usr/share/man" -type f -exec gzip -9n {} +
mkdir -p "$stage/usr/lib/cmake/tfcompile" "$stage/usr/lib/pkgconfig"
echo 'include("${CMAKE_CURRENT_LIST_DIR}/../../tfcompile/lib/cmake/tfcompile/tfcompileConfig.cmake")' \
  >"$stage/usr/lib/cmake/tfcompile/tfcompileConfig.cmake"
mv "$place/lib/cmake/tfcompile/tfcompileConfigVersion.cmake" "$stage/usr/lib/cmake/tfcompile"
sed 's|^prefix=.*|prefix=${pcfiledir}/../tfcompile|' "$place/lib/pkgconfig/tfcompile.pc" >"$stage/usr/lib/pkgconfig/tfcompile.pc"
rm -r "$place/lib/pkgconfig"

doc=$stage/usr/share/doc/tfcompile
mkdir -p "$doc"
{
  echo "tfcompile is under the Apache License 2.0 (/usr/share/common-licenses/Apache-2.0)."
  for license in "$tree"/LICENSE-*.txt; do
    [ ! -e "$license" ] || { echo; cat "$license"; }
  done
} >"$doc/copyright"
gzip -9nc "$here/CHANGELOG.md" >"$doc/changelog.gz"
maintainer="The tfcompile authors <tfcompile@example.org>"
printf 'tfcompile (%s-1) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n' "$version" "$maintainer" \
  "$(LC_ALL=C date -u -R -d "@$epoch")" | gzip -9n >"$doc/changelog.Debian.gz"

# The C library that the tool was linked with, or a newer one.
glibc=$(objdump -T "$tree/bin/tfcompile" | grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -n 1 | cut -d_ -f2)
find "$stage" -type d -exec chmod 755 {} +
cat >"$stage/DEBIAN/control" <<END
Package: tfcompile
Version: $version-1
Architecture: $(dpkg --print-architecture)
Maintainer: $maintainer
Installed-Size: $(du -sk --apparent-size "$stage/usr" | cut -f1)
Depends: libc6 (>= $glibc), libgcc-s1
Suggests: g++, cmake, pkg-config
Section: devel
Priority: optional
Description: ahead-of-time compiler for TensorFlow, JAX, and ONNX models
 Compiles a model into an object file and a header for C, C++, and Rust,
 or a module for browsers. Programs need no library at run time.
END
(cd "$stage" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
find "$stage" -exec touch -h -d "@$epoch" {} +
SOURCE_DATE_EPOCH=$epoch dpkg-deb --root-owner-group -Zxz --build "$stage" "$out" >/dev/null
echo "$out: $(($(stat -c %s "$out") / 1000000)) MB"
