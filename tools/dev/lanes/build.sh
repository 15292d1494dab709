#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: installs what is missing and builds everything into build/ (programs in build/bin)
# NEEDS: build
. "$(dirname "$0")/../lane.sh"
lane build
build_tree "${1:-default}" && pass
finish
