#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The command of a demonstration job: args ["PATH"] on stdin, the file's SHA-256 as a JSON string on stdout. The list
# holds no path that JSON would have to escape. Without a path: the SHA-256 of the digests of all jobs before it in its
# workflow, a line each.
IFS= read -r args || [ -n "$args" ] || exit 2
if [ "$args" = '[]' ]; then
  digest=$({ tr -d '[]"\n' <"$OJS_PARENT_RESULTS" | tr ',' '\n'; echo; } | sha256sum) || exit 1
  printf '"%s"\n' "${digest%% *}"
  exit
fi
path=${args#'["'}
path=${path%'"]'}
digest=$(sha256sum <"$path") || exit 1
printf '"%s"\n' "${digest%% *}"
