#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: hashes 5,000 real files through killed workers, also in workflows, and compares every digest (--files N, --kills N)
# NEEDS: build
# IN-TEST: --files 600 --kills 5
. "$(dirname "$0")/../lane.sh"
lane demo
build_tree default ojs_shm_programs || finish
log=build/demo.log
timeout --kill-after=10 290 "$PYTHON" tools/dev/demo/demo.py --bin build/bin "$@" </dev/null 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
pass "$(grep -c '^  ok  ' "$log")"
while IFS= read -r line; do fail "${line#  FAILED  }"; done < <(grep '^  FAILED  ' "$log")
if [[ $status != 0 ]] && ! grep -q '^  FAILED  ' "$log"; then fail "the demonstration ended with status $status"; fi
finish
