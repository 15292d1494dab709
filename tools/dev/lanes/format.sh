#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: formats all C and C++ sources in place; --check only says which are not formatted
# NEEDS: format
. "$(dirname "$0")/../lane.sh"
lane format
[[ $# -eq 0 || "$*" == --check ]] || usage "format [--check]"
mapfile -t files < <(find shm engine worker_api tools tests bench -name node_modules -prune -o \
  -type f \( -name '*.cpp' -o -name '*.hpp' -o -name '*.c' -o -name '*.h' \) -print | sort)
mapfile -t unformatted < <(printf '%s\n' "${files[@]}" | xargs -P "$CORES" -n 50 clang-format-14 --dry-run -Werror 2>&1 |
  sed -nE 's/^([^:]+):[0-9]+:[0-9]+: error: .*/\1/p' | sort -u)
for file in "${unformatted[@]}"; do
  if [[ ${1:-} == --check ]]; then
    fail "$file is not formatted; ./dev format does it"
  else
    clang-format-14 -i "$file" && echo "formatted $file"
  fi
done
pass $((${#files[@]} - FAILED))
finish
