#!/usr/bin/env bash
# Compiles recorded graphs for other machines, links programs around them with Debian's cross
# compilers, runs them in an emulator, and compares with TensorFlow's recorded answers.
#   scripts/test_cross.sh TARGET...
# Targets: aarch64, armv7, riscv64, riscv64-v, x86-64 (levels of one object), x86_64-windows (in
# Wine), and with longer vectors aarch64-sve256, aarch64-sve512, riscv64-v256. ORACLE, TOOL, GRAPHS,
# MODELS, VERBOSE, and LIMIT are as in scripts/oracle_checks.sh.
set -eu

. scripts/oracle_checks.sh tfcompile_tests

run() { # run NAME FLAG...
  echo "== $1"
  shift
  judge "$@"
}
cross() { # cross TARGET COMPILER EMULATOR FLAG...
  local target=$1 compiler=$2 emulator=$3
  shift 3
  with_flags "$target" "$compiler" "$emulator" --flag=--target="$target" "$@"
}
with_flags() { # with_flags NAME COMPILER EMULATOR FLAG...
  local name=$1 compiler=$2 emulator=$3
  shift 3
  run "$name" --cxx "$compiler-g++" --nm "$compiler-nm" --run "$emulator -L /usr/$compiler" "$@"
}
long_vectors() { # long_vectors NAME COMPILER EMULATOR PROCESSOR FEATURES
  with_flags "$1" "$2" "$3" --flag=--target-triple="${2/-linux/-unknown-linux}" --flag=--target-cpu="$4" \
    --flag=--target-features="$5"
}

for target in "$@"; do
  case $target in
    aarch64) cross aarch64-linux aarch64-linux-gnu qemu-aarch64 ;;
    aarch64-sve256) long_vectors $target aarch64-linux-gnu 'qemu-aarch64 -cpu max,sve-default-vector-length=32' neoverse-v1 '' ;;
    aarch64-sve512) long_vectors $target aarch64-linux-gnu 'qemu-aarch64 -cpu max,sve-default-vector-length=64' a64fx '' ;;
    armv7) cross armv7-linux arm-linux-gnueabihf qemu-arm ;;
    riscv64) cross riscv64-linux riscv64-linux-gnu qemu-riscv64 ;;
    riscv64-v) cross riscv64-linux-v riscv64-linux-gnu 'qemu-riscv64 -cpu rv64,v=true,vlen=128,vext_spec=v1.0' ;;
    riscv64-v256)
      long_vectors $target riscv64-linux-gnu 'qemu-riscv64 -cpu rv64,v=true,vlen=256,vext_spec=v1.0' '' \
        +m,+a,+f,+d,+c,+v,+zvl256b
      ;;
    x86-64)
      # The version for the oldest processors, the first one with wide vectors, and the best one for
      # this machine.
      levels=(--flag=--target=x86-64 --flag=--multiversion=v1,v2,v3,v4)
      run 'x86-64, v1' "${levels[@]}" --run 'qemu-x86_64 -cpu Conroe'
      run 'x86-64, v2' "${levels[@]}" --run 'qemu-x86_64 -cpu Nehalem'
      run 'x86-64, v3' "${levels[@]}" --run 'qemu-x86_64 -cpu Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid'
      run 'x86-64, this machine' "${levels[@]}"
      ;;
    x86_64-windows)
      # Wine's files are about 700 MB.
      export WINEPREFIX=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models/wine WINEDEBUG=-all
      mkdir -p "$(dirname "$WINEPREFIX")"
      # Linkers define `_fltused`, which marks code with floating-point numbers.
      run "$target" --flag=--target="$target" --cxx x86_64-w64-mingw32-g++ --cxx-flag=-static \
        --nm x86_64-w64-mingw32-nm --undefined _fltused --run "$(PATH=$PATH:/usr/lib/wine command -v wine64)"
      ;;
    *)
      echo "test_cross: unknown target '$target'" >&2
      exit 2
      ;;
  esac
done
