#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: searches the protocol models with SPIN and sees that their mutants fail [--short] [--only MODEL[/RUN]]
# NEEDS: model
# IN-TEST: --short
. "$(dirname "$0")/../lane.sh"
bash tools/dev/setup.sh model || exit 2
exec "$PYTHON" tests/model/run.py "$@"
