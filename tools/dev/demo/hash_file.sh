#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command of a demonstration job: args ["PATH"] on stdin, the file's SHA-256 as a JSON string on stdout. The list
# holds no path that JSON would have to escape.
IFS= read -r args || [ -n "$args" ] || exit 2
path=${args#'["'}
path=${path%'"]'}
digest=$(sha256sum <"$path") || exit 1
printf '"%s"\n' "${digest%% *}"
