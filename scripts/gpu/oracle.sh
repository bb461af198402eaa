#!/usr/bin/env bash
# The oracle's runner for programs that run on an OpenCL device. `scripts/models.sh` calls it.
exec "$(dirname "$0")/../../target/release/oracle" "$@" --build --flag=--target=opencl
