#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: the public conformance cases of Open Job Spec against a fresh ojs-shm up, where they are beside the tree
# NEEDS: build
# IN-TEST: --short
. "$(dirname "$0")/../lane.sh"
lane conformance
longest=300 write=()
for flag in "$@"; do
  case $flag in
    --short) longest=20 ;; # leaves out cases that wait for longer than 20 s
    --slow) longest=300 ;; # those as well, which is what happens without a flag
    --write) write=(--write) ;;
    *) usage "conformance [--short | --slow] [--write]" ;;
  esac
done
cases=../shared/conformance
if [[ ! -f $cases/run_conformance.py ]]; then
  not_run "conformance: the public cases are not beside this tree"
  finish
fi
build_tree default ojs-shm ojs-shm-broker ojs-shm-gateway || finish
mkdir -p "$RESULTS"
beside conformance-ojs run_tallied conformance-ojs timeout 600 "$PYTHON" tools/dev/conformance.py "$cases" ojs "$longest" "$RESULTS/conformance-ojs.json"
beside conformance-core run_tallied conformance-core timeout 600 "$PYTHON" tools/dev/conformance.py "$cases" ojs-core "$longest" "$RESULTS/conformance-ojs-core.json"
gather
run_tallied conformance-page "$PYTHON" tools/dev/conformance_page.py "${write[@]}" \
  "$RESULTS/conformance-ojs.json" "$RESULTS/conformance-ojs-core.json"
finish
