#!/bin/sh
# Builds, checks and times the kernels on this machine's GPU, in under 5 minutes.
# Needs a Python with torch, triton, safetensors, tokenizers and jinja2: PYTHON=/path/to/python tests/gpu/run.sh
set -eu
cd "$(dirname "$0")/../.."
unset TRITON_INTERPRET
exec "${PYTHON:-python3}" -u tests/gpu/run.py
