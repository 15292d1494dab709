# SPDX-License-Identifier: Apache-2.0
"""Crons over HTTP, in both spellings."""

import datetime

from gateways import OnGateway, eventually


class Crons(OnGateway):
    def set(self, expect=201, path="cron", **members):
        return self.call("POST", path, {"name": self.queue, "expression": "30 4 * * *", "timezone": "UTC",
                                        "job_template": {"type": "report.night", "args": [{"n": 1}],
                                                         "options": {"queue": self.queue}}} | members, expect=expect)

    def look(self, name=None):
        return self.call("GET", "cron/" + (name or self.queue), expect=200).json["cron"]

    def jump_to(self, time):
        """Moves the segment's clock to a second after that time."""
        server = self.call("POST", "test/clock", {"advance_ms": 0}, expect=200).json["now"]
        left = datetime.datetime.fromisoformat(time) - datetime.datetime.fromisoformat(server)
        self.call("POST", "test/clock", {"advance_ms": max(0, int(left.total_seconds() * 1000) + 1000)}, expect=200)

    def test_one_is_made_told_of_and_removed(self):
        reply = self.set(description="for the morning", overlap_policy="allow")
        self.assertEqual(reply.headers["Location"], "/ojs/v1/cron/" + self.queue)
        cron = reply.json["cron"]
        self.assertEqual(cron, reply.json["cron_job"])
        self.assertEqual((cron["name"], cron["expression"], cron["cron"], cron["schedule"]),
                         (self.queue, "30 4 * * *", "30 4 * * *", "30 4 * * *"))
        self.assertEqual((cron["timezone"], cron["overlap_policy"], cron["enabled"], cron["description"]),
                         ("UTC", "allow", True, "for the morning"))
        self.assertEqual((cron["run_count"], cron["last_run_at"]), (0, None))
        self.assertTrue(cron["next_run_at"].endswith("T04:30:00.000Z"), cron["next_run_at"])
        self.assertTrue(cron["created_at"])
        for form in (cron, cron["job_template"]):
            self.assertEqual((form["type"], form["args"], form["options"]["queue"]),
                             ("report.night", [{"n": 1}], self.queue))
        self.assertEqual(self.look(), cron)
        for path in ("cron", "crons"):
            listed = self.call("GET", path, expect=200).json
            for name in ("crons", "cron_jobs", "items"):
                self.assertIn(cron, listed[name])
            self.assertGreaterEqual(listed["count"], 1)
        gone = self.call("DELETE", "crons/" + self.queue, expect=200).json
        self.assertEqual((gone["deleted"], gone["name"], gone["cron"]["name"]), (True, self.queue, self.queue))
        for method in ("GET", "DELETE"):
            self.assertEqual(self.call(method, "cron/" + self.queue, expect=404).error["code"], "not_found")

    def test_PRI_002_the_other_spelling_and_defaults(self):
        cron = self.call("POST", "crons", {"name": self.queue, "cron": "@hourly", "type": "cache.warm",
                                           "meta": {"trace": "x"}, "options": {"queue": self.queue, "timeout": 120},
                                           "next_run_at": "2020-01-01T00:00:00Z", "run_count": 7}, expect=201).json["cron_job"]
        self.assertEqual((cron["expression"], cron["timezone"], cron["overlap_policy"], cron["run_count"]),
                         ("@hourly", "UTC", "skip", 0))
        self.assertEqual((cron["args"], cron["meta"], cron["options"]["timeout_ms"]), ([], {"trace": "x"}, 120_000))
        self.assertEqual(cron["options"]["priority"], 2)
        self.assertNotEqual(cron["next_run_at"][:4], "2020")

    def test_a_change_by_another_leaves_its_key_among_those_of_its_tenant(self):
        of_tenant = {"X-OJS-Tenant": "A"}
        self.call("POST", "cron", {"name": self.queue, "cron": "@yearly", "type": "cron.unique", "options": {"queue": self.queue},
                                   "unique": {"keys": ["type"]}}, headers=of_tenant, expect=201)

        def key():
            job = self.call("POST", f"cron/{self.queue}/trigger", expect=200).json["job_id"]
            listed = self.call("GET", f"admin/jobs?unique=true&queue={self.queue}", expect=200).json["items"]
            self.call("DELETE", "jobs/" + job, expect=200)
            return listed[0]["unique_key"]

        before = key()
        self.call("PATCH", "cron/" + self.queue, {"description": "changed"}, expect=200)
        self.assertEqual(key(), before)

    def test_a_time_of_its_job_is_changed_by_either_name(self):
        template = {"type": "a.b", "args": [], "options": {"timeout": 7, "visibility_timeout": 5}}
        self.call("POST", "cron", {"name": self.queue, "expression": "@hourly", "job_template": template}, expect=201)
        for change, names in (({"timeout_ms": 9000}, ("timeout_ms", "timeout")), ({"visibility_timeout": 4}, ("visibility_timeout_ms",)),
                              ({"options": {"visibility_timeout_ms": 9000}}, ("visibility_timeout_ms", "visibility_timeout"))):
            options = self.call("PATCH", "cron/" + self.queue, change, expect=200).json["cron"]["options"]
            self.assertEqual([options.get(name) for name in names], [9000 if names[1:] else 4000, None][:len(names)], change)

    def test_schedule_is_a_third_spelling(self):
        cron = self.call("POST", "cron", {"name": self.queue, "schedule": "@hourly", "type": "cache.warm"}, expect=201).json["cron"]
        self.assertEqual(cron["expression"], "@hourly")
        changed = self.call("PATCH", "cron/" + self.queue, {"schedule": "15 3 * * *"}, expect=200).json["cron"]
        self.assertEqual((changed["expression"], changed["schedule"]), ("15 3 * * *", "15 3 * * *"))
        for members in ({"schedule": "@daily"}, {"schedule": 7}):
            self.assertIn("schedule", self.set(expect=400, **members).error["message"])

    def test_a_member_that_no_cron_has_is_ignored(self):
        self.set()
        whole = {"name": self.queue, "cron": "30 4 * * *"}
        for method, path, body in (("POST", "cron", whole | {"type": "x.y"}),
                                   ("POST", "crons", whole | {"job_template": {"type": "x.y"}}),
                                   ("PATCH", "cron/" + self.queue, {"description": "d"}),
                                   ("PATCH", "cron/" + self.queue, {"job_template": {"type": "x.y"}})):
            self.call(method, path, body | {"overlap": "bogus", "catch_up": True}, expect=200)
        cron = self.look()
        self.assertEqual(cron["overlap_policy"], "skip")
        self.assertEqual(cron["expression"], "30 4 * * *")
        self.assertEqual(self.call("PATCH", "cron/" + self.queue, cron, expect=200).json["cron"]["expression"], "30 4 * * *")
        self.call("POST", "cron", cron, expect=200)
        kept = self.set(expect=200, job_template={"type": "x.y", "x_mine": 1}).json["cron"]["job_template"]
        self.assertEqual(kept["options"]["x_mine"], 1)

    def test_the_same_name_replaces_and_keeps_its_counts(self):
        self.set()
        self.call("POST", f"cron/{self.queue}/trigger", expect=200)
        again = self.set(expect=200, expression="0 5 * * *").json["cron"]
        self.assertEqual((again["expression"], again["run_count"]), ("0 5 * * *", 1))
        self.assertTrue(again["next_run_at"].endswith("T05:00:00.000Z"))

    def test_it_is_stopped_started_and_changed(self):
        self.set(description="old")
        stopped = self.call("PATCH", "cron/" + self.queue, {"enabled": False}, expect=200).json["cron_job"]
        self.assertEqual((stopped["enabled"], stopped["next_run_at"]), (False, None))
        self.assertEqual([each["name"] for each in self.call("GET", "cron?enabled=false").json["crons"]
                          if each["name"] == self.queue], [self.queue])
        self.assertNotIn(self.queue, [each["name"] for each in self.call("GET", "cron?enabled=true").json["crons"]])
        self.assertTrue(self.call("PATCH", "crons/" + self.queue, {"enabled": True}, expect=200).json["cron"]["next_run_at"])
        changed = self.call("PATCH", "cron/" + self.queue, {"expression": "15 3 * * *", "options": {"priority": 1}},
                            expect=200).json["cron"]
        self.assertEqual((changed["expression"], changed["description"], changed["type"]),
                         ("15 3 * * *", "old", "report.night"))
        self.assertEqual((changed["options"]["priority"], changed["options"]["queue"]), (1, self.queue))
        self.assertEqual(self.call("PATCH", "cron/" + self.queue, {}, expect=400).error["code"], "invalid_request")
        self.assertEqual(self.call("PATCH", "cron/none-" + self.queue, {"enabled": True}, expect=404).status, 404)

    def test_a_trigger_enqueues_its_job_now(self):
        self.set(overlap_policy="allow")
        reply = self.call("POST", f"crons/{self.queue}/trigger", expect=200).json
        job = self.fetch(1)[0]
        self.assertEqual((job["id"], job["type"], job["args"]), (reply["job_id"], "report.night", [{"n": 1}]))
        self.assertEqual(job["meta"]["cron_name"], self.queue)
        self.assertEqual((reply["cron"]["run_count"], self.look()["last_job_id"]), (1, job["id"]))
        self.assertEqual(self.call("POST", "cron/none/trigger", expect=404).error["code"], "not_found")

    def test_while_its_job_goes_on_a_skip_refuses_a_trigger(self):
        self.set()
        self.call("POST", f"cron/{self.queue}/trigger", expect=200)
        error = self.call("POST", f"cron/{self.queue}/trigger", expect=409).error
        self.assertEqual((error["code"], error["details"]), ("conflict", {"cron": self.queue}))

    def test_what_is_wrong_is_named(self):
        for members, field in (({"expression": "not a valid cron"}, "expression"),
                               ({"expression": "0 0 0 0 0 0 0"}, "expression"),
                               ({"expression": "99 25 32 13 8"}, "expression"),
                               ({"expression": "*/0 * * * *"}, "expression"),
                               ({"expression": ""}, "expression"),
                               ({"timezone": "+05:00"}, "timezone"), ({"timezone": "EST"}, "timezone"), ({"timezone": ""}, "timezone"),
                               ({"timezone": "Mars/Olympus"}, "timezone"),
                               ({"overlap_policy": "odd"}, "overlap_policy"),
                               ({"name": "Upper"}, "name"), ({"name": ""}, "name"), ({"enabled": 1}, "enabled"),
                               ({"cron": "@daily"}, "cron"),
                               ({"job_template": {"type": "Bad Type"}}, "type"),
                               ({"job_template": {"type": "a", "args": {}}}, "args"),
                               ({"job_template": {"type": "a", "options": {"delay_until": "+PT5S"}}}, "scheduled_at")):
            with self.subTest(members):
                error = self.set(expect=400, **members).error
                self.assertEqual(error["code"], "invalid_request")
                self.assertIn(field, error["message"])
        self.assertEqual(self.call("GET", "cron/" + self.queue).status, 404)

    def test_it_fires_at_its_time_and_skips_while_its_job_goes_on(self):
        self.set(expression="* * * * *")
        self.jump_to(self.look()["next_run_at"])
        job = eventually(lambda: self.fetch(1))[0]
        self.assertEqual((job["meta"]["cron_name"], job["state"]), (self.queue, "active"))
        eventually(lambda: self.look()["run_count"] == 1)
        self.jump_to(self.look()["next_run_at"])
        eventually(lambda: self.look()["skipped_count"] == 1)
        self.assertEqual((self.fetch(1), self.look()["run_count"]), ([], 1))

    def test_its_events_say_which_time_came(self):
        self.set(expression="* * * * *")
        first = self.look()["next_run_at"]
        self.jump_to(first)
        eventually(lambda: self.look()["run_count"] == 1)
        second = self.look()["next_run_at"]
        self.jump_to(second)
        eventually(lambda: self.look()["skipped_count"] == 1)

        def told():
            found = self.call("GET", "events?types=cron.triggered,cron.skipped", expect=200).json["events"]
            return [event for event in found if event["data"]["cron_name"] == self.queue]

        triggered, skipped = eventually(lambda: told() if len(told()) == 2 else None)
        job = self.look()["last_job_id"]
        self.assertEqual((triggered["type"], triggered["subject"]), ("cron.triggered", self.queue))
        data = triggered["data"]
        self.assertEqual((data["scheduled_time"], data["run_count"], data["job_id"], data["triggered_by_hand"]),
                         (first, 1, job, False))
        self.assertEqual((data["cron_expression"], data["cron_expr"], data["timezone"], data["job_type"]),
                         ("* * * * *", "* * * * *", self.look()["timezone"], "report.night"))
        self.assertGreaterEqual(data["actual_time"], first)
        self.assertEqual((skipped["type"], skipped["data"]["reason"], skipped["data"]["scheduled_time"]),
                         ("cron.skipped", "overlap_skip", second))
        self.assertEqual(skipped["data"]["existing_job_id"], job)

    def test_another_tenant_does_not_see_it(self):
        self.call("POST", "cron", {"name": self.queue, "cron": "@daily", "type": "a"}, expect=201,
                  headers={"X-OJS-Tenant": "acme"})
        self.assertEqual(self.look()["meta"]["tenant_id"], "acme")
        for headers, status in (({"X-OJS-Tenant": "acme"}, 200), ({"X-OJS-Tenant": "other"}, 404)):
            self.call("GET", "cron/" + self.queue, expect=status, headers=headers)
        self.call("DELETE", "cron/" + self.queue, expect=404, headers={"X-OJS-Tenant": "other"})
        listed = self.call("GET", "cron", expect=200, headers={"X-OJS-Tenant": "other"}).json["crons"]
        self.assertNotIn(self.queue, [each["name"] for each in listed])
