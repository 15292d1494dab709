#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: the engine under every schedule within a bound, with kills at every write [--short | --long | --deep] [--only SCENARIO]
# NEEDS: build test
# IN-TEST: --short
. "$(dirname "$0")/../lane.sh"
readonly HELP="schedules [--short | --long | --deep] [--only SCENARIO]
  the short form cuts each scenario short after some hundred or thousand schedules; --long plays all within its bound of
  one to three preemptions, for some only up to a cap, in about two hours of one core and 8 GB, for a lane that is killed
  gives nothing back. At the end they say how many explorations were complete and how many were cut short; --long names
  these; --deep plays each with one preemption more, for 50,000 schedules at most: what three of them bring about, two
  may not"
while (($#)); do
  case $1 in
    --short) ;;
    --long) export OJS_SHM_SCHEDULES_LONG=1 ;;
    --deep) export OJS_SHM_SCHEDULES_DEEP=1 ;;
    --only) export OJS_SHM_SCHEDULES_ONLY=${2:?$HELP} && shift ;;
    *) usage "$HELP" ;;
  esac
  shift
done
lane schedules
if build_tree default schedules_tests; then
  run_gtest schedules "$([[ -n ${OJS_SHM_SCHEDULES_LONG:-}${OJS_SHM_SCHEDULES_DEEP:-} ]] && echo 14400 || echo 600)" build/bin/schedules_tests
fi
finish
