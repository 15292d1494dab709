#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [BUILD_DIR]: tests the C ABI from Node against a build (else OJS_SHM_BUILD, else build/). Installs node and npm
# when they are missing, and koffi into the user's cache. Prints "ok NAME" or "not ok NAME" for each test and a last
# line; exit 1 when one failed.
set -u -o pipefail

here=$(cd "$(dirname "$0")" && pwd)
source_dir=$(cd "$here/../../.." && pwd)
build=$(realpath "${1:-${OJS_SHM_BUILD:-$source_dir/build}}")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ojs-shm/node

finish() {  # passed failed skipped
  echo "NODE: $1 passed, $2 failed, $3 skipped"
  exit $((($2 > 0) ? 1 : 0))
}
not_run() {
  echo "NOT RUN node: $1"
  finish 0 0 1
}
install() {
  if [ "$(id -u)" -eq 0 ]; then apt-get install -y -qq --no-install-recommends "$@"; else
    sudo apt-get install -y -qq --no-install-recommends "$@"; fi >&2
}

for file in lib/libojs_shm.so bin/ojs-shm-broker; do
  [ -e "$build/$file" ] || { echo "$build/$file is missing; build it first" >&2; finish 0 1 0; }
done

missing=()
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
if [ ${#missing[@]} -gt 0 ]; then
  install "${missing[@]}" || not_run "${missing[*]} cannot be installed"
fi

# The lock file names the hash of the package, so what the cache holds is the same everywhere. It is copied last.
mkdir -p "$cache"
if ! cmp -s "$here/package-lock.json" "$cache/installed.json"; then
  cp "$here/package.json" "$here/package-lock.json" "$cache/"
  (cd "$cache" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2) \
    || not_run "koffi cannot be installed from the npm registry"
  cp "$here/package-lock.json" "$cache/installed.json"
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$here" && NODE_PATH=$cache/node_modules OJS_SHM_BUILD=$build \
  timeout --kill-after=10 300 node --test --test-reporter=tap contract_test.js > "$scratch/tap" 2>&1
status=$?

# The tests themselves, in whatever depth this version of node prints them; the file's own line is not one.
sed -nE 's/^ *(not ok|ok) [0-9]+ - (node_\w+).*/\1 \2/p' "$scratch/tap" | tee "$scratch/lines"
[ "$status" -eq 0 ] || cat "$scratch/tap" >&2
passed=$(grep -c '^ok ' "$scratch/lines")
failed=$(grep -c '^not ok ' "$scratch/lines")
# A run that died, or that ran nothing, has failed even if no line says so.
if [ "$failed" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$passed" -eq 0 ]; }; then failed=1; fi
finish "$passed" "$failed" 0
