#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: draws the pictures of the documents from a run; --check only says which are not as they would be drawn
# NEEDS: build test
# WANTS: browser
. "$(dirname "$0")/../lane.sh"
[[ $# -eq 0 || "$*" == --check ]] || usage "docs [--check]"
lane docs
drawn=$(mktemp -d) && trap 'rm -rf "$drawn"' EXIT
if build_tree default ojs_shm_orders && "$PYTHON" tools/dev/draw_orders.py build/bin/ojs_shm_orders "$drawn"; then
  for file in "$drawn"/*.svg; do
    picture=docs/pictures/$(basename "$file")
    if ! grep -qr "pictures/$(basename "$file")" docs/*.md; then
      fail "$picture is shown in no document"
    elif [[ ${1:-} == --check ]] && ! cmp -s "$file" "$picture"; then
      fail "$picture is not as it would be drawn; ./dev docs draws it"
    else
      [[ ${1:-} == --check ]] || cp "$file" "$picture"
      pass
    fi
  done
else
  fail "nothing could be drawn"
fi
# A live screen is another one each time. Its record names the views and columns in the picture; a golden screen, which a test holds
# against the program, has those of now.
picture=docs/pictures/top.svg
if ! grep -q "$picture" README.md; then
  fail "$picture is not shown in README.md"
elif [[ ${1:-} == --check ]]; then
  { read -r sum && read -r views && read -r columns; } <"${picture%.svg}.txt" || true
  { for _ in 1 2 3 4 5; do read -r _; done && read -r views_now && read -r -a columns_now; } \
    <tests/contract/terminal/golden/queues.160x50.txt || true
  if [[ ! -s $picture ]]; then
    fail "$picture is missing; ./dev docs draws it"
  elif [[ -n $views && $sum == "sha256 $(sha256sum <"$picture" | cut -d ' ' -f 1)" && $views == "$views_now" &&
    "${columns_now[*]} " == "$columns "* ]]; then
    pass
  else
    fail "$picture shows other views or columns than ojs-shm-top, or is not the one that ${picture%.svg}.txt is about; ./dev docs draws it"
  fi
elif build_tree default ojs_shm_programs && "$PYTHON" tools/dev/draw_top.py build/bin "$picture"; then
  pass
else
  fail "$picture could not be drawn"
fi
picture=docs/pictures/dashboard.png
if ! grep -q "$picture" README.md; then
  fail "$picture is not shown in README.md"
elif [[ ${1:-} == --check ]]; then
  # Its record names the views of the page in the picture; they are those that the page has now.
  views=$(sed -n "s/^  { path: .*, name: '\([^']*\)', key: .*/\1/p" tools/gateway/dashboard/src/main.js)
  if [[ ! -s $picture ]]; then
    fail "$picture is missing; ./dev docs draws it"
  elif [[ -n $views && $(cat "${picture%.png}.txt") == "sha256 $(sha256sum <"$picture" | cut -d ' ' -f 1)"$'\n'"$views" ]]; then
    pass
  else
    fail "$picture shows a page with other views, or is not the one that ${picture%.png}.txt is about; ./dev docs draws it"
  fi
elif ! modules=$(bash tests/contract/dashboard/packages.sh); then
  not_run "$picture: no browser, or no playwright-core"
elif build_tree default ojs_shm_programs && NODE_PATH=$modules node tools/dev/draw_dashboard.js build/bin "$picture"; then
  pass
else
  fail "$picture could not be drawn"
fi
finish
