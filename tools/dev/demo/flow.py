# SPDX-License-Identifier: Apache-2.0
"""Files hashed as the jobs of workflows: one callback makes one digest of all digests, while workers are killed."""

import json
import subprocess
import time

from report import Checks
from segment import Segment

WORKERS = 4
FILES = 400  # of a workflow; it may have 512 jobs
RETRY = {"max_attempts": 50, "initial_interval": "PT0.1S"}


def workflow_of(files: list[str]) -> str:
    job = {"type": "file.hash", "queue": "hash", "retry": RETRY}
    return json.dumps({"type": "batch", "name": "digest of digests", "jobs": [{**job, "args": [path]} for path in files],
                       "callbacks": {"on_success": {**job, "type": "digests.hash", "args": []}}}, ensure_ascii=False)


def digest_of_digests(files: list[str]) -> str:
    """By coreutils alone, in the order of the files."""
    given = "".join(path + "\0" for path in files).encode()
    said = subprocess.run(["sh", "-c", "xargs -0 sha256sum -- | cut -c1-64 | sha256sum"], input=given,
                          stdout=subprocess.PIPE, check=True)
    return said.stdout.decode().split()[0]


def hash_in_workflows(segment: Segment, files: list[str], kills: int, command: list[str], deadline: float,
                      checks: Checks) -> None:
    files = files[:FILES]
    expected = digest_of_digests(files)
    segment.workers = []
    for _ in range(WORKERS):
        segment.start_worker(command)
    killed, done, wrong = 0, 0, []
    while (killed < kills or done == 0) and not wrong and time.monotonic() < deadline:
        made = segment.answer("workflow", "run", "-", given=workflow_of(files)).strip()
        while (stands := look(segment, made))["state"] == "running" and time.monotonic() < deadline:
            if killed < kills and segment.kill_a_busy_worker():
                killed += 1
                segment.start_worker(command)
            else:
                time.sleep(0.02)
        digest = stands["callbacks"]["on_success"].get("result")
        if stands["state"] != "completed" or digest != expected:
            wrong.append(f"{stands['state']}, {digest}")
        done += 1
    checks.that(killed >= kills, f"{killed} kills of workers that held a job of a workflow")
    checks.that(not wrong and done, f"{done} workflows of {len(files)} files: the digest of all digests is what coreutils say"
                                    f"{', wrong: ' + wrong[0] if wrong else ''}")
    stopped = segment.stop_workers()
    checks.that(not any(stopped), "their workers stopped cleanly on SIGTERM")


def look(segment: Segment, workflow: str) -> dict:
    return json.loads(segment.answer("workflow", "get", workflow, "--json"))
