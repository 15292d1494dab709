#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The main job on real input: hash files under /usr/share in worker processes that are killed while they work.

A broker and a gateway, one job for each file (small files first), every other one submitted over HTTP, and four `ojs-shm work` processes. Again and again one of them is
stopped, seen to hold a job, and killed with SIGKILL; another takes its place. At the end every digest must be what
sha256sum says. Then the same in workflows, whose callback makes one digest of all digests. Leaves nothing behind.
"""

import argparse
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from flow import hash_in_workflows
from inputs import LEVELS, choose_files, digests_of, envelopes, level_of
from report import Checks, print_report
from segment import Segment
from watch import Watch, judge_samples

WORKERS = 4
DEADLINE_S = 240


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="where the programs are")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path("/usr/share"))
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--kills", type=int, default=20)
    options = parser.parse_args()
    checks = Checks()
    files = choose_files(options.root, options.files)
    if not checks.that(len(files) >= options.files, f"{len(files)} readable regular files under {options.root}"):
        return checks.exit_code()
    with tempfile.TemporaryDirectory(prefix="ojs-shm-demo-", dir=shared_memory()) as folder:
        run(options, files, pathlib.Path(folder), checks)
        left = sorted(path.name for path in pathlib.Path(folder).glob("ojs-shm.*"))
        checks.that(not left, f"no segment left behind {left if left else ''}".rstrip())
    return checks.exit_code()


def shared_memory() -> str | None:
    return "/dev/shm" if pathlib.Path("/dev/shm").is_dir() else None


def run(options: argparse.Namespace, files: list[str], folder: pathlib.Path, checks: Checks) -> None:
    deadline = time.monotonic() + DEADLINE_S
    command = [str(pathlib.Path(__file__).parent / "hash_file.sh")]
    with Segment(options.bin, folder, "demo") as segment:
        segment.start_broker()
        segment.start_gateway()
        print(f"  watch it: {options.bin / 'ojs-shm-top'} {' '.join(segment.where)}, or http://{segment.address}/", flush=True)
        expected = digests_of(files)
        watch = Watch(segment)
        begun = time.monotonic()
        paths = dict(zip(segment.enqueue(envelopes(files[::2])), files[::2]))
        over_http = segment.enqueue_by_http(envelopes(files[1::2]))
        paths |= zip(over_http, files[1::2])
        checks.that(len(paths) == len(files), f"{len(paths)} jobs accepted, {len(over_http)} of them over HTTP")
        for _ in range(WORKERS):
            segment.start_worker(command)

        kills = 0
        pause = 0.0
        while time.monotonic() < deadline:
            waiting, active = segment.unfinished()
            if waiting + active == 0:
                if kills >= options.kills:
                    break
                again = segment.enqueue(envelopes(files))  # the list was too short for so many kills
                paths.update(zip(again, files))
                continue
            if kills < options.kills and time.monotonic() >= pause:
                if segment.kill_a_busy_worker():
                    kills += 1
                    segment.start_worker(command)
                    pause = time.monotonic() + 0.15
            else:
                time.sleep(0.05)
        seconds = time.monotonic() - begun
        checks.that(time.monotonic() < deadline, f"all finished within {DEADLINE_S} s")
        checks.that(kills >= options.kills, f"{kills} kills, each of a worker that held a job")
        stopped = segment.stop_workers()
        unclean = f" {stopped}" if any(stopped) else ""
        checks.that(not unclean, f"the living workers stopped cleanly on SIGTERM{unclean}")
        judge_samples(watch.end(), len(paths), checks)
        judge(segment, paths, expected, kills, seconds, checks)
        read_back = segment.results_by_http(list(paths))
        wrong = [path for job_id, path in paths.items() if read_back.get(job_id) != expected[path]]
        checks.that(not wrong, f"{len(paths) - len(wrong)} digests read back over HTTP{', wrong: ' + wrong[0] if wrong else ''}")
        hash_in_workflows(segment, files, max(1, options.kills // 4), command, deadline, checks)
        checks.that(segment.stop_gateway() == 0, "the gateway stopped cleanly on SIGTERM")
        checks.that(segment.command("audit").returncode == 0, "the audit finds every invariant intact")
        checks.that(segment.stop_broker() == 0, "the broker stopped cleanly on SIGTERM")


def judge(segment: Segment, paths: dict[str, str], expected: dict[str, str], kills: int, seconds: float,
          checks: Checks) -> None:
    jobs = {job["id"]: job for job in segment.jobs()}
    missing = [path for job_id, path in paths.items() if jobs.get(job_id, {}).get("state") != "completed"]
    checks.that(not missing, f"{len(paths) - len(missing)} of {len(paths)} jobs completed"
                             f"{', missing: ' + missing[0] if missing else ''}")
    wrong = [path for job_id, path in paths.items() if jobs.get(job_id, {}).get("result") != expected[path]]
    checks.that(not wrong, f"{len(paths) - len(wrong)} digests are what sha256sum says"
                           f"{', wrong: ' + wrong[0] if wrong else ''}")
    checks.that(set(jobs) == set(paths), "no job that was not submitted")
    misplaced = [job for job in jobs.values() if job["priority"] != level_of(paths.get(job["id"], ""))]
    checks.that(not misplaced, "every job kept its priority")
    retried = [job for job in jobs.values() if job["attempt"] > 1]
    checks.that(retried, f"{len(retried)} jobs ran more than once")
    print_report(list(jobs.values()), [f"priority {level} ({text})" for level, (_, text) in enumerate(LEVELS)],
                 kills, len(retried), seconds)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that everything is taken down on the way out
    try:
        sys.exit(main())
    except (subprocess.CalledProcessError, RuntimeError) as problem:
        print(f"  FAILED  {problem}")
        sys.exit(1)
