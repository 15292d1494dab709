# SPDX-License-Identifier: Apache-2.0
"""Unique jobs over HTTP, beside native ones."""

import threading

from gateways import OnGateway, Up, eventually


class Unique(OnGateway):
    def put(self, expect=201, priority=None, args=None, **policy):
        members = {"priority": priority} if priority is not None else {}
        return self.enqueue(expect, type="unique.test", args=args or [{"user": self.queue}],
                            unique={"keys": ["type", "args"], **policy}, **members)

    def state_of(self, job):
        return self.get(job)["state"]

    def test_a_duplicate_is_refused_and_told_of_the_other(self):
        first = self.put().json["job"]
        error = self.put(409).error
        self.assertEqual((error["code"], error["retryable"]), ("duplicate", False))
        details = error["details"]
        self.assertEqual((details["existing_job_id"], details["existing_job_state"]), (first["id"], "available"))
        self.assertRegex(details["unique_key"], "^[0-9a-f]{64}$")
        self.assertEqual(self.get(first)["unique"]["keys"], ["type", "args"])

    def test_ignore_answers_200_with_the_other(self):
        first = self.put(on_conflict="ignore").json["job"]
        again = self.put(200, on_conflict="ignore").json
        self.assertEqual((again["job"]["id"], again["deduplicated"]), (first["id"], True))

    def test_SUM_10_replace_and_its_priority(self):
        old = self.put(priority=3, on_conflict="replace").json["job"]
        fresh = self.put(priority=0, on_conflict="replace").json["job"]
        self.assertEqual((self.state_of(old), self.state_of(fresh), self.get(fresh)["priority"]),
                         ("cancelled", "available", 0))

    def test_a_list_of_unique_jobs_has_the_keys_that_are_held(self):
        held = self.put(period="P2D", on_conflict="ignore").json["job"]
        ended = self.put(args=[{"user": "other"}]).json["job"]
        self.put_job()
        key = self.put(409, on_conflict="reject").error["details"]["unique_key"]
        self.call("DELETE", f"jobs/{ended['id']}", expect=200)
        listed = self.call("GET", f"admin/jobs?queue={self.queue}&unique=true", expect=200).json
        self.assertEqual([each["id"] for each in listed["items"]], [held["id"]])
        self.assertEqual(listed["pagination"]["total"], 1)
        item = listed["items"][0]
        self.assertEqual(item["unique_key"], key[:32])
        self.assertEqual((item["unique_policy"]["on_conflict"], len(item["unique_policy"]["states"])), ("ignore", 5))
        self.assertGreater(item["unique_until"], item["created_at"])
        self.call("GET", "admin/jobs?unique=perhaps", expect=400)

    def test_replace_except_schedule_keeps_the_time(self):
        job = {"type": "unique.test", "args": [self.queue],
               "unique": {"keys": ["args"], "on_conflict": "replace_except_schedule"}}
        self.enqueue(201, **job, scheduled_at="2099-01-01T00:00:00.000Z")
        fresh = self.enqueue(201, **job, scheduled_at="2100-01-01T00:00:00.000Z").json["job"]
        self.assertEqual(self.get(fresh)["state"], "scheduled")
        self.assertIn("2099", self.get(fresh)["scheduled_at"])

    def test_PRI_T27_raise_priority_and_PRI_T28_without(self):
        first = self.put(priority=3).json["job"]
        self.put(409, priority=1)
        self.assertEqual(self.get(first)["priority"], 3)
        self.put(409, priority=1, raise_priority=True)
        self.assertEqual(self.get(first)["priority"], 1)

    def test_bad_policies_name_the_member(self):
        for policy, field in (({"keys": ["argz"]}, "unique.keys"), ({"keys": ["meta"]}, "unique.meta_keys"),
                              ({"args_keys": ["absent"]}, "unique.args_keys"), ({"states": ["x"]}, "unique.states"),
                              ({"period": "soon"}, "unique.period"), ({"on_conflict": "x"}, "unique.on_conflict")):
            error = self.put(400, **policy).error
            self.assertEqual((error["code"], error["details"]["field"]), ("invalid_request", field))

    def test_a_member_that_a_key_names_may_be_missing(self):
        # as the envelope of ojs-core 13.2 has it; args_keys are held against args
        first = self.put(201, keys=None, key=["type", "report_id"]).json["job"]
        self.assertEqual(self.put(409, keys=None, key=["type", "report_id"]).error["details"]["existing_job_id"], first["id"])

    def test_a_policy_that_says_a_thing_twice_or_for_nothing_is_refused(self):
        for policy, field in (({"keys": ["type", "type"]}, "unique.keys"), ({"states": ["active", "active"]}, "unique.states"),
                              ({"args_keys": ["a", "a"]}, "unique.args_keys"),
                              ({"keys": ["type"], "args_keys": ["absent"]}, "unique.args_keys")):
            self.assertEqual(self.put(400, **policy).error["details"]["field"], field)

    def test_batches_are_all_or_nothing(self):
        job = {"type": "unique.test", "args": [self.queue], "queue": self.queue, "unique": {"keys": ["args"]}}
        error = self.call("POST", "jobs/batch", {"jobs": [job, {"type": "a", "args": [], "queue": self.queue}, job]}, expect=409).error
        self.assertEqual(error["code"], "duplicate")
        self.assertEqual(self.call("POST", "workers/fetch", {"queues": [self.queue]}, expect=200).json["jobs"], [])
        content = {**job, "unique": {"keys": ["args"], "on_conflict": "ignore"}}
        jobs = self.call("POST", "jobs/batch", {"jobs": [content, content]}, expect=201).json["jobs"]
        self.assertEqual(jobs[0]["id"], jobs[1]["id"])

    def across(self, expect, *jobs):
        return self.call("POST", "jobs/batch", {"jobs": list(jobs)}, expect=expect)

    def job_in(self, queue, mark, **policy):
        return {"type": "unique.test", "args": [self.queue, mark], "queue": f"{self.queue}.{queue}",
                "unique": {"keys": ["args"], **policy}}

    def test_a_batch_over_several_queues_leaves_the_job_that_was_there(self):
        there = self.across(201, self.job_in("a", 1)).json["jobs"][0]
        content, plain = self.job_in("a", 1, on_conflict="ignore"), {"type": "a", "args": [], "queue": self.queue + ".b"}
        jobs = self.across(201, content, plain).json["jobs"]
        self.assertEqual((jobs[0]["id"], jobs[0]["state"], jobs[1]["state"]), (there["id"], "available", "available"))
        self.call("PUT", f"admin/queues/{self.queue}.b/config", {"backpressure": {"max_depth": 1}}, expect=200)
        self.across(429, content, plain)
        self.assertEqual(self.state_of(there), "available")

    def test_a_batch_over_several_queues_replaces_or_leaves_all_as_it_was(self):
        there = self.across(201, self.job_in("a", 1)).json["jobs"][0]
        self.call("PUT", f"admin/queues/{self.queue}.b/config", {"backpressure": {"max_depth": 1}}, expect=200)
        newer, plain = self.job_in("a", 1, on_conflict="replace"), {"type": "a", "args": [], "queue": self.queue + ".b"}
        self.across(429, newer, plain, plain)
        self.assertEqual(self.state_of(there), "available")
        jobs = self.across(201, plain, newer).json["jobs"]
        self.assertEqual((self.state_of(there), [job["state"] for job in jobs]), ("cancelled", ["available"] * 2))

    def test_a_batch_over_several_queues_waits_for_room(self):
        plain = [{"type": "a", "args": [mark], "queue": f"{self.queue}.{mark}"} for mark in "ab"]
        self.call("PUT", f"admin/queues/{self.queue}.b/config",
                  {"backpressure": {"max_depth": 1, "strategy": "block"}}, expect=200)
        first = self.across(201, plain[1]).json["jobs"][0]
        replies = []
        waits = threading.Thread(target=lambda: replies.append(self.call(
            "POST", "jobs/batch", {"jobs": plain}, headers={"OJS-Block-Timeout": "30"})))
        waits.start()
        eventually(lambda: self.call("GET", f"queues/{self.queue}.a/stats").status == 200 or not waits.is_alive())
        self.assertEqual(self.call("GET", f"queues/{self.queue}.a/stats").json["queue"]["available"], 0)
        self.assertEqual(replies, [])
        self.call("DELETE", f"jobs/{first['id']}", expect=200)
        waits.join(30)
        self.assertEqual([reply.status for reply in replies], [201], replies and replies[0].body)
        self.assertEqual({job["state"] for job in replies[0].json["jobs"]}, {"available"})

    def test_a_refused_batch_tells_the_key(self):
        self.across(201, self.job_in("a", 1))
        details = self.across(409, self.job_in("a", 2), self.job_in("a", 1)).error["details"]
        self.assertEqual(details["unique_key"], self.put_for_key("a", 1))

    def put_for_key(self, queue, mark):
        return self.call("POST", "jobs", self.job_in(queue, mark), expect=409).error["details"]["unique_key"]

    def test_a_key_is_one_of_its_tenant(self):
        of = {tenant: {"X-OJS-Tenant": tenant} for tenant in "AB"}
        job = self.job_in("a", 1, on_conflict="replace")
        ids = {tenant: self.call("POST", "jobs", job, headers=of[tenant], expect=201).json["job"]["id"] for tenant in "AB"}
        self.assertEqual([self.call("GET", "jobs/" + ids[tenant], expect=200).json["job"]["state"] for tenant in "AB"],
                         ["available", "available"])
        content = self.job_in("a", 1, on_conflict="ignore")
        for tenant in "AB":
            again = self.call("POST", "jobs", content, headers=of[tenant], expect=200).json
            self.assertEqual((again["job"]["id"], again["deduplicated"]), (ids[tenant], True))
        fingerprint = {**job, "unique": {"fingerprint": "0" * 64}}
        error = self.call("POST", "jobs", fingerprint, headers=of["A"], expect=400).error
        self.assertEqual(error["details"]["field"], "unique.fingerprint")

    def test_an_export_keeps_the_keys_of_tenants_apart(self):
        jobs = []
        for tenant in "ab":
            job = {"type": "unique.exported", "args": [self.queue], "unique": {"keys": ["type", "args"]},
                   "options": {"queue": self.queue}}
            jobs.append(self.call("POST", "jobs", job, headers={"X-OJS-Tenant": tenant}, expect=201).json["job"]["id"])
            cron = {"name": f"{self.queue}-{tenant}", "cron": "@yearly", **job}
            self.call("POST", "cron", cron, headers={"X-OJS-Tenant": tenant}, expect=201)
        lines = self.up.native("export", "test").stdout.splitlines()
        kept = [line for line in lines if "unique.exported" in line]
        self.assertEqual(len(kept), 4)
        exported = "\n".join([lines[0], *kept]) + "\n"
        with Up() as copy:
            done = copy.native("import", "-", text=exported)
            self.assertEqual(done.returncode, 0, done.stderr)
            keys = {copy.call("GET", "jobs/" + id).json["job"]["unique"]["fingerprint"] for id in jobs}
            self.assertEqual(len(keys), 2)
            for tenant in "ab":
                fired = copy.call("POST", f"cron/{self.queue}-{tenant}/trigger")
                self.assertEqual(fired.error["code"], "duplicate", "its tenant's job is there")

    def test_a_policy_names_a_hundred_members_at_most(self):
        many = [f"m{i}" for i in range(101)]
        for member in ("args_keys", "meta_keys", "key"):
            error = self.enqueue(400, type="unique.test", args=[{}], unique={member: many}).error
            self.assertEqual(error["details"]["field"], "unique." + member)
        self.enqueue(201, type="unique.test", args=[dict.fromkeys(many, 1)], unique={"keys": ["type"], "args_keys": many[:100]})

    def test_PRI_T10_a_worker_gets_the_best_that_is_left(self):
        first = self.put(priority=0).json["job"]
        self.put(409, priority=0)
        other = self.enqueue(201, type="plain", args=[], priority=1).json["job"]
        jobs = self.call("POST", "workers/fetch", {"queues": [self.queue], "count": 5}, expect=200).json["jobs"]
        self.assertEqual([job["id"] for job in jobs], [first["id"], other["id"]])
