#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: instructions a job in one thread, counted by callgrind, against their budgets: [--lines] [WAY...]
# NEEDS: build cost
. "$(dirname "$0")/../lane.sh"
readonly HELP="cost [--lines] [WAY...]
  counts the instructions of 16,000 more jobs by each way through the public API; without a WAY, by all
  single, batch, c_abi: enqueue to ack; bounded: single in a queue with a bound that is far; prepared, prepared_batch, c_prepared: the same of jobs of one kind; events: single while events are told; enqueue, unique, replace: enqueues alone, of plain jobs, of unique ones whose keys
  are new, and of ones that replace a job that waits
  --lines: also the lines that take most, as callgrind_annotate prints them"
# WAY BUDGET: instructions a job that the way must not exceed, with GCC 12 at -O2 on x86-64, some percent above the figure.
readonly BUDGETS="
single 1610
prepared 1530
events 1840
bounded 1790
batch 1130
prepared_batch 1030
c_abi 2460
c_prepared 2205
enqueue 620
unique 860
replace 1770"
lines=0 ways=()
while (($#)); do
  case $1 in
    --lines) lines=1 ;;
    -*) usage "$HELP" ;;
    *) ways+=("$1") ;;
  esac
  shift
done
lane cost

collected() { # WAY JOBS
  local out=build/cost/$1.$2.out cost
  valgrind --tool=callgrind --callgrind-out-file="$out" build/bin/ojs_shm_cost "$1" "$2" 2>"$out.log" || return 1
  cost=$(callgrind_annotate --inclusive=yes "$out" | sed -nE "s/^ *([0-9,]+) .*::$1\(.*/\1/p" | head -n 1 | tr -d ,)
  [[ -n $cost ]] && echo "$cost"
}

build_tree default ojs_shm_cost || finish
mkdir -p build/cost
export OJS_SHM_DIR=$PWD/build/cost
while read -r way budget; do
  [[ -n $way ]] || continue
  if ((${#ways[@]})) && [[ " ${ways[*]} " != *" $way "* ]]; then continue; fi
  if ! few=$(collected "$way" 4000) || ! many=$(collected "$way" 20000); then
    fail "$way: the program did not end well"
    continue
  fi
  cost=$(((many - few) / 16000))
  printf '%-10s %6d instructions a job, budget %d\n' "$way" "$cost" "$budget"
  if ((cost > budget)); then fail "$way: $cost instructions a job, more than $budget"; else pass; fi
  ((lines)) && callgrind_annotate --auto=yes --context=0 --threshold=90 "build/cost/$way.20000.out" | head -n 150
done <<<"$BUDGETS"
finish
