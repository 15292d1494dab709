# SPDX-License-Identifier: Apache-2.0
"""A job's life over HTTP."""

import contextlib

from gateways import OnGateway, eventually


class Jobs(OnGateway):
    def test_201_names_the_place(self):
        reply = self.enqueue()
        self.assertEqual(reply.headers["Location"], "/ojs/v1/jobs/" + reply.json["job"]["id"])
        self.assertEqual(reply.headers["OJS-Version"], "1.0")
        self.assertTrue(reply.headers["X-Request-ID"].startswith("req_"))
        self.assertEqual(self.call("GET", "health", headers={"X-Request-ID": "mine"}).headers["X-Request-ID"], "mine")
        long = self.call("GET", "health", headers={"X-Request-ID": "x" * 129}).headers["X-Request-ID"]
        self.assertTrue(long.startswith("req_"), long)

    def test_a_reply_has_both_shapes(self):
        job = self.put_job()
        read = self.call("GET", "jobs/" + job["id"], expect=200).json
        self.assertEqual(read["job"]["id"], read["id"])

    def test_a_client_cannot_forge_what_the_server_says(self):
        forged = {"id": "evil", "state": "completed"}
        reply = self.enqueue(job=forged, deduplicated=True, re_enqueued_at="x", activated_at="y", unique_key="k", pending=True)
        job = reply.json["job"]
        read = self.call("GET", "jobs/" + job["id"], expect=200)
        self.assertEqual((read.json["job"]["id"], read.json["job"]["job"]), (job["id"], forged))
        self.assertEqual(read.body.count(b'"id":"evil"'), 1, "its member stands in the job alone")
        for name in ("deduplicated", "re_enqueued_at", "activated_at", "unique_key"):
            self.assertNotIn(name, read.json["job"])
        activated = self.call("POST", f"jobs/{job['id']}/activate", expect=200)
        self.assertEqual(activated.body.count(b'"activated_at"'), 2, "one in the job, and one at the top")
        self.assertNotIn(b'"activated_at":"y"', activated.body)

    def test_a_pending_job_is_activated(self):
        job = self.put_job(pending=True)
        activated = self.call("POST", f"jobs/{job['id']}/activate", expect=200).json["job"]
        self.assertEqual((activated["state"], activated["previous_state"]), ("available", "pending"))
        self.assertGreaterEqual(activated["activated_at"], job["created_at"])
        self.assertEqual(activated["activated_at"], activated["enqueued_at"])
        later = self.get(job)
        self.assertEqual(later["enqueued_at"], activated["activated_at"], "what a look at it tells afterwards")
        self.assertFalse({"activated_at", "previous_state"} & set(later))

    def test_an_error_says_what_happened(self):
        job = self.put_job(retry={"max_attempts": 1})
        self.fetch()
        for wrong in ({}, {"code": "x"}, {"message": "x"}, {"code": "", "message": "x"}):
            self.call("POST", "workers/nack", {"job_id": job["id"], "error": wrong}, expect=400)
        self.assertEqual(self.get(job)["state"], "active")
        self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"type": "a.b", "message": ""}}, expect=200)
        job = self.put_job()
        self.fetch()
        by_class = {"message": "x", "details": {"error_class": "TypeError"}}
        self.call("POST", "workers/nack", {"job_id": job["id"], "error": by_class}, expect=200)
        self.assertEqual(self.get(job)["errors"][0]["type"], "TypeError")

    def test_versions(self):
        for version in ("1.0", "1.0.0-rc.1", "1.7"):
            self.call("GET", "queues", expect=200, headers={"OJS-Version": version})
        offered = self.call("GET", "/ojs/manifest", expect=200).json["extensions"]
        for uri in [one["uri"] for kind in ("official", "experimental") for one in offered[kind]]:
            self.call("GET", "queues", expect=200, headers={"OJS-Requires-Extension": uri})
        error = self.call("GET", "queues", expect=422, headers={"OJS-Requires-Extension": f"{uri}, urn:ojs:ext:none"}).error
        self.assertEqual((error["code"], error["extension"]), ("EXTENSION_NOT_SUPPORTED", "urn:ojs:ext:none"))
        with contextlib.closing(self.up.connection()) as spoken:  # on two lines
            spoken.putrequest("GET", "/ojs/v1/queues")
            for required in (uri, "urn:ojs:ext:none"):
                spoken.putheader("OJS-Requires-Extension", required)
            spoken.endheaders()
            self.assertEqual(spoken.getresponse().status, 422)
        error = self.call("GET", "queues", expect=422, headers={"OJS-Version": "2.0"}).error
        self.assertEqual(error["code"], "unsupported")

    def test_places_that_are_not_there(self):
        self.assertEqual(self.call("GET", "/nowhere", expect=404).error["code"], "not_found")
        reply = self.call("PUT", "jobs", {}, expect=405)
        self.assertEqual(reply.headers["Allow"], "POST")
        error = self.call("GET", "jobs/019b2c3d-4e5f-7a6b-8c9d-0e1f2a3b4c5d", expect=404).error
        self.assertEqual(error["details"]["resource_type"], "job")
        self.assertTrue(error["hint"] and error["docs_url"])

    def test_an_id_that_is_none_is_told_from_one_that_is_not_there(self):
        never, job = "019b2c3d-4e5f-7a6b-8c9d-0e1f2a3b4c5d", self.put_job(headers={"X-OJS-Tenant": "a"})["id"]
        for kind, path in (("job", "jobs/{}"), ("job", "jobs/{}/result"), ("job", "admin/jobs/{}"), ("workflow", "workflows/{}")):
            wrong = self.call("GET", path.format("nonsense"), expect=404).error
            self.assertTrue(wrong["message"].startswith(f"'nonsense' is not a {kind} id"), wrong)
            absent = self.call("GET", path.format(never), expect=404).error
            self.assertEqual(absent["message"], f"no {kind} with id {never}")
            native = self.up.native(*(["get"] if kind == "job" else ["workflow", "get"]), never).stderr
            self.assertEqual(absent["message"], native.strip(), "one wording everywhere")
        other = self.call("GET", "jobs/" + job, expect=404, headers={"X-OJS-Tenant": "b"}).error
        self.assertEqual(other["message"], f"no job with id {job}", "as of one that never was")

    def test_what_to_do_depends_on_what_is_not_there(self):
        told = {path: self.call("GET", path, expect=404).error["hint"] for path in (
            "jobs/nonsense", "queues/none", "admin/pools/none", "rate-limits/none", "cron/none", "schemas/none", "admin/workers/none")}
        self.assertIn("finished jobs", told.pop("jobs/nonsense"))
        for path, hint in told.items():
            self.assertNotIn("job", hint.replace("from its first job", ""), path)
            self.assertIn("GET /ojs/v1/" + path.rpartition("/")[0], hint)

    def test_an_id_is_taken_once(self):
        mine = "019b2c3d-4e5f-7a6b-8c9d-%012x" % (hash(self.queue) & 0xFFFFFFFFFFFF)
        self.assertEqual(self.put_job(id=mine)["id"], mine)
        error = self.enqueue(409, id=mine).error
        self.assertEqual((error["code"], error["details"]["existing_job_id"]), ("duplicate", mine))
        other = {"type": "a", "args": [], "queue": self.queue}
        error = self.call("POST", "jobs/batch", {"jobs": [other, {**other, "id": mine}]}, expect=409).error
        self.assertEqual((error["details"]["existing_job_id"], error["details"]["index"]), (mine, 1))

    def test_a_batch_is_all_or_nothing(self):
        good = {"type": "a", "args": [], "queue": self.queue}
        error = self.call("POST", "jobs/batch", {"jobs": [good, {"args": []}]}, expect=400).error
        self.assertEqual(error["details"]["index"], 1)
        for queues in ("a", "a", "a"), ("a", "b", "b"), ("a", "b", "c"):
            jobs = [{**good, "queue": f"{self.queue}-{queue}"} for queue in queues]
            jobs[2]["priority"] = 256
            error = self.call("POST", "jobs/batch", {"jobs": jobs}, expect=400).error
            self.assertEqual((error["details"]["index"], error["message"][:18]), (2, "job at index 2: pr"), queues)
        unique = {**good, "unique": {"keys": ["type"]}, "type": "once", "queue": self.queue + "-once"}
        self.enqueue(**unique)
        error = self.call("POST", "jobs/batch", {"jobs": [good, unique]}, expect=409).error
        self.assertEqual(error["details"]["index"], 1)
        made = self.call("POST", "jobs/batch", {"jobs": [good] * 1000}, expect=201).json
        self.assertEqual((made["count"], len(made["jobs"])), (1000, 1000))
        self.assertEqual(self.stats()["available"], 1000)

    def test_a_batch_may_go_to_several_queues(self):
        jobs = [{"type": "a", "args": [n], "queue": f"{self.queue}-{n % 2}"} for n in range(4)]
        made = self.call("POST", "jobs/batch", {"jobs": jobs}, expect=201).json["jobs"]
        self.assertEqual([(job["args"], job["state"]) for job in made], [([n], "available") for n in range(4)])
        self.call("PUT", f"admin/queues/{self.queue}-1/config", {"backpressure": {"max_depth": 3}}, expect=200)
        self.call("POST", "jobs/batch", {"jobs": jobs}, expect=429)
        taken = self.call("GET", f"admin/jobs?queue={self.queue}-0", expect=200).json["items"]
        self.assertEqual(len(taken), 2, "what the other queue had taken")
        got = self.fetch(9, queues=[f"{self.queue}-0", f"{self.queue}-1"])
        self.assertEqual([job["args"] for job in got], [[0], [2], [1], [3]])

    def test_a_life_to_its_end(self):
        job = self.put_job(args=[{"n": 1}])
        got, = self.fetch()
        self.assertEqual((got["id"], got["state"], got["attempt"], got["worker_id"]),
                         (job["id"], "active", 1, "w-" + self.queue))
        self.assertEqual(self.fetch(), [])
        wrong = self.call("POST", "workers/ack", {"job_id": job["id"], "worker_id": "else"}, expect=409)
        self.assertEqual(wrong.error["code"], "conflict")
        done = self.call("POST", "workers/ack", {"job_id": job["id"], "result": {"r": [1]}}, expect=200).json
        self.assertEqual((done["state"], done["id"], done["job_id"]), ("completed", job["id"], job["id"]))
        read = self.get(job)
        self.assertEqual((read["state"], read["result"]), ("completed", {"r": [1]}))
        again = self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=409).error
        self.assertEqual(again["details"]["current_state"], "completed")
        self.call("DELETE", "jobs/" + job["id"], expect=409)

    def test_failures_are_kept(self):
        job = self.put_job(retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})
        self.fetch()
        error = {"code": "e", "message": "m", "details": {"error_class": "Boom"}}
        nacked = self.call("POST", "workers/nack", {"job_id": job["id"], "error": error}, expect=200).json
        self.assertEqual((nacked["state"], nacked["attempt"]), ("discarded", 1))
        self.assertEqual(self.get(job)["error"]["type"], "Boom")
        dead = self.call("GET", "dead-letter?queue=" + self.queue, expect=200).json
        self.assertEqual(([each["id"] for each in dead["jobs"]], dead["total"]), ([job["id"]], 1))
        self.call("POST", f"dead-letter/{job['id']}/retry", {"override": {"queue": "other"}}, expect=422)
        revived = self.call("POST", f"dead-letter/{job['id']}/retry", expect=200).json["job"]
        self.assertRegex(revived["re_enqueued_at"], r"^\d{4}-.*Z$")
        self.assertEqual((revived["state"], revived["attempt"]), ("available", 0))

    def test_a_lease_ends_and_a_heartbeat_renews_it(self):
        job = self.put_job()
        self.fetch(visibility_timeout_ms=60_000)
        self.call("POST", "test/clock", {"advance_ms": 40_000}, expect=200)
        beat = {"worker_id": "w-" + self.queue, "active_jobs": [job["id"]], "visibility_timeout_ms": 60_000}
        self.assertEqual(self.call("POST", "workers/heartbeat", beat, expect=200).json["jobs_extended"], [job["id"]])
        self.call("POST", "test/clock", {"advance_ms": 40_000}, expect=200)
        self.assertEqual(self.get(job)["state"], "active")
        self.call("POST", "test/clock", {"advance_ms": 40_000}, expect=200)
        eventually(lambda: self.get(job)["state"] == "available")
        self.assertNotIn("started_at", self.get(job))
        self.assertEqual(self.get(job)["errors"][0]["code"], "visibility_timeout")

    def test_an_attempt_that_failed_has_started_and_its_error_has_a_time(self):
        job = self.put_job(retry={"max_attempts": 3, "initial_interval": "PT1M", "jitter": False})
        started = self.fetch()[0]["started_at"]
        self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "c", "message": "m"}}, expect=200)
        waits = self.get(job)
        self.assertEqual((waits["started_at"], waits["next_retry_at"]), (started, waits["next_attempt_at"]))
        self.assertEqual(waits["errors"][0]["timestamp"], waits["errors"][0]["occurred_at"])
        self.call("POST", "test/clock", {"advance_ms": 61_000}, expect=200)
        eventually(lambda: self.get(job)["state"] == "available")
        self.assertEqual(self.get(job)["started_at"], started)
        self.call("POST", f"jobs/{self.fetch()[0]['id']}/ack", {"result": {"n": 1}}, expect=200)
        self.assertEqual(self.get(job)["result"], {"n": 1})

    def test_an_operators_retry_forgets_the_delay(self):
        job = self.put_job(retry={"max_attempts": 2, "initial_interval": "PT5S", "jitter": False})
        self.fetch()
        self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "c", "message": "m"}}, expect=200)
        self.assertEqual(self.get(job)["retry_delay_ms"], 5000)
        self.call("DELETE", "jobs/" + job["id"], expect=200)
        self.call("POST", f"admin/jobs/{job['id']}/retry", expect=200)
        self.assertNotIn("retry_delay_ms", self.get(job))
        self.assertNotIn("retry_delay_ms", self.fetch()[0])

    def test_progress_is_clamped_and_never_goes_back(self):
        job = self.put_job()
        path = f"jobs/{job['id']}/progress"
        self.assertIsNone(self.call("GET", path, expect=200).json["progress"])
        self.fetch()
        half = self.call("PUT", path, {"progress": 0.5, "message": "half", "data": {"n": 1}}, expect=200).json
        self.assertEqual((half["progress"], half["message"], half["data"]), (0.5, "half", {"n": 1}))
        self.assertEqual(self.call("POST", "workers/progress", {"job_id": job["id"], "percentage": 20}).json["progress"], 0.5)
        lower = self.call("PUT", path, {"progress": 0.3, "data": {"n": 2}}).json
        self.assertEqual((lower["progress"], lower["message"], lower["data"]), (0.5, "half", {"n": 1}), "ignored as a whole")
        told = self.call("PUT", path, {"data": {"n": 3}}).json
        self.assertEqual((told["progress"], told["data"]), (0.5, {"n": 3}))
        self.assertEqual(self.call("PUT", path, {"progress": 7}).json["progress"], 1.0)

    def test_a_job_that_failed_says_when_it_is_tried_again(self):
        job = self.put_job(retry={"initial_interval": "PT1H", "max_interval": "PT1H", "jitter": False})
        self.fetch()
        nack = {"job_id": job["id"], "error": {"code": "boom", "message": "no"}}
        told = self.call("POST", "workers/nack", nack, expect=200).json
        self.assertEqual((told["state"], told["retry_delay_ms"]), ("retryable", 3_600_000))
        listed, = self.call("GET", f"admin/jobs?queue={self.queue}&state=retryable", expect=200).json["items"]
        for seen in (self.get(job), listed, self.call("GET", "admin/jobs/" + job["id"], expect=200).json):
            self.assertEqual(seen["next_attempt_at"], told["next_attempt_at"])
        self.call("POST", "test/clock", {"advance_ms": 3_600_001}, expect=200)
        again, = eventually(self.fetch)
        self.assertNotIn("next_attempt_at", again)
        self.assertNotIn("next_attempt_at", self.get(job))

    def test_an_ack_in_vain_is_told_why(self):
        job = self.put_job()
        for state in ("available", "completed"):
            error = self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=409).error
            self.assertEqual((error["code"], error["details"]["current_state"], error["details"]["expected_state"]),
                             ("conflict", state, "active"))
            if self.fetch():
                self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)

    def test_a_conflict_says_which_states_would_do(self):
        job = self.put_job()
        self.call("DELETE", "jobs/" + job["id"], expect=200)
        for method, path, body, expected in (("POST", "jobs/{}/activate", None, "pending"), ("PATCH", "jobs/{}", {"priority": 1}, "available or scheduled"),
                                             ("DELETE", "jobs/{}", None, "scheduled, available, pending, retryable or active")):
            error = self.call(method, path.format(job["id"]), body, expect=409).error
            self.assertEqual(error["details"], {"job_id": job["id"], "current_state": "cancelled", "expected_state": expected}, path)
        done = self.put_job()
        self.fetch()
        self.call("POST", "workers/ack", {"job_id": done["id"]}, expect=200)
        error = self.call("POST", f"admin/jobs/{done['id']}/retry", expect=409).error
        self.assertEqual(error["details"]["expected_state"], "discarded, cancelled, retryable or scheduled")

    def test_a_fetch_for_a_pool_that_is_not_there_says_so(self):
        for wait in (0, 50):
            error = self.call("POST", "workers/fetch", {"queues": [self.queue], "pool": "none", "wait_ms": wait}, expect=404).error
            self.assertEqual(error["details"], {"resource_type": "pool", "resource_id": "none"})

    def test_a_worker_that_drains_gets_no_job(self):
        self.put_job()
        self.call("POST", "workers/heartbeat", {"worker_id": "w-" + self.queue, "state": "quiet"}, expect=200)
        self.assertEqual(self.fetch(), [])
        self.assertEqual(len(self.fetch(worker_id="other-" + self.queue)), 1)
