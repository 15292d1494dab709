#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: unit tests, threads over one mapping among them, under ThreadSanitizer
# NEEDS: build
# WANTS: test
. "$(dirname "$0")/../lane.sh"
RESULTS=build/tsan/results
lane tsan
# Tests die on purpose in children of fork, which start a keeper of their own.
export TSAN_OPTIONS=halt_on_error=0:exitcode=66:second_deadlock_stack=1:die_after_fork=0
# GCC 12's runtime refuses an address space that is randomised by more bits than it knows.
steady=()
setarch "$(uname -m)" -R true 2>/dev/null && steady=(setarch "$(uname -m)" -R)
if build_tree tsan unit_tests; then
  run_gtest unit 1800 "${steady[@]}" build/tsan/bin/unit_tests "$@"
fi
finish
