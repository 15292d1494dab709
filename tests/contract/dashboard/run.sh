#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [--short] [FILE_test.js ...]: opens the gateway's dashboard of a built tree in Chromium. Takes OJS_SHM_BUILD from
# the environment, else build/. Screenshots and what the tests print go to OJS_SHM_RESULTS/dashboard, else
# build/results/dashboard. Prints "ok NAME" or "not ok NAME" for each test, how long all took, and a last line; exit 1 when
# one failed. --short, for ./dev test: in one of the two colour schemes, on one narrow screen, and with 20,000 jobs instead
# of 100,000.
# IN-TEST: --short
set -u -o pipefail
SECONDS=0

here=$(cd "$(dirname "$0")" && pwd)
source_dir=$(cd "$here/../../.." && pwd)
build=$(realpath "${OJS_SHM_BUILD:-$source_dir/build}")
results=$(realpath -m "${OJS_SHM_RESULTS:-$build/results}")
unset OJS_SHM_NAME OJS_SHM_DIR OJS_SHM_DASHBOARD_SHORT
form="whole"
if [ "${1:-}" = --short ]; then
  export OJS_SHM_DASHBOARD_SHORT=1
  form="short form"
  shift
fi

finish() {  # passed failed skipped
  echo "The dashboard's tests, $form: $SECONDS s"
  echo "DASHBOARD: $1 passed, $2 failed, $3 skipped"
  exit $((($2 > 0) ? 1 : 0))
}
not_run() {
  echo "NOT RUN dashboard: $1"
  finish 0 0 1
}

for file in bin/ojs-shm bin/ojs-shm-broker bin/ojs-shm-gateway; do
  [ -e "$build/$file" ] || { echo "$build/$file is missing; build it first" >&2; finish 0 1 0; }
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
modules=$(bash "$here/packages.sh" 2>"$scratch/why") || not_run "$(tail -n 1 "$scratch/why")"

mkdir -p "$results/dashboard"
cd "$here" || exit 1
# shellcheck disable=SC2012,SC2046 # the largest first, so that none of them begins last
[ $# -gt 0 ] || set -- $(ls -S ./*_test.js | xargs -n 1 basename)
export NODE_PATH=$modules OJS_SHM_BIN_DIR=$build/bin OJS_SHM_PICTURES=$results/dashboard
export OJS_SHM_CHROMIUM; OJS_SHM_CHROMIUM=$(command -v chromium)
# Three files at once: tests wait for numbers that come once a second.
printf '%s\n' "$@" | xargs -P 3 -I FILE \
  sh -c 'timeout --kill-after=10 540 node --test --test-reporter=tap "$1" > "$2/$1.tap" 2>&1' sh FILE "$scratch"
status=$?
cp "$scratch"/*.tap "$results/dashboard/"

# The tests themselves, in whatever depth this version of node prints them; a file's own line is not one.
# Under one that failed stands why.
sed -nE 's/^ *ok [0-9]+ - (dashboard_\w+) # SKIP/NOT RUN \1:/p; t; s/^ *(not ok|ok) [0-9]+ - (dashboard_\w+).*/\1 \2/p; t
  /^ *(error|stack): /,/^ *\.\.\.$/s/^/    /p' "$scratch"/*.tap | tee "$scratch/lines"
passed=$(grep -c '^ok ' "$scratch/lines")
failed=$(grep -c '^not ok ' "$scratch/lines")
skipped=$(grep -c '^NOT RUN ' "$scratch/lines")
bash "$source_dir/tools/gateway/dashboard/pack.sh" --check
case $? in
  0) echo "ok dashboard_packed_is_what_the_sources_make" && passed=$((passed + 1)) ;;
  3) echo "NOT RUN dashboard_packed_is_what_the_sources_make: npm brings no packages" && skipped=$((skipped + 1)) ;;
  *) echo "not ok dashboard_packed_is_what_the_sources_make" && failed=$((failed + 1)) ;;
esac
# A run that died, or that ran nothing, has failed even if no line says so.
if [ "$failed" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$passed" -eq 0 ]; }; then
  cat "$scratch"/*.tap >&2
  failed=1
fi
finish "$passed" "$failed" "$skipped"
