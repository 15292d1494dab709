# SPDX-License-Identifier: Apache-2.0
"""What a job says of its own time, in seconds. Source: ojs-timeouts 5.2 to 5.5, 6, 8, 9.1, 11.1."""

import datetime

from gateways import OnGateway, eventually


class OwnTimes(OnGateway):
    def advance(self, ms):
        self.call("POST", "test/clock", {"advance_ms": ms}, expect=200)

    def now(self):
        """As the segment's clock says it."""
        return datetime.datetime.fromisoformat(self.put_job(queue="clock")["created_at"])

    def told(self, *types):
        found = self.call("GET", f"events?types={','.join(types)}&queues={self.queue}", expect=200).json["events"]
        return [(event["type"], event["data"]) for event in found]

    def ended(self, job, state="discarded"):
        return eventually(lambda: self.get(job)["state"] == state and self.get(job))

    def nack(self, job, expect=200):
        return self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "smtp", "message": "no"}}, expect=expect)

    # --- enqueue_ttl ---
    def test_what_has_not_begun_within_its_enqueue_ttl_is_discarded(self):
        waits = {"available": {}, "pending": {"pending": True}, "scheduled": {"scheduled_at": "+PT1H"}}
        jobs = {state: self.put_job(enqueue_ttl=300, **members) for state, members in waits.items()}
        self.advance(290_000)
        for state, job in jobs.items():
            now = self.get(job)
            self.assertEqual((now["state"], now["enqueue_ttl"]), (state, 300))
        self.advance(10_001)
        for state, job in jobs.items():
            now = self.ended(job)
            self.assertEqual(now["discard_reason"], "enqueue_ttl_expired", state)
            error = now["error"]
            self.assertEqual((error["type"], error["timeout_kind"], error["limit_seconds"], error["retryable"]),
                             ("enqueue_ttl_expired", "enqueue_ttl", 300, False), state)
            self.assertGreaterEqual(error["elapsed_seconds"], 300)
        self.assertEqual(self.fetch(9), [])
        told = eventually(lambda: len(self.told("job.ttl_expired")) == 3 and self.told("job.ttl_expired"))
        self.assertEqual({data["job_id"] for _, data in told}, {job["id"] for job in jobs.values()})
        data = told[0][1]
        self.assertEqual((data["timeout_kind"], data["limit_seconds"], data["attempt"], data["job_type"], data["queue"], data["state"]),
                         ("enqueue_ttl", 300, 0, "test.http", self.queue, "discarded"))
        self.assertGreaterEqual(data["elapsed_seconds"], 300)
        self.assertEqual([data["ttl_ms"] for _, data in self.told("job.expired")], [300_000] * 3)

    def test_what_has_begun_is_not_held_to_its_enqueue_ttl(self):
        job = self.put_job(enqueue_ttl=10, retry={"max_attempts": 3, "initial_interval": "PT60S", "jitter": False})
        self.fetch(1)
        self.advance(11_000)
        self.assertEqual(self.nack(job).json["state"], "retryable")
        self.advance(61_000)
        self.assertEqual(eventually(lambda: self.fetch(1))[0]["attempt"], 2)
        self.call("POST", "workers/nack", {"job_id": job["id"], "requeue": True, "error": {"code": "a", "message": "b"}}, expect=200)
        self.assertEqual(self.fetch(1)[0]["id"], job["id"])

    def test_of_enqueue_ttl_and_expires_at_the_earlier_counts(self):
        late = lambda seconds: (self.now() + datetime.timedelta(seconds=seconds)).isoformat()
        ttl = self.put_job(enqueue_ttl=100, expires_at=late(200))
        expires = self.put_job(enqueue_ttl=200, expires_at=late(100))
        both = self.put_job(enqueue_ttl=50, expires_at=late(150))
        self.assertEqual(self.get(ttl)["expires_at"], ttl["expires_at"])
        begun = self.fetch(3)
        self.assertEqual(begun[2]["id"], both["id"])
        for job in begun[:2]:  # the attempt does not count, and has begun all the same
            self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)
        ttl, expires = self.put_job(enqueue_ttl=100, expires_at=late(200)), self.put_job(enqueue_ttl=200, expires_at=late(100))
        self.advance(101_000)
        self.assertEqual(self.ended(ttl)["discard_reason"], "enqueue_ttl_expired")
        self.assertEqual(self.ended(expires)["discard_reason"], "expired")
        self.call("POST", "workers/nack", {"job_id": both["id"], "requeue": True, "error": {"code": "a", "message": "b"}}, expect=200)
        self.assertEqual(self.get(both)["state"], "available")
        self.advance(50_000)
        self.assertEqual(self.ended(both)["discard_reason"], "expired")

    # --- total_timeout ---
    def test_a_total_timeout_ends_an_attempt_though_retries_are_left(self):
        job = self.put_job(total_timeout=600, retry={"max_attempts": 9})
        self.fetch(1)
        self.advance(590_000)
        self.assertEqual(self.get(job)["state"], "active")
        self.advance(10_001)
        now = self.ended(job)
        self.assertEqual((now["attempt"], now["discard_reason"]), (1, "failed"))
        error = now["error"]
        self.assertEqual((error["type"], error["timeout_kind"], error["limit_seconds"], error["retryable"]),
                         ("total_timeout", "total", 600, False))
        self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=409)
        told = eventually(lambda: len(self.told("job.total_timeout", "job.discarded")) == 2
                          and self.told("job.total_timeout", "job.discarded"))
        self.assertEqual([(type, data["state"]) for type, data in told],
                         [("job.total_timeout", "discarded"), ("job.discarded", "discarded")])
        self.assertEqual((told[0][1]["timeout_kind"], told[0][1]["limit_seconds"], told[0][1]["attempt"]), ("total", 600, 1))

    def test_a_total_timeout_ends_what_waits_also_between_attempts(self):
        retry = {"max_attempts": 9, "initial_interval": "PT60S", "jitter": False, "on_exhaustion": "dead_letter"}
        failed, waits = (self.put_job(total_timeout=100, retry=retry) for _ in range(2))
        self.assertEqual(self.fetch(1)[0]["id"], failed["id"])
        self.assertEqual(self.nack(failed).json["state"], "retryable")
        self.advance(50_000)
        self.assertEqual(self.get(failed)["state"], "retryable")
        self.advance(51_000)
        for job in (failed, waits):
            now = self.ended(job)
            self.assertEqual((now["discard_reason"], now["error"]["type"], now["dead_letter"]), ("total_timeout", "total_timeout", True))
        again = self.call("POST", f"dead-letter/{failed['id']}/retry", expect=200).json["job"]
        self.assertEqual((again["state"], "total_timeout" in again), ("available", True))
        self.assertEqual(self.fetch(1)[0]["id"], failed["id"])
        self.advance(1_000_000)
        self.call("POST", "workers/ack", {"job_id": failed["id"]}, expect=200)

    def test_a_retry_that_cannot_be_done_in_time_is_not_scheduled(self):
        retry = {"max_attempts": 9, "initial_interval": "PT60S", "jitter": False}
        for total, state in ((150, "discarded"), (1000, "retryable")):
            job = self.put_job(total_timeout=total, timeout=100, retry=retry)
            self.fetch(1)
            self.assertEqual(self.nack(job).json["state"], state, total)
            self.assertEqual(self.get(job)["error"]["code"], "smtp")

    # --- grace_period ---
    def test_an_attempt_has_its_grace_period_beyond_its_timeout(self):
        job = self.put_job(timeout=100, grace_period=50, retry={"max_attempts": 1})
        fetched = self.fetch(1)[0]
        self.assertEqual((fetched["timeout"], fetched["grace_period"]), (100, 50))
        self.advance(140_000)
        self.call("POST", "workers/heartbeat", {"worker_id": "w-" + self.queue, "active_jobs": [job["id"]]}, expect=200)
        self.assertEqual(self.get(job)["state"], "active")
        self.advance(10_001)
        error = self.ended(job)["error"]
        self.assertEqual((error["type"], error["timeout_kind"], error["limit_seconds"]), ("timeout", "execution", 100))

    # --- heartbeat_timeout ---
    def test_a_silence_beyond_the_heartbeat_timeout_is_a_stall(self):
        job = self.put_job(heartbeat_timeout=120, visibility_timeout=3600, retry={"max_attempts": 1})
        self.assertEqual(self.fetch(1)[0]["heartbeat_timeout"], 120)
        self.advance(100_000)
        self.call("PUT", f"jobs/{job['id']}/progress", {"progress": 0.5}, expect=200)
        self.advance(100_000)
        self.assertEqual(self.get(job)["state"], "active")
        self.advance(20_001)
        error = self.ended(job)["error"]
        self.assertEqual((error["type"], error["timeout_kind"], error["limit_seconds"]), ("stalled", "stalled", 120))
        self.assertGreaterEqual(error["elapsed_seconds"], 220)
        stalled = self.told("job.stalled")
        self.assertEqual([(data["timeout_kind"], data["limit_seconds"]) for _, data in stalled], [("stalled", 120)])

    # --- all of them ---
    def test_what_is_no_time_is_refused(self):
        wrong = {"enqueue_ttl": (0, -1, 1.5, "PT5M", True, 3_153_600_001), "total_timeout": (0, -1, "soon"),
                 "grace_period": (-1, 0.5, "30"), "heartbeat_timeout": (0, -1, "PT1M", 4_294_968)}
        for name, values in wrong.items():
            for value in values:
                for place in ({name: value}, {"options": {name: value}}):
                    error = self.enqueue(expect=400, **place).error
                    self.assertEqual((error["code"], error["details"]["field"]), ("invalid_request", name), place)
        error = self.enqueue(expect=400, timeout=100, total_timeout=99).error
        self.assertEqual(error["details"]["field"], "total_timeout")
        self.assertEqual(self.fetch(1), [])
        for right in ({"timeout": 100, "total_timeout": 100}, {"grace_period": 0}, {"enqueue_ttl": None}):
            self.put_job(**right)

    def test_they_stay_with_the_job_wherever_it_comes_from(self):
        times = {"enqueue_ttl": 7200, "total_timeout": 86400, "grace_period": 60}
        job = self.put_job(**times)
        self.assertEqual({name: job[name] for name in times}, times)
        made = self.up.native("enqueue", "-t", "test.http", "--queue", self.queue, "--enqueue-ttl", "2h", "--total-timeout", "1d",
                              "--grace-period", "1m").stdout.strip()
        unique = self.put_job(type="test.other", unique={"keys": ["type"]}, meta={"long": "x" * 60}, **times)["id"]
        for id in (made, unique):
            self.assertEqual({name: self.get({"id": id})[name] for name in times}, times)
        self.assertEqual([job["id"] for job in self.fetch(9)][1:], [made, unique])
        batch = {"jobs": [{"type": "test.http", "args": [], "queue": self.queue, "enqueue_ttl": 10}] * 2}
        ids = [job["id"] for job in self.call("POST", "jobs/batch", batch, expect=201).json["jobs"]]
        self.advance(10_001)
        for id in ids:
            self.assertEqual(self.ended({"id": id})["discard_reason"], "enqueue_ttl_expired")

    def test_a_crons_jobs_have_them_from_their_own_creation(self):
        template = {"type": "test.cron", "args": [], "options": {"queue": self.queue, "enqueue_ttl": 100}}
        self.call("POST", "cron", {"name": self.queue, "expression": "0 0 1 1 *", "job_template": template}, expect=201)
        self.advance(200_000)
        id = self.call("POST", f"cron/{self.queue}/trigger").json["job_id"]
        self.advance(90_000)
        self.assertEqual(self.get({"id": id})["state"], "available")
        self.advance(10_001)
        self.assertEqual(self.ended({"id": id})["discard_reason"], "enqueue_ttl_expired")

    def test_an_export_keeps_them(self):
        job, over = self.put_job(enqueue_ttl=300, total_timeout=86400), self.put_job(enqueue_ttl=10)
        self.advance(11_000)
        self.ended(over)
        lines = self.up.native("export", "test").stdout
        line = next(line for line in lines.splitlines() if job["id"] in line)
        for member in ('"enqueue_ttl":300', '"total_timeout":86400'):
            self.assertIn(member, line)
        line = next(line for line in lines.splitlines() if over["id"] in line)
        self.assertIn('"discard_reason":"enqueue_ttl_expired"', line)
