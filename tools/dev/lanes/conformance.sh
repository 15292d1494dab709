#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: the public conformance cases of Open Job Spec against a fresh ojs-shm up, where they are beside the tree
# NEEDS: build
# IN-TEST: --short
. "$(dirname "$0")/../lane.sh"
lane conformance
[[ $# == 0 || $* == --short ]] || usage "conformance [--short]"
cases=../shared/conformance
if [[ ! -f $cases/run_conformance.py ]]; then
  not_run "conformance: the public cases are not beside this tree"
  finish
fi
build_tree default ojs-shm ojs-shm-broker ojs-shm-gateway || finish
mkdir -p "$RESULTS"
# --short leaves out cases that wait for longer than 20 s.
longest=$([[ $* == --short ]] && echo 20 || echo 300)
beside conformance-ojs run_tallied conformance-ojs timeout 600 "$PYTHON" tools/dev/conformance.py "$cases" ojs "$longest"
beside conformance-core run_tallied conformance-core timeout 600 "$PYTHON" tools/dev/conformance.py "$cases" ojs-core "$longest"
gather
finish
