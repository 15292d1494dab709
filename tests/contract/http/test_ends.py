# SPDX-License-Identifier: Apache-2.0
"""Jobs that end though no attempt of them failed say why: in the job, its result and the event."""

from gateways import OnGateway, eventually


class Ends(OnGateway):
    def error_of(self, job):
        seen = eventually(lambda: self.ended(job))
        self.assertNotIn("errors", seen)
        result = self.call("GET", f"jobs/{job['id']}/result", expect=200).json["error"]
        self.assertEqual(result["code"], seen["error"]["code"])
        self.assertEqual((seen["error"]["attempt"], seen["error"]["occurred_at"]), (0, seen["discarded_at"]))
        self.assertFalse(seen["error"]["retryable"])
        return seen["error"]["code"]

    def ended(self, job):
        seen = self.get(job)
        return seen if seen["state"] == "discarded" else None

    def last_error(self, job):
        told = lambda: self.call("GET", "events?types=job.discarded&jobs=" + job["id"], expect=200).json["events"]
        data = eventually(told)[0]["data"]
        self.assertTrue(data["last_error"]["message"])
        return data["total_attempts"], data["last_error"]["code"]

    def test_one_that_a_full_queue_drops(self):
        self.configure(backpressure={"max_depth": 1, "strategy": "drop_oldest"})
        job = self.put_job()
        self.put_job()
        self.assertEqual(self.error_of(job), "dropped")
        self.assertEqual(self.last_error(job), (0, "dropped"))

    def test_one_that_a_limit_drops(self):
        limit = {"key": self.queue, "concurrency": 1, "on_limit": "drop"}
        self.put_job(rate_limit=limit)
        job = self.put_job(rate_limit=limit)
        self.fetch(2)
        self.assertEqual(self.error_of(job), "dropped")
        self.assertEqual(self.last_error(job), (0, "dropped"))

    def test_one_that_expires(self):
        job = self.put_job(expires_at="+PT10S")
        self.call("POST", "test/clock", {"advance_ms": 10_001}, expect=200)
        self.assertEqual(self.error_of(job), "expired")

    def test_what_ends_it_goes_before_what_failed_earlier(self):
        self.configure(backpressure={"max_depth": 1, "strategy": "drop_oldest"})
        job = self.put_job(retry={"initial_interval": "PT0.001S", "jitter": False})
        self.fetch()
        self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "boom", "message": "no"}}, expect=200)
        eventually(lambda: self.get(job)["state"] == "available")
        self.put_job()
        seen = eventually(lambda: self.ended(job))
        self.assertEqual((seen["error"]["code"], [error["code"] for error in seen["errors"]]), ("dropped", ["boom"]))
        self.assertEqual(self.last_error(job), (1, "dropped"))

    def test_one_whose_queue_is_deleted(self):
        job = self.put_job()
        self.call("DELETE", "queues/" + self.queue, {"strategy": "discard"}, expect=200)
        self.assertEqual(eventually(lambda: self.ended(job))["error"]["code"], "queue_deleted")
        self.assertEqual(self.last_error(job), (0, "queue_deleted"))

    def test_one_that_is_cancelled_has_no_error(self):
        job = self.put_job()
        self.call("DELETE", "jobs/" + job["id"], expect=200)
        self.assertNotIn("error", self.get(job))
        self.assertIsNone(self.call("GET", f"jobs/{job['id']}/result", expect=200).json["error"])
