# SPDX-License-Identifier: Apache-2.0
"""Limits of keys and of queues: what jobs bring in each of the spellings, and what an operator sets."""

import datetime

from gateways import OnGateway, eventually


class Limits(OnGateway):
    def two(self, **members):
        """Enqueues two of a kind and fetches both: the jobs that came."""
        self.put_job(**members), self.put_job(**members)
        return self.fetch(2)

    def ack(self, job):
        self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)

    def advance(self, ms):
        self.call("POST", "test/clock", {"advance_ms": ms}, expect=200)

    def shown(self):
        return self.call("GET", "rate-limits/" + self.queue, expect=200).json

    def test_each_spelling_of_a_limit_holds(self):
        spellings = ({"key": "a", "concurrency": 1}, {"key": "b", "rate": {"limit": 1, "period": "PT1H"}},
                     {"key": "c", "throttle": {"limit": 1, "period": "PT1H"}}, {"key": "d", "rate": 1, "period": "hour"},
                     {"max_per_second": 1})
        for place in ("top", "options"):
            for limit in spellings:
                limit = {**limit, "key": place + limit["key"]} if "key" in limit else limit
                members = {"rate_limit": limit} if place == "top" else {"options": {"rate_limit": limit}}
                queue = f"{self.queue}-{place}-{limit.get('key', 'own')}"
                for _ in range(9):
                    self.put_job(**{**members, "queue": queue})
                # the one of its window, and those of the next ones should they begin meanwhile
                most = 4 if "max_per_second" in limit else 1 if "concurrency" in limit else 2
                self.assertIn(len(self.fetch(9, queues=[queue])), range(1, most + 1), (place, limit))

    def test_a_queue_has_a_limit_of_its_own(self):
        path = f"admin/queues/{self.queue}/rate-limit"
        made = self.call("PUT", path, {"concurrency": 1}, expect=200).json
        self.assertEqual((made["key"], made["concurrency"]["limit"]), ("queue:" + self.queue, 1))
        self.assertEqual(len(self.two()), 1)
        self.assertEqual(self.call("GET", path, expect=200).json["concurrency"]["active"], 1)
        self.assertEqual(self.call("GET", "rate-limits/queue:" + self.queue, expect=200).json["key"], made["key"])
        self.call("DELETE", path, expect=200)
        self.assertEqual(len(self.fetch(2)), 1)

    def test_those_that_wait_are_passed_over_and_come_when_there_is_room(self):
        first, = self.two(rate_limit={"key": self.queue, "concurrency": 1}, priority=0)
        other = self.put_job(priority=4)
        self.assertEqual([job["id"] for job in self.fetch(2)], [other["id"]])
        shown = self.shown()
        self.assertEqual((shown["concurrency"], shown["waiting_count"]), ({"limit": 1, "available": 0, "active": 1}, 1))
        self.ack(first)
        self.assertEqual(len(self.fetch(2)), 1)

    def test_a_window_opens_again_with_time(self):
        self.two(rate_limit={"key": self.queue, "rate": {"limit": 1, "period": "PT1M", "window": "sliding"}})
        self.assertEqual(self.fetch(1), [])
        self.call("POST", "test/clock", {"advance_ms": 61_000}, expect=200)
        self.assertEqual(len(eventually(lambda: self.fetch(1))), 1)

    def test_a_job_that_a_limit_moves_to_later_says_to_when(self):
        limit = {"key": self.queue, "rate": {"limit": 1, "period": "PT1H"}, "on_limit": "reschedule"}
        past = "2020-01-01T12:00:00+01:00"
        jobs = [self.put_job(rate_limit=limit), self.put_job(rate_limit=limit), self.put_job(rate_limit=limit, scheduled_at=past)]
        self.assertNotIn("scheduled_at", jobs[1])
        self.assertEqual(jobs[2]["scheduled_at"], past)
        self.assertEqual([job["id"] for job in self.fetch(3)], [jobs[0]["id"]])
        free = self.shown()["next_allowed_at"]
        for job in map(self.get, jobs[1:]):
            self.assertEqual((job["state"], job["scheduled_at"]), ("scheduled", free))
        self.call("POST", "test/clock", {"advance_ms": 3_600_001}, expect=200)
        moved, = eventually(lambda: self.fetch(1))
        self.assertEqual(moved.get("scheduled_at"), past if moved["id"] == jobs[2]["id"] else None)

    def test_replies_about_a_limited_job_tell_what_is_left(self):
        limit = {"key": self.queue, "rate": {"limit": 5, "period": "PT1H"}}

        def told():
            headers = self.enqueue(rate_limit=limit).headers
            return int(headers["X-RateLimit-Limit"]), int(headers["X-RateLimit-Remaining"])

        self.assertEqual(told(), (5, 5))
        self.fetch(1)
        self.assertEqual(told(), (5, 4))
        self.assertNotIn("X-RateLimit-Limit", self.enqueue().headers)

    def test_a_limit_says_when_it_lets_the_next_begin(self):
        hour = 3_600_000
        self.put_job(rate_limit={"key": self.queue, "rate": {"limit": 1, "period": "PT1H", "window": "fixed"}})
        resets = self.shown()["rate"]["window_resets_at"]
        self.assertEqual(resets[14:], "00:00.000Z")
        self.fetch(1)
        self.assertEqual(self.shown()["next_allowed_at"], resets)
        self.call("POST", "test/clock", {"advance_ms": hour}, expect=200)
        self.assertGreater(self.shown()["rate"]["window_resets_at"], resets)
        override = f"rate-limits/{self.queue}/override"
        self.call("PUT", override, {"rate": {"limit": 1, "period": "PT1H", "window": "sliding"}}, expect=200)
        self.assertNotIn("window_resets_at", self.shown()["rate"])
        self.put_job(rate_limit={"key": self.queue})
        self.fetch(1)
        shown = self.shown()
        self.assertEqual(shown["rate"]["window_resets_at"], shown["next_allowed_at"])
        self.call("PUT", override, {"throttle": {"limit": 1, "period": "PT1H"}}, expect=200)
        self.put_job(rate_limit={"key": self.queue})
        self.fetch(1)
        shown = self.shown()
        self.assertEqual(shown["throttle"]["next_allowed_at"], shown["next_allowed_at"])
        listed, = (each for each in self.call("GET", "rate-limits?per_page=100", expect=200).json["items"] if each["key"] == self.queue)
        self.assertEqual(listed["throttle"]["next_allowed_at"], shown["next_allowed_at"])

    def test_a_failed_job_closes_its_limit_for_a_while(self):
        def nack(until, expect=200):
            return self.call("POST", "workers/nack", {"job_id": failed["id"], "error": {
                "code": "RateLimitExceeded", "message": "429", "rate_limit_until": until}}, expect=expect)

        for _ in range(2):
            self.put_job(rate_limit={"key": self.queue, "concurrency": 9})
        failed, = self.fetch(1)
        self.assertEqual(nack("+5m", 400).error["details"]["field"], "error.rate_limit_until")
        nack("2099-01-01T00:00:00Z")
        until = self.shown()["closed_until"]
        ahead = datetime.datetime.fromisoformat(until) - datetime.datetime.fromisoformat(failed["created_at"])
        self.assertEqual(ahead.days, 49, "it is closed for 49 days at most")
        self.assertEqual(self.shown()["next_allowed_at"], until)
        self.assertEqual(self.fetch(1), [])
        told, = eventually(lambda: self.call("GET", f"events?types=rate_limit.dynamic_adjusted&queues={self.queue}",
                                             expect=200).json["events"])
        self.assertEqual((told["data"]["key"], told["data"]["until"], told["data"]["reason"], told["data"]["error"]["message"]),
                         (self.queue, until, "429", "429"))
        self.call("PUT", f"rate-limits/{self.queue}/override", {"concurrency": 9}, expect=200)
        self.assertNotIn("closed_until", self.shown())
        self.assertEqual(len(self.fetch(1)), 1)

    def test_a_failed_job_closes_no_key_that_stands_on_others(self):
        key = "queue:" + self.queue
        self.call("PUT", "rate-limits/" + key, {"concurrency": 9}, expect=200)
        failed = self.two(rate_limit={"key": key})[0]
        self.put_job()
        self.call("POST", "workers/nack", {"job_id": failed["id"], "error": {
            "code": "RateLimitExceeded", "message": "429", "rate_limit_until": "2099-01-01T00:00:00Z"}}, expect=200)
        self.assertNotIn("closed_until", self.call("GET", "rate-limits/" + key, expect=200).json)
        self.assertEqual(len(self.fetch(1)), 1)

    def test_the_events_of_a_limit_say_which_rule_it_was(self):
        rules = {"concurrency": ({"concurrency": 1}, 1), "rate": ({"rate": {"limit": 2, "period": "PT1H"}}, 2),
                 "throttle": ({"throttle": {"limit": 3, "period": "PT1H"}}, 3)}
        for strategy, (rule, limit) in rules.items():
            queue, key = f"{self.queue}-{strategy}", f"{self.queue}-{strategy}"
            for _ in range(3):
                self.put_job(queue=queue, rate_limit={"key": key} | rule)
            held = self.fetch(3, queues=[queue])
            told = eventually(lambda: self.call("GET", f"events?types=rate_limit.exceeded&queues={queue}", expect=200).json["events"])
            data = told[0]["data"]
            self.assertEqual((data["key"], data["strategy"], data["limit"], data["current"]), (key, strategy, limit, limit))
            if strategy != "concurrency":
                continue
            self.call("POST", "workers/ack", {"job_id": held[0]["id"]}, expect=200)
            told = eventually(lambda: self.call("GET", f"events?types=rate_limit.released&queues={queue}", expect=200).json["events"])
            self.assertEqual((told[0]["data"]["key"], told[0]["data"]["strategy"]), (key, "concurrency"))

    def test_a_limit_of_none_at_all_is_a_limit(self):
        self.put_job(rate_limit={"key": self.queue, "concurrency": 0})
        self.assertEqual(self.fetch(1), [])
        told = eventually(lambda: self.call("GET", f"events?types=rate_limit.exceeded&queues={self.queue}", expect=200).json["events"])
        self.assertEqual((told[0]["data"]["limit"], told[0]["data"]["current"]), (0, 0))

    def test_a_limit_below_what_is_at_work_has_nothing_left(self):
        for _ in range(2):
            self.put_job(rate_limit={"key": self.queue, "concurrency": 2})
        self.fetch(2)
        self.call("PUT", f"rate-limits/{self.queue}/override", {"concurrency": 1}, expect=200)
        self.assertEqual(self.shown()["concurrency"], {"limit": 1, "available": 0, "active": 2})

    def test_what_an_operator_sets_goes_before_what_jobs_bring(self):
        limit = {"key": self.queue, "concurrency": 1}
        self.assertEqual(len(self.two(rate_limit=limit)), 1)
        self.call("PUT", f"rate-limits/{self.queue}/override", {"concurrency": 2}, expect=200)
        self.assertEqual(len(self.fetch(2)), 1, "two at once now")
        self.call("DELETE", f"rate-limits/{self.queue}/override", expect=200)
        self.put_job(rate_limit=limit)
        self.assertEqual(self.fetch(1), [])
        self.assertEqual(self.shown()["concurrency"]["limit"], 1)

    def test_an_operators_limit_may_hold_for_a_time(self):
        self.put_job(rate_limit={"key": self.queue})
        now = datetime.datetime.fromisoformat(self.put_job(queue="clock")["created_at"])
        at = lambda seconds: (now + datetime.timedelta(seconds=seconds)).isoformat()
        path = f"rate-limits/{self.queue}"
        told = self.call("PUT", path, {"concurrency": 0, "expires_at": at(3600)}, expect=200).json
        self.assertTrue(told["override"])
        self.assertEqual(self.fetch(1), [])
        self.assertGreaterEqual(datetime.datetime.fromisoformat(self.shown()["expires_at"]), now + datetime.timedelta(hours=1))
        self.advance(3_590_000)
        self.assertEqual(self.fetch(1), [])
        self.advance(20_000)
        self.assertEqual(len(eventually(lambda: self.fetch(1))), 1)
        shown = self.shown()
        self.assertEqual((shown["override"], "expires_at" in shown), (False, False))
        self.call("PUT", path, {"concurrency": 1, "expires_at": at(9000)}, expect=200)
        self.call("PUT", path, {"concurrency": 2}, expect=200)
        self.assertNotIn("expires_at", self.shown())
        for wrong in ("soon", 5, at(-60), "2107-01-01T00:00:00Z"):
            error = self.call("PUT", path, {"concurrency": 1, "expires_at": wrong}, expect=400).error
            self.assertEqual(error["details"]["field"], "expires_at", wrong)
        self.assertEqual(self.shown()["concurrency"]["limit"], 2)

    def test_a_job_may_be_dropped_at_its_limit(self):
        limit = {"key": self.queue, "concurrency": 1, "on_limit": "drop"}
        self.put_job(rate_limit=limit)
        second = self.put_job(rate_limit=limit)
        self.assertEqual(len(self.fetch(2)), 1)
        eventually(lambda: self.get(second)["state"] == "discarded")

    def test_a_queue_has_limits_of_its_own(self):
        self.configure(concurrency=1)
        first, = self.two()
        self.ack(first)
        self.assertEqual(len(self.fetch(2)), 1)
        self.configure(concurrency=9, rate_limit={"limit": 3, "period": "PT1H"})
        for _ in range(5):
            self.put_job()
        self.assertEqual(len(self.fetch(9)), 3)

    def test_what_is_no_limit_is_named(self):
        for wrong in ({"key": "", "concurrency": 1}, {"key": "k", "concurrency": -1}, {"key": "k", "rate": {"limit": 1}},
                      {"key": "k", "concurrency": 1, "on_limit": "perhaps"}):
            error = self.enqueue(400, rate_limit=wrong).error
            self.assertIn("rate_limit", str(error["details"]), wrong)

    def test_an_override_changes_what_it_names_and_leaves_the_rest(self):
        path = "rate-limits/" + self.queue
        self.put_job(rate_limit={"key": self.queue, "concurrency": 5, "rate": {"limit": 1, "period": "PT1H"}})
        shown = self.call("PUT", path + "/override", {"concurrency": 3}, expect=200).json
        self.assertEqual((shown["concurrency"]["limit"], shown["rate"]["limit"], shown["rate"]["period"]), (3, 1, "PT1H"))
        shown = self.call("PUT", path + "/override", {"rate": None, "concurrency": 2}, expect=200).json
        self.assertEqual((shown["concurrency"]["limit"], "rate" in shown), (2, False))
        self.put_job(rate_limit={"key": self.queue + ".b", "concurrency": 5, "on_limit": None})
        ends = self.call("PUT", path + "/override", {"concurrency": 1, "expires_at": "2099-01-01T00:00:00Z"}, expect=200).json["expires_at"]
        shown = self.call("PUT", path + "/override", {"rate": {"limit": 2, "period": "PT1H"}}, expect=200).json
        self.assertEqual((shown["expires_at"], shown["concurrency"]["limit"]), (ends, 1))
        shown = self.call("PUT", path, {"concurrency": 4}, expect=200).json  # all of it anew
        self.assertEqual(("rate" in shown, shown["concurrency"]["limit"], "expires_at" in shown), (False, 4, False))

    def test_the_list_is_paged_as_other_lists_are(self):
        for number in range(3):
            self.call("PUT", f"rate-limits/{self.queue}.{number}", {"concurrency": 1}, expect=200)
        for wrong in ("limit=abc", "cursor=5.abc", "cursor=x"):
            for listed in ("rate-limits", "queues", "workflows", "cron", "schemas"):
                self.call("GET", f"{listed}?{wrong}", expect=400)
        first = self.call("GET", "rate-limits?limit=2", expect=200).json
        self.assertEqual((len(first["items"]), first["rate_limits"], first["pagination"]["has_more"]), (2, first["items"], True))
        self.assertEqual((first["pagination"]["page"], first["pagination"]["per_page"]), (1, 2))
        then = self.call("GET", "rate-limits?limit=1000&cursor=" + first["pagination"]["next_cursor"], expect=200).json
        keys = [each["key"] for each in first["items"] + then["items"]]
        self.assertEqual((len(keys), then["pagination"]["has_more"]), (len(set(keys)), False))
        page = self.call("GET", "rate-limits?page=2&per_page=1", expect=200).json
        self.assertEqual((page["items"], page["rate_limits"]), ([first["items"][1]], page["items"]))
