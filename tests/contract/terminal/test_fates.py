# SPDX-License-Identifier: Apache-2.0
"""What happens under ojs-shm-top: brokers that stop or die, segments that go or are full, files that it may only read."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest

import jsonschema

from live_segment import BIN, Segment, eventually, worker_at_work
from terminal import BOUND, Terminal

SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[3] / "docs" / "top_sample.schema.json").read_text())


class Fates(unittest.TestCase):
    def test_a_killed_broker(self):
        with Segment() as segment:
            segment.put("mail", 2)
            with segment.top("-d", "100ms") as top:
                top.until("broker alive")
                segment.end_broker(signal.SIGKILL)
                top.until("broker dead since")
                top.until("mail running")
                segment.start_broker()
                top.until("broker alive")

    def test_a_broker_that_died_before_it_looked(self):
        since = lambda top: re.search(r"broker (none|dead) since (\d\d:\d\d:\d\d)Z", top.text)
        now = lambda: time.strftime("%H:%M:%S", time.gmtime())
        with Segment() as segment:
            segment.put("mail", 3)
            segment.end_broker(signal.SIGKILL)
            times = set()
            for _ in range(2):
                with self.subTest("not repaired: the last trace, and not the look"), segment.top() as top:
                    top.until(lambda: since(top))
                    self.assertEqual(since(top)[1], "dead")
                    times.add(since(top)[2])
                looked = now()
                eventually(lambda: now() != looked)
            self.assertEqual(len(times), 1)
            segment.start_broker()
            with self.subTest("there is another one"), segment.top() as top:
                top.until("broker alive supervisor")
            with worker_at_work(segment, "mail"):
                def last_repair():
                    return json.loads(segment.look("--json", "-n", "1"))["segment"].get("last_repair")
                before = last_repair()
                segment.end_broker(signal.SIGKILL)
                repaired = eventually(lambda: (found := last_repair()) != before and found)
                with self.subTest("repaired: the repair"), segment.top() as top:
                    top.until(lambda: since(top))
                    self.assertEqual(since(top).groups(), ("none", repaired["at"][11:19]))
                # A process that gets the place of the dead broker is none.
                with worker_at_work(segment, "mail"), segment.top() as top:
                    top.until(lambda: since(top))
                    self.assertEqual(since(top).groups(), ("none", repaired["at"][11:19]))
            segment.start_broker()
            segment.end_broker(signal.SIGTERM)
            with self.subTest("it left in order"), segment.top() as top:
                top.until("broker none supervisor")

    def test_a_stopped_broker(self):
        with Segment() as segment:
            segment.put("mail")
            with segment.top("-d", "100ms") as top:
                top.until("broker alive")
                segment.broker.send_signal(signal.SIGSTOP)
                top.until("broker stopped")
                segment.broker.send_signal(signal.SIGCONT)
                top.until("broker alive")

    def test_a_segment_removed_under_it_and_the_next_one(self):
        with Segment() as segment:
            segment.put("mail", 2)
            with segment.top("-d", "100ms") as top:
                top.until("mail running")
                segment.end_broker(signal.SIGKILL)
                os.unlink(segment.file)
                top.until("REMOVED")
                top.until("mail running")
                segment.start_broker()
                segment.put("fresh")
                top.until("fresh")
                self.assertNotIn("mail", top.text)

    def test_a_copy_after_a_crash(self):
        with Segment() as segment:
            job = segment.put("mail", 2)
            segment.end_broker(signal.SIGKILL)
            copy = pathlib.Path(segment.dir) / "copy"
            shutil.copy(segment.file, copy)
            os.chmod(copy, 0o400)
            before = copy.read_bytes()
            with Terminal([str(BIN / "ojs-shm-top"), "--post-mortem", str(copy)], 120, 24) as top:
                top.until("POST MORTEM")
                top.until("broker attached")
                top.press("enter")
                top.until(job)
                top.press("enter")
                top.until("mail.send")
                top.press("9")
                top.until("mail new available")
            self.assertEqual(copy.read_bytes(), before)
            look = json.loads(subprocess.run([BIN / "ojs-shm-top", "--post-mortem", copy, "--json", "-n", "1"],
                                             capture_output=True, text=True, timeout=BOUND, check=True).stdout)
            jsonschema.validate(look, SCHEMA)
            self.assertTrue(look["segment"]["post_mortem"])
            self.assertLess(look["queues"][0]["oldest_age_ms"], 5000)

    def test_it_takes_no_handle(self):
        with Segment() as segment:
            segment.put("mail", 2)
            eventually(lambda: json.loads(segment.look("--json", "-n", "1"))["segment"]["supervisor"] == "alive")
            looks = [json.loads(segment.look("--json", "-n", "1")) for _ in range(2)]
            self.assertEqual(looks[0]["segment"]["memory"], looks[1]["segment"]["memory"])
            self.assertEqual([one["pid"] for one in looks[0]["workers"]], [segment.broker.pid])

    def test_it_needs_no_more_than_read_permission(self):
        if os.geteuid() == 0 and not shutil.which("setpriv"):
            self.skipTest("setpriv is missing, and root may write everything")
        # Root may write everything, so another user looks.
        stranger = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
        with Segment() as segment:
            segment.put("mail", 2)
            os.chmod(segment.dir, 0o555)
            for file in pathlib.Path(segment.dir).iterdir():
                os.chmod(file, 0o444)
            try:
                look = subprocess.run([*stranger, BIN / "ojs-shm-top", *segment.where, "--json", "-n", "1"], capture_output=True,
                                      text=True, timeout=BOUND)
                if stranger and "ermission denied" in look.stderr and look.returncode in (126, 127):
                    self.skipTest("no other user may start the program: " + look.stderr.strip())
                self.assertEqual(look.returncode, 0, look.stderr)
                self.assertEqual(json.loads(look.stdout)["queues"][0]["depth"], 2)
                self.assertEqual(json.loads(look.stdout)["segment"]["broker"], "alive")
                write = subprocess.run([*stranger, BIN / "ojs-shm", "enqueue", *segment.where, "-t", "mail.send"], capture_output=True,
                                       text=True, timeout=BOUND)
                self.assertEqual(write.returncode, 7, "who may not write looked: " + write.stderr)
            finally:
                os.chmod(segment.dir, 0o755)

    def test_a_segment_without_a_slot_or_a_handle_left(self):
        with Segment("--slots", "64", "--handles", "3") as segment, contextlib.ExitStack() as held:
            full = lambda: {pool["name"]: (pool["used"], pool["capacity"]) for pool in look()["segment"]["memory"]}
            look = lambda: json.loads(segment.look("--json", "-n", "1"))
            slots = full()["slots"][1]
            segment.put("mail", slots)
            refused = subprocess.run([BIN / "ojs-shm", "enqueue", *segment.where, "-t", "mail.send"], capture_output=True, text=True,
                                     timeout=BOUND)
            self.assertEqual((refused.returncode, full()["slots"]), (6, (slots, slots)), refused.stderr)
            while full()["handles"][0] < full()["handles"][1]:
                held.enter_context(worker_at_work(segment, "mail"))
            refused = subprocess.run([BIN / "ojs-shm", "enqueue", *segment.where, "-t", "mail.send"], capture_output=True, text=True,
                                     timeout=BOUND)
            self.assertEqual(refused.returncode, 6, refused.stderr)
            self.assertRegex(refused.stderr, "handles|processes")
            jsonschema.validate(look(), SCHEMA)
            self.assertEqual(sum(queue["depth"] + queue["active"] for queue in look()["queues"]), slots)
            with segment.top(columns=160) as top:
                top.until("slots[||||||||]100%")
                top.until("handles[||||||||]100%")
                top.until(f"mail running {slots - look()['queues'][0]['active']} ")
                for key, shown in (("2", "supervisor"), ("6", "mail.send"), ("8", "memory handles"), ("9", "new available")):
                    top.press(key)
                    top.until(shown)


if __name__ == "__main__":
    unittest.main()
