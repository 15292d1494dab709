# SPDX-License-Identifier: Apache-2.0
"""Members that mean nothing: kept by default, refused by a segment that is strict."""

from gateways import OnGateway

STEP = {"type": "a", "args": [], "max_attemps": 3}
CHAIN = {"type": "chain", "steps": [{"type": "a", "args": []}, STEP]}
MISSPELT = (({"max_attemps": 3}, "max_attemps"), ({"retry": {"max_attemps": 3}}, "retry.max_attemps"),
            ({"options": {"priorty": 1}}, "options.priorty"))
#: What no known member comes near to.
FOREIGN = (({"unique": {"keys": ["type"], "x_vendor": 1}}, "unique.x_vendor"),
           ({"rate_limit": {"key": "k", "concurrency": 5, "x_vendor": 1}}, "rate_limit.x_vendor"),
           ({"rate_limit": {"key": "k", "rate": {"limit": 5, "period": "PT1H", "x_vendor": 1}}}, "rate_limit.rate.x_vendor"))
CRON = {"cron": "@hourly", "job_template": {"type": "a", "args": []}, "x_vendor": 1, "catch_up": True}


class Lenient(OnGateway):
    def test_they_stay_with_the_jobs(self):
        self.assertEqual(self.get(self.put_job(max_attemps=3))["max_attemps"], 3)
        for members, _ in MISSPELT:
            self.enqueue(201, **members)
        self.call("POST", "workflows", CHAIN, expect=201)
        cron = {"name": self.queue, "cron": "@hourly", "job_template": STEP}
        self.call("POST", "cron", cron, expect=201)

    def test_inside_of_a_policy_and_beside_a_cron_they_are_ignored(self):
        """Source: ojs-json-format 14.3."""
        for members, _ in FOREIGN:
            job = self.put_job(type="b", **members)
            for name, value in members.items():
                self.assertEqual(self.get(job)[name], value, "as it was sent")
        self.enqueue(409, type="b", unique=FOREIGN[0][0]["unique"])
        self.call("POST", "cron", {"name": self.queue} | CRON, expect=201)
        self.call("PATCH", "cron/" + self.queue, {"x_vendor": 2, "cron": "@daily"}, expect=200)


class Strict(OnGateway):
    flags = ("--test-hooks", "--strict-envelopes")

    def refused(self, path, body, field, method="POST"):
        error = self.call(method, path, body, expect=400).error
        self.assertEqual((error["code"], error["details"]["field"]), ("invalid_request", field), error)
        self.assertIn("did you mean `", error["message"])
        return error

    def test_a_job_is_refused_alone_and_in_a_batch(self):
        for members, field in MISSPELT:
            job = {"type": "a", "args": [], "queue": self.queue} | members
            self.refused("jobs", job, field)
            error = self.refused("jobs/batch", {"jobs": [{"type": "a", "args": []}, job]}, field)
            self.assertEqual(error["details"]["index"], 1)
        self.assertEqual(self.call("GET", "admin/jobs", expect=200).json["items"], [])
        self.enqueue(201, meta={"any": 1}, retry={"max_attempts": 3})

    def test_so_is_one_inside_of_a_policy_or_beside_a_cron(self):
        for members, field in FOREIGN:
            self.assertEqual(self.enqueue(400, **members).error["details"]["field"], field)
        error = self.call("POST", "cron", {"name": self.queue} | CRON, expect=400).error
        self.assertEqual(error["details"]["field"], "x_vendor")

    def test_so_is_a_workflow(self):
        self.refused("workflows", CHAIN, "$.steps[1].max_attemps")
        self.refused("jobs", {"type": "a", "args": [], "workflow": {"chain": [STEP]}}, "$.workflow.chain[0].max_attemps")
        self.assertEqual(self.call("GET", "workflows", expect=200).json["workflows"], [])

    def test_so_is_a_cron_and_its_change(self):
        cron = {"name": self.queue, "cron": "@hourly", "job_template": {"type": "a", "args": []}}
        self.refused("cron", cron | {"job_template": STEP}, "max_attemps")
        self.assertEqual(self.call("GET", "cron", expect=200).json["crons"], [])
        made = self.call("POST", "cron", cron, expect=201).json["cron"]
        self.refused("cron/" + self.queue, {"job_template": STEP}, "max_attemps", "PATCH")
        self.call("PATCH", "cron/" + self.queue, made | {"cron": "@hourly"}, expect=200)
