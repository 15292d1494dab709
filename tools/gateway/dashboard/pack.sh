#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pack.sh [--check]: makes packed/ from src/ and the packages of package-lock.json, which npm brings. --check only says
# whether packed/ is what would be made. Exits 3 when npm cannot bring the packages.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here/src" "$here/package.json" "$here/package-lock.json" "$work/"
cd "$work"
npm ci --ignore-scripts --prefer-offline --no-audit --no-fund --loglevel=error >&2 || exit 3
mkdir packed
banner='/* SPDX-License-Identifier: Apache-2.0 AND MIT. Made by tools/gateway/dashboard/pack.sh; licences.txt has the texts. */'
node_modules/.bin/esbuild src/main.js --bundle --minify --target=es2022 --format=iife --charset=utf8 --legal-comments=none \
  --line-limit=4000 --banner:js="$banner" --banner:css="$banner" --log-level=warning --outfile=packed/dashboard.js
cp src/index.html src/icon.svg packed/
{
  echo "The dashboard of ojs-shm is part of ojs-shm, under the Apache License 2.0. Its script holds these packages:"
  for package in htm preact uplot; do
    printf '\n== %s %s ==\n\n' "$package" "$(node -p "require('./node_modules/$package/package.json').version")"
    cat "node_modules/$package"/LICENSE*
  done
} >packed/licences.txt
if [[ ${1:-} == --check ]]; then
  diff -r packed "$here/packed" >/dev/null || { echo "packed/ is not what src/ makes; run $0" >&2; exit 1; }
  exit 0
fi
rm -rf "$here/packed"
cp -r packed "$here/packed"
echo "packed: $(cat packed/* | gzip -9 | wc -c) bytes when compressed"
