#!/usr/bin/env bash
# Installs missing prerequisites with apt-get on Debian and its derivatives. On other systems,
# prints the missing packages.
#   scripts/setup.sh build|test|cross|c-source|builds|web|scale|release|venv
# `build`: the tool and its programs. `test`: the tests. `cross`: tests on all emulated machines.
# `c-source`: other C compilers. `builds`: all build systems. `web`: WebAssembly. `scale`: Spark.
# `venv`: Python environments.
set -eu

want=${1:-build}

# Tests for prerequisites, and the packages that provide them.
missing=()
need() { # need PACKAGE TEST...
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
have_llvm() {
  command -v llvm-config-22 && llvm-config-22 --version | grep -q '^22\.' && [ -e "$(llvm-config-22 --includedir)/llvm-c/Core.h" ]
}
have_browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; }
have_library() { # a library that the linker finds, by name
  local out=1 object
  object=$(mktemp)
  echo 'int main(void) { return 0; }' | cc -x c - -o "$object" "-l$1" && out=0
  rm -f "$object"
  return $out
}

need g++ command -v g++
need binutils command -v nm
need llvm-22-dev have_llvm
if command -v cc >/dev/null; then
  need zlib1g-dev have_library z
  need libzstd-dev have_library zstd
  need libxml2-dev have_library xml2
  need libffi-dev have_library ffi
  need libz3-dev have_library z3
else
  missing+=(zlib1g-dev libzstd-dev libxml2-dev libffi-dev libz3-dev)
fi
case $want in
  build) ;;
  release)
    need libpolly-22-dev test -e "$(llvm-config-22 --libdir 2>/dev/null || echo /nonexistent)/libPolly.a"
    ;;
  scale)
    need python3-venv python3 -c 'import ensurepip, venv'
    need openjdk-17-jre-headless command -v java
    ;;
  test | cross | c-source | builds | web | venv)
    need clang command -v clang++
    need libeigen3-dev test -d /usr/include/eigen3/Eigen
    need python3-venv python3 -c 'import ensurepip, venv'
    if [ "$want" != venv ]; then
      need qemu-user command -v qemu-aarch64
      need g++-aarch64-linux-gnu command -v aarch64-linux-gnu-g++
      need qemu-system-arm command -v qemu-system-arm
      need qemu-system-misc command -v qemu-system-riscv32
      need gcc-arm-none-eabi command -v arm-none-eabi-gcc
      need gcc-riscv64-unknown-elf command -v riscv64-unknown-elf-gcc
      need chromium have_browser
      need cmake command -v cmake
      need ninja-build command -v ninja
    fi
    if [ "$want" = web ] || [ "$want" = test ]; then
      need nodejs command -v node
      need clang-22 command -v clang++-22
      need lld-22 command -v wasm-ld-22
      need llvm-22 command -v llvm-nm-22
      need wasi-libc test -d /usr/include/wasm32-wasi
      need libc++-22-dev-wasm32 test -e /usr/lib/llvm-22/lib/wasm32-wasi/libc++.a
      need libclang-rt-22-dev-wasm32 test -e /usr/lib/llvm-22/lib/clang/22/lib/wasi/libclang_rt.builtins-wasm32.a
    fi
    if [ "$want" = builds ]; then
      need pkg-config command -v pkg-config
      need meson command -v meson
      need bazel-bootstrap command -v bazel
    fi
    if [ "$want" = c-source ]; then
      need tcc command -v tcc
      need gcc-arm-none-eabi command -v arm-none-eabi-gcc
      need libnewlib-arm-none-eabi test -d /usr/lib/arm-none-eabi/newlib
      need qemu-system-arm command -v qemu-system-arm
      need cppcheck command -v cppcheck
    fi
    if [ "$want" = cross ]; then
      need g++-arm-linux-gnueabihf command -v arm-linux-gnueabihf-g++
      need g++-riscv64-linux-gnu command -v riscv64-linux-gnu-g++
      need g++-mingw-w64-x86-64-posix command -v x86_64-w64-mingw32-g++-posix
      need wine64 env PATH="$PATH:/usr/lib/wine" which wine64
      need lld-22 command -v ld64.lld-22
    fi
    ;;
  *)
    echo "setup: unknown part '$want' (build, test, cross, c-source, builds, web, scale, release, venv)" >&2
    exit 2
    ;;
esac

if [ ${#missing[@]} -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    echo "setup: please install: a C++17 compiler, LLVM 22 with its development files (llvm-config-22 on PATH), zlib, zstd, libxml2, libffi, Z3; for the tests also clang, Eigen 3, Python 3 with venv, QEMU's user and system emulation, GCC for aarch64, bare ARM, and bare RISC-V, CMake and Ninja. Missing here, by Debian's names: ${missing[*]}" >&2
    exit 1
  fi
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
      echo "setup: please install as root: apt-get install ${missing[*]}" >&2
      exit 1
    }
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]} (apt-get)"
  log=$(mktemp)
  install() {
    "${as_root[@]}" apt-get -q update >"$log" 2>&1 &&
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1
  }
  install || {
    tail -n 20 "$log" >&2
    echo "setup: apt-get failed; LLVM 22 is in Debian 12's security archive and in later releases" >&2
    exit 1
  }
  rm -f "$log"
fi

command -v cargo >/dev/null && command -v rustc >/dev/null || {
  echo "setup: Rust is missing; install it from https://rustup.rs or your distribution (1.90 or newer), then run this again" >&2
  exit 1
}

# Adds a target of Rust's standard library, which Debian's packages have under other names.
if [ "$want" = web ]; then
  [ -d "$(rustc --print target-libdir --target wasm32-wasip1 2>/dev/null)" ] || {
    command -v rustup >/dev/null || {
      echo "setup: Rust's standard library for wasm32-wasip1 is missing; install rustup, or the package of your distribution (libstd-rust-dev-wasm32)" >&2
      exit 1
    }
    echo "setup: installing Rust's standard library for wasm32-wasip1 (rustup)"
    rustup --quiet target add wasm32-wasip1
  }
fi
