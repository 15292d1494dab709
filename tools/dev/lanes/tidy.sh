#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: style as a test: rooms, sizes, memory-order pairs, crash points, headers that stand alone (--clang: clang-tidy)
. "$(dirname "$0")/../lane.sh"
groups=(build)
[[ " $* " == *" --clang "* ]] && groups+=(clang-tidy)
bash tools/dev/setup.sh "${groups[@]}" || exit 2
exec "$PYTHON" tools/dev/tidy.py "$@"
