# SPDX-License-Identifier: Apache-2.0
"""Workflows over HTTP."""

from gateways import OnGateway, eventually


class Workflows(OnGateway):
    def step(self, kind, **members):
        return {"type": kind, "args": [], "options": {"queue": self.queue}, **members}

    def create(self, workflow, expect=201):
        return self.call("POST", "workflows", workflow, expect=expect)

    def look(self, id):
        return self.call("GET", "workflows/" + id, expect=200).json["workflow"]

    def run_one(self, result=None, fail=False):
        """The next job, acked or failed for good."""
        jobs = self.fetch(1)
        if not jobs:
            return None
        job = jobs[0]
        if fail:
            self.call("POST", "workers/nack",
                      {"job_id": job["id"], "error": {"code": "boom", "message": "no", "retryable": False}}, expect=200)
        else:
            self.call("POST", "workers/ack", {"job_id": job["id"], "result": result}, expect=200)
        return job

    def types(self):
        found = []
        while job := self.run_one():
            found.append(job["type"])
        return found

    def test_a_chain_tells_how_it_stands(self):
        reply = self.create({"type": "chain", "name": "order", "steps": [self.step("a"), self.step("b", id="two")]})
        made = reply.json["workflow"]
        self.assertEqual(reply.headers["Location"], "/ojs/v1/workflows/" + made["id"])
        self.assertEqual((reply.json["id"], reply.json["state"]), (made["id"], "running"))
        self.assertEqual((made["type"], made["name"], made["steps_total"], made["steps_completed"]),
                         ("chain", "order", 2, 0))
        self.assertEqual([step["state"] for step in made["steps"]], ["pending", "waiting"])
        self.assertIsNone(made["steps"][1]["job_id"])
        self.assertEqual(made["steps"][1]["id"], "two")
        self.assertEqual(made["metadata"]["job_count"], 2)
        first = self.run_one({"n": 1})
        self.assertEqual((first["workflow_id"], first["parent_results"]), (made["id"], []))
        second = self.fetch(1)[0]
        self.assertEqual(second["parent_results"], [{"n": 1}])
        self.assertEqual(self.get(second)["parent_results"], [{"n": 1}])
        self.assertEqual(self.look(made["id"])["steps"][0]["result"], {"n": 1})
        self.call("POST", "workers/ack", {"job_id": second["id"], "result": 2}, expect=200)
        done = self.look(made["id"])
        self.assertEqual((done["state"], done["steps_completed"]), ("completed", 2))
        self.assertTrue(done["metadata"]["completed_at"] and done["metadata"]["started_at"])
        error = self.call("DELETE", "workflows/" + made["id"], expect=409).error
        self.assertEqual((error["code"], error["details"]),
                         ("conflict", {"workflow_id": made["id"], "current_state": "completed", "expected_state": "running"}))

    def test_an_id_of_a_step_stays(self):
        chain = self.create({"type": "chain", "steps": [self.step("a"), self.step("b", id="two"), self.step("c")]}).json["id"]

        def ids():
            return [(step["id"], step["depends_on"]) for step in self.look(chain)["steps"]]
        for _ in range(3):
            self.assertEqual(ids(), [("step-0", []), ("two", ["step-0"]), ("step-2", ["two"])])
            self.run_one()
        callback = {"on_complete": self.step("d")}
        batch = self.create({"type": "batch", "jobs": [self.step("a")], "callbacks": callback}).json["id"]
        for _ in range(2):
            self.assertEqual(self.look(batch)["callbacks"]["on_complete"]["id"], "on_complete")
            self.run_one()

    def test_a_failure_names_its_step(self):
        made = self.create({"type": "chain", "steps": [self.step("a"), self.step("b"), self.step("c")]}).json
        self.run_one()
        failed = self.run_one(fail=True)
        found = self.look(made["id"])
        self.assertEqual((found["state"], found["failed_step_index"]), ("failed", 1))
        for name in ("failed_step_index", "failed_job_ids", "errors"):
            self.assertEqual(found["metadata"][name], found[name])
        self.assertEqual(found["failed_job_ids"], [failed["id"]])
        self.assertEqual({key: found["errors"][0][key] for key in ("job_id", "code", "message", "attempt")},
                         {"job_id": failed["id"], "code": "boom", "message": "no", "attempt": 1})
        self.assertEqual([step["state"] for step in found["steps"]], ["completed", "failed", "cancelled"])

    def test_a_workflow_that_failed_goes_on_to_say_by_what(self):
        retry = {"max_attempts": 1, "on_exhaustion": "dead_letter"}
        made = self.create({"type": "chain", "steps": [self.step("a", options={"queue": self.queue, "retry": retry}), self.step("b")]})
        id = made.json["id"]
        failed = self.run_one(fail=True)["id"]
        self.assertEqual((self.look(id)["failed_step_index"], self.look(id)["errors"][0]["code"]), (0, "boom"))
        self.call("POST", f"dead-letter/{failed}/retry", expect=200)
        self.assertEqual(self.run_one()["id"], failed)
        now = self.look(id)
        self.assertEqual((now["state"], now["steps"][0]["state"], now["failed_job_ids"]), ("failed", "failed", [failed]))
        self.assertIn("retried since", now["errors"][0]["message"])

    def test_a_step_that_expired_says_so(self):
        step = self.step("a", options={"queue": self.queue, "expires_at": "+PT1M"})
        id = self.create({"type": "chain", "steps": [step, self.step("b")]}).json["id"]
        self.call("POST", "test/clock", {"advance_ms": 61_000}, expect=200)
        eventually(lambda: self.look(id)["state"] == "failed")
        self.assertEqual(self.look(id)["errors"][0]["code"], "expired")

    def test_callbacks_come_once_and_see_all_results(self):
        callbacks = {name: self.step(name.replace("_", ".")) for name in ("on_complete", "on_success", "on_failure")}
        made = self.create({"type": "batch", "jobs": [self.step("a"), self.step("b")], "callbacks": callbacks}).json
        self.assertEqual((made["jobs_total"], made["jobs_completed"]), (2, 0))
        self.assertEqual(made["steps"], made["jobs"])
        self.assertEqual([step["id"] for step in made["steps"]], ["step-0", "step-1"])
        self.run_one("x")
        self.run_one("y")
        called = self.run_one()
        self.assertEqual((called["type"], called["parent_results"]), ("on.complete", ["x", "y"]))
        self.assertEqual(self.types(), ["on.success"])
        found = self.look(made["id"])
        self.assertEqual((found["state"], found["jobs_completed"]), ("completed", 2))
        self.assertEqual(found["callbacks"]["on_failure"]["state"], "skipped")

    def test_a_callback_sees_by_what_a_job_failed(self):
        self.create({"type": "batch", "jobs": [self.step("a"), self.step("b")], "callbacks": {"on_failure": self.step("failed")}})
        self.run_one("x")
        self.run_one(fail=True)
        good, bad = self.run_one()["parent_results"]
        self.assertEqual((good, bad["error"]["code"], bad["error"]["message"]), ("x", "boom", "no"))

    def test_parts_nest(self):
        inner = {"type": "group", "jobs": [self.step("b"), {"type": "chain", "steps": [self.step("c"), self.step("d")]}]}
        made = self.create({"type": "chain", "steps": [self.step("a"), inner, self.step("e")]}).json
        self.assertEqual((made["steps_total"], made["metadata"]["job_count"]), (3, 5))
        self.run_one(1)
        self.run_one(2)
        self.run_one(3)
        self.run_one(4)
        last = self.fetch(1)[0]
        self.assertEqual((last["type"], last["parent_results"]), ("e", [1, [2, 4]]))

    def test_steps_with_depends_on(self):
        made = self.create({"name": "graph", "steps": [
            self.step("a", id="a"), self.step("b", id="b", depends_on=["a"]), self.step("c", id="c", depends_on=["a"]),
            self.step("d", id="d", depends_on=["b", "c"]),
            {"id": "cb", "type": "called", "args": [], "options": {"queue": self.queue, "callback_type": "on_failure"}}]})
        made = made.json
        self.assertEqual(made["steps"][3]["depends_on"], ["b", "c"])
        self.assertEqual(self.types(), ["a", "b", "c", "d"])
        self.assertEqual(self.look(made["id"])["state"], "completed")

    def test_what_cannot_run_is_refused_with_its_place(self):
        a = self.step("a")
        for workflow, path in [
                ({"type": "chain", "steps": []}, "$.steps"),
                ({"type": "chain"}, "$.steps"),
                ({"type": "ring", "steps": [a]}, "$.type"),
                ({"type": "chain", "steps": [a], "name": 5}, "$.name"),
                ({"type": "batch", "jobs": [a]}, "$.callbacks"),
                ({"type": "batch", "jobs": [a], "callbacks": {}}, "$.callbacks"),
                ({"type": "group", "jobs": [a, {"type": "chain", "steps": []}]}, "$.jobs[1].steps"),
                ({"type": "chain", "steps": [a, {"type": "b"}]}, "$.steps[1].args"),
                ({"steps": [self.step("a", id="a", depends_on=["a"])]}, "$.steps[0].depends_on"),
                ({"steps": [self.step("a", id="a", depends_on=["nobody"])]}, "$.steps[0].depends_on")]:
            error = self.create(workflow, 400).error
            self.assertEqual((error["code"], error["details"]["validation_errors"][0]["path"]),
                             ("invalid_workflow", path), workflow)
        self.assertEqual(self.call("GET", "workflows/nothing", expect=404).error["code"], "not_found")
        self.assertEqual(self.fetch(1), [])

    def test_cancel_and_list(self):
        name = "listed-" + self.queue
        made = [self.create({"type": "chain", "name": name, "steps": [self.step("a"), self.step("b")]}).json["id"]
                for _ in range(3)]
        self.assertEqual(self.call("DELETE", "workflows/" + made[0], expect=200).json["state"], "cancelled")
        self.call("POST", f"workflows/{made[1]}/cancel", expect=200)
        listed = self.call("GET", f"workflows?name={name}&state=running", expect=200).json
        self.assertEqual([each["id"] for each in listed["workflows"]], [made[2]])
        self.assertEqual([each["id"] for each in listed["items"]], [made[2]])
        self.assertEqual(len(self.fetch(9)), 1)

    def test_what_waits_is_cancelled_beside_a_job_that_runs(self):
        id = self.create({"type": "chain", "steps": [self.step("z.z"), self.step("a.a"), self.step("b.b"), self.step("c.c")]}).json["id"]
        self.run_one()
        job, = self.fetch()
        ended = self.call("DELETE", "workflows/" + id, expect=200).json["workflow"]
        self.assertEqual((ended["steps_cancelled"], ended["steps_already_completed"]), (2, 1))
        for states in (["active", "cancelled", "cancelled"], ["completed", "cancelled", "cancelled"]):
            workflow = self.look(id)
            self.assertEqual(([step["state"] for step in workflow["steps"][1:]], workflow["metadata"]["failed_count"]), (states, 0))
            self.assertEqual((workflow["state"], workflow.get("errors", [])), ("cancelled", []))
            self.call("POST", "workers/ack", {"job_id": job["id"]})

    def test_an_id_is_taken_once(self):
        whole = {"id": "01a21acc-0000-7000-8000-0000000000aa", "type": "group", "jobs": [self.step("a.a")]}
        self.create(whole)
        self.assertEqual(self.create(whole, expect=409).error["code"], "duplicate")
        self.run_one()
        self.assertEqual(self.create(whole, expect=409).error["code"], "duplicate")

    def test_a_tenants_workflow_is_its_own(self):
        shop, other = ({"X-OJS-Tenant": name + self.queue} for name in ("shop", "other"))
        made = self.call("POST", "workflows", {"type": "chain", "name": self.queue, "steps": [self.step("a"), self.step("b")]},
                         expect=201, headers=shop).json
        self.assertEqual(made["tenant_id"], shop["X-OJS-Tenant"])
        self.call("GET", "workflows/" + made["id"], expect=404, headers=other)
        self.call("DELETE", "workflows/" + made["id"], expect=404, headers=other)
        self.assertEqual(self.call("GET", "workflows", expect=200, headers=other).json["workflows"], [])
        listed = self.call("GET", "workflows", expect=200, headers=shop).json["workflows"]
        self.assertEqual([each["id"] for each in listed], [made["id"]])
        for _ in range(2):  # its own workers get its jobs, the later ones too
            self.assertEqual(self.call("POST", "workers/fetch", {"queues": [self.queue]}, headers=other).json["jobs"], [])
            job = self.call("POST", "workers/fetch", {"queues": [self.queue]}, headers=shop).json["jobs"][0]
            self.assertEqual(job["meta"]["tenant_id"], shop["X-OJS-Tenant"])
            self.call("GET", "jobs/" + job["id"], expect=200, headers=shop)
            self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)
        self.assertEqual(self.call("GET", "workflows/" + made["id"], headers=shop).json["state"], "completed")

    def test_a_workflow_is_not_of_two_tenants(self):
        steps = [self.step("a") | {"meta": {"tenant_id": "one"}}, self.step("b") | {"meta": {"tenant_id": "two"}}]
        for whole in ({"type": "chain", "steps": steps}, {"type": "group", "jobs": [self.step("c"), {"type": "chain", "steps": steps}]}):
            self.assertEqual(self.create(whole, expect=400).error["details"]["field"], "meta.tenant_id")
        self.create({"type": "chain", "steps": [steps[0], self.step("b")]})

    def test_a_job_that_brings_a_workflow_gives_it_its_tenant(self):
        shop = {"X-OJS-Tenant": "shop" + self.queue}
        made = self.call("POST", "jobs", {"type": "a", "queue": self.queue, "args": [],
                                          "workflow": {"chain": [self.step("b")]}}, expect=201, headers=shop).json
        self.assertEqual(made["job"]["meta"]["tenant_id"], shop["X-OJS-Tenant"])
        self.assertEqual(made["workflow"]["tenant_id"], shop["X-OJS-Tenant"])

    def test_a_full_queue_refuses_all_of_it(self):
        self.call("PUT", f"admin/queues/{self.queue}-full/config", {"backpressure": {"max_depth": 1}}, expect=200)
        two = {"type": "x", "args": [], "queue": self.queue + "-full"}
        group = {"type": "group", "jobs": [self.step("a"), two, two]}
        self.assertEqual(self.create(group, 429).error["code"], "QUEUE_FULL")
        self.assertEqual(self.fetch(1), [])

    def test_PRI_T24_PRI_T26_each_job_stands_by_its_own_priority(self):
        jobs = [self.step("three", priority=3), self.step("zero", priority=0), self.step("two")]
        self.create({"type": "group", "jobs": jobs})
        self.put_job(priority=1)
        self.assertEqual([job["priority"] for job in self.fetch(9)], [0, 1, 2, 3])

    def test_PRI_T25_SUM_09_steps_inherit_the_priority_of_the_whole(self):
        steps = [self.step("a"), self.step("b", priority=4),
                 {"type": "batch", "jobs": [self.step("c")], "callbacks": {"on_complete": self.step("d")}}]
        self.create({"type": "chain", "priority": 1, "steps": steps})
        found = []
        while job := self.run_one():
            found.append(job["priority"])
        self.assertEqual(found, [1, 4, 1, 1])

    def test_PRI_G5_a_job_brings_the_chain_that_follows_it(self):
        reply = self.call("POST", "jobs", {
            "type": "order.process", "queue": self.queue, "args": [{"order_id": "ord_456"}], "priority": 1,
            "workflow": {"chain": [{"type": "payment.charge", "args": [1]}, {"type": "inventory.reserve", "args": [2]},
                                   {"type": "shipping.schedule", "args": [3], "priority": 0}]}}, expect=201)
        self.assertEqual(reply.headers["Location"], "/ojs/v1/jobs/" + reply.json["job"]["id"])
        reply = reply.json
        self.assertEqual((reply["job"]["type"], reply["job"]["priority"]), ("order.process", 1))
        self.assertEqual(reply["job"]["workflow_id"], reply["workflow"]["id"])
        found = []
        while job := self.run_one():
            found.append((job["type"], job["priority"]))
        self.assertEqual(found, [("order.process", 1), ("payment.charge", 1), ("inventory.reserve", 1),
                                 ("shipping.schedule", 0)])
        self.assertEqual(self.enqueue(400, workflow={"chain": []}).error["code"], "invalid_workflow")
