# SPDX-License-Identifier: Apache-2.0
"""Jobs as a client writes them: what a body may say, and how what is wrong with it is named."""

import gzip
import json
import time
import uuid

from gateways import MEDIA_TYPE, OnGateway


class Jobs(OnGateway):
    def test_an_unknown_member_comes_back(self):
        job = self.put_job(custom={"a": [1, None]}, meta={"trace_id": "t"}, tags=["x"])
        read = self.get(job)
        self.assertEqual((read["custom"], read["meta"], read["tags"]), ({"a": [1, None]}, {"trace_id": "t"}, ["x"]))

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

    def test_durations_of_iso_8601(self):
        for text, shown in (("P1W", "P7D"), ("P2DT3H", "P2DT3H"), ("P30D", "P30D"), ("PT1H30M", "PT1H30M"), ("P1M", "P30D"),
                            ("P1Y", "P365D"), ("P1Y2M3DT1H", "P428DT1H")):
            kept = self.call("PUT", "dead-letter/retention", {"max_age": text}, expect=200).json["retention"]
            self.assertEqual(kept["max_age"], shown)
        for text in ("PT0.5S", "PT0,5S", "500ms"):
            begun = time.monotonic()
            self.call("POST", "workers/fetch", {"queues": [self.queue], "wait_ms": text}, expect=200)
            self.assertGreaterEqual(time.monotonic() - begun, 0.5)
        job = self.put_job(retry={"initial_interval": "PT0.5S", "max_interval": "P1W"})
        self.assertEqual((job["retry"]["initial_interval"], job["retry"]["max_interval"]), ("PT0.5S", "P1W"))
        job = self.put_job(retry={"max_interval": "P1M"})
        self.assertEqual(job["retry"]["max_interval"], "P1M")
        self.assertIn("max_interval", self.enqueue(422, retry={"max_interval": "P1Y"}).error["message"])
        self.assertEqual(self.enqueue(400, visibility_timeout="P1Y").error["details"]["field"], "visibility_timeout")
        for text in ("P", "PT", "1W", "PT5", "-PT5S"):
            self.assertIn("must be", self.call("PUT", "dead-letter/retention", {"max_age": text}, expect=400).error["message"])

    def test_names_that_are_too_long(self):
        self.assertEqual(self.enqueue(400, type="a" * 256).error["code"], "invalid_request")
        self.assertEqual(self.enqueue(400, queue="q" * 129).error["code"], "invalid_request")

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
        for body in (b"{", b"[1]", b"no"):
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

    def test_an_envelope_of_another_major_version_is_refused(self):
        for version in ("1", "1.0", "1.0.0-rc.1"):
            self.put_job(specversion=version)
        for version in ("2.0", "", "0.9", 1.0):
            error = self.call("POST", "jobs", {"type": "a", "args": [], "specversion": version}, expect=400).error
            self.assertIn("specversion", error["message"], version)

    def test_what_was_said_in_seconds_comes_back(self):
        job = self.put_job(timeout=7, visibility_timeout=5)
        self.assertEqual([job[name] for name in ("timeout", "timeout_ms", "visibility_timeout", "visibility_timeout_ms")],
                         [7, 7000, 5, 5000])
        self.assertNotIn("timeout", self.put_job(timeout_ms=7000))

    def test_a_number_that_no_client_could_read_is_refused(self):
        for number in (b"1e999", b"-1e400", b"9" * 400, b"9" * 310 + b".5"):
            body = b'{"type":"test.http","queue":"q","args":[' + number + b"]}"
            self.assertEqual(self.call("POST", "jobs", body, expect=400).error["code"], "invalid_payload")
        for number in (b"0e999", b"1e-999", b"9" * 300):
            body = b'{"type":"test.http","queue":"q","args":[' + number + b"]}"
            self.assertIn(number, self.call("POST", "jobs", body, expect=201).body)

    def test_a_meta_that_is_too_large_is_measured(self):
        meta = {"a": "x" * 70_000}
        details = self.enqueue(413, meta=meta).error["details"]
        self.assertEqual((details["field"], details["max_bytes"], details["actual_bytes"] > 70_000), ("meta", 65536, True))

    def test_the_intervals_of_a_policy_are_held_against_the_defaults(self):
        for wrong in ({"max_interval": "PT0.5S"}, {"max_interval": "PT0S"}, {"initial_interval": "PT2S", "max_interval": "PT1S"}):
            self.assertEqual(self.enqueue(422, retry=wrong).error["details"]["field"], "retry.max_interval")
        job = self.put_job(retry={"initial_interval": "PT10M", "jitter": False})
        self.assertEqual(job["retry"]["max_interval"], "PT10M")
        self.fetch()
        nack = {"job_id": job["id"], "error": {"code": "c", "message": "m"}}
        self.assertEqual(self.call("POST", "workers/nack", nack, expect=200).json["retry_delay_ms"], 600_000)
