#!/usr/bin/env bash
# Prints the licenses of LLVM and of the libraries linked with it statically (zlib, Zstandard,
# libffi, libxml2), which accompany binaries.
set -eu

print_first() { # print_first NAME FILE...: prints the first existing file
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
  echo "llvm_license: missing license of $name: provide one of these files: $*" >&2
  exit 1
}

doc=/usr/share/doc
print_first LLVM "$(llvm-config-22 --prefix)/share/doc/LICENSE.TXT" $doc/llvm-22/copyright $doc/llvm-22-dev/copyright
print_first zlib $doc/zlib1g-dev/copyright $doc/zlib/LICENSE
print_first Zstandard $doc/libzstd-dev/copyright $doc/zstd/LICENSE
print_first libffi $doc/libffi-dev/copyright $doc/libffi/LICENSE
print_first libxml2 $doc/libxml2-dev/copyright $doc/libxml2/Copyright
