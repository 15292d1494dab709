# SPDX-License-Identifier: Apache-2.0
# What every lane shares; sourced as its first line of work. A lane's head says what ./dev needs to know of it:
#   # ABOUT: one line for ./dev help
#   # NEEDS: package groups of setup.sh, without which it cannot start
#   # WANTS: groups without which some of its cases are not run
#   # IN-TEST: the arguments of its short form, if ./dev test is to run that too; several lines for several runs
# and its body is: lane NAME; work that calls pass, fail, not_run or run_*; finish.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
PYTHON=/usr/bin/python3 # the system's own: packages of setup.sh belong to it
[[ -x $PYTHON ]] || PYTHON=python3
CORES=$(nproc)
RESULTS=${OJS_SHM_RESULTS:-build/results} # the reports of the last ./dev test, and of the lanes that it runs

lane() { # NAME
  LANE=${1^^} PASSED=0 FAILED=0 SKIPPED=0 NOTES=() BESIDE=()
  mkdir -p build
  # shellcheck disable=SC2046
  bash tools/dev/setup.sh $(sed -n 's/^# NEEDS: *//p' "$0") || { fail "set-up"; EXIT=2 finish; }
  # shellcheck disable=SC2046
  bash tools/dev/setup.sh $(sed -n 's/^# WANTS: *//p' "$0") || not_run "some cases: their packages could not be installed"
}

pass() { PASSED=$((PASSED + ${1:-1})); }
fail() { FAILED=$((FAILED + 1)) NOTES+=("FAILED $*"); }
not_run() { SKIPPED=$((SKIPPED + 1)) NOTES+=("NOT RUN $*"); }

finish() {
  if ((${#NOTES[@]})); then printf '%s\n' "" "${NOTES[@]}"; fi
  if ((PASSED + FAILED + SKIPPED == 0)); then
    echo "no case was found, which is a failure"
    FAILED=1
  fi
  echo "$LANE: $PASSED passed, $FAILED failed, $SKIPPED skipped"
  exit "${EXIT:-$((FAILED > 0))}"
}

usage() { # TEXT
  echo "usage: ./dev $1" >&2
  exit 2
}

# Fails the lane when it does not build. OJS_SHM_BUILT names a preset of which everything is there, as in ./dev test.
build_tree() { # PRESET [TARGET...]
  local preset=$1 launcher=()
  [[ $preset != "${OJS_SHM_BUILT:-}" ]] || return 0
  shift
  if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  if ! cmake --preset "$preset" "${launcher[@]}" >build/configure.log 2>&1; then
    cat build/configure.log
    fail "configure ($preset)"
    return 1
  fi
  if ! cmake --build --preset "$preset" -j "$CORES" ${1:+--target "$@"}; then
    fail "build ($preset)"
    return 1
  fi
}

count() { # REPORT: adds its cases to the tally and its failures and skips to the notes
  local passed failed skipped notes
  read -r passed failed skipped < <("$PYTHON" tools/dev/results.py counts "$1")
  PASSED=$((PASSED + passed)) FAILED=$((FAILED + failed)) SKIPPED=$((SKIPPED + skipped))
  mapfile -t notes < <("$PYTHON" tools/dev/results.py notes "$1")
  NOTES+=("${notes[@]}")
  ((passed + failed + skipped > 0)) || fail "$1: no case was found"
}

# Runs one GoogleTest program: the whole log goes to a file, and what is neither green nor routine to the screen.
run_gtest() { # NAME SECONDS PROGRAM [ARGS...]
  local name=$1 seconds=$2 report=$RESULTS/$1.xml log=$RESULTS/$1.log status
  shift 2
  mkdir -p "$RESULTS"
  rm -f "$report"
  echo "--- $name"
  timeout --kill-after=10 "$seconds" "$@" --gtest_output="xml:$report" </dev/null 2>&1 | tee "$log" |
    grep --line-buffered -avE '^(\[( RUN|       OK|-------|=======|  PASSED|  SKIPPED)|$|Note: Google Test filter|Running main)'
  status=${PIPESTATUS[0]}
  if [[ ! -s $report ]]; then
    fail "$name: died with status $status$([[ $status == 124 ]] && echo " (longer than $seconds s)"), last test:" \
      "$(grep -a '^\[ RUN' "$log" | tail -n 1 | sed 's/^.*\] //')"
    return 1
  fi
  count "$report"
  if [[ $status != 0 ]] && ! grep -q '<failure' "$report"; then
    fail "$name: exited with status $status though every case passed"
  fi
}

# Runs whatever ends with a closing line and adds that to ours; its lines "ok NAME" and "not ok NAME" become a report.
run_tallied() { # NAME COMMAND...
  local name=$1 log=$RESULTS/$1.log status
  shift
  mkdir -p "$RESULTS"
  echo "--- $name"
  "$@" </dev/null 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  grep -aE '^(not )?ok ' "$log" >"$RESULTS/$name.lines" || rm "$RESULTS/$name.lines"
  mapfile -t -O "${#NOTES[@]}" NOTES < <(grep -aE '^(FAILED|NOT RUN|not ok) ' "$log" | sed 's/^not ok/FAILED/')
  if [[ ! $(tail -n 1 "$log") =~ ^[A-Z]+:\ ([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
    fail "$name: no closing line (status $status)"
    return
  fi
  PASSED=$((PASSED + BASH_REMATCH[1])) FAILED=$((FAILED + BASH_REMATCH[2])) SKIPPED=$((SKIPPED + BASH_REMATCH[3]))
  if ((status != 0 && BASH_REMATCH[2] == 0)); then fail "$name: status $status"; fi
}

run_lane() { # VERB [ARGS...]: another lane
  run_tallied "lane-$1${2:+$2}" bash "tools/dev/lanes/$1.sh" "${@:2}"
}

# Runs in the background, as many at once as there are cores, but four at most; what it prints comes when it has ended.
beside() { # NAME run_gtest|run_tallied|run_lane [ARGS...]
  local name=$1
  shift
  while (($(jobs -rp | wc -l) >= (CORES < 4 ? CORES : 4))); do wait -n || true; done
  rm -f "$RESULTS/$name.tally"
  BESIDE+=("$name")
  (
    PASSED=0 FAILED=0 SKIPPED=0 NOTES=() SECONDS=0
    "$@" >"$RESULTS/$name.screen" 2>&1
    printf '%s\n' "$PASSED $FAILED $SKIPPED" ${NOTES[@]+"${NOTES[@]}"} >"$RESULTS/$name.tally"
    flock "$RESULTS" cat "$RESULTS/$name.screen" - <<<"    $SECONDS s"
  ) &
}
# Ends them with all that they started: the shell keeps an interrupt from what runs in the background.
end_beside() {
  local pid
  for pid in $(jobs -p); do end_tree "$pid"; done
}
end_tree() { # PID
  local child
  for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do end_tree "$child"; done
  kill "$1" 2>/dev/null
}
gather() { # waits for all of them and adds them up
  local name passed failed skipped
  wait
  for name in ${BESIDE[@]+"${BESIDE[@]}"}; do
    if ! read -r passed failed skipped <"$RESULTS/$name.tally"; then
      fail "$name: ended without a word"
      continue
    fi
    PASSED=$((PASSED + passed)) FAILED=$((FAILED + failed)) SKIPPED=$((SKIPPED + skipped))
    mapfile -t -s 1 -O "${#NOTES[@]}" NOTES <"$RESULTS/$name.tally"
  done
  BESIDE=()
}
