# SPDX-License-Identifier: Apache-2.0
"""How long an attempt may run. Source: ojs-core 5.2, ojs-timeouts 5.1, 7.1, 8, 11."""

from gateways import OnGateway, eventually


class Timeouts(OnGateway):
    def advance(self, ms):
        self.call("POST", "test/clock", {"advance_ms": ms}, expect=200)

    def told(self, *types):
        found = self.call("GET", f"events?types={','.join(types)}&queues={self.queue}", expect=200).json["events"]
        return [(event["type"], event["data"]) for event in found]

    def beat(self, job):
        return self.call("POST", "workers/heartbeat", {"worker_id": "w-" + self.queue, "active_jobs": [job["id"]]})

    def test_an_attempt_that_runs_too_long_has_failed_and_is_retried(self):
        job = self.put_job(timeout=300, retry={"max_attempts": 2, "initial_interval": "PT1S", "jitter": False})
        self.fetch(1)
        self.advance(290_000)
        self.beat(job)
        self.assertEqual(self.get(job)["state"], "active")
        self.advance(10_001)
        self.beat(job)
        now = eventually(lambda: self.get(job)["state"] in ("retryable", "available") and self.get(job))
        error = now["error"]
        self.assertEqual((error["type"], error["timeout_kind"], error["limit_seconds"]), ("timeout", "execution", 300))
        self.assertGreaterEqual(error["elapsed_seconds"], 300)
        self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=409)
        timeout, failed = eventually(lambda: len(self.told("job.timeout", "job.failed")) == 2
                                     and self.told("job.timeout", "job.failed"))
        self.assertEqual([(type, data["state"]) for type, data in (timeout, failed)],
                         [("job.timeout", "retryable"), ("job.failed", "retryable")])
        data = timeout[1]
        self.assertEqual((data["job_id"], data["job_type"], data["queue"], data["timeout_kind"], data["limit_seconds"],
                          data["attempt"]), (job["id"], "test.http", self.queue, "execution", 300, 1))
        self.assertGreaterEqual(data["elapsed_seconds"], 300)

        self.advance(2_000)
        self.assertEqual(eventually(lambda: self.fetch(1))[0]["attempt"], 2)
        self.advance(300_001)
        eventually(lambda: self.get(job)["state"] == "discarded")
        self.assertEqual(self.get(job)["error"]["type"], "timeout")

    def test_a_timeout_may_be_no_reason_to_try_again(self):
        for final, again in ((["other"], True), (["timeout"], False), (["timeout.*"], True)):
            job = self.put_job(timeout=10, retry={"max_attempts": 5, "initial_interval": "PT1H", "non_retryable_errors": final})
            self.fetch(1)
            self.advance(10_001)
            now = eventually(lambda: self.get(job)["state"] != "active" and self.get(job))
            self.assertEqual((now["state"], now["error"]["type"], now["error"]["retryable"]),
                             ("retryable" if again else "discarded", "timeout", again), final)

    def test_a_silence_is_tried_again_whatever_the_policy_says_of_timeouts(self):
        job = self.put_job(retry={"initial_interval": "PT1H", "non_retryable_errors": ["timeout", "visibility_timeout"]})
        self.fetch(1, visibility_timeout_ms=1000)
        self.advance(1001)
        eventually(lambda: self.get(job)["state"] in ("retryable", "available"))

    def test_without_one_silence_alone_ends_an_attempt(self):
        for timeout in ({}, {"timeout_ms": 0}):
            job = self.put_job(**timeout)
            self.fetch(1, visibility_timeout_ms=60_000)
            self.advance(60_001)
            again = eventually(lambda: self.fetch(1))[0]
            self.assertEqual((again["id"], again["errors"][0]["type"]), (job["id"], "visibility_timeout"))
            self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)
        self.assertEqual(self.told("job.timeout"), [])
        stalled = self.told("job.stalled")
        self.assertEqual([(data["timeout_kind"], data["limit_seconds"]) for _, data in stalled], [("stalled", 60)] * 2)

    def test_what_is_no_timeout_is_refused(self):
        for wrong in (-1, 0, 1.5, "soon", True):
            error = self.enqueue(expect=400, timeout=wrong).error
            self.assertEqual((error["code"], error["details"]["field"]), ("invalid_request", "timeout"), wrong)
