#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ABOUT: builds for 64-bit ARM and runs there what an emulator can run [--short]
# NEEDS: build
# WANTS: aarch64
. "$(dirname "$0")/../lane.sh"
RESULTS=build/aarch64/results
readonly HELP="aarch64 [--short]
  builds for ARMv8.0 and runs the unit tests, storms at crash points and the demonstration under qemu-aarch64, on a
  processor with LSE atomics and on one without; then the schedules, and once more what is built for ARMv8.1, where the
  compiler itself uses LSE
  --short: without the schedules and the second build, and with short storms"
short=0
while (($#)); do
  case $1 in
    --short) short=1 ;;
    *) usage "$HELP" ;;
  esac
  shift
done
lane aarch64
if [[ $(uname -m) == aarch64 ]]; then
  not_run "aarch64: this machine is one, and ./dev test shows more than an emulator does"
  finish
fi
for command in aarch64-linux-gnu-g++ qemu-aarch64; do
  if ! command -v "$command" >/dev/null; then
    not_run "aarch64: no $command; Debian has it in its packages"
    finish
  fi
done

# The machine must start programs for ARM by itself, for programs start programs. Where that was not arranged, a user
# namespace can, for what runs in it alone.
readonly ELF='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
readonly MASK='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
readonly ARRANGE="mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc &&
  printf %s ':qemu-aarch64:M::$ELF:$MASK:$(command -v qemu-aarch64):F' >/proc/sys/fs/binfmt_misc/register &&
  exec \"\$@\""
find_a_way() { # BIN: sets `run`, what stands before a command
  run=(env)
  "${run[@]}" "$1/ojs-shm" --version >/dev/null 2>&1 && return
  run=(unshare --user --map-root-user --mount bash -c "$ARRANGE" bash)
  "${run[@]}" "$1/ojs-shm" --version >/dev/null 2>&1 && return
  run=(qemu-aarch64)
}

# QEMU 7 aborts or hangs in a child that was forked, without exec, by a process with threads, and then starts its own.
readonly FORKED=(FrontLane.PRI_T03_a_holders_death_keeps_the_place_and_a_lease_expiry_goes_to_the_end
  FrontLane.a_death_after_the_last_attempt_discards FrontLane.a_job_owned_by_its_lease_survives_its_workers_process
  FrontLane.a_repair_that_is_under_way_is_waited_for Events.of_a_dead_process_stay_and_its_page_is_closed
  ForClients.FS_T02_what_no_client_got_when_its_server_died_comes_back_uncounted
  ForClients.a_job_that_reached_its_worker_is_counted_when_that_dies
  Supervision.the_death_of_a_process_that_can_be_seen_from_here_rings_the_doorbell
  'RuntimeEnd.a_forked_child*' 'SystemCalls.*')
# Here the kernel counts the emulator's own pages.
readonly PAGES=(Mapping.slots_are_mapped_ahead_and_their_use_faults_no_more
  Segment.lies_in_huge_pages_where_the_kernel_has_them)

unit() { # BIN PROCESSOR
  QEMU_CPU=$2 run_gtest "unit-$2" 900 "${run[@]}" "$1/unit_tests" "--gtest_filter=-$(IFS=: && echo "${FORKED[*]}:${PAGES[*]}")"
}

command_case() { # NAME SECONDS PROCESSOR COMMAND...: one case, its report to the screen and to a file
  local name=$1-$3
  echo "--- $name"
  QEMU_CPU=$3 timeout --kill-after=10 "$2" "${run[@]}" "${@:4}" </dev/null 2>&1 | tee "$RESULTS/$name.log"
  if ((PIPESTATUS[0] == 0)); then pass; else fail "$name: see $RESULTS/$name.log"; fi
}

on() { # BIN PROCESSOR
  unit "$@"
  command_case storm-at-points 300 "$2" "$1/crash_storm_at_points" --seconds $((short ? 4 : 20)) --everything
  if [[ ${run[*]} == qemu-aarch64 ]]; then
    not_run "demo-$2: nothing here starts programs of another architecture (binfmt_misc in a user namespace: Linux 6.7)"
  else
    command_case demo 290 "$2" "$PYTHON" tools/dev/demo/demo.py --bin "$1" --files $((short ? 60 : 300)) --kills 3
  fi
}

readonly OLD=cortex-a57 NEW=max # without and with LSE atomics
programs=(unit_tests crash_storm_at_points ojs_shm_programs)
build_tree aarch64 schedules_tests "${programs[@]}" || finish
mkdir -p "$RESULTS"
find_a_way build/aarch64/bin
on build/aarch64/bin $OLD
on build/aarch64/bin $NEW
if ((!short)); then
  QEMU_CPU=$NEW run_gtest schedules 5400 "${run[@]}" build/aarch64/bin/schedules_tests
  build_tree aarch64-lse "${programs[@]}" && RESULTS=build/aarch64-lse/results && mkdir -p "$RESULTS" &&
    on build/aarch64-lse/bin $NEW
fi
for name in "${FORKED[@]}" "crash_tests, linearizability_tests, stress_tests"; do
  not_run "$name: QEMU 7 cannot carry a forked child with threads; the storms at crash points stand in"
done
for name in "${PAGES[@]}"; do not_run "$name: QEMU's pages are not the program's"; done
not_run "environment_tests: they fork as well, and what they look at is the kernel, which is not emulated"
not_run "contract_tests: not built for ARM; of programs that start programs, only the demonstration is run"
not_run "instructions_tests: an emulated process cannot be stepped by ptrace"
not_run "memory orders: QEMU does not reorder what x86-64 does not (docs/memory_ordering.md has the argument)"
finish
