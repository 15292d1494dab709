# SPDX-License-Identifier: Apache-2.0
"""Ids in requests: taken in upper case where one is asked for, told in lower case."""

from gateways import OnGateway
from test_events import Stream

OURS, UNKNOWN = "019b2c3d-4e5f-7a6b-8c9d-0e1f2a3b4c5d", "019B2C3D-4E5F-7A6B-8C9D-0E1F2A3B4C5E"
NO_IDS = ("019b2c3d-4e5f-4a6b-8c9d-0e1f2a3b4c5d", OURS.upper(), "wf_019b2c3d", "", 7)


class Ids(OnGateway):
    def post(self, path, body=None, expect=200):
        return self.call("POST", path, body, expect=expect).json

    def test_a_path_takes_an_id_in_upper_case(self):
        job = self.put_job(pending=True)
        path = "jobs/" + job["id"].upper()
        self.assertEqual(self.call("GET", path, expect=200).json["id"], job["id"])
        self.assertEqual(self.call("GET", "admin/" + path, expect=200).json["id"], job["id"])
        self.assertEqual(self.post(path + "/activate")["job"]["id"], job["id"])
        self.assertEqual(self.call("PATCH", path, {"priority": 1}, expect=200).json["id"], job["id"])
        self.assertEqual(self.call("GET", path + "/progress", expect=200).json["job_id"], job["id"])
        self.assertEqual(self.call("GET", path + "/result", expect=200).json["job_id"], job["id"])
        self.assertEqual(self.call("DELETE", path, expect=200).json["job"]["id"], job["id"])
        for stream in (Stream(self, path + "/events"), Stream(self, f"events/stream?channel=job:{job['id'].upper()}")):
            self.assertEqual(stream.next()["data"]["job_id"], job["id"])
        told = self.call("GET", "events?types=job.cancelled&jobs=" + job["id"].upper(), expect=200).json["events"]
        self.assertEqual([event["data"]["job_id"] for event in told], [job["id"]])
        self.assertEqual(self.call("GET", "jobs/" + UNKNOWN, expect=404).error["details"]["resource_id"], UNKNOWN.lower())

    def test_a_body_takes_an_id_in_upper_case(self):
        jobs = [self.put_job(retry={"max_attempts": 1, "on_exhaustion": "dead_letter"}) for _ in range(3)]
        ids = [job["id"] for job in jobs]
        upper = [id.upper() for id in ids]
        self.fetch(3)
        beat = {"worker_id": "w-" + self.queue, "active_jobs": upper[:1], "active_job_ids": upper[1:2], "job_id": upper[2]}
        self.assertEqual(sorted(self.post("workers/heartbeat", beat)["jobs_extended"]), sorted(ids))
        self.assertEqual(self.post("workers/progress", {"job_id": upper[0], "percentage": 50})["job_id"], ids[0])
        self.assertEqual(self.post("workers/ack", {"job_id": upper[0], "result": 5})["job_id"], ids[0])
        for each in upper[1:]:
            self.post("workers/nack", {"job_id": each, "error": {"code": "boom", "message": "no"}})
        results = self.post("jobs/results", {"job_ids": upper[:1]})["results"]
        self.assertEqual((list(results), results[ids[0]]["result"]), (ids[:1], 5))
        self.assertEqual(self.call("GET", "dead-letter/" + upper[1], expect=200).json["id"], ids[1])
        self.assertEqual(self.post(f"dead-letter/{upper[1]}/retry")["job"]["id"], ids[1])
        self.assertEqual(self.call("DELETE", "dead-letter/" + upper[2], expect=200).json["job_id"], ids[2])
        self.assertEqual(self.post("jobs/bulk/cancel", {"job_ids": [upper[1]]})["items"][0]["job_id"], ids[1])

    def test_a_worker_id_keeps_its_case(self):
        self.post("workers/register", {"worker_id": UNKNOWN})
        self.assertEqual(self.call("GET", f"workers/{UNKNOWN}/health", expect=200).json["worker_id"], UNKNOWN)
        self.call("GET", f"workers/{UNKNOWN.lower()}/health", expect=404)

    def test_a_workflow_is_found_by_an_id_in_upper_case(self):
        step = {"type": "test.http", "args": [], "options": {"queue": self.queue}}
        made = self.post("workflows", {"type": "chain", "steps": [step]}, expect=201)["id"]
        self.assertEqual(self.call("GET", "workflows/" + made.upper(), expect=200).json["id"], made)
        self.assertEqual(self.post(f"workflows/{made.upper()}/cancel")["id"], made)

    def test_a_workflow_has_the_id_that_it_brings(self):
        step = {"type": "test.http", "args": [], "options": {"queue": self.queue}}
        reply = self.call("POST", "workflows", {"type": "chain", "id": OURS, "steps": [step]}, expect=201)
        self.assertEqual((reply.json["id"], reply.headers["Location"]), (OURS, "/ojs/v1/workflows/" + OURS))
        self.assertEqual(self.call("GET", "workflows/" + OURS, expect=200).json["id"], OURS)
        self.call("POST", "workflows", {"chain": [step], "id": OURS}, expect=409)

    def test_an_id_that_cannot_be_kept_is_refused(self):
        step = {"type": "test.http", "args": [], "options": {"queue": self.queue}}
        for id in NO_IDS:
            self.assertEqual(self.enqueue(400, id=id).error["details"]["field"], "id")
            for workflow in ({"type": "group", "jobs": [step]}, {"steps": [step]}, {"chain": [step]}):
                error = self.call("POST", "workflows", workflow | {"id": id}, expect=400).error
                self.assertEqual((error["code"], error["details"]["validation_errors"][0]["path"]), ("invalid_workflow", "$.id"))
        error = self.enqueue(400, id=OURS, workflow={"chain": [step]}).error
        self.assertEqual(error["details"]["validation_errors"][0]["path"], "$.id")
        self.assertEqual(self.fetch(), [])
