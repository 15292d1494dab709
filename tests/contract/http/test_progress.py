# SPDX-License-Identifier: Apache-2.0
"""How far a job is, over HTTP."""

import email.utils

from gateways import OnGateway, eventually


class Progress(OnGateway):
    def test_progress_has_headers(self):
        job = self.put_job()
        self.fetch()
        path = f"jobs/{job['id']}/progress"
        headers = self.call("GET", path, expect=200).headers
        self.assertEqual((headers["Cache-Control"], headers["X-OJS-Progress"], headers["Last-Modified"]),
                         ("no-cache", None, None))
        self.call("PUT", path, {"progress": 0.25}, expect=200)
        reply = self.call("GET", path, expect=200)
        self.assertEqual(reply.headers["X-OJS-Progress"], "0.25")
        changed = email.utils.parsedate_to_datetime(reply.headers["Last-Modified"])
        self.assertEqual(changed.strftime("%Y-%m-%dT%H:%M:%S"), reply.json["updated_at"][:19])

    def test_a_report_says_something_and_its_data_are_an_object(self):
        job = self.put_job()
        self.fetch()
        put, post = f"jobs/{job['id']}/progress", {"job_id": job["id"]}
        for nothing in ({}, {"data": None, "progress": None, "message": None}, {"worker_id": "w"}):
            for method, path, body in (("PUT", put, nothing), ("POST", "workers/progress", post | nothing)):
                error = self.call(method, path, body, expect=400).error
                self.assertEqual((error["code"], error["details"]["field"]),
                                 ("invalid_request", "progress" if method == "PUT" else "percentage"), nothing)
        for data in (1, "half", [1], True):
            for name in ("data", "checkpoint"):
                for method, path, body in (("PUT", put, {}), ("POST", "workers/progress", post)):
                    error = self.call(method, path, body | {"progress": 0.5, name: data}, expect=400).error
                    self.assertEqual((error["code"], error["details"]["field"]), ("invalid_request", name), data)
        self.assertIsNone(self.call("GET", put, expect=200).json["updated_at"], "nothing of a refused report is kept")
        self.call("PUT", put, {"progress": 0.25, "data": None}, expect=200)
        self.call("PUT", put, {"percentage": 50}, expect=200)
        self.call("POST", "workers/progress", post | {"data": {"rows": 3}}, expect=200)
        told = self.call("PUT", put, {"checkpoint": {"row": 7}}, expect=200).json
        self.assertEqual((told["progress"], told["data"]), (0.5, {"rows": 3}), "a checkpoint alone is a sign of life")
        told = self.call("POST", "workers/progress", post | {"message": "more"}, expect=200).json
        self.assertEqual((told["progress"], told["message"]), (0.5, "more"))


    def test_a_checkpoint_is_there_for_the_next_attempt(self):
        """Source: ojs-progress 6.4."""
        job = self.put_job(retry={"max_attempts": 3, "initial_interval": "PT0.01S", "jitter": False})
        path = f"jobs/{job['id']}/progress"
        self.assertNotIn("last_checkpoint", self.fetch(1)[0])
        told = self.call("PUT", path, {"progress": 0.47, "data": {"rows": 5}, "checkpoint": {"row": 14}}, expect=200).json
        self.assertEqual((told["progress"], told["data"], told["checkpoint"]), (0.47, {"rows": 5}, {"row": 14}))
        self.call("PUT", path, {"progress": 0.5}, expect=200)
        self.call("POST", "workers/progress", {"job_id": job["id"], "checkpoint": {"row": 15}}, expect=200)
        told = self.call("GET", path, expect=200).json
        self.assertEqual((told["progress"], told["checkpoint"]), (0.5, {"row": 15}))
        for wrong in (5, "text", [1]):
            self.assertEqual(self.call("PUT", path, {"progress": 0.6, "checkpoint": wrong}, expect=400).error["code"],
                             "invalid_request")
        self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "x", "message": "y"}}, expect=200)
        again = eventually(lambda: self.fetch(1))[0]
        self.assertEqual((again["id"], again["last_checkpoint"], again["attempt"]), (job["id"], {"row": 15}, 2))
        told = self.call("GET", path, expect=200).json
        self.assertEqual((told["progress"], told["data"], told["checkpoint"]), (None, None, {"row": 15}))


class WorkflowProgress(OnGateway):
    def step(self, **members):
        return {"type": "test.http", "args": [], "options": {"queue": self.queue}, **members}

    def create(self, **workflow):
        return self.call("POST", "workflows", workflow, expect=201).json["id"]

    def progress(self, workflow):
        reply = self.call("GET", f"workflows/{workflow}/progress", expect=200)
        self.assertEqual(float(reply.headers["X-OJS-Progress"]), reply.json["progress"])
        self.assertEqual(reply.headers["Cache-Control"], "no-cache")
        return reply.json

    def report(self, job, progress, **more):
        self.call("PUT", f"jobs/{job['id']}/progress", {"progress": progress, **more}, expect=200)

    def ack(self, job):
        self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)

    def fail(self, job):
        nack = {"job_id": job["id"], "error": {"code": "boom", "message": "no", "retryable": False}}
        self.call("POST", "workers/nack", nack, expect=200)

    def test_a_chain_counts_its_steps_and_the_present_one_in_part(self):
        chain = self.create(type="chain", steps=[self.step(id="one"), self.step(), self.step()])
        begin = self.progress(chain)
        self.assertEqual((begin["workflow_id"], begin["type"], begin["state"], begin["progress"], begin["updated_at"]),
                         (chain, "chain", "running", 0, None))
        self.ack(self.fetch(1)[0])
        second, = self.fetch(1)
        self.report(second, 0.5, message="half", data={"rows": 5})
        told = self.progress(chain)
        self.assertEqual(told["progress"], 0.5)
        self.assertEqual([(step["state"], step["progress"]) for step in told["steps"]],
                         [("completed", 1), ("active", 0.5), ("waiting", None)])
        self.assertEqual((told["steps"][0]["id"], told["steps"][1]["job_id"]), ("one", second["id"]))
        self.assertEqual((told["steps"][1]["message"], told["steps"][1]["data"]), ("half", {"rows": 5}))
        self.assertEqual(told["updated_at"], self.call("GET", f"jobs/{second['id']}/progress").json["updated_at"])
        self.ack(second)
        self.ack(self.fetch(1)[0])
        self.assertEqual((self.progress(chain)["progress"], self.progress(chain)["state"]), (1, "completed"))

    def test_a_group_is_as_far_as_its_jobs_on_average(self):
        group = self.create(type="group", jobs=[self.step() for _ in range(4)])
        a, b, c, _ = self.fetch(4)
        self.report(a, 0.5)
        self.ack(b)
        self.report(c, 0.25)
        self.fail(c)
        self.assertEqual(self.progress(group)["progress"], 0.4375, "one that failed stays as far as it came")

    def test_a_batch_counts_the_jobs_that_completed_and_no_callback(self):
        batch = self.create(type="batch", jobs=[self.step() for _ in range(4)], callbacks={"on_complete": self.step()})
        a, b, *_ = self.fetch(4)
        self.report(a, 0.9)
        self.ack(b)
        told = self.progress(batch)
        self.assertEqual((told["progress"], len(told["steps"])), (0.25, 4))

    def test_a_part_of_parts_counts_as_far_as_it_is(self):
        inner = {"type": "group", "jobs": [self.step(), self.step()]}
        chain = self.create(type="chain", steps=[self.step(), inner])
        self.ack(self.fetch(1)[0])
        self.report(self.fetch(2)[0], 0.5)
        told = self.progress(chain)
        self.assertEqual((told["progress"], told["steps"][1]["type"], told["steps"][1]["progress"]), (0.625, "group", 0.25))
        self.assertEqual(len(told["steps"][1]["steps"]), 2)
        graph = self.create(steps=[self.step(id="a"), self.step(id="b", depends_on=["a"])])
        told = self.progress(graph)
        self.assertEqual((told.get("type"), told["progress"]), (None, 0))

    def test_a_part_has_the_id_that_it_has_in_the_workflow(self):
        inner = {"type": "group", "jobs": [self.step(), self.step(id="b")]}
        chain = self.create(type="chain", steps=[self.step(id="a"), self.step(), inner])
        told, whole = self.progress(chain)["steps"], self.call("GET", f"workflows/{chain}", expect=200).json["steps"]
        self.assertEqual([step["id"] for step in told], [step["id"] for step in whole])
        self.assertEqual([step["id"] for step in told[2]["steps"]], [step["id"] for step in whole[2]["jobs"]])

    def test_it_is_told_to_whom_the_workflow_is(self):
        a = {"X-OJS-Tenant": "a"}
        made = self.call("POST", "workflows", {"type": "group", "jobs": [self.step()]}, expect=201, headers=a).json["id"]
        self.call("GET", f"workflows/{made}/progress", expect=200, headers=a)
        self.call("GET", f"workflows/{made}/progress", expect=404, headers={"X-OJS-Tenant": "b"})
        self.call("GET", "workflows/019b2c3d-4e5f-7a6b-8c9d-0e1f2a3b4c5d/progress", expect=404)
