#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: breaks the source line by line in a copy and sees that the named tests turn red
. "$(dirname "$0")/../lane.sh"
bash tools/dev/setup.sh build test || exit 2
exec "$PYTHON" tools/dev/mutants.py "$@"
