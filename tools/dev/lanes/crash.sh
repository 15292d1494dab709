#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: kills at every crash point and at any instruction, SIGKILL storms, millions of dead hints [--long] ...
# NEEDS: build test
# IN-TEST: --points --short
# IN-TEST: --instructions
# IN-TEST: --storms --seconds 4
. "$(dirname "$0")/../lane.sh"
readonly HELP="crash [--points [--short] | --instructions [--every N] | --storms] [--long] [--seed N] [--seconds N]
  every crash point, instructions chosen by lot, then storms of a few seconds each (--seconds, default 12)
  --points: the crash points alone; --short: repairers are killed after two deaths of each operation instead of four
  --instructions: these alone; with --long after every change of the segment, when a kill stands for all instructions up
    to the next change, and after every 1,000th instruction, and every operation beside every other one that stands
    still in its middle, all of it as built and at -O3; --every N: after every N-th one instead; 1, which is every single
    one, takes hours
  --storms: the storms alone, and the controls; 2,000 nested workflows, with --long 10,000
  --long: one storm of at least 2,000 kills and 5,000,000 jobs, longer ones beside it, and ten million jobs enqueued and
    cancelled, and as many re-prioritised, behind a live one; the storms of limits, pools and bounds a hundred times
  --seed: of the storms; default: random, and printed"
points=0 instructions=0 every=0 storms=0 long=0 seconds=12 seed=$((RANDOM << 15 | RANDOM)) programs=()
while (($#)); do
  case $1 in
    --points) points=1 ;;
    --short) export OJS_SHM_CRASH_SHORT=1 ;;
    --instructions) instructions=1 ;;
    --every) every=${2:?$HELP} && shift ;;
    --storms) storms=1 ;;
    --long) long=1 ;;
    --seed) seed=${2:?$HELP} && shift ;;
    --seconds) seconds=${2:?$HELP} && shift ;;
    *) usage "$HELP" ;;
  esac
  shift
done
lane crash
((long)) && ((seconds < 60)) && seconds=60

# A program that is one case: its report goes to the screen and to a file.
long_case() { # NAME BOUND-SECONDS PROGRAM [ARGS...]
  local name=$1 bound=$2 status
  shift 2
  mkdir -p "$RESULTS"
  echo "--- $name"
  timeout --kill-after=10 "$bound" "$@" </dev/null 2>&1 | tee "$RESULTS/$name.log"
  status=${PIPESTATUS[0]}
  if [[ $status == 0 ]]; then
    pass
  else
    fail "$name (status $status); again: $*"
  fi
}
storm() { # NAME BOUND-SECONDS PROGRAM [ARGS...]
  long_case "$@" --seed "$seed"
}

# Kills after machine instructions of what ships.
kill_at_instructions() {
  ((every || !long)) || every=1000
  if ((!every)); then
    run_gtest instructions 600 build/bin/instructions_tests
    return
  fi
  OJS_SHM_INSTRUCTIONS=$every run_gtest instructions-all 28800 build/bin/instructions_tests
  ((long)) && build_tree default instructions_tests_o3 || return
  OJS_SHM_INSTRUCTIONS=$every run_gtest instructions-o3 28800 build/bin/instructions_tests_o3
}

((points + instructions + storms)) || points=1 instructions=1 storms=1
((points)) && programs+=(crash_tests stress_tests)
((instructions)) && programs+=(instructions_tests)
((storms)) && programs+=(crash_storm_at_points stress_storm stress_unique stress_churn stress_tests)
build_tree default "${programs[@]}" || finish
bin=build/bin
if ((points)); then
  run_gtest stress 120 $bin/stress_tests
  run_gtest crash $((long ? 7200 : 900)) $bin/crash_tests
fi
((instructions)) && kill_at_instructions
((storms)) || finish
storm storm-control-boost 120 $bin/stress_storm --subject boost --must-break --seconds 30 --wedge 2000
storm storm-control-ring 120 $bin/stress_storm --subject vyukov --must-break --seconds 30 --wedge 2000
long_case unique 3600 $bin/stress_unique --enqueues $((long ? 1000000 : 50000))
((long)) || export OJS_SHM_STORM_WORKFLOWS=2000
run_gtest storm-of-workflows 300 $bin/stress_tests --gtest_filter='WorkflowStorm.*'
unset OJS_SHM_STORM_WORKFLOWS
long_case churn 3600 $bin/stress_churn --times $((long ? 10000000 : 1000000))
if ((long)); then
  run_gtest storms-of-limits 3600 $bin/stress_tests --gtest_filter='*Storm.*' --gtest_repeat=100
  storm storm-long 7200 $bin/stress_storm --kills 2000 --jobs 5000000 --seconds 3600 --look 5000
else
  storm storm 300 $bin/stress_storm --seconds "$seconds"
fi
storm storm-tight $((seconds + 300)) $bin/stress_storm --seconds "$seconds" --tight
storm storm-everything $((seconds + 300)) $bin/stress_storm --seconds "$seconds" --everything --look 1000
storm storm-policies $((seconds + 300)) $bin/stress_storm --seconds "$seconds" --everything --policies
at_points=($bin/crash_storm_at_points --seconds "$seconds" --everything --policies)
((long)) && at_points+=(--points 40)
storm storm-at-points $((seconds + 300)) "${at_points[@]}"
storm storm-at-points-tight $((seconds + 300)) "${at_points[@]}" --tight
finish
