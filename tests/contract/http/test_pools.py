# SPDX-License-Identifier: Apache-2.0
"""Pools of workers over HTTP, named after the rows of docs/requirements.tsv."""

from gateways import OnGateway


class Pools(OnGateway):
    def put_pool(self, expect=None, name=None, **settings):
        return self.call("PUT", "admin/pools/" + (name or self.queue), settings, expect=expect)

    def pool(self):
        items = self.call("GET", "admin/pools", expect=200).json["items"]
        return next(item for item in items if item["name"] == self.queue)

    def test_FS_004_FS_H1_pools_are_listed_and_counts_follow(self):
        self.put_pool(201, queues=[self.queue], concurrency=10)
        self.assertEqual((self.pool()["queues"], self.pool()["concurrency"], self.pool()["strategy"],
                          self.pool()["active_jobs"]), ([self.queue], 10, "round-robin", 0))
        self.put_job()
        job, = self.fetch(pool=self.queue)
        pool = self.pool()
        self.assertEqual((pool["active_jobs"], pool["workers"]), (1, ["w-" + self.queue]))
        self.assertGreaterEqual(pool["active_workers"], 1)
        self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)
        self.assertEqual(self.pool()["active_jobs"], 0)

    def test_FS_H2_PUT_makes_and_changes(self):
        self.put_pool(201, queues=["a", "b"], strategy="weighted", weights={"a": 3})
        self.assertEqual(self.pool()["weights"]["a"], 3)
        changed = self.put_pool(200, queues=["a", "b"], strategy="strict").json
        self.assertEqual((changed["pool"]["strategy"], self.pool()["strategy"]), ("strict", "strict"))
        events = self.call("GET", "events?types=scheduling.rebalanced").json["events"]
        told = [event["data"] for event in events if event["data"]["pool"] == self.queue]
        self.assertEqual([(data["previous_strategy"], data["new_strategy"]) for data in told], [("weighted", "strict")])

    def test_FS_T21_settings_are_checked(self):
        for wrong in ({}, {"queues": []}, {"queues": ["a"], "strategy": "fastest"}, {"queues": ["a"], "weights": {"a": 0}},
                      {"queues": ["a"], "weights": {"a": -1}, "strategy": "weighted"}, {"queues": ["a"], "unknown": 1}):
            self.assertEqual(self.put_pool(400, **wrong).error["code"], "invalid_request", wrong)

    def test_FS_T09_a_worker_has_one_pool(self):
        self.put_pool(201, queues=[self.queue])
        self.put_pool(201, name="second-" + self.queue, queues=["other"])
        worker = {"worker_id": self.queue, "queues": [self.queue]}
        self.call("POST", "workers/register", worker | {"pool": "nowhere"}, expect=404)
        self.call("POST", "workers/register", worker | {"pool": self.queue}, expect=200)
        self.call("POST", "workers/register", worker | {"pool": "second-" + self.queue}, expect=409)
        self.assertEqual(self.call("GET", "admin/workers/" + self.queue).json["pool"], self.queue)
        self.call("POST", "workers/fetch", {"queues": ["a"], "pool": "nowhere"}, expect=404)

    def test_FS_H3_FS_R004_the_last_minute_adds_up(self):
        for _ in range(6):
            self.put_job()
        self.fetch(6)
        self.call("POST", "test/clock", {"advance_ms": 1000}, expect=200)
        stats = self.call("GET", "admin/scheduling/stats", expect=200).json
        self.assertEqual(stats["window"], "PT1M")
        self.assertLessEqual(sum(queue["dispatch_ratio_1m"] for queue in stats["queues"]), 1.001)
        mine = next(queue for queue in stats["queues"] if queue["name"] == self.queue)
        for member in ("dispatch_count_1m", "dispatch_ratio_1m", "avg_wait_ms", "active_jobs"):
            self.assertIn(member, mine)
        self.assertEqual(mine["active_jobs"], 6)

    def test_FS_G1_the_example_worker_gets_its_shares(self):
        queues = ["critical-g1", "default-g1", "low-g1"]
        weights = dict(zip(queues, (5, 3, 1)))
        self.call("POST", "workers/register", {"id": "worker-g1", "queues": queues, "strategy": "weighted",
                                               "weights": weights, "concurrency": 10}, expect=200)
        for queue in queues:
            for _ in range(10):
                self.put_job(queue=queue)
        wanted = {"worker_id": "worker-g1", "queues": queues, "strategy": "weighted", "weights": weights, "count": 9}
        jobs = self.call("POST", "workers/fetch", wanted, expect=200).json["jobs"]
        self.assertEqual([sum(job["queue"] == queue for job in jobs) for queue in queues], [5, 3, 1])

    def test_FS_T06_the_strategy_of_a_pool_goes_before_that_of_the_request(self):
        first, second = self.queue, "second-" + self.queue[-50:]
        self.put_pool(201, queues=[second, first], strategy="strict")
        for queue in (first, second):
            self.put_job(queue=queue)
        for said in ({"strategy": "least-loaded"}, {"strategy": "weighted", "weights": {first: 1000}}, {"strategy": "weighted"}):
            jobs = self.call("POST", "workers/fetch", {"queues": [first, second], "pool": self.queue, **said}, expect=200).json["jobs"]
            self.assertEqual([job["queue"] for job in jobs], [second])
            self.put_job(queue=second)
        self.call("POST", "workers/fetch", {"queues": [first, second], "strategy": "least-loaded"}, expect=400)

    def test_a_fetch_of_too_many_queues_or_turns_is_refused(self):
        many = [f"{self.queue[-50:]}.{i}" for i in range(1001)]
        self.call("POST", "workers/fetch", {"queues": many}, expect=400)
        self.call("POST", "workers/fetch", {"queues": many[:1000], "strategy": "round-robin"}, expect=200)
        weights = {queue: 999 + i % 2 for i, queue in enumerate(many[:100])}
        error = self.call("POST", "workers/fetch", {"queues": many[:100], "strategy": "weighted", "weights": weights}, expect=400).error
        self.assertEqual(error["details"]["field"], "weights")
        even = dict.fromkeys(many[:100], 1000)  # one turn each
        self.call("POST", "workers/fetch", {"queues": many[:100], "strategy": "weighted", "weights": even}, expect=200)

    def test_FS_G1_what_a_worker_registered_holds_for_fetches_that_say_nothing(self):
        queues = ["critical-g2", "default-g2", "low-g2"]
        weights = dict(zip(queues, (5, 3, 1)))
        worker = {"id": "worker-g2", "queues": queues, "strategy": "weighted", "weights": weights, "labels": {"zone": "b"}}
        self.call("POST", "workers/register", {"worker": worker}, expect=200)
        for queue in queues:
            for _ in range(10):
                self.put_job(queue=queue)
        jobs = self.call("POST", "workers/fetch", {"worker_id": "worker-g2", "queues": queues, "count": 9}, expect=200).json["jobs"]
        self.assertEqual([sum(job["queue"] == queue for job in jobs) for queue in queues], [5, 3, 1])
        shown = self.call("GET", "admin/workers/worker-g2", expect=200).json["labels"]
        self.assertEqual((shown["zone"], shown["ojs.turns"]), ("b", {"strategy": "weighted", "weights": weights}))
        labels = {"strategy": "blue", "weights": 7}  # words of the worker's own
        self.call("POST", "workers/heartbeat", {"worker_id": "worker-g2", "labels": labels}, expect=200)
        jobs = self.call("POST", "workers/fetch", {"worker_id": "worker-g2", "queues": queues, "count": 9}, expect=200).json["jobs"]
        self.assertEqual([sum(job["queue"] == queue for job in jobs) for queue in queues], [5, 3, 1])
        for wrong in ({"strategy": "fastest"}, {"weights": 7}, {"strategy": "weighted"}):
            self.call("POST", "workers/register", {"worker_id": "worker-g3"} | wrong, expect=400)

    def test_FS_T09_a_worker_fetches_and_beats_for_no_other_pool(self):
        other = "other-" + self.queue
        self.put_pool(201, queues=[self.queue])
        self.put_pool(201, name=other, queues=["o-" + self.queue], isolated=True)
        self.put_job(queue="o-" + self.queue)
        worker = {"worker_id": "w9-" + self.queue}
        self.call("POST", "workers/register", worker | {"pool": self.queue}, expect=200)
        refused = self.call("POST", "workers/fetch", worker | {"queues": ["a"], "pool": other}, expect=409)
        self.assertEqual(refused.error["code"], "conflict")
        self.call("POST", "workers/heartbeat", {"worker_id": "w10-" + self.queue, "pool": "nowhere"}, expect=404)
        self.put_pool(400, queues=[self.queue], pool={"name": "zz", "queues": [self.queue]})

    def test_FS_T04_a_tenant_is_served_from_the_queues_in_turns(self):
        queues = [self.queue + "-1", self.queue + "-2"]
        headers = {"X-OJS-Tenant": "t"}
        for queue in queues * 8:
            self.put_job(queue=queue, headers=headers)
        self.put_pool(201, queues=queues)
        for wanted in ({"pool": self.queue}, {"strategy": "round-robin"}):
            body = {"queues": queues, "count": 8, "worker_id": "w"} | wanted
            jobs = self.call("POST", "workers/fetch", body, headers=headers, expect=200).json["jobs"]
            self.assertEqual([sum(job["queue"] == queue for job in jobs) for queue in queues], [4, 4], wanted)
