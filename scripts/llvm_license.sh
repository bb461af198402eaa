#!/usr/bin/env bash
# Prints the terms of LLVM and of what it has inside where it is linked statically (zlib, Zstandard): they go with the result.
set -eu

print_first() { # print_first NAME FILE...: the first of the files that is there
  local name=$1 file
  shift
  for file; do
    if [ -e "$file" ]; then
      printf '==== %s ====\n\n' "$name"
      cat "$file"
      echo
      return
    fi
  done
  echo "llvm_license: the terms of $name are not here; put them into one of: $*" >&2
  exit 1
}

doc=/usr/share/doc
print_first LLVM "$(llvm-config-22 --prefix)/share/doc/LICENSE.TXT" $doc/llvm-22/copyright $doc/llvm-22-dev/copyright
print_first zlib $doc/zlib1g-dev/copyright $doc/zlib/LICENSE
print_first Zstandard $doc/libzstd-dev/copyright $doc/zstd/LICENSE
