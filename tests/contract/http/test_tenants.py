# SPDX-License-Identifier: Apache-2.0
"""Each tenant sees its own jobs."""

import json

from gateways import OnGateway, Up
from test_manners import Raw


class Jobs(OnGateway):
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

    def test_a_tenants_limits_hold_also_where_there_is_no_queue_yet(self):
        tenant = "fresh"
        with Up("--test-hooks") as up:
            self.assertEqual(up.call("PUT", f"admin/tenants/{tenant}", {"fairness_weight": 3}).status, 200)
            self.assertEqual(up.call("GET", "queues").json["queues"], [], "a weight makes no queue")
            put = up.call("PUT", f"admin/tenants/{tenant}", {"limits": {"max_queue_depth": 2, "max_concurrency": 1}})
            self.assertEqual((put.status, put.json["limits"]), (200, {"max_queue_depth": 2, "max_concurrency": 1}))
            job, header = {"type": "a.b", "args": []}, {"X-OJS-Tenant": tenant}
            self.assertEqual([up.call("POST", "jobs", job, headers=header).status for _ in range(3)], [201, 201, 429])
            fetched = up.call("POST", "workers/fetch", {"queues": ["default"], "count": 5}).json["jobs"]
            self.assertEqual(len(fetched), 1)
            stats = up.call("GET", f"admin/tenants/{tenant}/stats").json["limits"]
            self.assertEqual(stats["max_concurrency"], {"limit": 1, "current": 1})
            put = up.call("PUT", f"admin/tenants/{tenant}/limits", {"max_concurrency": None})
            self.assertEqual((put.status, put.json["limits"]), (200, {"max_queue_depth": 2}))
            self.assertEqual(up.call("GET", f"rate-limits/tenant:{tenant}").json["concurrency"], {"active": 1})

    def test_a_tenant_whose_name_begins_with_tenant_is_itself(self):
        for tenant in ("xy", "tenant:xy", "tenant:xy"):
            self.put_job(headers={"X-OJS-Tenant": tenant})
        for tenant, jobs in (("xy", 1), ("tenant:xy", 2)):
            listed = self.call("GET", "admin/tenants", expect=200, headers={"X-OJS-Tenant": tenant}).json["items"]
            self.assertEqual([(one["tenant_id"], one["total_jobs"]) for one in listed], [(tenant, jobs)])

    def test_a_tenant_ends_no_jobs_of_another_and_changes_not_its_limits(self):
        self.put_job(headers={"X-OJS-Tenant": "ta"})
        theirs = self.put_job(headers={"X-OJS-Tenant": "tb"})
        mine, discard = {"X-OJS-Tenant": "ta"}, {"strategy": "discard"}
        self.call("DELETE", "queues/" + self.queue, discard, headers=mine, expect=409)
        self.assertEqual(self.get(theirs)["state"], "available")
        for method, path, body in (("PUT", "admin/tenants/tb", {"limits": {"max_queue_depth": 1}}), ("DELETE", "admin/tenants/tb", None),
                                   ("GET", "admin/tenants/tb", None), ("GET", "admin/tenants/tb/stats", None),
                                   ("PUT", "rate-limits/tenant:tb", {"concurrency": 1}), ("GET", "rate-limits/tenant:tb", None),
                                   ("DELETE", "rate-limits/tenant:tb/override", None)):
            self.call(method, path, body, headers=mine, expect=404)
        self.call("PUT", "rate-limits/tenant:ta", {"concurrency": 9}, headers=mine, expect=200)
        self.call("PUT", "rate-limits/tenant:tb", {"concurrency": 9}, expect=200)
        for path in ("rate-limits", "admin/rate-limits"):
            keys = [limit["key"] for limit in self.call("GET", path, headers=mine, expect=200).json["items"]]
            self.assertEqual(("tenant:ta" in keys, "tenant:tb" in keys), (True, False))
        self.call("DELETE", "rate-limits/tenant:tb/override", expect=200)
        listed = self.call("GET", "admin/tenants?per_page=100", headers=mine, expect=200).json["items"]
        self.assertEqual([each["tenant_id"] for each in listed], ["ta"])
        self.call("DELETE", "jobs/" + theirs["id"], headers={"X-OJS-Tenant": "tb"}, expect=200)
        self.call("DELETE", "queues/" + self.queue, discard, headers=mine, expect=200)

    def test_an_operators_list_of_queues_is_narrowed_too(self):
        self.put_job(headers={"X-OJS-Tenant": "na"}), self.put_job()
        of = lambda header: next(each for each in self.call("GET", "admin/queues?per_page=100", headers=header, expect=200).json["items"]
                                 if each["name"] == self.queue)["counts"]["available"]
        self.assertEqual((of({}), of({"X-OJS-Tenant": "na"}), of({"X-OJS-Tenant": "nb"})), (2, 1, 0))
        for header in ({}, {"X-OJS-Tenant": "na"}):
            queue = self.call("GET", "admin/queues/" + self.queue, headers=header, expect=200).json
            self.assertEqual("throughput" in queue, not header, "how many jobs of one tenant ended is not known")
        seen = self.call("GET", "queues?limit=1000", headers={"X-OJS-Tenant": "na"}, expect=200).json["queues"]
        self.assertEqual([each["available"] for each in seen if each["name"] == self.queue], [1])

    def test_a_request_names_one_tenant_or_none(self):
        self.call("GET", "queues", headers={"X-OJS-Tenant": ""}, expect=400)
        with Raw(self.up) as raw:
            raw.send("GET /ojs/v1/queues HTTP/1.1\r\nHost: x\r\nX-OJS-Tenant: a\r\nX-OJS-Tenant: b\r\n\r\n")
            self.assertEqual(raw.status(), 400)

    def test_a_tenants_name_is_no_longer_than_128_bytes(self):
        name = "t" * 128
        self.enqueue(201, headers={"X-OJS-Tenant": name})
        self.enqueue(400, headers={"X-OJS-Tenant": name + "t"})
        self.enqueue(400, meta={"tenant_id": name + "t"})
        group = {"type": "group", "jobs": [{"type": "a", "args": [], "options": {"queue": self.queue}}]}
        self.call("POST", "workflows", group, headers={"X-OJS-Tenant": name + "t"}, expect=400)

    def test_a_tenants_job_brings_no_limit_of_another(self):
        mine, theirs = {"X-OJS-Tenant": "la"}, {"key": "tenant:lb", "concurrency": 0}
        self.assertEqual(self.enqueue(403, headers=mine, rate_limit=theirs).error["code"], "forbidden")
        job = {"type": "a", "args": [], "options": {"queue": self.queue, "rate_limit": theirs}}
        self.call("POST", "workflows", {"type": "group", "jobs": [job]}, headers=mine, expect=403)
        for limit in ({"key": "tenant:la", "concurrency": 1}, {"key": self.queue, "concurrency": 1}):
            self.enqueue(201, headers=mine, rate_limit=limit)

    def test_who_changes_a_queue_is_told_its_own_numbers(self):
        for tenant in ("qa", "qb", "qb"):
            self.put_job(headers={"X-OJS-Tenant": tenant})
        for path, body in ((f"queues/{self.queue}/pause", None), (f"queues/{self.queue}/resume", None),
                           ("queues", {"name": self.queue, "config": {"max_size": 9}})):
            told = self.call("POST", path, body, headers={"X-OJS-Tenant": "qa"}).json["queue"]
            self.assertEqual((told["available"], told["depth"]), (1, 1), path)

    def test_numbers_of_all_tenants_are_not_for_one(self):
        for path in ("admin/stats", "admin/waits", "admin/scheduling/stats", "admin/stats/stream"):
            self.call("GET", path, headers={"X-OJS-Tenant": "na"}, expect=422)
        self.call("GET", "admin/stats", expect=200)

    def test_tenants_whose_names_have_the_same_hash_are_two(self):
        """By FNV-1a of 64 bits, which is all that a slot knows of a tenant."""
        owner, other = {"X-OJS-Tenant": "7mohtcOFVz"}, {"X-OJS-Tenant": "c1E51sSEyx"}
        job = self.put_job(headers=owner)
        fetch = {"queues": [self.queue]}
        self.assertEqual(self.call("POST", "workers/fetch", fetch, headers=other, expect=200).json["jobs"], [])
        listed = self.call("GET", "admin/jobs?queue=" + self.queue, headers=other, expect=200)
        self.assertEqual(listed.json["items"], [])
        chosen = {"filter": {"queue": self.queue}}
        self.call("POST", "jobs/bulk/cancel", chosen, headers=other)
        self.call("POST", "admin/jobs/bulk/cancel", chosen | {"confirm": True}, headers=other)
        fetched = self.call("POST", "workers/fetch", fetch, headers=owner, expect=200).json["jobs"]
        self.assertEqual([(each["id"], each["attempt"]) for each in fetched], [(job["id"], 1)])
