# SPDX-License-Identifier: Apache-2.0
"""A job's life over HTTP, and beside native processes."""

import gzip
import json
import threading
import time
import uuid

from gateways import BOUND, MEDIA_TYPE, OnGateway, eventually


class Jobs(OnGateway):
    def test_an_unknown_member_comes_back(self):
        job = self.put_job(custom={"a": [1, None]}, meta={"trace_id": "t"}, tags=["x"])
        read = self.get(job)
        self.assertEqual((read["custom"], read["meta"], read["tags"]), ({"a": [1, None]}, {"trace_id": "t"}, ["x"]))

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
        self.assertEqual(activated.body.count(b'"activated_at"'), 1)

    def test_the_content_type_is_negotiated(self):
        for accept, answer in (("*/*", MEDIA_TYPE), ("application/json", "application/json"),
                               (f"application/json, {MEDIA_TYPE}", MEDIA_TYPE), (None, MEDIA_TYPE)):
            headers = {"Accept": accept} if accept else {}
            self.assertEqual(self.call("GET", "queues", headers=headers).headers["Content-Type"], answer)

    def test_what_is_wrong_is_named(self):
        for members, field in (({"type": 5}, "type"), ({"type": "No Good"}, "type"), ({"args": {}}, "args"),
                               ({"queue": "UPPER"}, "queue"), ({"scheduled_at": "2026-01-01T00:00:00"}, "scheduled_at"),
                               ({"id": str(uuid.uuid4())}, "id")):
            error = self.enqueue(400, **members).error
            self.assertEqual((error["code"], error["details"]["field"]), ("invalid_request", field), error)
        error = self.enqueue(422, retry={"max_attempts": -1}).error
        self.assertEqual((error["type"], error["retryable"]), ("validation_error", False))
        self.assertIn("max_attempts", error["message"])

    def test_bodies_that_are_no_job(self):
        for body, code in ((b"{", "invalid_payload"), (b"[]", "invalid_request"), (b"7", "invalid_request"),
                           (b'{"type":"a","args":["\xff"]}', "invalid_payload"), (b"[" * 5000, "invalid_payload")):
            reply = self.call("POST", "jobs", body, expect=400)
            self.assertEqual(reply.error["code"], code, body[:20])
        reply = self.call("POST", "jobs", b"a=b", expect=400, headers={"Content-Type": "text/plain"})
        self.assertEqual(reply.error["details"]["field"], "Content-Type")

    def test_a_packed_body_is_refused(self):
        job = {"type": "test.http", "args": [], "queue": self.queue}
        packed = gzip.compress(json.dumps(job).encode())
        for coding, body in (("gzip", packed), ("zstd", b"\x28\xb5\x2f\xfd"), ("br", b"x"), ("identity, GZIP", packed), ("gzip", job)):
            reply = self.call("POST", "jobs", body, expect=415, headers={"Content-Encoding": coding})
            self.assertEqual((reply.error["code"], reply.error["retryable"]), ("UNSUPPORTED_COMPRESSION", False))
            self.assertEqual(reply.headers["Accept-Encoding"], "identity")
        for coding in ("identity", "Identity", ""):
            self.call("POST", "jobs", job, expect=201, headers={"Content-Encoding": coding})
        self.call("GET", f"admin/jobs?queue={self.queue}", expect=200, headers={"Content-Encoding": "gzip"})

    def test_every_member_that_may_be_null_is_as_good_as_absent(self):
        absent = ("id", "queue", "scheduled_at", "delay_until", "expires_at", "timeout_ms", "visibility_timeout_ms", "pending",
                  "retry", "meta", "tags", "unique", "rate_limit", "result_ttl")
        job = self.enqueue(**dict.fromkeys(absent), options={"retry": {"max_attempts": 5, "max_interval": None}}).json["job"]
        self.enqueue(options=None)
        self.assertEqual((job["queue"], job["state"], job["max_attempts"]), ("default", "available", 5))
        self.call("DELETE", "jobs/" + job["id"], expect=200)
        for needed in ("type", "args"):
            self.assertEqual(self.enqueue(400, **{needed: None}).error["details"]["field"], needed)

    def test_rules_of_a_retry_policy(self):
        for wrong, member in (({"initial_interval": "PT0S"}, "initial_interval"), ({"initial_interval_ms": 0}, "initial_interval"),
                              ({"initial_interval": "PT5S", "max_interval": "PT1S"}, "max_interval"),
                              ({"non_retryable_errors": ["a.b", ""]}, "non_retryable_errors")):
            error = self.enqueue(422, retry=wrong).error
            self.assertIn(member, error["message"])
        self.enqueue(retry={"initial_interval": "PT5S", "max_interval": "PT5S"})

    def test_a_pending_job_is_activated(self):
        job = self.put_job(pending=True)
        activated = self.call("POST", f"jobs/{job['id']}/activate", expect=200).json["job"]
        self.assertEqual((activated["state"], activated["previous_state"]), ("available", "pending"))
        self.assertGreaterEqual(activated["activated_at"], job["created_at"])
        self.assertEqual(activated["activated_at"], activated["enqueued_at"])
        later = self.get(job)
        self.assertEqual(later["enqueued_at"], activated["activated_at"], "what a look at it tells afterwards")
        self.assertFalse({"activated_at", "previous_state"} & set(later))

    def test_durations_of_iso_8601(self):
        for text, shown in (("P1W", "P7D"), ("P2DT3H", "P2DT3H"), ("P30D", "P30D"), ("PT1H30M", "PT1H30M")):
            kept = self.call("PUT", "dead-letter/retention", {"max_age": text}, expect=200).json["retention"]
            self.assertEqual(kept["max_age"], shown)
        for text in ("PT0.5S", "PT0,5S", "500ms"):
            begun = time.monotonic()
            self.call("POST", "workers/fetch", {"queues": [self.queue], "wait_ms": text}, expect=200)
            self.assertGreaterEqual(time.monotonic() - begun, 0.5)
        job = self.put_job(retry={"initial_interval": "PT0.5S", "max_interval": "P1W"})
        self.assertEqual((job["retry"]["initial_interval"], job["retry"]["max_interval"]), ("PT0.5S", "P1W"))
        for text in ("P1M", "P1Y", "P1Y2M3DT1H"):
            for method, path, body, field in (("PUT", "dead-letter/retention", {"max_age": text}, "max_age"),
                                              ("POST", "workers/fetch", {"queues": ["a"], "wait_ms": text}, "wait_ms"),
                                              ("GET", f"admin/stats/history?period={text}", None, "period"),
                                              ("GET", f"jobs/{job['id']}/result?wait=true&timeout={text}", None, "timeout")):
                error = self.call(method, path, body, expect=400).error
                self.assertEqual(error["details"]["field"], field)
                self.assertIn("years or months", error["message"])
            self.assertIn("years or months", self.enqueue(422, retry={"max_interval": text}).error["message"])
        for text in ("P", "PT", "1W", "PT5", "-PT5S"):
            self.assertIn("must be", self.call("PUT", "dead-letter/retention", {"max_age": text}, expect=400).error["message"])

    def test_names_that_are_too_long(self):
        self.assertEqual(self.enqueue(400, type="a" * 256).error["code"], "invalid_request")
        self.assertEqual(self.enqueue(400, queue="q" * 129).error["code"], "invalid_request")

    def test_an_error_says_what_happened(self):
        job = self.put_job()
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
            self.assertTrue(wrong["message"].startswith("'nonsense' is not a job id"), wrong)
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

    def test_a_long_poll_gets_the_job_that_comes(self):
        for put in (self.put_job, self.put_natively):
            got = []
            poll = threading.Thread(target=lambda: got.extend(self.fetch(wait_ms=2000)))
            poll.start()
            put()
            poll.join()
            if not got:  # it came after two seconds, on a busy machine
                got = self.fetch()
            self.assertEqual(len(got), 1)

    def test_a_request_that_waits_is_told_of_a_native_job(self):
        self.is_told_while_it_waits()

    def test_a_request_that_waits_in_a_pool_is_told_of_a_native_job(self):
        self.call("PUT", "admin/pools/" + self.queue, {"queues": [self.queue]}, expect=201)
        self.is_told_while_it_waits(pool=self.queue)

    def is_told_while_it_waits(self, **wanted):
        """Each poll looks when it begins, and then only when it is told; a job that came before or after it says nothing."""
        self.put_natively()
        self.fetch(**wanted)
        for _ in range(5):
            got = []
            poll = threading.Thread(target=lambda: got.extend(self.fetch(wait_ms=2000, **wanted)))
            poll.start()
            time.sleep(0.2)
            self.put_natively()
            poll.join()
            if got:
                return
            self.assertEqual(len(self.fetch(**wanted)), 1)
        self.fail("no request was told")

    def put_natively(self):
        made = self.up.native("enqueue", "-t", "native.job", "-i", "1", "--queue", self.queue)
        self.assertEqual(made.returncode, 0, made.stderr)
        return made.stdout.split()[-1]

    def test_native_processes_and_HTTP_share_one_queue(self):
        self.put_natively()
        job, = self.fetch()
        self.assertEqual((job["type"], job["args"]), ("native.job", [1]))
        self.call("POST", "workers/ack", {"job_id": job["id"], "result": 5}, expect=200)
        seen = self.up.native("get", job["id"], "--json")
        self.assertEqual(json.loads(seen.stdout)["result"], 5)

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

    def test_tenants_do_not_see_each_other(self):
        a, b = {"X-OJS-Tenant": "a"}, {"X-OJS-Tenant": "b"}
        job = self.put_job(headers=a)
        self.assertEqual(job["meta"]["tenant_id"], "a")
        self.call("GET", "jobs/" + job["id"], expect=404, headers=b)
        self.call("DELETE", "jobs/" + job["id"], expect=404, headers=b)
        fetch = {"queues": [self.queue]}
        self.assertEqual(self.call("POST", "workers/fetch", fetch, headers=b).json["jobs"], [])
        self.assertEqual(len(self.call("POST", "workers/fetch", fetch, headers=a).json["jobs"]), 1)
        self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=404, headers=b)
        beat = {"worker_id": self.queue + "-b", "active_jobs": [job["id"]], "visibility_timeout_ms": 600_000}
        self.assertEqual(self.call("POST", "workers/heartbeat", beat, headers=b).json["jobs_extended"], [])
        listed = f"admin/jobs?queue={self.queue}"
        self.assertEqual(self.call("GET", listed, headers=b).json["items"], [])
        self.assertEqual(len(self.call("GET", listed, headers=a).json["items"]), 1)
        self.call("GET", listed + "&tenant=a", expect=404, headers=b)
        self.call("GET", "admin/tenants/a/jobs", expect=404, headers=b)
        self.call("GET", "admin/tenants/a/jobs?tenant=b", expect=404)
        self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200, headers=a)
        # what others have in front is passed over
        self.put_job(headers=a, priority=0)
        last = self.put_job(headers=b, priority=9)
        fetched = self.call("POST", "workers/fetch", fetch, headers=b).json["jobs"]
        self.assertEqual([each["id"] for each in fetched], [last["id"]])
        self.enqueue(400, headers=a, meta={"tenant_id": "b"})
        for wrong in ("two words", ".b", "b/c"):
            self.enqueue(400, meta={"tenant_id": wrong})
            self.enqueue(400, headers={"X-OJS-Tenant": wrong})
        self.enqueue(400, meta={"tenant_id": ""})

    def test_a_tenants_jobs_are_chosen_as_all_jobs_are(self):
        tenant = "t-" + self.queue
        for state in ("available", "cancelled"):
            job = self.put_job(headers={"X-OJS-Tenant": tenant}, type="chosen." + state)
            if state == "cancelled":
                self.call("DELETE", "jobs/" + job["id"], expect=200)
        listed = f"admin/tenants/{tenant}/jobs"
        for query, count in (("", 2), ("?state=cancelled", 1), ("?state=active", 0), ("?type=chosen.available", 1),
                             (f"?queue={self.queue}", 2), ("?queue=none", 0), ("?per_page=1", 2)):
            self.assertEqual(self.call("GET", listed + query, expect=200).json["pagination"]["total"], count, query)
        self.call("GET", listed + "?state=bogus", expect=400)

    def test_a_tenant_sees_its_own_part_of_a_queue(self):
        mine, others = {"X-OJS-Tenant": "mine"}, {"X-OJS-Tenant": "others"}
        for headers, jobs in ((mine, 1), (others, 2)):
            for _ in range(jobs):
                self.put_job(headers=headers)
        self.call("PUT", f"admin/queues/{self.queue}/config",
                  {"backpressure": {"tenant_bounds": {"mine": {"max_depth": 9}, "others": {"max_depth": 8}}}}, expect=200)
        for path in ("queues/" + self.queue, f"queues/{self.queue}/stats"):
            self.assertEqual(self.call("GET", path, expect=200).json["queue"]["available"], 3)
            seen = self.call("GET", path, expect=200, headers=mine)
            self.assertEqual((seen.json["queue"]["available"], seen.json["queue"]["depth"]), (1, 1))
            self.assertNotIn("others", json.dumps(seen.json))
        self.assertEqual(self.call("GET", f"queues/{self.queue}/priority-stats", headers=mine).json["total"], 1)

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
                                             ("DELETE", "jobs/{}", None, "scheduled, available, pending, retryable or active"),
                                             ("POST", "dead-letter/{}/retry", None, "discarded"), ("DELETE", "dead-letter/{}", None, "discarded")):
            error = self.call(method, path.format(job["id"]), body, expect=409).error
            self.assertEqual(error["details"], {"job_id": job["id"], "current_state": "cancelled", "expected_state": expected}, path)
        done = self.put_job()
        self.fetch()
        self.call("POST", "workers/ack", {"job_id": done["id"]}, expect=200)
        error = self.call("POST", f"admin/jobs/{done['id']}/retry", expect=409).error
        self.assertEqual(error["details"]["expected_state"], "discarded, cancelled, retryable or scheduled")

    def test_a_member_that_is_missing_is_named_with_its_place(self):
        job = self.put_job()
        self.fetch()
        for method, path, body, field in (("POST", "workers/nack", {"job_id": job["id"], "error": {"message": "no"}}, "error.code"),
                                          ("POST", "workers/register", {}, "worker_id"),
                                          ("POST", "jobs/bulk/cancel", {"filter": {"nope": 1}}, "filter.nope"),
                                          ("PUT", "admin/tenants/two%20words", {"limits": {"max_queue_depth": 1}}, "tenant_id")):
            self.assertEqual(self.call(method, path, body, expect=400).error["details"]["field"], field)

    def test_a_member_that_is_null_is_as_good_as_absent(self):
        job = self.put_job(priority=None, schema=None, retry=None, meta=None, unique=None)
        self.assertEqual((job["priority"], job["meta"]), (self.put_job()["priority"], {}))
        self.assertNotIn("schema", job)

    def test_a_schema_is_named_by_a_text(self):
        self.assertEqual(self.enqueue(expect=400, schema=5).error["details"]["field"], "schema")

    def test_the_only_job_of_a_batch_has_its_place_as_well(self):
        error = self.call("POST", "jobs/batch", {"jobs": [{"type": "a.b", "args": [], "priority": -1}]}, expect=400).error
        self.assertEqual((error["details"]["index"], error["message"].split(":")[0]), (0, "job at index 0"))
        error = self.enqueue(expect=400, priority=-1).error
        self.assertNotIn("index", error["details"])

    def test_a_body_where_none_is_needed_is_json_still(self):
        job = self.put_job(pending=True)
        for body in (b"{", b"[]", b"no"):
            self.call("POST", f"jobs/{job['id']}/activate", body, expect=400)
            self.call("POST", f"queues/{self.queue}/pause", body, expect=400)
        self.assertEqual(self.get(job)["state"], "pending")
        self.assertFalse(self.call("GET", "queues/" + self.queue, expect=200).json["queue"]["paused"])
        self.call("POST", f"jobs/{job['id']}/activate", {"any": 1}, expect=200)

    def test_what_is_too_long_is_told_with_its_bounds(self):
        error = self.enqueue(expect=413, args=["x" * (1 << 20)]).error
        self.assertEqual((error["details"]["field"], error["details"]["max_bytes"]), ("envelope", 1 << 20))
        self.assertGreater(error["details"]["actual_bytes"], 1 << 20)
        error = self.enqueue(expect=413, meta={"note": "x" * 70_000}).error
        self.assertEqual((error["details"]["field"], error["details"]["max_bytes"]), ("meta", 65_536))

    def test_a_fetch_for_a_pool_that_is_not_there_says_so(self):
        for wait in (0, 50):
            error = self.call("POST", "workers/fetch", {"queues": [self.queue], "pool": "none", "wait_ms": wait}, expect=404).error
            self.assertEqual(error["details"], {"resource_type": "pool", "resource_id": "none"})

    def test_a_worker_that_drains_gets_no_job(self):
        self.put_job()
        self.call("POST", "workers/heartbeat", {"worker_id": "w-" + self.queue, "state": "quiet"}, expect=200)
        self.assertEqual(self.fetch(), [])
        self.assertEqual(len(self.fetch(worker_id="other-" + self.queue)), 1)

    def test_results_of_many_jobs(self):
        job = self.put_job()
        self.fetch()
        self.call("POST", "workers/ack", {"job_id": job["id"], "result": 3}, expect=200)
        unknown = "019b2c3d-4e5f-7a6b-8c9d-0e1f2a3b4c5d"
        results = self.call("POST", "jobs/results", {"job_ids": [job["id"], unknown]}, expect=200).json["results"]
        self.assertEqual((results[job["id"]]["result"], results[unknown]["error"]["code"]), (3, "not_found"))
        waited = self.call("GET", f"jobs/{job['id']}/result?wait=true&timeout=5", expect=200).json
        self.assertEqual((waited["state"], waited["result"]), ("completed", 3))

    def test_a_wait_for_a_result_that_does_not_come_is_over_in_time(self):
        job = self.put_job()
        self.assertEqual(self.call("GET", f"jobs/{job['id']}/result", expect=200).json["state"], "available")
        error = self.call("GET", f"jobs/{job['id']}/result?wait=true&timeout=0.05", expect=408).error
        self.assertEqual((error["code"], error["retryable"], error["details"]),
                         ("timeout", True, {"job_id": job["id"], "state": "available"}))

    def test_an_envelope_of_another_major_version_is_refused(self):
        for version in ("1", "1.0", "1.0.0-rc.1"):
            self.put_job(specversion=version)
        for version in ("2.0", "", "0.9", 1.0):
            error = self.call("POST", "jobs", {"type": "a", "args": [], "specversion": version}, expect=400).error
            self.assertIn("specversion", error["message"], version)

    def test_whoever_waits_for_a_result_hears_of_the_end(self):
        ends = {"completed": lambda job: self.call("POST", "workers/ack", {"job_id": job["id"], "result": 7}, expect=200),
                "cancelled": lambda job: self.call("DELETE", "jobs/" + job["id"], expect=200)}
        for state, end in ends.items():
            job = self.put_job()
            self.fetch()
            replies = []
            # The wait is longer than the client's patience: an answer at its end would come too late.
            waits = [threading.Thread(target=lambda path: replies.append(self.call("GET", path, expect=200).json["state"]),
                                      args=(f"jobs/{job['id']}/result?wait=true&timeout=60",)) for _ in range(3)]
            for each in waits:
                each.start()
            end(job)
            for each in waits:
                each.join(BOUND)
            self.assertEqual(replies, [state] * 3)
