# SPDX-License-Identifier: Apache-2.0
"""Many jobs in one request, each with its own outcome. Source: ojs-bulk-operations."""

from gateways import OnGateway, eventually

NEVER = "019b2c3d-4e5f-7a6b-8c9d-0e1f2a3b4c5d"


class Bulk(OnGateway):
    def job(self, **members):
        return {"type": "test.bulk", "args": [], "queue": self.queue, **members}

    def bulk(self, *jobs, expect, **members):
        return self.call("POST", "jobs/bulk", {"jobs": list(jobs), **members}, expect=expect)

    def change(self, action, expect=200, **body):
        return self.call("POST", "jobs/bulk/" + action, body, expect=expect).json

    def ids(self, count, **members):
        made = self.bulk(*[self.job(**members)] * count, expect=201).json
        return [item["job"]["id"] for item in made["items"]]

    def states(self, ids):
        return [self.get({"id": each})["state"] for each in ids]

    def test_all_are_stored_and_told_in_order(self):
        reply = self.bulk(self.job(args=[1]), self.job(args=[2]), expect=201)
        self.assertEqual(reply.headers["X-OJS-Batch-Size"], "2")
        self.assertEqual([reply.json[name] for name in ("total", "succeeded", "failed")], [2, 2, 0])
        items = reply.json["items"]
        self.assertEqual([(item["index"], item["status"], item["job"]["args"]) for item in items],
                         [(0, "created", [1]), (1, "created", [2])])
        self.assertEqual([job["id"] for job in self.fetch(2)], [item["job"]["id"] for item in items])

    def test_some_are_refused_and_the_others_stored(self):
        taken = self.put_job()["id"]
        reply = self.bulk(self.job(), self.job(type=""), self.job(id=taken), self.job(), expect=207).json
        self.assertEqual([reply[name] for name in ("total", "succeeded", "failed")], [4, 2, 2])
        self.assertEqual([item["status"] for item in reply["items"]], ["created", "failed", "failed", "created"])
        self.assertEqual([item["error"]["code"] for item in reply["items"] if "error" in item],
                         ["invalid_request", "duplicate"])
        self.assertEqual(len(self.fetch(10)), 3)

    def test_when_none_is_stored_it_is_422(self):
        reply = self.bulk(self.job(type=""), self.job(args=1), expect=422).json
        self.assertEqual((reply["succeeded"], reply["failed"]), (0, 2))
        self.assertEqual(self.fetch(10), [])

    def test_one_that_is_there_already_is_a_duplicate_and_succeeds(self):
        unique = {"keys": ["type", "queue"], "on_conflict": "ignore"}
        first = self.put_job(type="test.bulk", unique=unique)
        item = self.bulk(self.job(unique=unique), expect=201).json["items"][0]
        self.assertEqual((item["status"], item["job"]["id"]), ("duplicate", first["id"]))

    def test_atomically_one_refusal_stores_none(self):
        reply = self.bulk(self.job(), self.job(type=""), atomicity="atomic", expect=422).json
        self.assertEqual([item["error"]["code"] for item in reply["items"]], ["rolled_back", "invalid_request"])
        self.assertEqual(self.fetch(10), [])
        other = self.queue + "-b"
        self.call("PUT", f"admin/queues/{other}/config", {"backpressure": {"max_depth": 1}}, expect=200)
        full = self.bulk(self.job(), self.job(queue=other), self.job(queue=other), atomicity="atomic", expect=422).json
        self.assertEqual(full["succeeded"], 0)
        self.assertEqual(self.fetch(10), [])
        self.assertEqual(self.bulk(self.job(), self.job(queue=other), atomicity="atomic", expect=201).json["succeeded"], 2)

    def test_what_is_not_understood_is_refused(self):
        for body in ({}, {"jobs": []}, {"jobs": [self.job()], "atomicity": "some"}):
            self.call("POST", "jobs/bulk", body, expect=400)
        self.assertEqual(self.fetch(10), [])
        for action in ("cancel", "retry", "delete"):
            self.change(action, expect=400)
            self.change(action, job_ids=[NEVER], filter={}, expect=400)
            for nothing in ({}, {"colour": "red"}, {"queue": ""}, {"type": None}, {"meta": {}}, {"state": []}):
                self.change(action, filter=nothing, expect=400)
            self.change(action, filter={"state": ["active"]}, expect=400)
            self.change(action, filter={"enqueued_before": "soon"}, expect=400)
            self.change(action, job_ids=[NEVER], atomicity="atomic", expect=422)

    def test_too_many_are_refused_with_the_maximum(self):
        for path, body in (("jobs/bulk", {"jobs": [self.job()] * 1001}), ("jobs/bulk/cancel", {"job_ids": [NEVER] * 1001})):
            reply = self.call("POST", path, body, expect=413)
            self.assertEqual((reply.error["code"], reply.error["max_batch_size"], reply.headers["X-OJS-Max-Batch-Size"]),
                             ("BATCH_SIZE_EXCEEDED", 1000, "1000"))
        self.assertEqual(len(self.ids(1000)), 1000)

    def test_jobs_are_cancelled_by_id_and_active_ones_left(self):
        ids = self.ids(2)
        active = self.fetch(1)[0]["id"]
        done = self.change("cancel", job_ids=[*ids, NEVER], expect=207)
        self.assertEqual((done["total_matched"], done["cancelled"], done["skipped"]), (3, 1, 2))
        self.assertEqual([item["status"] for item in done["items"]],
                         ["skipped" if each == active else "cancelled" for each in ids] + ["skipped"])
        left = next(item for item in done["items"] if item["job_id"] == active)
        self.assertIn("active", left["reason"])
        self.assertEqual((left["error"]["code"], left["error"]["message"]), ("conflict", left["reason"]))
        self.assertEqual(self.get({"id": active})["state"], "active")
        self.change("cancel", job_ids=[NEVER], expect=422)

    def test_a_filter_chooses_by_all_that_it_names(self):
        low, high = self.ids(1, priority=5)[0], self.ids(1, priority=0, meta={"shard": {"n": 7}, "more": 1})[0]
        later = self.ids(1, scheduled_at="+PT1H")[0]
        queue = {"queue": self.queue}
        self.assertEqual(self.change("cancel", filter=queue | {"type": "other"})["total_matched"], 0)
        self.assertEqual(self.change("cancel", filter=queue | {"enqueued_before": "2020-01-01T00:00:00Z"})["cancelled"], 0)
        self.assertEqual(self.change("cancel", filter=queue | {"enqueued_after": "2099-01-01T00:00:00Z"})["cancelled"], 0)
        self.assertEqual(self.change("cancel", filter=queue | {"meta": {"shard": {"n": 8}}})["cancelled"], 0)
        self.assertEqual(self.change("cancel", filter=queue | {"meta": {"shard": {"n": 7}}})["cancelled"], 1)
        self.assertEqual(self.states([low, high, later]), ["available", "cancelled", "scheduled"])
        self.assertEqual(self.change("cancel", filter=queue | {"state": ["scheduled"]})["cancelled"], 1)
        for wrong in (queue, {"filter": None}, {"filter": {"queues": "a"}}, {"filter": {"queue": ""}}, {"filter": {"error_type": "x"}}):
            for action in ("cancel", "retry", "delete"):
                self.call("POST", "admin/jobs/bulk/" + action, wrong | {"confirm": True}, expect=400)
        none = {"filter": queue | {"until": "1970-01-01T00:00:00Z"}, "confirm": True}
        self.assertEqual(self.call("POST", "admin/jobs/bulk/cancel", none, expect=200).json["matched"], 0)
        self.assertEqual(self.change("cancel", filter=queue | {"priority": 5})["cancelled"], 1)

    def test_an_operator_cancels_what_waits_and_what_is_active(self):
        active, waiting = self.ids(1)[0], self.ids(1)[0]
        self.assertEqual([job["id"] for job in self.fetch()], [active])
        wanted = {"filter": {"queue": self.queue}, "confirm": True}
        done = self.call("POST", "admin/jobs/bulk/cancel", wanted, expect=200).json
        self.assertEqual((done["matched"], done["succeeded"]), (2, 2))
        self.assertEqual(self.states([active, waiting]), ["cancelled", "cancelled"])

    def test_failed_jobs_go_again_and_the_others_are_told_apart(self):
        dead, retrying = self.ids(1, retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})[0], self.ids(1, retry={"initial_interval": "PT1H"})[0]
        for job in self.fetch(2):
            self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "c", "message": "m"}}, expect=200)
        waiting = self.ids(1)[0]
        done = self.change("retry", job_ids=[dead, retrying, waiting], expect=207)
        self.assertEqual([item["status"] for item in done["items"]], ["retried", "retried", "skipped"])
        self.assertEqual(self.states([dead, retrying]), ["available", "available"])

    def test_what_is_cancelled_or_pending_is_left_alone(self):
        over, pending = self.ids(1)[0], self.ids(1, pending=True)[0]
        self.change("cancel", job_ids=[over])
        self.assertEqual(self.change("retry", job_ids=[over], expect=422)["skipped"], 1)
        self.change("retry", filter={"queue": self.queue, "state": ["cancelled"]}, expect=400)
        self.assertEqual(self.change("cancel", job_ids=[pending], expect=422)["skipped"], 1)
        self.assertEqual(self.states([over, pending]), ["cancelled", "pending"])

    def test_of_an_atomic_request_those_that_are_to_blame_are_named(self):
        unique = self.job(unique={"keys": ["args"]}, args=[self.queue])
        self.bulk(unique, expect=201)
        done = self.bulk(self.job(), unique, atomicity="atomic", expect=422).json
        self.assertEqual([item["error"]["code"] for item in done["items"]], ["rolled_back", "duplicate"])
        other = self.queue + ".full"
        self.call("PUT", f"admin/queues/{other}/config", {"backpressure": {"max_depth": 1}}, expect=200)
        done = self.bulk(self.job(), self.job(queue=other), self.job(queue=other), atomicity="atomic", expect=422).json
        self.assertEqual([item["error"]["code"] for item in done["items"]], ["rolled_back", "QUEUE_FULL", "QUEUE_FULL"])

    def test_only_jobs_that_are_over_are_deleted(self):
        over, waiting = self.ids(1)[0], self.ids(1)[0]
        self.fetch(1)
        self.call("POST", "workers/ack", {"job_id": over}, expect=200)
        done = self.change("delete", job_ids=[over, waiting], expect=207)
        self.assertEqual((done["deleted"], done["skipped"]), (1, 1))
        self.call("GET", "jobs/" + over, expect=404)
        self.change("cancel", job_ids=[waiting])
        self.assertEqual(self.change("delete", filter={"queue": self.queue})["deleted"], 1)

    def test_each_request_is_told_of_when_it_is_over(self):
        self.bulk(self.job(), self.job(type=""), expect=207)
        self.change("cancel", filter={"queue": self.queue})
        self.bulk(self.job(), atomicity="atomic", expect=201)

        def told():
            found = self.call("GET", "events?types=bulk.enqueue.completed,bulk.cancel.completed&limit=1000", expect=200).json
            return [(event["type"], event["data"]) for event in found["events"]]
        first = ("bulk.enqueue.completed", {"total": 2, "succeeded": 1, "failed": 1, "atomicity": "partial"})
        then = ("bulk.cancel.completed", {"total": 1, "cancelled": 1, "skipped": 0})
        last = ("bulk.enqueue.completed", {"total": 1, "succeeded": 1, "failed": 0, "atomicity": "atomic"})
        eventually(lambda: all(each in told() for each in (first, then, last)))

    def test_a_tenant_changes_its_own_jobs_alone(self):
        mine = self.put_job(meta={"tenant_id": "a"})["id"]
        header = {"X-OJS-Tenant": "b"}
        self.call("POST", "jobs/bulk/cancel", {"job_ids": [mine]}, headers=header, expect=422)
        done = self.call("POST", "jobs/bulk/cancel", {"filter": {"queue": self.queue}}, headers=header, expect=200).json
        self.assertEqual(done["total_matched"], 0)
        of_queue = {"filter": {"queue": self.queue}, "confirm": True}
        done = self.call("POST", "admin/jobs/bulk/cancel", of_queue, headers=header, expect=200).json
        self.assertEqual(done["matched"], 0)
        purge = {"states": ["available"], "confirm": True}
        done = self.call("DELETE", f"admin/queues/{self.queue}/jobs", purge, headers=header, expect=200).json
        self.assertEqual(done["purged_count"], 0)
        self.assertEqual(self.get({"id": mine})["state"], "available")

    def test_requests_are_counted_in_the_metrics(self):
        read = lambda: dict(line.rsplit(" ", 1) for line in self.call("GET", "/metrics", expect=200).body.decode().splitlines()
                            if line.startswith("ojs_bulk_"))
        series = [
            ('ojs_bulk_requests_total{operation="enqueue",atomicity="partial",segment="test"}', 1),
            ('ojs_bulk_requests_total{operation="enqueue",atomicity="atomic",segment="test"}', 1),
            ('ojs_bulk_requests_total{operation="cancel",atomicity="partial",segment="test"}', 1),
            ('ojs_bulk_items_total{operation="enqueue",status="created",segment="test"}', 5),
            ('ojs_bulk_items_total{operation="enqueue",status="failed",segment="test"}', 1),
            ('ojs_bulk_items_total{operation="cancel",status="cancelled",segment="test"}', 2),
            ('ojs_bulk_items_total{operation="cancel",status="skipped",segment="test"}', 1),
            ('ojs_bulk_batch_size_count{operation="enqueue",segment="test"}', 2),
            ('ojs_bulk_batch_size_sum{operation="enqueue",segment="test"}', 6),
            ('ojs_bulk_batch_size_bucket{operation="enqueue",segment="test",le="3"}', 2),
            ('ojs_bulk_duration_seconds_count{operation="enqueue",atomicity="atomic",segment="test"}', 1),
        ]
        before = read()
        self.bulk(self.job(), self.job(type=""), self.job(), expect=207)
        ids = [item["job"]["id"] for item in self.bulk(*[self.job()] * 3, atomicity="atomic", expect=201).json["items"]]
        self.change("cancel", job_ids=[*ids[:2], NEVER], expect=207)
        after = read()
        number = lambda page, line: float(next((page[known] for known in page if set(known.strip("}").replace("{", ",").split(","))
                                                == set(line.strip("}").replace("{", ",").split(","))), 0))
        for line, more in series:
            self.assertEqual(number(after, line) - number(before, line), more, line)
