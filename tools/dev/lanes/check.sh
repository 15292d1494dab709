#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: the quick one, under two minutes: format, build with warnings as errors, unit tests, tidy
# NEEDS: build format
. "$(dirname "$0")/../lane.sh"
RESULTS=build/check # the reports of the last ./dev test stay as they are
lane check
run_lane format --check
build_tree default unit_tests ojs_shm ojs_shm_programs && run_gtest unit 100 build/bin/unit_tests
run_lane tidy
finish
