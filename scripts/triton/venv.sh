#!/usr/bin/env bash
# Creates a Python environment with Triton Inference Server and its client if it does not exist, and
# prints the path of its interpreter. The server's package requires more than the server needs.
set -eu

exec "$(dirname "$0")/../venv.sh" venv-triton numpy==1.26.4 'tritonclient[http]==2.51.0' --no-deps nvidia-pytriton==0.7.0
