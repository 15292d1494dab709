#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: measures against the other queues and the targets: [--quick] [--only NAME] [--rounds N] (a quarter of an hour)
# NEEDS: build bench
# IN-TEST: --quick
. "$(dirname "$0")/../lane.sh"
if [[ " $* " == *" --help "* || " $* " == *" -h "* ]]; then
  "$PYTHON" bench/report.py --help
  printf '\n--only overload: only producers at ten times the worker'"'"'s speed, bench/overload.py\n'
  exit 0
fi
lane bench
build_tree default ojs_shm_bench ojs_shm_overload ojs-shm-gateway || finish
tally=build/bench-tally.txt
rm -f "$tally"
quick=$([[ " $* " == *" --quick "* ]] && echo --quick)
if [[ " $* " != *" --only overload "* ]]; then
  "$PYTHON" bench/report.py --tally "$tally" "$@" || fail "bench/report.py $*"
fi
if [[ " $* " != *" --only "* || " $* " == *" --only overload "* ]]; then
  # shellcheck disable=SC2086
  "$PYTHON" bench/overload.py --tally "$tally" $quick || fail "bench/overload.py"
fi
if [[ -s $tally ]]; then
  {
    read -r passed failed skipped
    mapfile -t notes
  } <"$tally"
  PASSED=$((PASSED + passed)) FAILED=$((FAILED + failed)) SKIPPED=$((SKIPPED + skipped)) NOTES+=("${notes[@]}")
fi
finish
