#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Holds the documents against a built tree: run.sh [NAME_PART]. Every program and every shell block of README, tutorial and
# the page of the C++ API is run as it stands; flags in tables are compared with --help, Python's options with signatures.
# Prints a line for each test and ends with "PAGES: N passed, N failed, N skipped".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export OJS_SHM_BUILD=${OJS_SHM_BUILD:-$(cd ../../.. && pwd)/build} PYTHONDONTWRITEBYTECODE=1
unset OJS_SHM_NAME OJS_SHM_DIR
exec python3 pages.py "${1:-}"
