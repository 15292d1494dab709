#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: unit, litmus and stress tests (threads over one mapping) under ThreadSanitizer
# NEEDS: build
# WANTS: test
. "$(dirname "$0")/../lane.sh"
RESULTS=build/tsan/results
lane tsan
export TSAN_OPTIONS=halt_on_error=0:exitcode=66:second_deadlock_stack=1
# GCC 12's runtime refuses an address space that is randomised by more bits than it knows.
steady=()
setarch "$(uname -m)" -R true 2>/dev/null && steady=(setarch "$(uname -m)" -R)
if build_tree tsan; then
  for room in unit litmus stress; do
    program=build/tsan/bin/${room}_tests
    [[ -x $program ]] && run_gtest "$room" 1800 "${steady[@]}" "$program" "$@"
  done
fi
finish
