#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: small and full file systems, namespaces, users, forks, and files that are no segments
# NEEDS: build test
# IN-TEST:
. "$(dirname "$0")/../lane.sh"
(($# == 0)) || usage environment
lane environment
if build_tree default environment_tests; then
  run_gtest environment 600 build/bin/environment_tests
fi
finish
