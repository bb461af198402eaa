#!/usr/bin/env bash
# Installs what GPU code is tested with on machines without a GPU, and prints shell assignments for
# callers: eval "$(scripts/setup_gpu.sh)".
#   scripts/setup_gpu.sh [opencl|opencl-c|cuda|all]
# `opencl`: Intel's OpenCL runtime for processors, and the loader libOpenCL.so.1 of Debian.
#   OCL_ICD_VENDORS   folder that names the runtime to the loader
#   LD_LIBRARY_PATH   libraries of the runtime, before those already in the variable
# `opencl-c`: PoCL, an OpenCL runtime for processors without SPIR-V, and the simulator Oclgrind,
# from Debian's packages.
#   TFCOMPILE_POCL       file that names PoCL to the loader
#   TFCOMPILE_OCLGRIND   library of Oclgrind
# `cuda`: NVIDIA's assembler.
#   TFCOMPILE_PTXAS   path of ptxas
# Both are in ~/.cache/tfcompile. TFCOMPILE_WHEELS names a folder to take wheels from, without the
# network. Returns at once if everything is installed.
set -eu

want=${1:-all}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile
opencl_packages="intel-opencl-rt==2026.2.0 intel-cmplr-lib-rt==2026.2.0 tbb==2023.2.0 tcmlib==1.6.0 umf==1.2.0"
cuda_packages="nvidia-cuda-nvcc-cu12==12.9.86"

case $want in
  opencl | opencl-c | cuda | all) ;;
  *)
    echo "setup_gpu: unknown part '$want' (opencl, opencl-c, cuda, all)" >&2
    exit 2
    ;;
esac

install() { # install FOLDER PACKAGE...
  local venv=$1 python=
  shift
  [ "$(cat "$venv/.packages" 2>/dev/null)" != "$*" ] || return 0
  for candidate in ${TFCOMPILE_PYTHON:-} python3.11 python3.10 python3; do
    if command -v "$candidate" >/dev/null && "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
      python=$candidate
      break
    fi
  done
  [ -n "$python" ] || {
    echo "setup_gpu: no Python with the venv module: install python3-venv" >&2
    return 1
  }
  echo "setup_gpu: installing $* (once)" >&2
  rm -rf "$venv"
  mkdir -p "$cache"
  "$python" -m venv "$venv" >&2
  # The packages contain only libraries and programs, whose dependencies are all listed here.
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    ${TFCOMPILE_WHEELS:+--no-index --find-links "$TFCOMPILE_WHEELS"} "$@" >&2
  echo "$*" >"$venv/.packages"
}

as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo)
add_packages() { # add_packages PACKAGE...
  echo "setup_gpu: installing $* (apt-get)" >&2
  { "${as_root[@]}" apt-get -q update &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "$@"; } >&2
}

if [ "$want" = opencl-c ]; then
  pocl=/etc/OpenCL/vendors/pocl.icd oclgrind=/usr/lib/oclgrind/liboclgrind-rt.so
  if [ ! -e $pocl ] || [ ! -e $oclgrind ]; then
    add_packages ocl-icd-libopencl1 pocl-opencl-icd oclgrind || {
      echo "setup_gpu: PoCL and Oclgrind are missing: install pocl-opencl-icd and oclgrind" >&2
      exit 1
    }
  fi
  printf 'TFCOMPILE_POCL=%q\nTFCOMPILE_OCLGRIND=%q\n' $pocl $oclgrind
  exit 0
fi

have_loader() { ldconfig -p 2>/dev/null | grep -q 'libOpenCL\.so\.1'; }

if [ "$want" != cuda ]; then
  if ! have_loader && command -v apt-get >/dev/null; then
    add_packages ocl-icd-libopencl1
  fi
  have_loader || {
    echo "setup_gpu: libOpenCL.so.1 is missing: install an OpenCL loader (ocl-icd-libopencl1 on Debian)" >&2
    exit 1
  }
  venv=$cache/opencl-venv
  # shellcheck disable=SC2086
  install "$venv" $opencl_packages
  vendors=$venv/vendors
  library=$(readlink -f "$venv/lib/libintelocl.so")
  # The package's own file names a path of the machine that built it.
  if [ "$(cat "$vendors/intel_cpu.icd" 2>/dev/null)" != "$library" ]; then
    mkdir -p "$vendors"
    echo "$library" >"$vendors/intel_cpu.icd"
  fi
  printf 'OCL_ICD_VENDORS=%q\n' "$vendors"
  printf 'LD_LIBRARY_PATH=%q\n' "$venv/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi

if [ "$want" != opencl ]; then
  venv=$cache/cuda-venv
  # shellcheck disable=SC2086
  install "$venv" $cuda_packages
  ptxas=$(find "$venv" -path '*/bin/ptxas' -type f | head -n 1)
  [ -x "$ptxas" ] || {
    echo "setup_gpu: $venv has no ptxas" >&2
    exit 1
  }
  printf 'TFCOMPILE_PTXAS=%q\n' "$ptxas"
fi
