#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: builds, runs all tests and the short forms of the other lanes (under 20 minutes on two cores)
# NEEDS: build
# WANTS: test
. "$(dirname "$0")/../lane.sh"
lane test
build_tree default || finish
segments() { find /dev/shm -maxdepth 1 -name 'ojs-shm.*' 2>/dev/null | sort; }
before=$(segments)
rm -rf "$RESULTS"
mkdir -p "$RESULTS"

short_lanes=$(grep -l '^# IN-TEST:' tools/dev/lanes/*.sh)
# A room that one of these lanes runs comes with that lane.
for folder in tests/*/; do
  room=$(basename "$folder")
  if [[ -x build/bin/${room}_tests ]] && ! grep -q "/${room}_tests" $short_lanes /dev/null; then
    run_gtest "$room" 900 "build/bin/${room}_tests"
  fi
done

# Tests in other languages, each with a runner that prints "ok NAME", "not ok NAME" and a closing line.
export OJS_SHM_BUILD=$PWD/build
for runner in tests/*/*/run.sh; do
  [[ -f $runner ]] && run_tallied "$(basename "$(dirname "$runner")")" timeout --kill-after=10 600 bash "$runner"
done

for file in $short_lanes; do
  # shellcheck disable=SC2046
  run_lane "$(basename "$file" .sh)" $(sed -n 's/^# IN-TEST: *//p' "$file")
done

left=$(comm -13 <(echo "$before") <(segments))
[[ -z $left ]] || echo "warning: left behind, unless it is somebody else's:" $left
finish
