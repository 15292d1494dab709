# SPDX-License-Identifier: Apache-2.0
"""How long results are kept, and jobs that are gone. Source: ojs-results 6, 7, 9, 10."""

from gateways import OnGateway

NEVER = "019b2c3d-4e5f-7a6b-8c9d-0e1f2a3b4c5d"


class Results(OnGateway):
    def done(self, result=7, **members):
        """A job that was acked with the result."""
        job = self.put_job(**members)
        self.assertEqual(self.fetch(1)[0]["id"], job["id"])
        self.call("POST", "workers/ack", {"job_id": job["id"], "result": result}, expect=200)
        return job["id"]

    def result(self, id, expect=200, query=""):
        return self.call("GET", f"jobs/{id}/result{query}", expect=expect)

    def advance(self, seconds):
        self.call("POST", "test/clock", {"advance_ms": seconds * 1000}, expect=200)

    def test_a_result_says_when_it_was_stored_and_until_when_it_is_kept(self):
        id = self.done({"n": 1}, result_ttl=3600)
        for told in (self.result(id).json, self.get({"id": id})):
            self.assertEqual((told["result"], told["result_size_bytes"]), ({"n": 1}, 7))
            self.assertEqual(told["result_stored_at"], told["completed_at"])
            self.assertRegex(told["result_expires_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            self.assertGreater(told["result_expires_at"], told["result_stored_at"])
        self.assertEqual(self.get({"id": id})["result_ttl"], 3600)

    def test_a_result_whose_time_is_over_is_gone_and_its_job_is_not(self):
        id, other = self.done(result_ttl=60), self.done(result_ttl=-1)
        self.advance(50)
        self.assertEqual(self.result(id).json["result"], 7)
        self.advance(11)
        for query in ("", "?wait=true&timeout=5"):
            error = self.result(id, 410, query).error
            self.assertEqual((error["code"], error["type"], error["retryable"]), ("RESULT_PRUNED", "gone", False))
            self.assertRegex(error["message"], r"^Result expired at \d{4}-")
            self.assertEqual(error["details"], {"job_id": id, "state": "completed"})
        job = self.get({"id": id})
        self.assertEqual((job["state"], job["result_pruned"]), ("completed", True))
        self.assertNotIn("result", job)
        self.assertNotIn("result_size_bytes", job)
        self.advance(4_000_000)
        self.assertEqual(self.result(other).json["result"], 7)
        self.assertNotIn("result_expires_at", self.get({"id": other}))

    def test_a_result_for_no_time_is_not_stored(self):
        id = self.done("x" * 100_000, result_ttl=0)
        self.assertEqual(self.result(id, 410).error["code"], "RESULT_PRUNED")
        self.assertEqual(self.get({"id": id})["state"], "completed")

    def test_a_time_may_stand_among_the_options(self):
        id = self.done(options={"result_ttl": 1})
        self.advance(1)
        self.result(id, 410)

    def test_what_is_no_time_is_refused(self):
        for wrong in (-2, 1.5, "1h", True, [], 3_153_600_001):
            for place in ({"result_ttl": wrong}, {"options": {"result_ttl": wrong}}):
                error = self.enqueue(expect=400, **place).error
                self.assertEqual((error["code"], error["details"]["field"]), ("invalid_request", "result_ttl"), place)
        error = self.enqueue(expect=400, result_ttl=1, options={"result_ttl": 2}).error
        self.assertIn("result_ttl is given twice", error["message"])

    def test_a_job_that_was_deleted_is_told_from_one_that_never_was(self):
        job = self.put_job(retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})
        self.fetch(1)
        self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "boom", "message": "no"}}, expect=200)
        self.call("DELETE", "dead-letter/" + job["id"], expect=200)
        for method, path, body in (("GET", f"jobs/{job['id']}", None), ("DELETE", f"jobs/{job['id']}", None),
                                   ("PATCH", f"jobs/{job['id']}", {"priority": 1}),
                                   ("GET", f"jobs/{job['id']}/progress", None), ("GET", f"dead-letter/{job['id']}", None),
                                   ("POST", "workers/ack", {"job_id": job["id"]})):
            error = self.call(method, path, body, expect=404).error
            self.assertEqual((error["code"], error["details"]["gone"]), ("not_found", True), path)
            self.assertIn("is gone", error["message"])
        error = self.result(job["id"], 410).error
        self.assertEqual((error["code"], error["type"]), ("RESULT_PRUNED", "gone"))
        self.assertNotIn("gone", self.call("GET", "jobs/" + NEVER, expect=404).error["details"])
        self.assertEqual(self.result(NEVER, 404).error["code"], "not_found")
        self.assertEqual(self.result("nonsense", 404).error["code"], "not_found")

    def test_many_results_say_of_each_what_became_of_it(self):
        kept, over, waits = self.done(result_ttl=3600), self.done(result_ttl=1), self.put_job()["id"]
        self.advance(1)
        ids = [kept, over, waits, NEVER]
        by_id = self.call("POST", "jobs/results", {"job_ids": ids}, expect=200).json["results"]
        asked = [by_id.pop(each) for each in ids]
        self.assertEqual(by_id, {})
        self.assertEqual([each["result"] for each in asked], [7, None, None, None])
        self.assertEqual([each["state"] for each in asked], ["completed", "completed", "available", None])
        self.assertEqual([each["error"] and each["error"]["code"] for each in asked],
                         [None, "RESULT_PRUNED", None, "not_found"])

    def test_results_of_a_workflow_are_kept_until_it_ends(self):
        step = {"type": "a", "args": [], "options": {"queue": self.queue, "result_ttl": 0}}
        self.call("POST", "workflows", {"type": "chain", "steps": [step, step]}, expect=201)
        first = self.fetch(1)[0]["id"]
        self.call("POST", "workers/ack", {"job_id": first, "result": 7}, expect=200)
        self.advance(10)
        self.assertEqual(self.result(first).json["result"], 7)
        second = self.fetch(1)[0]
        self.assertEqual(second["parent_results"], [7])
        self.call("POST", "workers/ack", {"job_id": second["id"], "result": 8}, expect=200)
        self.result(first, 410)
        self.result(second["id"], 410)

    def test_the_jobs_of_a_cron_have_its_time(self):
        name = self.queue
        self.call("POST", "cron", {"name": name, "cron": "@daily", "type": "a", "args": [],
                                   "options": {"queue": self.queue, "result_ttl": 5}}, expect=201)
        self.call("POST", f"cron/{name}/trigger", expect=200)
        self.assertEqual(self.fetch(1)[0]["result_ttl"], 5)

    def test_the_description_tells_of_it(self):
        described = self.call("GET", "openapi.json", expect=200).json["paths"]["/ojs/v1/jobs/{id}/result"]["get"]
        self.assertIn("RESULT_PRUNED", described["responses"]["410"]["description"])

    def test_a_null_is_a_result(self):
        job = self.put_job()
        self.assertEqual(self.call("GET", "jobs/" + job["id"], expect=200).headers["Retry-After"], "1")
        self.fetch(1)
        self.call("POST", "workers/ack", {"job_id": job["id"], "result": None}, expect=200)
        found = self.call("GET", "jobs/" + job["id"], expect=200)
        self.assertIsNone(found.json["job"]["result"])
        self.assertEqual(found.json["job"]["result_size_bytes"], 4)
        self.assertNotIn("Retry-After", found.headers)

    def test_a_result_that_the_gateway_does_not_read_is_refused_as_one(self):
        job = self.put_job()
        self.fetch(1)
        for path in ("workers/ack", f"jobs/{job['id']}/ack"):
            error = self.call("POST", path, {"job_id": job["id"], "result": "x" * (1 << 20)}, expect=413).error
            self.assertEqual((error["code"], error["details"]["max_bytes"]), ("RESULT_TOO_LARGE", 1 << 20))
        self.assertEqual(self.get(job)["state"], "active")


class LongBodies(OnGateway):
    """Of requests: those of jobs and results are the segment's matter."""

    flags = ("--max-body", "4M")

    def test_a_result_that_is_too_large_leaves_the_job_with_its_worker(self):
        job = self.put_job()
        self.fetch(1)
        refused = {"job_id": job["id"], "result": "x" * (1 << 20)}
        error = self.call("POST", "workers/ack", refused, expect=413).error
        self.assertEqual((error["code"], error["retryable"]), ("RESULT_TOO_LARGE", False))
        self.assertEqual(self.get(job)["state"], "active")
        self.call("POST", "workers/ack", refused | {"result": {"$ref": "ojs://results/external"}}, expect=200)
        self.assertEqual(self.get(job)["state"], "completed")
        self.assertEqual(self.enqueue(expect=413, args=["x" * (1 << 20)]).error["code"], "envelope_too_large")

    def test_one_that_is_not_kept_may_be_of_any_size(self):
        job = self.put_job(result_ttl=0)
        self.fetch(1)
        self.call("POST", "workers/ack", {"job_id": job["id"], "result": "x" * (1 << 20)}, expect=200)
        self.assertEqual(self.get(job)["state"], "completed")
