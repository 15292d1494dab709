# SPDX-License-Identifier: Apache-2.0
"""What ojs-shm-top prints without a terminal: samples as JSON, views as text."""

import json
import pathlib
import struct
import subprocess
import unittest

import jsonschema

from live_segment import BIN, Segment
from terminal import BOUND

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "docs" / "top_sample.schema.json").read_text())


def add_counter(file, like, label):
    """A row of the segment's catalogue as a later version may write it (docs/segment_layout.md): the words of another counter."""
    head, begin = 512, 576
    with open(file, "r+b") as segment:
        segment.seek(head)
        rows, row_bytes = struct.unpack("<II", segment.read(8))
        segment.seek(begin)
        table = [segment.read(row_bytes) for _ in range(rows)]
        row = bytearray(next(each for each in table if each[56:80].rstrip(b"\0") == like.encode()))
        row[0:4] = struct.pack("<I", 4711)
        row[56:80] = label.encode().ljust(24, b"\0")
        segment.seek(begin + rows * row_bytes)
        segment.write(row)
        segment.seek(head)
        segment.write(struct.pack("<I", rows + 1))


class Samples(unittest.TestCase):
    def test_json_is_as_its_schema_says(self):
        with Segment("--events") as segment:
            segment.put("mail", 5, meta={"tenant_id": "acme"})
            segment.cli("work", "--queue", "mail", "--count", "2", "--", "true")
            segment.cli("queue", "set", "mail", "--max-depth", "9", "--tenant-fairness", "on")
            segment.cli("pool", "set", "crew", "--queue", "mail")
            segment.cli("limit", "set", "type:mail.send", "--concurrency", "3")
            looks = [json.loads(line) for line in segment.look("--json", "-n", "2", "-d", "100ms").splitlines()]
            self.assertEqual(len(looks), 2)
            for look in looks:
                jsonschema.validate(look, SCHEMA)
            mail = looks[1]["queues"][0]
            self.assertEqual((mail["depth"], mail["totals"]["enqueued"], mail["totals"]["completed"]), (3, 5, 2))
            self.assertEqual((looks[0]["totals"], looks[0]["segment"]["broker"]), (mail["totals"], "alive"))
            self.assertEqual(looks[1]["rates"]["5s"]["totals"]["enqueued"], 0)
            self.assertNotIn("enqueued", looks[0]["rates"]["5s"]["totals"])
            self.assertEqual([(one["tenant"], one["depth"]) for one in looks[0]["tenants"]], [("acme", 3)])
            self.assertEqual((looks[0]["pools"][0]["name"], looks[0]["limits"][0]["key"]), ("crew", "type:mail.send"))
            self.assertEqual((mail["wait"]["count"], mail["run"]["count"]), (2, 2))

    def test_once_prints_any_view_as_text(self):
        with Segment() as segment:
            segment.put("mail", 3)
            self.assertRegex(segment.look("--once"), r"(?m)^mail +running +3 ")
            self.assertIn("mail.send", segment.look("--once", "--view", "jobs", "--queue", "mail"))
            self.assertRegex(segment.look("--once", "--view", "counters"), r"queue mail +enqueued +jobs +3")
            self.assertEqual(segment.look("--batch", "-n", "2", "-d", "20ms").count("QUEUE "), 2)

    def test_a_counter_of_a_later_version_is_shown(self):
        with Segment() as segment:
            segment.cli("cancel", segment.put("mail", 2))
            add_counter(segment.file, "cancelled", "teleported")
            look = json.loads(segment.look("--json", "-n", "1"))
            jsonschema.validate(look, SCHEMA)
            self.assertEqual((look["totals"]["teleported"], look["queues"][0]["totals"]["teleported"]), (1, 1))
            self.assertRegex(segment.look("--once", "--view", "counters"), r"(?m)^queue mail +teleported +jobs +1 ")
            with segment.top(columns=160) as top:
                top.until("teleported 1")
                top.press("8", "/", *"teleported", "enter")
                top.until("queue mail teleported jobs 1")

    def test_a_unique_job_shows_its_key_and_how_many_met_it(self):
        with Segment() as segment:
            unique = {"keys": ["args"], "on_conflict": "ignore"}
            segment.put("mail", 1, unique=unique)
            segment.put("mail", 1, unique=unique)
            self.assertRegex(segment.look("--once", "--view", "counters"), r"queue mail +conflicts +jobs +1")
            with segment.top() as top:
                top.until("mail running")
                top.press("enter")
                top.until("mail.send")
                top.press("enter")
                top.until('"on_conflict":"ignore"')

    def test_what_is_wrong_is_said(self):
        for flags, status in ((["--view", "clouds"], 2), (["--interval", "1ms"], 2), (["--once", "--batch"], 2),
                              (["--name", "nothing", "--dir", "/nonexistent", "--once"], 3),
                              (["--post-mortem", "/nonexistent/file", "--once"], 3), (["--dir", "/nonexistent"], 3)):
            done = subprocess.run([BIN / "ojs-shm-top", *flags], capture_output=True, text=True, timeout=BOUND)
            self.assertEqual(done.returncode, status, f"{flags}: {done.stderr}")
            self.assertTrue(done.stderr.strip())


if __name__ == "__main__":
    unittest.main()
