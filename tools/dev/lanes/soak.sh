#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: nearly every operation, all policies, kills and stops at once, audited every second [--minutes N] [--seed N]
# NEEDS: build test
. "$(dirname "$0")/../lane.sh"
readonly HELP="soak [--minutes N] [--seconds N] [--seed N]    (default: 10 minutes)"
length=(--minutes 10) seed=()
while (($#)); do
  case $1 in
    --minutes | --seconds) length=("$1" "${2:?$HELP}") && shift ;;
    --seed) seed=("$1" "${2:?$HELP}") && shift ;;
    *) usage "$HELP" ;;
  esac
  shift
done
lane soak
if build_tree default stress_soak; then
  if build/bin/stress_soak "${length[@]}" "${seed[@]}" </dev/null; then pass; else fail "soak ${length[*]}"; fi
fi
finish
