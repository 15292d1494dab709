#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: records calls of many processes and looks for an order that explains the answers [--seconds N] [--seed N]
# NEEDS: build test
# IN-TEST: --seconds 6
. "$(dirname "$0")/../lane.sh"
readonly HELP="linearizability [--seconds N] [--seed N] [--details]
  --seconds: for all twelve themes together (60); the monitor, the search and the wrong queues come first and take 10 more
  --seed: of everything, and of the first segment of each theme; repeats a finding of a stepped theme; default: random
  --details: also compare what a re-prioritise reports beside its effect, which is read without a promise"
seconds=60
while (($#)); do
  case $1 in
    --seconds) seconds=${2:?$HELP} && shift ;;
    --seed) export OJS_SHM_TEST_SEED=${2:?$HELP} && shift ;;
    --details) export OJS_SHM_LINEAR_DETAILS=1 ;;
    *) usage "$HELP" ;;
  esac
  shift
done
[[ $seconds =~ ^[0-9]+$ && ${OJS_SHM_TEST_SEED:-0} =~ ^[0-9]+$ ]] || usage "$HELP"
lane linearizability
if build_tree default linearizability_tests; then
  OJS_SHM_LINEAR_SECONDS=$(printf '%d.%03d' $((seconds / 12)) $((seconds % 12 * 1000 / 12)))
  export OJS_SHM_LINEAR_SECONDS
  run_gtest linearizability $((seconds + 600)) build/bin/linearizability_tests
fi
finish
