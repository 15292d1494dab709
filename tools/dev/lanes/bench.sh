#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: measures against the other queues and the targets: [--quick] [--only NAME] [--rounds N] (about ten minutes)
# NEEDS: build bench
# IN-TEST: --quick
. "$(dirname "$0")/../lane.sh"
lane bench
build_tree default ojs_shm_bench || finish
tally=build/bench-tally.txt
rm -f "$tally"
"$PYTHON" bench/report.py --tally "$tally" "$@" || fail "bench/report.py $*"
if [[ -s $tally ]]; then
  {
    read -r passed failed skipped
    mapfile -t notes
  } <"$tally"
  PASSED=$((PASSED + passed)) FAILED=$((FAILED + failed)) SKIPPED=$((SKIPPED + skipped)) NOTES+=("${notes[@]}")
fi
finish
