#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh [BUILD_DIR]: compiles the Rust of docs/c_api.md as it stands there with Debian's rustc and runs it against a
# build (else OJS_SHM_BUILD, else build/). Installs rustc when it is missing. Prints "ok NAME" or "not ok NAME" for each
# test and a last line; exit 1 when one failed.
set -u -o pipefail

here=$(cd "$(dirname "$0")" && pwd)
source_dir=$(cd "$here/../../.." && pwd)
build=$(realpath "${1:-${OJS_SHM_BUILD:-$source_dir/build}}")

finish() {  # passed failed skipped
  echo "RUST: $1 passed, $2 failed, $3 skipped"
  exit $((($2 > 0) ? 1 : 0))
}
not_run() {
  echo "NOT RUN rust: $1"
  finish 0 0 1
}
install() {
  if [ "$(id -u)" -eq 0 ]; then apt-get install -y -qq --no-install-recommends "$@"; else
    sudo apt-get install -y -qq --no-install-recommends "$@"; fi >&2
}
fail() {
  echo "not ok $1"
  finish 0 1 0
}

for file in lib/libojs_shm.so bin/ojs-shm-broker; do
  [ -e "$build/$file" ] || { echo "$build/$file is missing; build it first" >&2; finish 0 1 0; }
done

# Debian's own compiler, which is older than what rustup would bring.
rustc=/usr/bin/rustc
[ -x "$rustc" ] || install rustc || not_run "rustc cannot be installed"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Each Rust block of the document is preceded by the comment "<!-- rust: FILE -->".
awk -v to="$scratch" '
  /^<!-- rust: .* -->$/ { file = to "/" $3; next }
  /^```rust$/ && file   { copying = 1; next }
  /^```$/               { copying = 0; file = "" }
  copying               { print > file }' "$source_dir/docs/c_api.md"
[ -s "$scratch/ojs_shm.rs" ] && [ -s "$scratch/qo_example.rs" ] || fail rust_blocks_of_the_document
cp "$here/contract_test.rs" "$scratch/"

compile() {
  "$rustc" --edition 2021 -D warnings -O -L "native=$build/lib" -C "link-arg=-Wl,-rpath,$build/lib" \
    --out-dir "$scratch" "$@" >&2
}
compile --crate-type rlib --crate-name ojs_shm "$scratch/ojs_shm.rs" || fail rust_binding_compiles
compile --crate-name contract_test --extern "ojs_shm=$scratch/libojs_shm.rlib" "$scratch/contract_test.rs" \
  || fail rust_example_compiles

mkdir "$scratch/segments"
OJS_SHM_BROKER=$build/bin/ojs-shm-broker OJS_SHM_DIR=$scratch/segments \
  timeout --kill-after=10 300 "$scratch/contract_test" 2> "$scratch/log" | grep -E '^(not )?ok ' | tee "$scratch/lines"
status=$?
[ "$status" -eq 0 ] || cat "$scratch/log" >&2
passed=$(grep -c '^ok ' "$scratch/lines")
failed=$(grep -c '^not ok ' "$scratch/lines")
# A run that died, or that ran nothing, has failed even if no line says so.
if [ "$failed" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$passed" -eq 0 ]; }; then failed=1; fi
finish "$passed" "$failed" 0
