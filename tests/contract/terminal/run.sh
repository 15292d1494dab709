#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Drives ojs-shm-top through a pseudo-terminal against a built tree: run.sh [NAME_PART]
# UPDATE_GOLDEN=1 writes the golden screens anew. Takes OJS_SHM_BIN_DIR from the environment, else build/bin (or OJS_SHM_BUILD).
# Prints a line for each test and ends with "TERMINAL: N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
root=$(cd ../../.. && pwd)
build=${OJS_SHM_BUILD:-$root/build}
export OJS_SHM_BIN_DIR=${OJS_SHM_BIN_DIR:-$build/bin} PYTHONDONTWRITEBYTECODE=1
export OJS_SHM_LIBRARY=${OJS_SHM_LIBRARY:-$build/lib/libojs_shm.so} PYTHONPATH=$root/worker_api/python
unset OJS_SHM_NAME OJS_SHM_DIR NO_COLOR
python=/usr/bin/python3 # the system's own: python3-pyte and python3-jsonschema belong to it
[[ -x $python ]] || python=python3
if [[ ! -x $OJS_SHM_BIN_DIR/ojs-shm-top ]]; then
  echo "$OJS_SHM_BIN_DIR/ojs-shm-top is missing: build it, or set OJS_SHM_BIN_DIR" >&2
  exit 2
fi
if ! "$python" -c 'import pyte, jsonschema' 2>/dev/null; then
  echo "ok terminal # NOT RUN python3-pyte or python3-jsonschema is missing"
  echo "TERMINAL: 0 passed, 0 failed, 1 skipped"
  exit 0
fi
"$python" ../python/lines.py "${1:-}" terminal
