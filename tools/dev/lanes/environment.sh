#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: small and full file systems, namespaces, users, forks, and files that are no segments [--well-meaning]
# NEEDS: build test
# IN-TEST: --well-meaning
. "$(dirname "$0")/../lane.sh"
[[ $# -eq 0 || "$*" == --well-meaning ]] || usage "environment [--well-meaning: without the damaged tables]"
lane environment
if build_tree default environment_tests; then
  # Damaged tables under a living mapping still make an observer hang or crash: an open defect, kept out of the short form.
  run_gtest environment 600 build/bin/environment_tests \
    ${1:+--gtest_filter=-HostileFiles.flipped_bits_never_crash_a_visitor:HostileFiles.random_words_in_its_tables_never_crash_a_visitor}
fi
finish
