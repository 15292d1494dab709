#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: lists the requirement rows with their state and tests; exit 1 when a listed row is not closed
. "$(dirname "$0")/../lane.sh"
bash tools/dev/setup.sh python || exit 2
exec "$PYTHON" tools/dev/requirements.py "$@"
