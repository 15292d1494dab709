# SPDX-License-Identifier: Apache-2.0
"""Golden screens: each view of one and the same segment, as a terminal of 80x24 and one of 160x50 shows it.

What differs from run to run (times, process ids) is masked at its own width, so that columns keep their places. The interval is an
hour: nothing happens while a screen is looked at. UPDATE_GOLDEN=1 writes golden/ anew.
"""

import contextlib
import difflib
import json
import os
import pathlib
import re
import subprocess
import unittest

from live_segment import BIN, Segment, worker_at_work
from terminal import BOUND

GOLDEN = pathlib.Path(__file__).parent / "golden"
SIZES = ((80, 24), (160, 50))
#: The keys from the first screen to a view, and how the last line names the way to it.
VIEWS = {"queues": ((), "queues"), "workers": ("2", "workers"), "pools": ("3", "pools"), "tenants": ("4", "tenants"),
         "limits": ("5", "limits"), "jobs": ("6", "jobs (waiting)"), "events": ("7", "events"), "counters": ("8", "counters"), "past": ("9", "past"), "crons": ("C", "crons"),
         "help": ("?", "queues > help"), "queue": (("enter",), "queues > jobs mail (waiting)"),
         "job": (("6", "/", *"traced", "enter", "enter"), "jobs (waiting) > job")}
#: The same of a segment with workflows.
WORKFLOW_VIEWS = {"workflows": (("0",), "workflows"), "workflow": (("0", "enter"), "workflows > workflow")}
WORKFLOW = {"type": "chain", "name": "order", "steps": [
    {"type": "order.check", "args": []},
    {"type": "batch", "jobs": [{"type": "order.pack", "args": []}, {"type": "order.bill", "args": [], "queue": "bills"}],
     "callbacks": {"on_complete": {"type": "order.tell", "args": []}}},
    {"type": "order.close", "args": []}]}
LAST_LINE = "  every 3600000 ms  ? help  q quit"
DURATION = r"\d+(?:\.\d)? (?:ms|s)|\d+m\d\ds"


def job_id(number):
    return f"01900000-0000-7000-8000-{number:012}"


def put(segment, *jobs):
    segment.cli("enqueue", text="".join(json.dumps({"id": job_id(number), **job}, ensure_ascii=False) + "\n" for number, job in enumerate(jobs, 1)))


@contextlib.contextmanager
def furnished():
    """The same segment each time: queues in every state that needs no waiting, tenants, a pool, a limit, a dead letter, a worker."""
    with Segment("--events") as segment:
        segment.cli("queue", "set", "mail", "--tenant-fairness", "on", "--tenant-weights", "acme:3", "--max-depth", "40")
        segment.cli("queue", "set", "full", "--max-depth", "2")
        segment.cli("limit", "set", "type:image.resize", "--concurrency", "3")
        segment.cli("cron", "set", "nightly", "30 4 * * MON-FRI", "--type", "report.build", "--queue", "reports",
                    "--timezone", "Europe/Berlin", "--paused")
        # Nothing starves while the test takes its time.
        segment.cli("pool", "set", "crew", "--queue", "mail:3,reports:1", "--rotation-interval", "1h")
        segment.cli("pool", "set", "rest", "--queue", "images,full,broken", "--rotation-interval", "1h")
        acme, zoo = {"tenant_id": "acme"}, {"tenant_id": "zoo"}
        put(segment,
            {"type": "traced", "queue": "mail", "args": ["größe 日本"], "priority": 3,
             "meta": {**acme, "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
            *({"type": "mail.send", "queue": "mail", "args": [i], "priority": i % 3, "meta": acme if i % 3 else zoo} for i in range(12)),
            *({"type": "report.build", "queue": "reports", "args": [i]} for i in range(5)),
            *({"type": "image.resize", "queue": "images", "args": [i]} for i in range(3)),
            *({"type": "two", "queue": "full", "args": [i]} for i in range(2)),
            {"type": "fails", "queue": "broken", "args": [], "retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}})
        subprocess.run([BIN / "ojs-shm", "work", "--queue", "broken", "--count", "1", *segment.where, "--", "false"],
                       capture_output=True, timeout=BOUND, check=False)
        segment.cli("work", "--queue", "mail", "--count", "3", "--", "true")
        segment.cli("queue", "pause", "reports")
        with worker_at_work(segment, "images"):
            yield segment


def masked(lines, view, columns):
    """The screen without what differs from run to run."""
    head = [re.sub(rf"\(pid \d+\)|up (?:{DURATION})|timer_walks \d+", lambda word: re.sub(r"\d.*(?<!\))", "N", word[0]), line)
            for line in lines[:5]]
    rows = [re.sub(rf"(?<![\w.-]) *(?:{DURATION})(?:/(?:{DURATION}))?(?= |$)", lambda time: "TIME".rjust(len(time[0])), line)
            for line in lines[5:-1]]
    if view == "workers":  # the first column is as wide as the longest process id, of at most seven digits
        rows[1:] = [re.sub(r"^ *(?:(PID)|\d+) ", lambda word: (word[1] or "  #") + " ", line)[:columns - 5] for line in rows[1:]]
    if view == "counters":
        rows = [re.sub(r"(timer_walks +walks) ( *)\d+", lambda row: row[1] + row[0][len(row[1]):-1] + "N", line) for line in rows]
    if view == "past":  # process and handle depend on the run
        rows[1:] = [re.sub(r"( \w+ +\w+) +\d+ +\d+$", r"\1 HANDLE PID", line) for line in rows[1:]]
        rows[1:] = [re.sub(r" +(PID|-)$", r" \1", line) for line in rows[1:]]  # as wide as the longest process id
        rows = [rows[0]] + [re.sub(r"^\S+", "TIME", line) for line in rows[1:]]
    if view == "events":  # less than a millisecond is no time
        rows = [re.sub(r"(job\.(?:started|completed) .*\d) +(?:-|TIME)$", r"\1 TIME", line) for line in rows]
    rows = [re.sub(r" [\d.]+$", "", line) if len(line) > columns - 6 else line for line in rows]  # half a time at the edge
    clock = [re.sub(r"\d\d:\d\d:\d\d(\.\d{3})?", lambda time: re.sub(r"\d", "0", time[0]), line) for line in head + rows]
    return [re.sub(r"\d{4}-\d\d-\d\dT", "YYYY-MM-DDT", line).rstrip() for line in clock] + lines[-1:]


class Golden(unittest.TestCase):
    maxDiff = None

    def check(self, name, shown):
        file = GOLDEN / name
        if os.environ.get("UPDATE_GOLDEN"):
            GOLDEN.mkdir(exist_ok=True)
            file.write_text("\n".join(shown) + "\n")
        expected = file.read_text().splitlines() if file.exists() else []
        if shown != expected:
            self.fail("\n".join(["the screen is not the golden one (UPDATE_GOLDEN=1 takes it)",
                                 *difflib.unified_diff(expected, shown, f"golden/{name}", "shown", n=0, lineterm="")]))

    def test_every_view_is_as_it_was(self):
        with furnished() as segment:
            for columns, lines in SIZES:
                for view, (keys, way) in VIEWS.items():
                    with self.subTest(f"{view} {columns}x{lines}"), segment.top("-d", "1h", columns=columns, lines=lines) as top:
                        top.until(lambda: top.lines[-1] == "queues" + LAST_LINE)
                        # The last line says FROZEN once all that came before it is drawn.
                        top.press(*keys, " ")
                        top.until(lambda: top.lines[-1] == "FROZEN " + way + LAST_LINE)
                        self.check(f"{view}.{columns}x{lines}.txt", masked(top.lines, view, columns))

    def test_workflows_are_as_they_were(self):
        with Segment() as segment:
            segment.cli("workflow", "run", "-", text=json.dumps(WORKFLOW))
            segment.cli("work", "--queue", "default", "--count", "1", "--", "true")
            for columns, lines in SIZES:
                for view, (keys, way) in WORKFLOW_VIEWS.items():
                    with self.subTest(f"{view} {columns}x{lines}"), segment.top("-d", "1h", columns=columns, lines=lines) as top:
                        top.until(lambda: top.lines[-1] == "queues" + LAST_LINE)
                        top.press(*keys, " ")
                        top.until(lambda: top.lines[-1] == "FROZEN " + way + LAST_LINE)
                        shown = masked(top.lines, view, columns)
                        self.check(f"{view}.{columns}x{lines}.txt",
                                   [re.sub(r"\b[0-9a-f]{8}-[0-9a-f-]*", lambda job: "#" * len(job[0]), line) for line in shown])


if __name__ == "__main__":
    unittest.main()
