#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Speaks HTTP with ojs-shm-gateway of a built tree: run.sh [NAME_PART]
# Takes OJS_SHM_BIN_DIR from the environment, else build/bin (or OJS_SHM_BUILD).
# Prints a line for each test and ends with "HTTP: N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
root=$(cd ../../.. && pwd)
build=${OJS_SHM_BUILD:-$root/build}
export OJS_SHM_BIN_DIR=${OJS_SHM_BIN_DIR:-$build/bin} PYTHONDONTWRITEBYTECODE=1
unset OJS_SHM_NAME OJS_SHM_DIR
for needed in ojs-shm ojs-shm-broker ojs-shm-gateway; do
  if [[ ! -x $OJS_SHM_BIN_DIR/$needed ]]; then
    echo "$OJS_SHM_BIN_DIR/$needed is missing: build it, or set OJS_SHM_BIN_DIR" >&2
    exit 2
  fi
done
exec python3 ../python/lines.py "${1:-}" http
