#!/usr/bin/env bash
# Builds the Python package's wheel into target/wheels, and states its provenance beside it. Links
# LLVM statically if its static libraries are installed, and then includes its license.
#   scripts/wheel.sh [--dev]
# --dev: development profile, dynamically linked LLVM, no provenance: for tests on this machine.
set -eu

cd "$(dirname "$0")/.."
python=$(scripts/venv.sh venv-wheel maturin==1.16.0 auditwheel==6.8.2 wheel==0.47.0)
out=${CARGO_TARGET_DIR:-target}/wheels
arguments=(--out "$out" --manifest-path python/Cargo.toml --auditwheel skip)
libdir=$(llvm-config-22 --libdir)
static=
if [ "${1:-}" = --dev ]; then
  arguments+=(--profile dev)
elif [ -e "$libdir/libLLVMCore.a" ] && llvm-config-22 --link-static --libs core >/dev/null 2>&1; then
  static=yes
  arguments+=(--release --features static-llvm)
else
  echo "wheel: LLVM's static libraries are not installed: linking dynamically"
  arguments+=(--release)
fi

if [ "${1:-}" = --dev ]; then
  # Shares the tool's build directory, for common dependencies.
  export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
else
  # Shares that of `make release`.
  . scripts/dist/reproducible.sh
fi

# Binaries must include the licenses of LLVM and of the crates that they contain.
scripts/dist/llvm_license.sh >python/LICENSE-LLVM.txt
scripts/dist/crate_licenses.py tfcompile-python --manifest python/Cargo.toml >python/LICENSE-CRATES.txt
cp LICENSE python/LICENSE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
scripts/dist/sbom.py --package tfcompile-python ${static:+--features static-llvm --static-llvm} >"$work/tfcompile.cdx.json"
arguments+=(--sbom-include "$work/tfcompile.cdx.json")

"$python" -m maturin build "${arguments[@]}"
wheel=$(ls -t "$out"/tfcompile-*.whl | head -n 1)
report=$("$python" -m auditwheel show "$wheel")
# The name makes pip on an older system reject the wheel before anything fails to load.
tag=$(grep -oE 'manylinux_[0-9]+_[0-9]+_[a-z0-9_]+' <<<"$report" | head -n 1 || true)
if [ -n "$static" ] && [ -n "$tag" ]; then
  wheel=$out/$("$python" -m wheel tags --remove --platform-tag "$tag" "$wheel")
fi
[ "${1:-}" = --dev ] || scripts/dist/provenance.py "make wheel" "$wheel" >"${wheel%.whl}.intoto.json"
echo "$report"
echo "$wheel: $(($(stat -c %s "$wheel") / 1000000)) MB"
