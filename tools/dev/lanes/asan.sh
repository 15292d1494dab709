#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: unit, crash, contract and HTTP tests under AddressSanitizer and UndefinedBehaviorSanitizer
# NEEDS: build
# WANTS: test
. "$(dirname "$0")/../lane.sh"
RESULTS=build/asan/results
lane asan
# A child killed at a crash point cannot free what it held, so leaks are looked for only where nothing is killed.
# What it keeps back of freed memory is small, for every fork copies its pages.
export ASAN_OPTIONS=quarantine_size_mb=8:detect_leaks=0:strict_string_checks=1:detect_stack_use_after_return=1:abort_on_error=0
export UBSAN_OPTIONS=print_stacktrace=1
# Without schedules: its fibers leave their stacks in a way that the sanitizer does not follow.
if build_tree asan unit_tests crash_tests contract_tests; then
  for room in unit crash contract; do
    [[ $room == unit ]] && leaks=1 || leaks=0
    ASAN_OPTIONS=${ASAN_OPTIONS/detect_leaks=0/detect_leaks=$leaks} run_gtest "$room" 7200 "build/asan/bin/${room}_tests" "$@"
  done
  # A gateway that a sanitizer ends answers nothing any more, so that its test fails.
  OJS_SHM_BUILD=$PWD/build/asan OJS_SHM_SANITIZED=1 run_tallied http timeout --kill-after=10 3600 bash tests/contract/http/run.sh
fi
finish
