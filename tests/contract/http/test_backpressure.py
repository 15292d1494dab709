# SPDX-License-Identifier: Apache-2.0
"""Full queues over HTTP, named after the rows of docs/requirements.tsv."""

import socket
import threading
import time

from gateways import OnGateway, eventually


class Backpressure(OnGateway):
    def bound(self, **settings):
        return self.configure(backpressure=settings)

    def test_BP_002_BP_T03_BP_005_BP_H3_a_full_queue_answers_429(self):
        self.bound(max_depth=2)
        self.put_job()
        self.put_job()
        reply = self.enqueue(429)
        self.assertGreaterEqual(int(reply.headers["Retry-After"]), 1)
        self.assertEqual(int(reply.headers["X-OJS-Queue-Depth"]), reply.error["depth"])
        self.assertEqual(int(reply.headers["X-OJS-Queue-Bound"]), reply.error["bound"])
        self.assertEqual(self.stats()["depth"], 2)
        self.assertEqual(len(self.fetch(9)), 2)

    def test_BP_H2_the_body_has_its_members_in_the_error(self):
        self.bound(max_depth=1)
        self.put_job()
        error = self.enqueue(429).error
        self.assertEqual(error["code"], "QUEUE_FULL")
        self.assertEqual(error["message"], f"Queue '{self.queue}' has reached its depth bound (1)")
        self.assertEqual((error["queue"], error["depth"], error["bound"], error["strategy"], error["retryable"]),
                         (self.queue, 1, 1, "reject", True))

    def test_BP_003_BP_H1_a_bound_is_set_shown_and_in_force_at_once(self):
        reply = self.call("PUT", f"admin/queues/{self.queue}/config", {"backpressure": {"max_depth": 1}}, expect=200,
                          headers={"Content-Type": "application/json"})
        self.assertEqual(reply.json["configuration"]["backpressure"]["max_depth"], 1)
        shown = self.call("GET", f"queues/{self.queue}", expect=200).json["queue"]
        self.assertEqual(shown["backpressure"]["max_depth"], 1)
        self.put_job()
        self.enqueue(429)
        self.bound(max_depth=2)
        self.put_job()

    def test_BP_T15_members_have_defaults_and_bounds(self):
        policy = self.configure().json["configuration"]["backpressure"]
        self.assertEqual((policy["max_depth"], policy["max_size_bytes"], policy["strategy"],
                          policy["warning_threshold"]), (0, 0, "reject", 0.8))
        for wrong in ({"max_depth": -1}, {"max_depth": "1"}, {"strategy": "drop"}, {"warning_threshold": 1.1},
                      {"max_size_bytes": 1.5}, {"unknown": 1}):
            self.assertEqual(self.configure(400, backpressure=wrong).error["code"], "invalid_request")

    def test_BP_R004_BP_H4_above_the_threshold_headers_warn(self):
        self.bound(max_depth=10, warning_threshold=0.5)
        replies = [self.enqueue() for _ in range(6)]
        for reply in replies[:5]:
            self.assertNotIn("X-OJS-Queue-Pressure", reply.headers)
        last = replies[5].headers
        self.assertEqual((last["X-OJS-Queue-Depth"], last["X-OJS-Queue-Bound"]), ("6", "10"))
        self.assertEqual(float(last["X-OJS-Queue-Pressure"]), 0.6)

    def test_BP_R004_the_headers_are_of_the_queue_of_the_job_also_with_a_time_to_wait(self):
        patience = {"OJS-Block-Timeout": "1"}
        self.bound(max_depth=10, warning_threshold=0.5)
        for _ in range(6):
            self.enqueue()
        job = {"type": "test.http", "args": []}
        other = self.call("POST", "jobs", {**job, "options": {"queue": self.queue[-50:] + ".other"}}, headers=patience, expect=201)
        self.assertNotIn("X-OJS-Queue-Pressure", other.headers)
        self.assertEqual(self.enqueue(headers=patience).headers["X-OJS-Queue-Depth"], "7")
        batch = {"jobs": [{**job, "options": {"queue": self.queue}}]}
        self.assertEqual(self.call("POST", "jobs/batch", batch, headers=patience, expect=201).headers["X-OJS-Queue-Depth"], "8")

    def test_a_wrong_job_of_a_batch_that_may_wait_is_named(self):
        job = {"type": "test.http", "args": [], "options": {"queue": self.queue}}
        wrong = {**job, "options": {"queue": self.queue, "priority": 5000}}
        for headers in ({}, {"OJS-Block-Timeout": "1"}):
            error = self.call("POST", "jobs/batch", {"jobs": [job, wrong]}, headers=headers, expect=400).error
            self.assertEqual((error["details"]["index"], error["message"][:16]), (1, "job at index 1: "), headers)

    def test_BP_T08_the_time_of_a_job_with_a_workflow_is_looked_at_too(self):
        job = {"type": "test.http", "args": [], "workflow": {"chain": [{"type": "test.http", "args": []}]}}
        self.call("POST", "jobs", job, headers={"OJS-Block-Timeout": "soon"}, expect=400)

    def test_BP_R002_BP_T04_a_blocked_enqueue_gets_the_room_that_comes(self):
        self.bound(max_depth=1, strategy="block")
        self.put_job()
        replies = []
        blocked = threading.Thread(target=lambda: replies.append(self.enqueue(headers={"OJS-Block-Timeout": "30"})))
        blocked.start()
        eventually(lambda: self.stats()["waiting"] == 1)
        self.assertEqual(replies, [])
        self.fetch()
        blocked.join()
        self.assertEqual(replies[0].status, 201)

    def test_BP_T06_its_time_is_over(self):
        self.bound(max_depth=1, strategy="block")
        self.put_job()
        begun = time.monotonic()
        reply = self.enqueue(429, headers={"OJS-Block-Timeout": "1"})
        print("# refused after", round(time.monotonic() - begun, 2), "s")
        self.assertEqual(reply.error["strategy"], "block")

    def test_BP_T07_without_the_header_the_refusal_is_immediate(self):
        self.bound(max_depth=1, strategy="block")
        self.put_job()
        self.assertEqual(self.enqueue(429).error["code"], "QUEUE_FULL")
        self.enqueue(429, headers={"OJS-Block-Timeout": "0"})

    def test_BP_T08_the_header_means_nothing_to_reject_and_is_checked(self):
        self.bound(max_depth=1)
        self.put_job()
        self.enqueue(429, headers={"OJS-Block-Timeout": "30"})
        for wrong in ("soon", "-1", "3601", "1s"):
            self.enqueue(400, headers={"OJS-Block-Timeout": wrong})

    def test_BP_T09_who_goes_while_blocked_leaves_nothing(self):
        self.bound(max_depth=1, strategy="block")
        self.put_job()
        host, port = self.up.address.split(":")
        body = b'{"type":"gone","args":[],"queue":"%s"}' % self.queue.encode()
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"POST /ojs/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                           b"OJS-Block-Timeout: 600\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            eventually(lambda: self.stats()["waiting"] == 1)
        eventually(lambda: self.stats()["waiting"] == 0)
        self.assertEqual(len(self.fetch(9)), 1)
        self.assertEqual(self.stats()["enqueued_total"], 1)

    def test_BP_T10_drop_oldest_discards_the_oldest(self):
        self.bound(max_depth=2, strategy="drop_oldest")
        jobs = [self.put_job() for _ in range(3)]
        self.assertEqual([self.get(job)["state"] for job in jobs], ["discarded", "available", "available"])

    def test_BP_T11_scheduled_jobs_are_not_dropped(self):
        self.bound(max_depth=1, strategy="drop_oldest")
        job = self.put_job(scheduled_at="+PT1H")
        self.enqueue(429)
        self.assertEqual(self.get(job)["state"], "scheduled")

    def test_BP_T19_a_tenant_has_a_bound_of_its_own(self):
        self.bound(tenant_max_depth=1)
        self.put_job(headers={"X-OJS-Tenant": "a"})
        reply = self.enqueue(429, headers={"X-OJS-Tenant": "a"})
        self.assertEqual(reply.error["code"], "TENANT_LIMIT_EXCEEDED")
        for name in ("tenant_id", "limit", "current", "maximum"):
            self.assertEqual(reply.error[name], reply.error["details"][name])
        self.assertEqual(reply.error["details"], {"tenant_id": "a", "limit": "max_queue_depth", "current": 1, "maximum": 1})
        self.put_job(headers={"X-OJS-Tenant": "b"})

    def test_a_tenants_share_is_set_for_all_queues_at_once(self):
        self.configure(tenant_fairness={"enabled": True})
        other = self.queue + "-2"
        self.call("POST", "queues", {"name": other}, expect=201)
        shown = self.call("PUT", "admin/tenants/shop", {"limits": {"max_queue_depth": 1}, "fairness_weight": 5}, expect=200).json
        self.assertEqual((shown["tenant_id"], shown["limits"], shown["fairness_weight"]), ("shop", {"max_queue_depth": 1}, 5))
        weights = self.call("GET", f"admin/queues/{self.queue}", expect=200).json["configuration"]["tenant_fairness"]["weights"]
        self.assertEqual(weights, {"shop": 5})
        headers = {"X-OJS-Tenant": "shop"}
        for queue in (self.queue, other):
            self.put_job(queue=queue, headers=headers)
            self.assertEqual(self.enqueue(429, queue=queue, headers=headers).error["code"], "TENANT_LIMIT_EXCEEDED")
        self.put_job(headers={"X-OJS-Tenant": "else"})
        shown = self.call("PUT", "admin/tenants/shop/limits", {"max_queue_depth": None, "reason": "paid"}, expect=200).json
        self.assertNotIn("limits", shown)
        self.assertEqual((shown["total_jobs"], shown["fairness_weight"]), (2, 5))
        self.put_job(headers=headers)
        self.call("PUT", "admin/tenants/shop", {"fairness_weight": None}, expect=200)
        self.assertNotIn("fairness_weight", self.call("GET", "admin/tenants/shop", expect=200).json)
        for wrong in ({"limits": {"max_enqueue_rate": 1}}, {"priority_boost": 1}):
            self.call("PUT", "admin/tenants/shop", wrong, expect=422)
        for wrong in ({"fairness_weight": 0}, {"tenant_id": "other", "fairness_weight": 2}):
            self.call("PUT", "admin/tenants/shop", wrong, expect=400)
        self.call("PUT", "admin/tenants/shop", {"tenant_id": "shop", "priority_boost": 0}, expect=200)
        self.call("GET", "admin/tenants/bad%20name/jobs", expect=400)

    def test_tenants_without_jobs_are_listed_with_the_share_they_are_to_get(self):
        self.configure(tenant_fairness={"enabled": True})
        for tenant, weight in (("heavy", 3), ("light", None)):
            limits = {"limits": {"max_concurrency": 20}}
            shown = self.call("PUT", "admin/tenants/" + tenant, limits | {"fairness_weight": weight} if weight else limits, expect=200).json
            self.assertEqual(shown.get("fairness_weight"), weight)
        listed = {one["tenant_id"]: one for one in self.call("GET", "admin/tenants?per_page=100", expect=200).json["items"]}
        self.assertEqual([listed[tenant]["total_jobs"] for tenant in ("heavy", "light")], [0, 0])
        for done in (True, True, False):
            self.put_job(headers={"X-OJS-Tenant": "light"}, retry={"max_attempts": 1})
            job, = self.fetch()
            if done:
                self.call("POST", f"jobs/{job['id']}/ack", {}, expect=200)
            else:
                self.call("POST", f"jobs/{job['id']}/nack", {"error": {"code": "c", "message": "m"}}, expect=200)
        stats = {tenant: self.call("GET", f"admin/tenants/{tenant}/stats", expect=200).json for tenant in ("heavy", "light")}
        self.assertEqual([stats["light"]["jobs"][name] for name in ("completed_24h", "failed_24h")], [2, 1])
        fairness = {tenant: stats[tenant]["fairness"] for tenant in stats}
        self.assertEqual({tenant: share["weight"] for tenant, share in fairness.items()}, {"heavy": 3, "light": 1})
        self.assertAlmostEqual(fairness["heavy"]["effective_share"], 3 * fairness["light"]["effective_share"])
        self.assertEqual(fairness["heavy"]["actual_share"], 0)
        self.assertGreater(fairness["light"]["actual_share"], 0)
        for tenant in stats:
            self.call("DELETE", "admin/tenants/" + tenant, expect=200)

    def test_a_tenant_tells_its_limits_and_what_is_in_use_of_them(self):
        headers, other = {"X-OJS-Tenant": "uses"}, self.queue + "-2"
        for queue, bound in ((self.queue, 8), (other, 4)):
            self.call("PUT", f"admin/queues/{queue}/config", {"backpressure": {"tenant_bounds": {"uses": {"max_depth": bound}}}}, expect=200)
        self.call("PUT", "rate-limits/tenant:uses", {"concurrency": 3}, expect=200)
        for queue, jobs in ((self.queue, 2), (other, 4)):
            for _ in range(jobs):
                self.put_job(queue=queue, headers=headers)
        for done in (True, False):
            job, = self.fetch(1, queues=[other])
            if done:
                self.call("POST", f"jobs/{job['id']}/ack", {}, expect=200)
        shown = self.call("GET", "admin/tenants/uses", expect=200).json
        self.assertEqual(shown["limits"], {"max_queue_depth": 4, "max_concurrency": 3})
        stats = self.call("GET", "admin/tenants/uses/stats", expect=200).json
        self.assertEqual(stats["limits"], {"max_queue_depth": {"limit": 4, "current": 2}, "max_concurrency": {"limit": 3, "current": 1}})
        for told in (shown, stats):
            self.assertEqual(told["throughput"], {"processed_per_minute": 1, "enqueued_per_minute": 6})
        none = self.call("GET", "admin/tenants/uses-nothing/stats", expect=200).json
        self.assertEqual((none["throughput"], "limits" in none), ({"processed_per_minute": 0, "enqueued_per_minute": 0}, False))

    def test_what_was_set_for_a_tenant_is_taken_back(self):
        headers, path = {"X-OJS-Tenant": "leaves"}, "admin/tenants/leaves"
        self.call("DELETE", path, expect=404)
        self.configure(tenant_fairness={"enabled": True, "weights": {"leaves": 5, "stays": 3}},
                       backpressure={"tenant_bounds": {"leaves": {"max_depth": 1, "max_size_bytes": 4096}, "stays": {"max_depth": 2}}})
        self.call("PUT", "rate-limits/tenant:leaves", {"concurrency": 1}, expect=200)
        job = self.put_job(headers=headers)
        error = self.call("DELETE", path, expect=409).error
        self.assertEqual((error["code"], error["details"]["unfinished_jobs"]), ("conflict", 1))
        self.enqueue(429, headers=headers)
        self.call("DELETE", "jobs/" + job["id"], expect=200)
        gone = self.call("DELETE", path, expect=200).json
        self.assertEqual(gone, {"tenant_id": "leaves", "deleted": True, "jobs_kept": 1})
        shown = self.call("GET", path, expect=200).json
        self.assertEqual((shown["total_jobs"], "limits" in shown, "fairness_weight" in shown), (1, False, False))
        kept = self.call("GET", f"admin/queues/{self.queue}", expect=200).json["configuration"]
        self.assertEqual((kept["tenant_fairness"]["weights"], kept["backpressure"]["tenant_bounds"]), ({"stays": 3}, {"stays": {"max_depth": 2}}))
        self.assertEqual(self.get(job)["state"], "cancelled")
        for _ in range(2):
            self.put_job(headers=headers)
        self.assertEqual(len(self.fetch(2)), 2, "no limit holds any more")
        self.call("PUT", "rate-limits/tenant:only-limited", {"concurrency": 1}, expect=200)
        self.call("DELETE", "admin/tenants/only-limited", expect=200)
        self.call("DELETE", "admin/tenants/only-limited", expect=404)
        self.call("DELETE", "admin/tenants/two%20words", expect=400)

    def test_BP_G1_BP_G3_the_examples_of_the_specification(self):
        for body in ({"max_depth": 100000, "strategy": "reject", "warning_threshold": 0.8},
                     {"max_depth": 10000, "strategy": "drop_oldest"}):
            self.bound(**body)

    def test_a_batch_over_the_bound_stores_nothing(self):
        self.bound(max_depth=2)
        jobs = [{"type": "a", "args": [], "queue": self.queue} for _ in range(3)]
        self.call("POST", "jobs/batch", {"jobs": jobs}, expect=429)
        self.assertEqual(self.stats()["depth"], 0)

    def test_BP_T20_a_batch_that_one_queue_refuses_drops_nothing_in_another(self):
        full = self.queue + "-full"
        self.bound(max_depth=2, strategy="drop_oldest")
        self.call("PUT", f"admin/queues/{full}/config", {"backpressure": {"max_depth": 1}}, expect=200)
        old = [self.put_job(), self.put_job()]
        self.put_job(queue=full)
        jobs = [{"type": "a", "args": [], "queue": queue} for queue in (self.queue, full)]
        for batch in (jobs, jobs[::-1]):
            self.call("POST", "jobs/batch", {"jobs": batch}, expect=429)
            self.assertEqual([self.get(job)["state"] for job in old], ["available"] * 2)
        self.assertEqual(self.stats()["depth"], 2)

    def test_SUM_10_a_unique_job_is_replaced_in_its_full_queue_and_no_other_dropped(self):
        self.bound(max_depth=2, strategy="drop_oldest")
        unique = {"keys": ["type", "args"], "period": "PT1H", "on_conflict": "replace"}
        for first in (0, 1):
            jobs = [self.put_job(type="test.other"), self.put_job(unique=unique)][::1 if first else -1]
            other, old = (jobs[0], jobs[1]) if first else (jobs[1], jobs[0])
            fresh = self.put_job(unique=unique)
            self.assertEqual([self.get(job)["state"] for job in (other, old, fresh)],
                             ["available", "cancelled", "available"])
            for job in (other, fresh):
                self.call("DELETE", "jobs/" + job["id"], expect=200)
