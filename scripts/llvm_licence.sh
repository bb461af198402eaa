#!/usr/bin/env bash
# Prints the path of LLVM's terms, which go with whatever has LLVM inside.
set -eu

for file in "$(llvm-config-22 --prefix)/share/doc/LICENSE.TXT" /usr/share/doc/llvm-22/copyright /usr/share/doc/llvm-22-dev/copyright; do
  if [ -e "$file" ]; then
    echo "$file"
    exit 0
  fi
done
echo "llvm_licence: LLVM's licence is not beside it: put its LICENSE.TXT into $(llvm-config-22 --prefix)/share/doc" >&2
exit 1
