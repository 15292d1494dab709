#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: breaks the source line by line in a copy and sees that the named tests turn red
. "$(dirname "$0")/../lane.sh"
bash tools/dev/setup.sh build test || exit 2
bash tools/dev/setup.sh relacy || echo "NOT RUN killers on a memory model: there is no relacy-dev; their mutants survive"
bash tools/dev/setup.sh lld || echo "no lld: each program is linked by a slower linker"
exec "$PYTHON" tools/dev/mutants.py "$@"
