#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests the Python package against a built tree: run.sh [NAME_PART]
# Takes OJS_SHM_LIBRARY and OJS_SHM_BIN_DIR from the environment, else from build/ (or OJS_SHM_BUILD).
# Prints a line for each test and ends with "PYTHON: N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
root=$(cd ../../.. && pwd)
build=${OJS_SHM_BUILD:-$root/build}
export OJS_SHM_LIBRARY=${OJS_SHM_LIBRARY:-$build/lib/libojs_shm.so}
export OJS_SHM_BIN_DIR=${OJS_SHM_BIN_DIR:-$build/bin}
export PYTHONPATH=$root/worker_api/python PYTHONDONTWRITEBYTECODE=1
unset OJS_SHM_NAME OJS_SHM_DIR
for needed in "$OJS_SHM_LIBRARY" "$OJS_SHM_BIN_DIR/ojs-shm-broker"; do
  if [[ ! -e $needed ]]; then
    echo "$needed is missing: build it, or set OJS_SHM_LIBRARY and OJS_SHM_BIN_DIR" >&2
    exit 2
  fi
done
exec python3 lines.py "${1:-}"
