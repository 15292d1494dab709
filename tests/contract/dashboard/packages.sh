#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# packages.sh: brings playwright-core and axe-core into the user's cache and prints the folder for NODE_PATH. Installs
# node, npm and Chromium when they are missing. Prints nothing on stdout and says why on stderr when one cannot be had.
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ojs-shm/dashboard

bash "$here/../../../tools/dev/setup.sh" browser >&2 || { echo "Chromium or npm cannot be installed" >&2; exit 1; }
command -v chromium >/dev/null || { echo "there is no chromium" >&2; exit 1; }
# The lock file names the hashes, so what the cache holds is the same everywhere. It is copied last.
mkdir -p "$cache"
(
  flock 9
  cmp -s "$here/package-lock.json" "$cache/installed.json" && exit 0
  cp "$here/package.json" "$here/package-lock.json" "$cache/"
  cd "$cache" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2 || exit 1
  cp "$here/package-lock.json" "$cache/installed.json"
) 9>"$cache/lock" || { echo "playwright-core cannot be installed from the npm registry" >&2; exit 1; }
echo "$cache/node_modules"
