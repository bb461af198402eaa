#!/bin/sh
# Compiles the model for the page. Any static server serves this directory then.
set -eu
cd "$(dirname "$0")"
"${TFCOMPILE:-tfcompile}" build @MODEL@ @CONFIG@ --target wasm32 --name @NAME@ --output .
