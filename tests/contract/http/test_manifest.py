# SPDX-License-Identifier: Apache-2.0
"""What the manifest declares is there: each capability, extension and endpoint is asked for."""

import concurrent.futures

from gateways import OnGateway, eventually


class Manifest(OnGateway):
    def setUp(self):
        self.manifest = self.call("GET", "/ojs/manifest", expect=200).json

    def advance(self, ms):
        self.call("POST", "test/clock", {"advance_ms": ms}, expect=200)

    def served_by(self, strategy, count, more=0):
        """The queues, a or b, of so many jobs that a pool gives one by one; b has so many more of them than a."""
        names = {self.queue + "-" + each: each for each in "ab"}
        first, second = names
        for queue in names:
            for _ in range(count + (more if queue == second else 0)):
                self.put_job(queue=queue)
        pool = {"queues": [first, second], "strategy": strategy} | (
            {"weights": {first: 3, second: 1}} if strategy == "weighted" else {})
        self.call("PUT", "admin/pools/" + self.queue, pool, expect=201)
        return [names[job["queue"]] for _ in range(count)
                for job in self.fetch(1, queues=[first, second], pool=self.queue)]

    # --- Capabilities -------------------------------------------------------------------------------------------------

    def batch_enqueue(self):
        jobs = [{"type": "test.http", "args": [], "queue": self.queue}] * 3
        self.assertEqual(self.call("POST", "jobs/batch", {"jobs": jobs}, expect=201).json["count"], 3)

    def cron_jobs(self):
        self.call("POST", "cron", {"name": self.queue, "cron": "@hourly", "type": "test.http",
                                   "options": {"queue": self.queue}}, expect=201)
        id = self.call("POST", f"cron/{self.queue}/trigger", expect=200).json["job_id"]
        self.assertEqual([job["id"] for job in self.fetch(1)], [id])
        self.call("DELETE", "cron/" + self.queue, expect=200)

    def cron(self):
        self.cron_jobs()

    def dead_letter(self):
        job = self.put_job(retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})
        self.fetch(1)
        self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "boom", "message": "no"}}, expect=200)
        listed = self.call("GET", f"dead-letter?queue={self.queue}", expect=200).json["jobs"]
        self.assertEqual([each["id"] for each in listed], [job["id"]])

    def queue_config(self):
        name = self.queue + "-config"
        self.call("POST", "queues", {"name": name, "config": {"concurrency": 3, "retention": {"completed": "P1D"}}}, expect=201)
        self.call("PUT", f"queues/{name}/config", {"retention": {"discarded": "P2D"}}, expect=200)
        shown = self.call("GET", f"admin/queues/{name}", expect=200).json["configuration"]
        self.assertEqual((shown["concurrency"], shown["retention"]), (3, {"completed": "P1D", "discarded": "P2D"}))
        self.put_job(queue=name)
        self.call("DELETE", "queues/" + name, {"strategy": "reject"}, expect=409)

    def delayed_jobs(self):
        self.assertEqual(self.put_job(scheduled_at="+PT1H")["state"], "scheduled")
        self.assertEqual(self.fetch(1), [])
        self.advance(3_600_001)
        self.assertEqual(len(eventually(lambda: self.fetch(1))), 1)

    def job_ttl(self):
        job = self.put_job(expires_at="+PT10S")
        self.advance(10_001)
        self.assertEqual(self.fetch(1), [])
        eventually(lambda: self.get(job)["state"] == "discarded")

    def timeouts(self):
        job = self.put_job(timeout=10, heartbeat_timeout=60, retry={"max_attempts": 2, "initial_interval": "PT1S", "jitter": False})
        self.fetch(1)
        self.advance(10_001)
        eventually(lambda: self.get(job).get("error", {}).get("type") == "timeout")
        self.advance(2_000)
        eventually(lambda: self.fetch(1, visibility_timeout_ms=5_000))
        self.advance(5_001)
        eventually(lambda: self.get(job).get("error", {}).get("type") == "stalled")
        told = self.call("GET", f"events?types=job.timeout,job.stalled&queues={self.queue}", expect=200).json["events"]
        self.assertEqual([event["type"] for event in told], ["job.timeout", "job.stalled"])

    def priority_queues(self):
        low, high = self.put_job(priority=3), self.put_job(priority=1)
        self.assertEqual([job["id"] for job in self.fetch(2)], [high["id"], low["id"]])

    def rate_limiting(self):
        limit = {"key": self.queue, "concurrency": 1}
        self.put_job(rate_limit=limit), self.put_job(rate_limit=limit)
        self.assertEqual(len(self.fetch(2)), 1)
        self.assertEqual(self.call("GET", "rate-limits/" + self.queue, expect=200).json["waiting_count"], 1)

    def unique_jobs(self):
        unique = {"keys": ["type", "queue"], "on_conflict": "reject"}
        first = self.put_job(unique=unique)
        self.assertEqual(self.enqueue(expect=409, unique=unique).error["details"]["existing_job_id"], first["id"])

    def workflows(self):
        step = {"type": "test.http", "args": [], "options": {"queue": self.queue}}
        made = self.call("POST", "workflows", {"type": "chain", "steps": [step, step]}, expect=201).json["workflow"]
        self.assertEqual((made["state"], len(self.fetch(2))), ("running", 1))

    def pause_resume(self):
        self.put_job()
        self.call("POST", f"queues/{self.queue}/pause", expect=200)
        self.assertEqual(self.fetch(1), [])
        self.call("POST", f"queues/{self.queue}/resume", expect=200)
        self.assertEqual(len(self.fetch(1)), 1)

    def bulk_operations(self):
        self.put_job(), self.put_job()
        done = self.call("POST", "admin/jobs/bulk/cancel", {"filter": {"queue": self.queue}, "confirm": True}, expect=200)
        self.assertEqual(done.json["succeeded"], 2)
        self.call("POST", "jobs/bulk", {"jobs": [{"type": "a", "args": []}, {"type": "", "args": []}]}, expect=207)

    def events(self):
        job = self.put_job()
        found = self.call("GET", f"events?queues={self.queue}&types=job.enqueued", expect=200).json["events"]
        self.assertIn(job["id"], [event["data"].get("job_id") for event in found])

    def progress(self):
        self.put_job()
        job = self.fetch(1)[0]
        self.call("PUT", f"jobs/{job['id']}/progress", {"progress": 0.5}, expect=200)
        self.assertEqual(self.call("GET", f"jobs/{job['id']}/progress", expect=200).json["progress"], 0.5)

    def backpressure(self):
        self.configure(backpressure={"max_depth": 1, "strategy": "reject"})
        self.put_job()
        self.assertEqual(self.enqueue(expect=429).error["bound"], 1)

    def fair_scheduling(self):
        self.assertEqual(sorted(self.served_by("weighted", 8)), ["a"] * 6 + ["b"] * 2, "three to one")
        stats = self.call("GET", "admin/scheduling/stats", expect=200).json["queues"]
        dispatched = {queue["name"]: queue["dispatch_count_1m"] for queue in stats}
        self.assertEqual((dispatched[self.queue + "-a"], dispatched[self.queue + "-b"]), (6, 2))

    def multi_tenancy(self):
        job = self.enqueue(headers={"X-OJS-Tenant": "acme"}).json["job"]
        self.call("GET", "jobs/" + job["id"], expect=200, headers={"X-OJS-Tenant": "acme"})
        self.call("GET", "jobs/" + job["id"], expect=404, headers={"X-OJS-Tenant": "other"})
        self.call("POST", "cron", {"name": self.queue, "cron": "@hourly", "type": "test.http"}, expect=201,
                  headers={"X-OJS-Tenant": "acme"})
        for tenant, status in (("acme", 200), ("other", 404)):
            headers = {"X-OJS-Tenant": tenant}
            self.call("GET", "cron/" + self.queue, expect=status, headers=headers)
            names = [cron["name"] for cron in self.call("GET", "cron", expect=200, headers=headers).json["crons"]]
            self.assertEqual(self.queue in names, tenant == "acme")

    def admin_api(self):
        for path in ("stats", "queues", "jobs", "workers", "dead-letter", "pools"):
            self.call("GET", "admin/" + path, expect=200)

    def dynamic_priority(self):
        job = self.put_job(priority=3)
        self.call("PATCH", "jobs/" + job["id"], {"priority": 1}, expect=200)
        self.assertEqual(self.get(job)["priority"], 1)

    def priority_aging(self):
        self.configure(aging={"enabled": True, "interval": "PT1S", "rate": 1})
        old = self.put_job(priority=3)
        self.advance(60_000)
        self.put_job(priority=1)
        self.assertEqual(self.fetch(1)[0]["id"], old["id"])

    def schema_validation(self):
        self.call("POST", "schemas", {"uri": "urn:test", "type": "test.http", "schema": {}}, expect=201)

    def graceful_shutdown(self):
        self.put_job()
        beat = {"worker_id": "w-" + self.queue, "state": "quiet", "active_jobs": []}
        self.call("POST", "workers/heartbeat", beat, expect=200)
        self.assertEqual(self.fetch(1), [])

    def observability(self):
        for path in ("/metrics", "/ojs/v1/health"):
            self.call("GET", path, expect=200)

    def results(self):
        job = self.put_job(result_ttl=60)
        self.fetch(1)
        self.call("POST", "workers/ack", {"job_id": job["id"], "result": [1]}, expect=200)
        self.assertEqual(self.call("POST", "jobs/results", {"ids": [job["id"]]}, expect=200).json["results"][job["id"]]["result"], [1])
        self.assertEqual(self.get(job)["result_size_bytes"], 3)
        self.advance(60_000)
        self.call("GET", f"jobs/{job['id']}/result", expect=410)

    # --- What is declared ---------------------------------------------------------------------------------------------

    #: extension -> the capabilities that show it
    SHOWN_BY = {"admin-api": "admin_api", "backpressure": "backpressure", "bulk-operations": "bulk_operations",
                "dead-letter": "dead_letter", "fair-scheduling": "fair_scheduling", "graceful-shutdown": "graceful_shutdown",
                "multi-tenancy": "multi_tenancy", "observability": "observability", "priority": "priority_queues",
                "progress": "progress", "queue-config": "queue_config", "rate-limiting": "rate_limiting", "results": "results",
                "timeouts": "timeouts"}
    #: level -> what it needs
    LEVELS = {1: ("dead_letter",), 2: ("delayed_jobs", "cron_jobs", "job_ttl"), 3: ("workflows",),
              4: ("priority_queues", "unique_jobs", "batch_enqueue", "pause_resume", "rate_limiting")}

    def show(self, what):
        """In a queue of its own."""
        self._testMethodName = "manifest-" + what
        try:
            getattr(self, what)()
        finally:
            self._testMethodName = self._own_name

    def test_each_declared_capability_is_there(self):
        self._own_name = self._testMethodName
        declared = {name for name, has in self.manifest["capabilities"].items() if has}
        self.assertGreater(len(declared), 10)
        for name in sorted(declared):
            with self.subTest(name):
                self.show(name)

    def test_each_declared_extension_is_there(self):
        self._own_name = self._testMethodName
        extensions = self.manifest["extensions"]
        for tier, prefix in (("official", "urn:ojs:ext:"), ("experimental", "urn:ojs:ext:experimental:")):
            for extension in extensions[tier]:
                with self.subTest(extension["name"]):
                    self._testMethodName = "extension-" + extension["name"]
                    getattr(self, self.SHOWN_BY[extension["name"]])()
                    self._testMethodName = self._own_name
                    self.assertEqual(extension["uri"], prefix + extension["name"])

    def test_the_limits_that_it_names_are_those_that_hold(self):
        limits = self.manifest["extensions"]["payload_limits"]
        self.put_job(meta={"a": "x" * (limits["max_meta_bytes"] - 8)}, type="t" * limits["max_job_type_bytes"])
        self.enqueue(413, meta={"a": "x" * (limits["max_meta_bytes"] - 7)})
        self.enqueue(400, type="t" * (limits["max_job_type_bytes"] + 1))
        self.put_job(queue="q" * limits["max_queue_name_bytes"])
        self.enqueue(400, queue="q" * (limits["max_queue_name_bytes"] + 1))
        self.assertEqual(self.enqueue(413, args=["x" * limits["max_envelope_bytes"]]).error["details"]["max_bytes"],
                         limits["max_envelope_bytes"])

    def test_the_level_has_all_that_it_needs(self):
        capabilities = self.manifest["capabilities"]
        for level in range(1, self.manifest["conformance_level"] + 1):
            for name in self.LEVELS[level]:
                self.assertTrue(capabilities[name], f"level {level} needs {name}")
        if self.manifest["conformance_level"] < 4:
            following = self.LEVELS[self.manifest["conformance_level"] + 1]
            self.assertFalse(all(capabilities[name] for name in following), "a higher level is there")

    def test_each_endpoint_answers(self):
        for name, path in self.manifest["endpoints"].items():
            with self.subTest(name):
                path = {"workers": "/ojs/v1/admin/workers", "jobs": "/ojs/v1/admin/jobs", "admin": "/ojs/v1/admin/stats"}.get(
                    name, path)
                self.call("GET", path, expect=200)

    def test_what_it_says_of_priorities_and_delivery(self):
        priority = self.manifest["priority"]
        self.assertEqual(self.put_job()["priority"], priority["default"])
        for number, status in ((priority["min"], 201), (priority["max"], 201), (priority["max"] + 1, 400),
                               (priority["min"] - 1, 400)):
            self.enqueue(expect=status, priority=number)

    def test_strong_uniqueness_lets_one_of_many_at_once_through(self):
        self.assertEqual(self.manifest["unique_job_strength"], "strong")
        for attempt in range(20):
            unique = {"keys": ["type", "queue", "args"], "on_conflict": "reject"}
            body = {"type": "test.http", "args": [attempt], "queue": self.queue, "unique": unique}
            with concurrent.futures.ThreadPoolExecutor(8) as producers:
                replies = list(producers.map(lambda _: self.call("POST", "jobs", body).status, range(8)))
            self.assertEqual(sorted(replies), [201] + [409] * 7)

    def test_each_declared_strategy_orders_the_queues_of_a_pool(self):
        orders = {"strict": (["a", "a", "a", "a"], 0), "weighted": (["a", "a", "a", "b"], 0),
                  "round-robin": (["a", "a", "b", "b"], 0), "least-loaded": (["b", "b", "b"], 3)}
        self._own_name = self._testMethodName
        self.assertEqual(set(self.manifest["queue_strategies"]), set(orders))
        for strategy, (expected, more) in orders.items():
            with self.subTest(strategy):
                self._testMethodName = "strategy-" + strategy
                served = self.served_by(strategy, 4, more)
                self._testMethodName = self._own_name
                if more:
                    self.assertEqual(served[:more], expected, "the queue with the most jobs")
                elif strategy == "strict":
                    self.assertEqual(served, expected)
                else:
                    self.assertEqual(sorted(served), expected)

    def test_what_it_is_and_how_it_is_spoken_to(self):
        self.assertEqual((self.manifest["conformance_tier"], self.manifest["protocols"]), ("runtime", ["http"]))
        self.assertEqual(self.manifest["specversion"], self.put_job()["specversion"])
        # A runtime runs jobs: it hands them out and takes their ends.
        job = self.fetch(1)[0]
        self.call("POST", "workers/ack", {"job_id": job["id"], "result": 1}, expect=200)
        self.assertEqual((self.get(job)["state"], self.get(job)["result"]), ("completed", 1))

    def test_it_delivers_at_least_once(self):
        """Source: ojs-delivery-guarantees 11: DG-001, DG-003 to DG-007, DG-009, DG-011."""
        self.assertEqual(self.manifest["delivery"], "at-least-once")
        job = self.put_job()
        self.assertEqual(self.get(job)["state"], "available", "what was enqueued can be read at once")
        first = self.fetch(1, visibility_timeout_ms=60_000)[0]
        self.assertEqual((first["id"], self.fetch(1)), (job["id"], []), "nobody else gets it")
        self.call("POST", "workers/heartbeat", {"worker_id": "w-" + self.queue, "active_jobs": [job["id"]],
                                                "visibility_timeout_ms": 120_000}, expect=200)
        self.advance(60_001)
        self.assertEqual(self.fetch(1), [], "a heartbeat holds it")
        self.advance(120_000)
        again = eventually(lambda: self.fetch(1))[0]
        self.assertEqual((again["id"], again["attempt"]), (job["id"], 2), "silence brings it again, under its id")
        self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)
        self.assertEqual(self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=409).error["code"], "conflict")
        self.assertEqual((self.get(job)["state"], self.fetch(1)), ("completed", []), "a final state is final")
