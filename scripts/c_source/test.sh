#!/usr/bin/env bash
# Tests C source (`build --emit c`): recorded cases and small models with several C compilers.
#   scripts/c_source/test.sh sample|all
# The tools are those of `make tools`. `all` runs every case of tests/conformance, and needs the
# models of `make test-small-models`.
set -eu

cd "$(dirname "$0")/../.."
part=$1
tool=${TFCOMPILE:-target/release/tfcompile}
runner=${CONFORMANCE:-target/release/conformance}
judge=${ORACLE:-target/release/oracle}
shared=${TFCOMPILE_SHARED:-../shared}
models=${XDG_CACHE_HOME:-$HOME/.cache}/tfcompile-models/graphs
warnings="-std=c11 -Wall -Wextra -Wconversion -pedantic"

# The name of a command, or nothing with a note if it is not installed.
clang=$(command -v clang-22 || command -v clang)
have() { command -v "$1" >/dev/null || { echo "c_source: skipped $1, which is not installed"; return 1; }; }

vectors() { "$runner" tests/conformance "$@" | tail -n 1; }
# Compilers for plain C: with checks of undefined behavior, small, and for microcontrollers.
compilers=("gcc $warnings -Werror -O1 -fsanitize=undefined -fno-sanitize-recover=all" "$clang $warnings -Werror -O1 -fsanitize=undefined -fsanitize-trap=undefined")
! have tcc || compilers+=(tcc)
if have arm-none-eabi-gcc && have qemu-system-arm; then
  compilers+=("arm-none-eabi-gcc $warnings -Werror -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -O2"
    "arm-none-eabi-gcc $warnings -Werror -mcpu=cortex-m7 -mthumb -mfloat-abi=hard -mfpu=fpv5-d16 -O2")
fi

if [ "$part" = sample ]; then
  vectors --sample 20 --c-source "gcc $warnings -Wno-psabi -O1 -mavx2 -mfma"
  vectors --sample 17 --plain-c --c-source "$clang $warnings -O1"
  "$judge" tests/oracle tfmatmul tftop_k --tool "$tool" --c-source "gcc $warnings -O2" | tail -n 1
  scripts/c_source/cases.py "$tool" tests/conformance --count 5 "${compilers[@]}"
  exit
fi
vectors --c-source "gcc $warnings -Wno-psabi -O2 -mavx2 -mfma"
vectors --c-source "$clang $warnings -O1 -mavx2 -mfma"
vectors --sample 300 --c-source "gcc $warnings -Wno-psabi -O1"
vectors --sample 300 --plain-c --c-source "gcc $warnings -O1"
scripts/c_source/cases.py "$tool" tests/conformance "${compilers[@]}"
"$judge" tests/oracle --tool "$tool" --threads=2 --c-source "gcc $warnings -O2" | tail -n 1
small="mlp dscnn_kws resnet8_cifar autoencoder_ad mobilenet_v1_025_96 lstm_train_b32 resnet8_train_b32"
# Programs of models, with recorded answers, also on threads.
# shellcheck disable=SC2086
[ ! -d "$shared/oracle" ] || "$judge" "$shared/oracle" $(printf 'models/%s ' $small) --models "$models" --tool "$tool" --threads=2 \
  --c-source "gcc $warnings -Wno-psabi -O2 -mavx2 -mfma"
for kind in gcc none; do
  # shellcheck disable=SC2086
  scripts/bench/c_source.py "$tool" "$models" $small --vectors $kind --seconds 0.2
done
if have cppcheck; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  for model in mlp dscnn_kws lstm_train_b32; do
    "$tool" build "$models/$model/graph.pb" --config "$models/$model/config.pbtxt" --name "$model" --emit c --c-vectors none \
      --constants file --quiet -o "$work"
    cppcheck --addon=misra --std=c11 --enable=style --quiet "$work/$model.c" 2>&1 | grep -o 'misra-c2012-[0-9.]*' || true
  done | sort -u >"$work/rules"
  while read -r rule; do
    grep -qF "| ${rule#misra-c2012-} |" docs/c-source.md || { echo "c_source: docs/c-source.md does not list $rule"; exit 1; }
  done <"$work/rules"
  echo "MISRA C: $(wc -l <"$work/rules") rules with deviations, all of which are listed"
fi
