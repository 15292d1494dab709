# SPDX-License-Identifier: Apache-2.0
"""ojs-shm-top as a person sees it: every view, every key."""

import json
import os
import signal
import time
import unittest

from live_segment import Segment, worker_at_work


class Views(unittest.TestCase):
    def test_every_view_and_the_way_in_and_out(self):
        with Segment("--events") as segment:
            segment.cli("queue", "set", "mail", "--tenant-fairness", "on")
            segment.cli("pool", "set", "crew", "--queue", "mail")
            segment.cli("limit", "set", "type:mail.send", "--concurrency", "3")
            job = segment.put("mail", 3, meta={"tenant_id": "acme", "traceparent": "00-11-22-01"})
            with segment.top() as top:
                top.until("mail running")
                for key, shown in (("2", "supervisor"), ("3", "round-robin"), ("4", "acme"), ("5", "3 at once"),
                                   ("6", job), ("7", "job.enqueued"), ("8", "unmeasured_waits"), ("9", "new available"),
                                   ("?", "go on")):
                    top.press(key)
                    top.until(shown)
                top.press("esc")
                top.until("past every")
                top.press("enter")
                top.until("00-11-22-01")
                top.press("esc")
                top.press("1")
                top.until("[queues]")
                top.until("mail running")
                top.press("enter")
                top.until(job)
                top.until("queues > jobs mail (waiting)")
                top.press("enter")
                top.until("00-11-22-01")
                top.press("esc")
                top.until("queues > jobs")
                top.press("esc")
                top.until(lambda: "queues every" in top.text)
                top.press("t")
                top.until("queues > tenants mail")
                top.press("enter")
                top.until("jobs mail acme (waiting)")
                top.press("3")
                top.until("round-robin")
                top.press("enter")
                top.until("pools > queues crew")
                top.press("tab")
                top.until("[tenants]")
                top.press("backtab")
                top.until("[pools]")
                top.press("q")
                self.assertEqual(top.ends(), 0)

    def test_a_workflow_its_parts_and_their_jobs(self):
        with Segment() as segment:
            step = {"type": "order.check", "args": []}
            workflow = segment.cli("workflow", "run", "-", text=json.dumps({"type": "chain", "steps": [step, step]})).strip()
            with segment.top("-d", "100ms") as top:
                top.press("0")
                top.until(workflow)
                top.press("enter")
                top.until("workflows > workflow")
                top.until("`- order.check")
                top.press("enter")
                top.until("it has no job")
                top.press("down", "enter")
                top.until("workflows > workflow > job")
                top.until("order.check")
                top.press("esc", "esc")
                segment.cli("workflow", "cancel", workflow)
                top.until("cancelled")

    def test_a_job_in_full_is_all_there(self):
        with Segment() as segment:
            words = " ".join(f"{i:04}" for i in range(100))  # 499 bytes
            long = " ".join(f"{i:05}" for i in range(1000))
            segment.put("mail", 1, args=[words])
            long_job = segment.put("mail", 1, args=[long])
            with segment.top(columns=80) as top:
                value = lambda: "".join(line[13:].ljust(67) if line[:13].strip() in ("", "args") else "\n" for line in top.screen.display[7:-1])
                top.press("6", "enter")
                top.until("> job every")
                top.until(lambda: f'["{words}"]' in value())
                top.resize(100, 24)  # and anew at another width
                top.until(lambda: any("0017 0018" in line and len(line) > 95 for line in top.lines))
                top.resize(80, 24)
                top.until(lambda: f'["{words}"]' in value())
                top.press("esc")
                top.until("jobs (waiting) every")
                top.until(long_job)
                top.press("end", "enter")
                top.until("00000 00001")
                # More than a screen: the cursor goes through its lines.
                self.assertNotIn("00999", top.text)
                seen = set()
                for _ in range(9):
                    top.press("pgdn", " ", " ")
                    seen |= set(value().split())
                    top.read(0.2)
                top.until("00999")

    def test_enter_on_a_registered_worker_shows_its_oldest_job(self):
        with Segment() as segment:
            segment.put("mail", 2)
            at_work = worker_at_work(segment, "mail", "--worker-id", "mailer-1")
            with at_work, segment.top(columns=160) as top:
                top.press("2")
                top.until("worker mailer-1")
                top.press("end", "enter")
                top.until("workers > job")
                top.until("type mail.send")
                top.until("state active")

    def test_filter_sort_freeze_interval_and_scroll(self):
        with Segment() as segment:
            for queue, jobs in (("alpha", 1), ("beta", 3), ("gamma", 2)):
                segment.put(queue, jobs)
            with segment.top() as top:
                top.until("gamma")
                order = lambda: [line.split()[0] for line in top.lines[7:10] if line]
                top.until(lambda: order() == ["alpha", "beta", "gamma"])
                top.press("f6", ">", ">")
                top.until(lambda: order() == ["beta", "gamma", "alpha"])
                top.press("I")
                top.until(lambda: order() == ["alpha", "gamma", "beta"])
                top.press("<", "<", "<")
                top.press("/", "m", "m", "enter")
                top.until('filter "mm"')
                top.until(lambda: order() == ["gamma"])
                top.press("esc")
                top.until(lambda: order() == ["alpha", "beta", "gamma"])
                top.press("/", "x", "erase", "b", "e", "t")
                top.until("filter: bet_")
                top.until(lambda: order() == ["beta"])
                top.press("esc")
                top.until(lambda: len(order()) == 3)
                top.press(" ")
                top.until("FROZEN")
                segment.put("delta")
                top.press("+")
                top.until("every 2000 ms")
                top.press("-", "-", "-")
                top.until("every 200 ms")
                self.assertNotIn("delta", top.text)
                top.press(" ")
                top.until("delta")
                top.until("STATE")
                top.press("right", "right")
                top.until(lambda: "STATE" not in top.text and "QUEUE" in top.text)
                top.press("left", "left")
                top.until("STATE")
                chosen = lambda: next((line for line in range(7, 11) if top.cell(line, 0).reverse), None)
                top.press("home", "down", "down")
                top.until(lambda: chosen() == 9)
                for key, line in (("up", 8), ("end", 10), ("home", 7), ("pgdn", 10), ("pgup", 7)):
                    top.press(key)
                    top.until(lambda: chosen() == line)
                top.press("f10")
                self.assertEqual(top.ends(), 0)

    def test_a_click_chooses_a_row(self):
        # Terminals of today report a click as numbers, older ones as bytes.
        in_numbers = lambda x, y: f"\x1b[<0;{x};{y}M\x1b[<0;{x};{y}m"
        in_bytes = lambda x, y: "".join("\x1b[M" + chr(32 + button) + chr(32 + x) + chr(32 + y) for button in (0, 3))
        for term, click in (("xterm-256color", in_numbers), ("screen-256color", in_bytes)):
            with self.subTest(term), Segment() as segment:
                for queue in ("alpha", "beta", "gamma"):
                    segment.put(queue)
                with segment.top(term=term) as top:
                    top.until("gamma")
                    chosen = lambda: [line for line in range(7, 11) if top.cell(line, 0).reverse]
                    top.until(lambda: chosen() == [7])
                    for line, now in ((9, 9), (8, 8), (2, 8), (20, 9), (7, 7)):
                        top.press(click(5, line + 1))
                        top.until(lambda: chosen() == [now])
                        top.press(" ")  # every click before it has been taken
                        top.until("FROZEN")
                        self.assertEqual(chosen(), [now])
                        top.press(" ")
                        top.until(lambda: "FROZEN" not in top.text)
                    top.press("q")
                    self.assertEqual(top.ends(), 0)

    def test_jobs_of_other_states(self):
        with Segment() as segment:
            segment.put("mail", 1, retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})
            with segment.top("--view", "jobs") as top:
                top.until("available")
                top.press("s")
                top.until("jobs (active)")
                top.press("s")
                top.until("jobs (dead letters)")
                top.press("s")
                top.until("jobs (all)")
                top.press("s")
                top.until("jobs (waiting)")

    def test_a_queue_that_starves_and_one_over_its_threshold(self):
        with Segment() as segment:
            segment.cli("pool", "set", "crew", "--queue", "poor", "--rotation-interval", "1s")
            segment.cli("queue", "set", "filling", "--max-depth", "4", "--warning-threshold", "0.5")
            segment.put("poor")
            segment.put("filling", 2)
            states = lambda: {queue["name"]: queue["state"] for queue in json.loads(segment.look("--json", "-n", "1"))["queues"]}
            with segment.top("-d", "100ms") as top:
                top.until("filling warning 2")
                top.until("poor starving 1")
                self.assertEqual(states(), {"filling": "warning", "poor": "starving"})
                top.press("3")
                top.until(lambda: any(line.startswith("crew") and "starving" in line for line in top.lines))
                segment.cli("work", "--queue", "poor", "--count", "1", "--", "true")
                segment.put("filling", 2)
                top.press("1")
                top.until("filling full 4")
                top.until("poor running 0")

    def test_actual_shares_are_those_of_the_jobs_that_ran(self):
        with Segment() as segment:
            segment.cli("queue", "set", "mail", "--tenant-fairness", "on", "--tenant-weights", "acme:3")
            segment.cli("pool", "set", "crew", "--queue", "mail:3,bulk:1")
            for tenant in ("acme", "zoo"):
                segment.put("mail", 16, meta={"tenant_id": tenant})
            segment.put("bulk", 16)
            with segment.top("-d", "100ms", "--view", "pools", columns=160) as top:
                top.until("crew weighted mail 75.0 % - ")
                segment.cli("work", "--pool", "crew", "--count", "16", "--", "true")
                top.until("crew weighted mail 75.0 % 75.0 %")
                top.until("crew weighted bulk 25.0 % 25.0 %")
                top.press("4")
                top.until(lambda: any(line.startswith("acme") and line.count("75.0 %") == 2 for line in top.lines))
            self.assertRegex(segment.look("--once", "--view", "pools"), r"crew +weighted +mail +75.0 % +75.0 %")
            look = json.loads(segment.look("--json", "-n", "1"))
            shares = {one["tenant"]: (one["entitled_share"], one["actual_share"]) for one in look["tenants"] if one["queue"] == "mail"}
            self.assertEqual(shares, {"acme": (0.75, 0.75), "zoo": (0.25, 0.25)})

    def test_events_that_come_while_a_filter_is_on(self):
        with Segment("--events") as segment:
            segment.put("mail")
            with segment.top("-d", "100ms", "--view", "events", columns=160) as top:
                top.until("job.enqueued mail")
                top.press("/", *"bulk", "enter")
                top.until('nothing contains "bulk"')
                segment.put("mail")
                job = segment.put("bulk")
                top.until("job.enqueued bulk " + job)
                segment.cli("work", "--queue", "bulk", "--count", "1", "--", "true")
                top.until("job.completed bulk " + job)
                # The youngest first, and no line of the other queue. The terminal may show half of a change.
                wanted = [["job." + event, "bulk"] for event in ("completed", "started", "enqueued")]
                top.until(lambda: [line.split()[1:3] for line in top.lines[7:-1] if line] == wanted)
                top.press("esc")
                top.until(lambda: top.text.count("job.enqueued mail") == 2)

    def test_a_paused_queue_is_reversed_and_says_so(self):
        with Segment() as segment:
            segment.put("mail", 2)
            with segment.top("-d", "100ms") as top:
                top.until("mail running")
                top.press("end")
                segment.cli("queue", "pause", "mail")
                top.until("mail paused")
                segment.put("other")
                top.until("other")
                top.press("end")
                top.until(lambda: "other" in top.lines[8] and top.cell(7, 0).reverse)
                segment.cli("queue", "resume", "mail")
                top.until("mail running")
                top.until(lambda: not top.cell(7, 0).reverse)

    def test_any_size_from_80_by_24_on(self):
        with Segment() as segment:
            for i in range(30):
                segment.put(f"queue-{i:02}")
            with segment.top(columns=160, lines=50) as top:
                top.until("queue-29")
                top.resize(80, 24)
                top.until(lambda: top.lines[23].startswith("queues") and "queue-15" in top.text)
                self.assertTrue(all(len(line) <= 80 for line in top.lines))
                top.press("end")
                top.until("queue-29")
                top.resize(160, 50)
                top.until(lambda: "queue-00" in top.text and "queue-29" in top.text)
                top.resize(20, 4)
                top.until(lambda: top.lines[0].startswith("seen"))
                top.press("ctrl-c")
                self.assertEqual(top.ends(), 0)

    def test_a_size_that_comes_while_it_starts(self):
        with Segment() as segment:
            for i in range(30):
                segment.put(f"queue-{i:02}")
            for _ in range(20):
                with segment.top() as top:
                    top.until(lambda: top.raw)
                    top.resize(160, 50)
                    top.until(lambda: "queue-29" in top.text and top.lines[49].startswith("queues"))

    def test_a_size_that_goes_there_and_back_before_it_looks(self):
        with Segment() as segment:
            segment.put("mail")
            with segment.top() as top:
                top.until("mail running")
                os.kill(top.pid, signal.SIGSTOP)
                os.waitpid(top.pid, os.WUNTRACED)
                top.resize(80, 24)
                top.resize(120, 24)
                os.kill(top.pid, signal.SIGCONT)
                top.until("mail running")
                top.until(lambda: top.lines[23].startswith("queues") and top.lines[0].startswith("seen"))

    def test_without_colors_nothing_is_colored(self):
        with Segment() as segment:
            segment.put("mail")
            colored = lambda top: any(cell.fg != "default" for line in top.screen.buffer.values() for cell in line.values())
            with segment.top() as top:
                top.until("mail")
                self.assertTrue(colored(top))
            with segment.top(environment={"NO_COLOR": "1"}) as top:
                top.until("mail")
                self.assertFalse(colored(top))
            with segment.top(term="vt100") as top:
                top.until("mail")

    def test_only_what_changed_is_drawn(self):
        with Segment() as segment:
            segment.put("mail", 5)
            with segment.top("-d", "50ms") as top:
                top.until("mail")
                top.raw = b""
                end = time.monotonic() + 1
                while time.monotonic() < end:
                    top.read()
                self.assertLess(len(top.raw), 20_000)
                self.assertNotIn(b"\x1b[2J", top.raw)


if __name__ == "__main__":
    unittest.main()
