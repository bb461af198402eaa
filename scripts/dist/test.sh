#!/usr/bin/env bash
# Installs each package that `make release` and `make wheel` wrote in a fresh Debian, and uses it
# there: the archive, the Debian package, the wheel, the container image, and the Rust crates, which
# this script packs. Checks that the provenance has the hashes of what it installs. Needs root,
# debootstrap, and buildah. `make test-packages` runs it.
#   scripts/dist/test.sh [archive] [deb] [wheel] [image] [crates]
# DEBIAN_MIRROR=URL: another server of Debian's packages. DEBIAN_SECURITY=URL: and of those of its
# security archive, if that is not beside it.
set -eu

cd "$(dirname "$0")/../.."
package=$PWD/target/package
parts=${*:-archive deb wheel image crates}
[ "$(id -u)" = 0 ] || { echo "test-packages: run as root: it makes roots of file systems" >&2; exit 1; }
for tool in debootstrap buildah; do
  command -v $tool >/dev/null || { echo "test-packages: please install $tool" >&2; exit 1; }
done
work=$(mktemp -d)
# A root without mounts can be removed.
trap 'grep -q " $work/" /proc/mounts || rm -rf "$work"' EXIT

echo "packages: a fresh Debian (once)"
debootstrap --variant=minbase --include=ca-certificates bookworm "$work/base" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$work/log" || { tail -n 20 "$work/log"; exit 1; }
[ ! -d /etc/apt/apt.conf.d ] || cp /etc/apt/apt.conf.d/*proxy* "$work/base/etc/apt/apt.conf.d/" 2>/dev/null || true
fresh() { # fresh NAME: prints a new root, with a model
  cp -a "$work/base" "$work/$1"
  mkdir -p "$work/$1/test"
  cp examples/builds/{layer.pbtxt,layer.config.pbtxt,main.cc} "$work/$1/test"
  echo "$work/$1"
}
# Programs such as rustc find their libraries by /proc. The mount ends with the script.
inside() { # inside ROOT SCRIPT: runs a script in the root
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive \
    unshare --mount bash -euc 'mount -t proc proc "$1/proc"; exec chroot "$1" bash -euc "cd /test; $2"' - "$1" "$2" \
    >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
}
stated() { # stated FILE STATEMENT: fails unless the provenance has the hash of the file
  grep -q "\"$(sha256sum "$1" | cut -d' ' -f1)\"" "$2" || { echo "test-packages: $2 does not have the hash of $1" >&2; exit 1; }
}
install='apt-get -q update; apt-get -q install --yes --no-install-recommends'
build='build layer.pbtxt --config=layer.config.pbtxt --class=example::Layer --quiet -o out'
# A hand-computed result: see examples/builds.
check='g++ -std=c++17 -O2 -pthread -I out -I out/include main.cc out/layer.o -o main; [ "$(./main)" = "$(printf "23 24 33\n1 0 3")" ]'

for part in $parts; do
  case $part in
    archive)
      root=$(fresh archive)
      stated "$package"/tfcompile-*.tar.gz "$package"/tfcompile-*.intoto.json
      cp "$package"/tfcompile-*.tar.gz "$root/test"
      inside "$root" "$install g++; tar -xzf tfcompile-*.tar.gz; ./tfcompile-*/bin/tfcompile $build; $check
        for file in man/man1/tfcompile-build.1 bash-completion/completions/tfcompile zsh/site-functions/_tfcompile \
          fish/vendor_completions.d/tfcompile.fish tfcompile/sbom.cdx.json; do test -s tfcompile-*/share/\$file; done"
      ;;
    deb)
      root=$(fresh deb)
      stated "$package"/tfcompile_*.deb "$package"/tfcompile-*.intoto.json
      cp "$package"/tfcompile_*.deb "$root/test"
      cp -r examples/builds/cmake "$root/test/project" 2>/dev/null || true
      inside "$root" "$install ./tfcompile_*.deb g++ cmake make pkg-config man-db bash-completion
        tfcompile $build; $check
        # As build systems find it.
        g++ -std=c++17 \$(pkg-config --cflags tfcompile) -I out main.cc out/layer.o \$(pkg-config --libs tfcompile) -o main2; ./main2
        printf '%s\n' 'cmake_minimum_required(VERSION 3.20)' 'project(p CXX)' 'find_package(tfcompile REQUIRED)' \
          'tf_library(NAME layer GRAPH layer.pbtxt CONFIG layer.config.pbtxt CPP_CLASS example::Layer)' \
          'add_executable(p main.cc)' 'target_link_libraries(p layer)' >CMakeLists.txt
        cmake -S . -B b; cmake --build b; [ \"\$(b/p)\" = \"\$(./main)\" ]
        test -s /usr/share/man/man1/tfcompile-build.1.gz
        source /usr/share/bash-completion/bash_completion
        _completion_loader tfcompile || true; complete -p tfcompile
        test -s /usr/lib/tfcompile/share/tfcompile/sbom.cdx.json
        apt-get -q remove --yes tfcompile; ! test -e /usr/bin/tfcompile; ! test -e /usr/lib/tfcompile"
      ;;
    wheel)
      root=$(fresh wheel)
      wheel=$(ls -t target/wheels/tfcompile-*.whl | head -n 1)
      stated "$wheel" "${wheel%.whl}.intoto.json"
      cp "$wheel" "$root/test"
      cp scripts/dist/use_wheel.py "$root/test"
      inside "$root" "$install python3 python3-venv python3-numpy; python3 -m venv --system-site-packages v; v/bin/pip -q install --no-index ./tfcompile-*.whl; v/bin/python use_wheel.py"
      ;;
    image)
      # The image's base is the fresh Debian; the steps are those of the file.
      storage=(--root "$work/storage" --runroot "$work/run" --storage-driver vfs)
      base=$(buildah "${storage[@]}" from scratch)
      buildah "${storage[@]}" add -q "$base" "$work/base" / >"$work/log"
      buildah "${storage[@]}" commit -q "$base" localhost/base >"$work/log"
      buildah "${storage[@]}" build -q --isolation chroot --build-arg BASE=localhost/base -f build_systems/Dockerfile \
        -t localhost/tfcompile . >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
      container=$(buildah "${storage[@]}" from localhost/tfcompile)
      buildah "${storage[@]}" copy -q "$container" examples/builds /work >"$work/log"
      # shellcheck disable=SC2086
      buildah "${storage[@]}" run --isolation chroot "$container" -- tfcompile $build
      buildah "${storage[@]}" run --isolation chroot "$container" -- bash -euc "$check"
      buildah "${storage[@]}" rm --all >/dev/null
      ;;
    crates)
      # They need LLVM 22, which is in Debian's security archive, and a newer Rust than Debian's:
      # the one of this machine. The program's build script runs the tool of the Debian package.
      root=$(fresh crates)
      scripts/dist/crates.py "$work/packed"
      scripts/dist/use_crates.sh "$work/packed" "$root/test/program" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
      mkdir "$root/rust"
      cp -a "$(rustc --print sysroot)"/{bin,lib} "$root/rust"
      cp "$package"/tfcompile_*.deb scripts/setup.sh "$root/test"
      security=${DEBIAN_SECURITY:-$(sed -nE 's|^deb ([^ ]+/debian) .*|\1-security|p' "$root/etc/apt/sources.list" | head -n 1)}
      echo "deb $security bookworm-security main" >"$root/etc/apt/sources.list.d/security.list"
      inside "$root" "PATH=/rust/bin:\$PATH; $install ./tfcompile_*.deb; ./setup.sh build; cd program; cargo run --quiet --offline"
      ;;
    *)
      echo "test-packages: unknown part '$part'" >&2
      exit 2
      ;;
  esac
  echo "packages: $part installed and used"
done
