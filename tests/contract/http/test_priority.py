# SPDX-License-Identifier: Apache-2.0
"""Priorities over HTTP, named after the rows of docs/requirements.tsv."""

import threading

from gateways import MEDIA_TYPE, OnGateway, eventually


class Priority(OnGateway):
    def test_PRI_001_PRI_T11_priority_is_a_whole_number_at_the_top(self):
        for priority in (0, 1, 2, 17, 255):
            job = self.put_job(priority=priority)
            self.assertEqual(job["priority"], priority)
            self.assertEqual(self.get(job)["priority"], priority)
        self.assertEqual([job["priority"] for job in self.fetch(9)], [0, 1, 2, 17, 255])
        for wrong in (1.5, "1", True, [], "null"):
            self.assertEqual(self.enqueue(400, priority=wrong).error["code"], "invalid_request")
        self.assertEqual(self.stats()["enqueued_total"], 5)

    def test_PRI_002_PRI_T08_it_is_2_when_nothing_is_said(self):
        job = self.put_job()
        self.assertEqual((job["priority"], self.get(job)["priority"]), (2, 2))
        batch = self.call("POST", "jobs/batch", {"jobs": [{"type": "a", "args": [], "queue": self.queue}]}, expect=201)
        self.assertEqual(batch.json["jobs"][0]["priority"], 2)
        listed = self.call("GET", "admin/jobs?queue=" + self.queue, expect=200).json["items"]
        self.assertEqual([each["priority"] for each in listed], [2, 2])
        self.assertEqual([each["priority"] for each in self.fetch(2)], [2, 2])

    def test_PRI_005_PRI_T12_PRI_T13_a_negative_one_is_refused(self):
        self.put_job()
        for priority in (-1, -2147483648):
            self.assertFalse(self.enqueue(400, priority=priority).error["retryable"])
        self.assertEqual(self.stats()["enqueued_total"], 1)

    def test_SUM_11_tenants_take_turns_across_levels_when_asked(self):
        self.configure(tenant_fairness={"scope": "across"})
        for tenant, priority in (("a", 1), ("a", 0), ("a", 0), ("b", 9), ("b", 5)):
            self.put_job(priority=priority, headers={"X-OJS-Tenant": tenant})
        self.assertEqual([job["priority"] for job in self.fetch(9)], [0, 5, 0, 9, 1])
        self.assertIn("tenant_fairness.scope", str(self.configure(400, tenant_fairness={"scope": "all"}).error))

    def test_PRI_006_PRI_T07_255_stands_behind_254(self):
        ids = [self.put_job(priority=priority)["id"] for priority in (255, 254)]
        self.assertEqual([job["id"] for job in self.fetch(2)], ids[::-1])
        self.assertGreaterEqual(self.call("GET", "/ojs/manifest").json["priority"]["max"], 255)

    def test_PRI_T14_PRI_T15_above_the_maximum_it_is_named(self):
        for priority in (256, 10**30):
            error = self.enqueue(400, priority=priority).error
            self.assertIn("255", error["message"])
            self.assertEqual(error["details"]["max_priority"], 255)

    def test_PRI_R001_PRI_T16_PATCH_changes_the_order(self):
        first, second = self.put_job(priority=5), self.put_job(priority=5)
        later = self.put_job(priority=9, scheduled_at="+PT1H")
        for job in (second, later):
            self.call("PATCH", "jobs/" + job["id"], {"priority": 1}, expect=200)
        self.assertEqual([job["id"] for job in self.fetch(2)], [second["id"], first["id"]])
        for job in (first, second):
            self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)
        self.call("POST", "test/clock", {"advance_ms": 3_700_000}, expect=200)
        waiting = self.put_job(priority=2)
        eventually(lambda: self.get(later)["state"] == "available")
        self.assertEqual([job["id"] for job in self.fetch(2)], [later["id"], waiting["id"]])

    def test_PRI_H2_PATCH_answers_with_three_members(self):
        job = self.put_job(priority=3)
        reply = self.call("PATCH", "jobs/" + job["id"], {"priority": 0}, expect=200)
        self.assertEqual(reply.json, {"id": job["id"], "priority": 0, "previous_priority": 3})
        self.assertEqual(self.call("PATCH", "admin/jobs/" + job["id"], {"priority": 4}).status, 200)
        for wrong in ({"priority": -1}, {"priority": 256}, {"priority": "1"}, {}):
            self.call("PATCH", "jobs/" + job["id"], wrong, expect=400)
        self.call("PATCH", "jobs/019b2c3d-4e5f-7a6b-8c9d-0e1f2a3b4c5d", {"priority": 0}, expect=404)

    def test_PRI_T17_SUM_06_other_states_answer_409(self):
        jobs = [self.put_job(retry={"max_attempts": 2, "initial_interval": "PT1H"}) for _ in range(4)]
        self.fetch(4)
        active, completed, retryable, cancelled = jobs
        self.call("POST", "workers/ack", {"job_id": completed["id"]}, expect=200)
        self.call("POST", "workers/nack", {"job_id": retryable["id"], "error": {"code": "e", "message": "m"}}, expect=200)
        self.call("DELETE", "jobs/" + cancelled["id"], expect=200)
        discarded, pending = self.put_job(retry={"max_attempts": 1}), self.put_job(pending=True)
        self.fetch()
        self.call("POST", "workers/nack", {"job_id": discarded["id"], "error": {"code": "e", "message": "m"}}, expect=200)
        for job in (active, completed, retryable, cancelled, discarded, pending):
            reply = self.call("PATCH", "jobs/" + job["id"], {"priority": 7}, expect=409)
            self.assertEqual(reply.error["code"], "conflict")
            self.assertEqual(self.get(job)["priority"], 2)

    def test_PRI_T19_ageing_leaves_the_stored_value(self):
        self.configure(aging={"enabled": True, "interval": "PT1M", "rate": 1})
        job = self.put_job(priority=4)
        self.call("POST", "test/clock", {"advance_ms": 180_000}, expect=200)
        self.assertEqual(self.get(job)["priority"], 4)
        counts = self.call("GET", f"queues/{self.queue}/priority-stats").json["counts_by_priority"]
        self.assertEqual(counts, {"4": 1})
        self.assertEqual(self.fetch()[0]["priority"], 4)

    def test_PRI_S8_SUM_05_a_strategy_in_a_job_means_nothing(self):
        first, second = self.put_job(strategy="weighted", priority=3), self.put_job(strategy="strict", priority=1)
        self.assertEqual([job["id"] for job in self.fetch(2)], [second["id"], first["id"]])
        self.assertIn("weighted", self.call("GET", "/ojs/manifest").json["queue_strategies"])

    def test_PRI_H1_PRI_G1_the_example_as_plain_JSON(self):
        body = {"type": "incident.alert", "args": [{"severity": "critical"}], "queue": self.queue, "priority": 0}
        for priority in (3, 1):
            self.put_job(priority=priority)
        job = self.call("POST", "jobs", body, expect=201, headers={"Content-Type": "application/json"}).json["job"]
        self.assertEqual(self.fetch()[0]["id"], job["id"])

    def test_PRI_H3_PRI_R003_SUM_12_priority_stats_count_what_is_available(self):
        for priority in (0, 0, 2, 4):
            self.put_job(priority=priority)
        self.put_job(priority=1, scheduled_at="+PT1H")
        path = f"queues/{self.queue}/priority-stats"
        reply = self.call("GET", path, expect=200, headers={"Accept": "*/*"})
        self.assertEqual(reply.headers["Content-Type"], MEDIA_TYPE)
        stats = reply.json
        self.assertEqual((stats["queue"], stats["total"]), (self.queue, 4))
        self.assertEqual(stats["counts_by_priority"], {"0": 2, "2": 1, "4": 1})
        self.fetch(9)
        stats = self.call("GET", path, expect=200).json
        self.assertEqual((stats["counts_by_priority"], stats["total"]), ({}, 0))

    def test_PRI_E1_PRI_R004_one_event_for_each_change(self):
        job = self.put_job(priority=3)
        self.call("PATCH", "jobs/" + job["id"], {"priority": 1}, expect=200)
        self.call("PATCH", "jobs/" + job["id"], {"priority": 999}, expect=400)
        events = self.call("GET", "events?types=priority.changed&queues=" + self.queue, expect=200).json["events"]
        self.assertEqual([event["data"] | {"queue": self.queue} for event in events],
                         [{"job_id": job["id"], "job_type": "test.http", "queue": self.queue,
                           "previous_priority": 3, "new_priority": 1}])

    def test_PRI_T04_one_order_for_workers_at_once(self):
        for number in range(200):
            self.put_job(priority=number * 7 % 5, args=[number])
        seen, lock = [], threading.Lock()

        def work():
            while True:
                with lock:  # the order in which the server was asked
                    jobs = self.fetch()
                    seen.extend(jobs)
                if not jobs:
                    return
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expected = sorted(range(200), key=lambda number: number * 7 % 5)
        self.assertEqual([job["args"][0] for job in seen], expected)

    def test_PRI_T16_a_priority_that_is_no_number_of_ours_is_refused_as_it_stands(self):
        job = self.put_job()
        for wrong in ("99999999999999999999", "-99999999999999999999"):
            refused = self.call("PATCH", "jobs/" + job["id"], ('{"priority":%s}' % wrong).encode(), expect=400)
            self.assertIn(wrong, refused.error["message"])
        refused = self.call("PATCH", "jobs/" + job["id"], b'{"priority":7,"priority":8}', expect=400)
        self.assertIn("twice", refused.error["message"])
        self.assertEqual(self.get(job)["priority"], 2)

    def test_PRI_T03_jobs_of_one_time_come_in_the_order_of_their_batch(self):
        jobs = [{"type": "a", "args": [n], "queue": self.queue, "scheduled_at": "+PT30S"} for n in range(20)]
        self.call("POST", "jobs/batch", {"jobs": jobs}, expect=201)
        self.call("POST", "test/clock", {"advance_ms": 31_000}, expect=200)
        eventually(lambda: self.stats()["available"] == 20)
        self.assertEqual([job["args"][0] for job in self.fetch(20)], list(range(20)))

    def test_PRI_005_PRI_T15_of_workflows_as_well(self):
        step = {"type": "a.b", "args": [], "options": {"queue": self.queue, "priority": 1}}
        for place, members in (("$.priority", {"priority": -1}), ("$.options.priority", {"options": {"priority": 1.5}}),
                               ("$.priority", {"options": {"priority": 256}})):
            refused = self.call("POST", "workflows", {"type": "chain", "steps": [step]} | members, expect=400)
            self.assertEqual(refused.error["details"]["field"], place)
        self.assertEqual(refused.error["details"]["max_priority"], 255)
        self.call("POST", "workflows", {"type": "chain", "steps": [step], "priority": 1, "options": {"priority": 2}}, expect=400)
        refused = self.enqueue(400, priority=256, workflow={"chain": [step]})
        self.assertEqual((refused.error["details"]["field"], refused.error["details"]["max_priority"]), ("$.priority", 255))
        refused = self.enqueue(400, workflow={"chain": [step], "group": [step]})
        self.assertIn("one of chain, group and batch", refused.error["message"])


class ImmutablePriority(OnGateway):
    flags = ("--convention", "qo")

    def test_QO_09_qo_keeps_the_priority(self):
        job = self.put_job(priority=200)
        refused = self.call("PATCH", "jobs/" + job["id"], {"priority": 1}, expect=409).error["details"]
        self.assertEqual((refused["current_state"], refused["setting"]), ("available", "immutable_priorities"))
        self.assertNotIn("expected_state", refused)
        self.assertEqual(self.get(job)["priority"], 200)
        self.assertFalse(self.call("GET", "/ojs/manifest", expect=200).json["capabilities"]["dynamic_priority"])

    def test_QO_10_the_record_shows_it(self):
        job = self.put_job(priority=200)
        self.assertEqual(self.call("GET", "jobs/" + job["id"]).json["priority"], 200)
