# SPDX-License-Identifier: Apache-2.0
"""What ojs-shm-top changes when it is asked to."""

import json
import subprocess
import unittest

from live_segment import BIN, Segment, eventually
from terminal import BOUND


class Changes(unittest.TestCase):
    def test_nothing_changes_without_admin(self):
        with Segment() as segment:
            segment.put("mail")
            with segment.top() as top:
                top.until("mail running")
                top.press("p")
                top.until("start it with --admin")
                self.assertIn("running", segment.cli("queue", "list"))

    def test_pause_resume_reprioritize_and_cancel_after_a_question(self):
        with Segment() as segment:
            job = segment.put("mail")
            state = lambda member: json.loads(segment.cli("get", job, "--json"))[member]
            with segment.top("--admin", "-d", "100ms") as top:
                top.until("mail running")
                top.press("p")
                top.until("pause queue mail?")
                top.press("n")
                top.until("not done")
                top.press("p", "y")
                top.until("mail paused")
                top.press("r", "y")
                top.until("mail running")
                top.press("enter")
                top.until(job)
                top.press("P")
                top.until("priority of job")
                top.press("n", "o", "n", "e", "enter")
                top.until("none")
                self.assertEqual(state("priority"), 2)
                top.press("P", "h", "i", "g", "h", "enter")
                eventually(lambda: (top.read(), state("priority") == 1)[1])
                top.press("c")
                top.until("cancel job")
                top.press("esc")
                top.until(lambda: "cancel job" not in top.text)
                top.press("c", "y")
                eventually(lambda: (top.read(), state("state") == "cancelled")[1])
                top.press("M", "y")
                top.until("dead processes repaired")

    def test_dead_letters_are_retried_and_dropped(self):
        with Segment() as segment:
            retry = {"max_attempts": 1, "on_exhaustion": "dead_letter"}
            jobs = [segment.put("mail", 1, retry=retry), segment.put("mail", 1, retry=retry)]
            subprocess.run([BIN / "ojs-shm", "work", "--queue", "mail", "--count", "2", *segment.where, "--", "false"],
                           capture_output=True, timeout=BOUND)
            state = lambda job: json.loads(segment.cli("get", job, "--json"))["state"]
            eventually(lambda: all(state(job) == "discarded" for job in jobs))
            with segment.top("--admin", "--view", "jobs", "-d", "100ms", columns=200) as top:
                top.until("jobs (waiting)")
                top.press("s", "s")
                top.until(jobs[0])
                top.press("R", "y")
                top.until("is available")
                top.until(lambda: jobs[0] not in "\n".join(top.lines[7:]))
                top.press("D", "y")
                top.until("dropped")
                eventually(lambda: len(segment.cli("dead", "list").splitlines()) == 0)

    def test_a_job_that_is_over_is_dropped_after_a_question(self):
        with Segment() as segment:
            over, at_work = segment.put("mail"), segment.put("mail")
            segment.cli("cancel", over)
            with segment.top("--admin", "--view", "jobs", "-d", "100ms", columns=200) as top:
                top.until("jobs (waiting)")
                top.press("s", "s", "s")
                top.until(over)
                top.press("/", *"cancelled", "enter")
                top.until(lambda: at_work not in top.text)
                top.press("D")
                top.until(f"drop what is kept of job {over}?")
                top.press("n")
                top.until("not done")
                self.assertIn("cancelled", segment.cli("get", over))
                top.press("D", "y")
                top.until(f"job {over} is dropped")
                with self.assertRaises(AssertionError):
                    segment.cli("get", over)
                top.press("esc")
                top.until(at_work)
                top.press("D", "y")
                top.until("is available, not a job that is over")
                self.assertIn("available", segment.cli("get", at_work))


if __name__ == "__main__":
    unittest.main()
