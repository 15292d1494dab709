#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: builds, runs all tests and the short forms of the lanes that have one (under 20 minutes on two cores)
# NEEDS: build
# WANTS: test
. "$(dirname "$0")/../lane.sh"
lane test
short_lanes=$(grep -l '^# IN-TEST:' tools/dev/lanes/*.sh)
# What they install, before they run beside each other.
# shellcheck disable=SC2086
groups=$({ sed -nE 's/^# (NEEDS|WANTS): *//p' $short_lanes; echo browser; } | xargs -n 1 | sort -u)
# shellcheck disable=SC2086
bash tools/dev/setup.sh $groups || for group in $groups; do bash tools/dev/setup.sh "$group"; done
build_tree default all $([[ -d /usr/include/relacy ]] && echo relacy_tests) || finish
export OJS_SHM_BUILT=default
segments() { find /dev/shm -maxdepth 1 -name 'ojs-shm.*' 2>/dev/null | sort; }
before=$(segments)
rm -rf "$RESULTS"
mkdir -p "$RESULTS"

trap 'end_beside; exit 143' TERM
trap 'end_beside; exit 130' INT
# Each line of a lane's head by itself.
for file in $short_lanes; do
  lane=$(basename "$file" .sh) part=0
  while read -r form; do
    # shellcheck disable=SC2086
    beside "in-test-$lane-$((++part))" run_lane "$lane" $form
  done < <(sed -n 's/^# IN-TEST: *//p' "$file")
done

# A room that one of these lanes runs comes with that lane.
for folder in tests/*/; do
  room=$(basename "$folder")
  if [[ -x build/bin/${room}_tests ]] && ! grep -q "/${room}_tests" $short_lanes /dev/null; then
    beside "in-test-$room" run_gtest "$room" 900 "build/bin/${room}_tests"
  fi
done

# Tests in other languages, each with a runner that prints "ok NAME", "not ok NAME" and a closing line. One with a short form
# has it in its head, as a lane has.
export OJS_SHM_BUILD=$PWD/build
for runner in tests/*/*/run.sh; do
  name=$(basename "$(dirname "$runner")")
  [[ -f $runner ]] || continue
  # shellcheck disable=SC2046
  beside "in-test-$name" run_tallied "$name" timeout --kill-after=10 600 bash "$runner" $(sed -n 's/^# IN-TEST: *//p' "$runner")
done
gather

left=$(comm -13 <(echo "$before") <(segments))
[[ -z $left ]] || echo "warning: left behind, unless it belongs to another run:" $left
finish
