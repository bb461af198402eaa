#!/bin/sh
# Compiles the model to C source, which the compiler of any board with 32-bit addresses compiles.
# Then install this directory as a library: arduino-cli lib install --git-url, or a link to it in
# the sketchbook's libraries.
set -eu
cd "$(dirname "$0")"
"${TFCOMPILE:-tfcompile}" build @MODEL@ @CONFIG@ --emit c,c-header --c-vectors none --target cortex-m4f --name @NAME@ --output src
