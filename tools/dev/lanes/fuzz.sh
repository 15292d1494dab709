#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: hostile segments, envelopes, C callers and HTTP clients from libFuzzer [--short] [--seconds N] [--only TARGET] [--seed S]
# NEEDS: build
# WANTS: fuzz
# IN-TEST: --short
. "$(dirname "$0")/../lane.sh"
HELP="fuzz [--short] [--seconds N] [--only TARGET] [--seed S]
  targets: $(printf '%s\n' tests/fuzz/*_fuzz.cpp | sed 's|.*/||; s|_fuzz.cpp||' | xargs)
  N seconds for each target: 300, or 10 with --short"
seconds=300 only='' seed=$((RANDOM << 15 | RANDOM | 1))
while (($#)); do
  case $1 in
    --short) seconds=10 ;;
    --seconds) seconds=${2:?$HELP} && shift ;;
    --only) only=${2:?$HELP} && shift ;;
    --seed) seed=${2:?$HELP} && shift ;;
    *) usage "$HELP" ;;
  esac
  shift
done
[[ $seconds =~ ^[1-9][0-9]*$ && $seed =~ ^[0-9]+$ && (-z $only || -f tests/fuzz/${only}_fuzz.cpp) ]] || usage "$HELP"
readonly FOUND=build/fuzz/found
lane fuzz
probe='extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }'
if ! clang++ -xc++ -fsanitize=fuzzer,address,undefined -o /dev/null - 2>build/fuzz-probe.log <<<"$probe"; then
  not_run "no clang++ with libFuzzer: $(tail -n 1 build/fuzz-probe.log)"
  finish
fi
build_tree fuzz "${only:-all}_fuzz" || finish

# In memory, for every run writes a segment. What a run leaves behind goes with it.
TMPDIR=$(mktemp -d -p "$([[ -w /dev/shm ]] && echo /dev/shm || echo /tmp)")
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
mkdir -p "$FOUND" "$RESULTS"

# What libFuzzer reports of a failure, and how to see it again.
report() { # TARGET LOG
  grep -aE '^(broken:|==.*(ERROR|SUMMARY)|SUMMARY|.*runtime error:| +#[0-9]+ )' "$2" | head -n 16
  local input
  input=$(sed -nE 's/.*Test unit written to (.*)/\1/p' "$2" | tail -n 1)
  echo "again: build/fuzz/bin/$1_fuzz ${input:-$(sed -nE 's/^Running: //p' "$2" | tail -n 1)}"
  [[ -z $input ]] || echo "once it is mended: install -D $input tests/fuzz/regressions/$1/NAME"
}

fuzz() { # TARGET
  local target=$1 program=build/fuzz/bin/$1_fuzz log=$RESULTS/fuzz-$1.log known corpus=$TMPDIR/$1 runs
  local longest=512
  [[ $target != http ]] || longest=2048 # several requests
  local options=(-timeout=30 -max_len=$longest -len_control=0 -artifact_prefix="$FOUND/$1-")
  mapfile -t known < <(find "tests/fuzz/corpus/$1" "tests/fuzz/regressions/$1" -type f 2>/dev/null | sort)
  if ((${#known[@]})); then
    if "$program" "${options[@]}" "${known[@]}" >"$log" 2>&1; then
      pass
    else
      fail "$target: a known input"
      report "$target" "$log"
      return
    fi
  fi
  [[ -f tests/fuzz/$1.dict ]] && options+=(-dict="tests/fuzz/$1.dict")
  mkdir "$corpus"
  cp "tests/fuzz/corpus/$target"/* "$corpus/"
  "$program" "${options[@]}" -seed="$seed" -max_total_time="$seconds" -print_final_stats=1 "$corpus" >"$log" 2>&1
  local status=$?
  runs=$(sed -nE 's/^stat::number_of_executed_units: *//p' "$log")
  echo "$target: ${#known[@]} known inputs, ${runs:-0} executions, $(grep -aoE 'cov: [0-9]+' "$log" | tail -n 1)" \
    "edges, $(find "$corpus" -type f | wc -l) inputs of interest"
  if ((status != 0)); then
    fail "$target: status $status (./dev fuzz --only $target --seed $seed)"
    report "$target" "$log"
  elif ((${runs:-0} == 0)); then
    fail "$target: nothing was executed"
  else
    pass
  fi
}

echo "seed $seed, $seconds seconds for each target"
for source in tests/fuzz/*_fuzz.cpp; do
  target=$(basename "$source" _fuzz.cpp)
  [[ -n $only && $only != "$target" ]] || fuzz "$target"
done
finish
