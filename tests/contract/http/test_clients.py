# SPDX-License-Identifier: Apache-2.0
"""What published clients send that no text of the specification asks for, and how they read replies."""

from gateways import OnGateway, eventually


class PublishedClients(OnGateway):
    def test_a_reply_about_a_job_is_read_with_its_wrapper_or_without(self):
        made = self.call("POST", "jobs", {"type": "test.read", "args": [], "queue": self.queue}, expect=201).json
        names = {name: made["job"][name] for name in ("id", "type", "state")}
        self.assertEqual({name: made[name] for name in names}, names)
        later = self.put_job(options={"pending": True})
        for method, path, state in [("POST", f"jobs/{later['id']}/activate", "available"),
                                    ("DELETE", f"jobs/{made['id']}", "cancelled"),
                                    ("POST", f"admin/jobs/{made['id']}/retry", "available"),
                                    ("POST", f"jobs/{made['id']}/cancel", "cancelled")]:
            reply = self.call(method, path, expect=200).json
            self.assertEqual((reply["state"], reply["queue"]), (state, self.queue), path)
            self.assertEqual(reply["job"], {name: value for name, value in reply.items() if name != "job"}, path)

    def test_a_job_that_is_there_already_is_told_with_its_own_state(self):
        unique = {"keys": ["queue"], "on_conflict": "ignore"}
        first = self.put_job(unique=unique)
        self.fetch()
        again = self.call("POST", "jobs", {"type": first["type"], "args": [], "queue": self.queue, "unique": unique},
                          expect=200).json
        self.assertEqual((again["id"], again["state"]), (first["id"], "active"))

    def test_a_key_of_its_own_keeps_out_jobs_of_that_key_alone(self):
        def put(key, args, expect):
            return self.enqueue(expect=expect, args=args, options={"unique": {"key": key, "within": "30m"}})

        put("k1", [{"to": "a"}], 201)
        put("k2", [{"to": "a"}], 201)
        put("k1", [{"to": "b"}], 409)
        put(["to"], [{"to": "a"}], 201)
        put(["to"], [{"to": "b"}], 201)
        put(["to"], [{"to": "a"}], 409)

    def test_what_a_strict_reader_would_refuse_comes_back_as_the_specification_spells_it(self):
        job = self.put_job(timeout="PT30S", visibility_timeout=1.5,
                           unique={"keys": ["queue"], "on_conflict": "use_existing", "within": "1m"})
        self.assertNotIn("timeout", job)
        self.assertNotIn("visibility_timeout", job)
        self.assertEqual((job["timeout_ms"], job["visibility_timeout_ms"]), (30_000, 1500))
        self.assertEqual(job["unique"], {"keys": ["queue"], "on_conflict": "ignore", "within": "1m"})
        self.assertEqual(self.fetch()[0]["unique"], job["unique"])
        self.assertEqual(self.put_job(type="test.seconds", timeout=30)["timeout"], 30)

    def test_a_workflow_of_steps_that_name_what_they_depend_on_has_no_type(self):
        steps = [{"id": "a", "type": "test.a", "args": [], "depends_on": [], "options": {"queue": self.queue}},
                 {"id": "b", "type": "test.b", "args": [], "depends_on": ["a"], "options": {"queue": self.queue}}]
        made = self.call("POST", "workflows", {"name": "graph", "steps": steps}, expect=201).json
        self.assertNotIn("type", made)
        self.assertNotIn("type", self.call("GET", f"workflows/{made['id']}", expect=200).json)

    def test_an_empty_array_is_an_object_without_members(self):
        self.put_job()
        self.call("POST", f"queues/{self.queue}/pause", [], expect=200)
        self.assertEqual(self.fetch(), [])
        self.call("POST", f"queues/{self.queue}/resume", [], expect=200)
        self.assertEqual(len(self.fetch()), 1)
        self.call("POST", "workers/fetch", [], expect=400)
        self.call("POST", f"queues/{self.queue}/pause", [1], expect=400)

    def test_one_state_may_stand_by_itself_in_a_filter(self):
        ids = {self.put_job()["id"] for _ in range(2)}
        changed = self.call("POST", "jobs/bulk/cancel", {"filter": {"state": "available", "queue": self.queue}},
                            expect=200).json
        self.assertEqual({item["job_id"] for item in changed["items"]}, ids)
        for wrong in ("active", 7):
            self.call("POST", "jobs/bulk/cancel", {"filter": {"state": wrong, "queue": self.queue}}, expect=400)

    def test_resume_takes_quiet_back(self):
        self.call("POST", "workers/heartbeat", {"worker_id": "quieted"}, expect=200)
        for said, told in [("quiet", "quiet"), ("resume", "running")]:
            self.call("POST", "admin/workers/directive", {"directive": said, "worker_id": "quieted"}, expect=200)
            beat = self.call("POST", "workers/heartbeat", {"worker_id": "quieted"}, expect=200).json
            self.assertEqual(beat["state"], told)

    def test_dead_letters_are_purged_by_their_age_too(self):
        self.put_job(retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})
        self.call("POST", "workers/nack",
                  {"job_id": self.fetch()[0]["id"], "error": {"code": "e", "message": "m", "retryable": False}}, expect=200)
        def purged(age, expect=200):
            return self.call("POST", "dead-letter/purge", {"queue": self.queue, "older_than": age}, expect=expect)

        for age in ("7d", "P7D"):
            self.assertEqual(purged(age).json["deleted"], 0)
        listed = self.call("GET", f"dead-letter?queue={self.queue}&page=1&per_page=5", expect=200).json
        self.assertEqual((len(listed["jobs"]), listed["pagination"]["per_page"]), (1, 5))
        beyond = self.call("GET", f"dead-letter?queue={self.queue}&page=2&per_page=5", expect=200).json
        self.assertEqual((beyond["jobs"], beyond["total"]), ([], 1))
        eventually(lambda: purged("PT0S").json["deleted"] == 1)
        self.assertEqual(purged("soon", 400).error["details"]["field"], "older_than")

    def test_a_path_goes_up_by_two_dots(self):
        for path in ("../../ojs/v1/../manifest", "jobs/./../../manifest", "/../../../ojs/manifest"):
            self.assertIn("ojs_version", self.call("GET", path, expect=200).json, path)
        self.call("GET", "../nothing", expect=404)
        self.call("POST", "jobs/../admin/queues/q/pause", expect=404)

    def test_options_of_a_workflow_hold_for_each_job_that_does_not_say_it_itself(self):
        whole = {"queue": self.queue, "priority": 1, "timeout_ms": 7000, "retry": {"max_attempts": 7}, "tags": ["z"],
                 "metadata": {"md": 1}, "visibility_timeout": 45}
        steps = [{"type": "test.a", "args": []},
                 {"type": "test.b", "args": [], "timeout": 2, "options": {"max_attempts": 2, "meta": {"own": True}}}]
        self.call("POST", "workflows", {"type": "group", "jobs": steps, "options": whole}, expect=201)
        jobs = {job["type"]: job for job in self.fetch(2)}
        given = ("priority", "timeout_ms", "max_attempts", "meta", "tags", "visibility_timeout_ms")
        self.assertEqual([jobs["test.a"][name] for name in given], [1, 7000, 7, {"md": 1}, ["z"], 45_000])
        self.assertEqual([jobs["test.b"][name] for name in given], [1, 2000, 2, {"own": True}, ["z"], 45_000])

    def test_options_of_a_part_go_before_those_of_the_whole_and_end_with_it(self):
        part = {"type": "group", "options": {"timeout_ms": 2000}, "jobs": [{"type": "test.in", "args": []}]}
        whole = {"type": "group", "options": {"queue": self.queue, "timeout_ms": 1000, "tags": ["z"]},
                 "jobs": [part, {"type": "test.out", "args": []}]}
        self.call("POST", "workflows", whole, expect=201)
        self.assertEqual({job["type"]: (job["timeout_ms"], job["tags"]) for job in self.fetch(2)},
                         {"test.in": (2000, ["z"]), "test.out": (1000, ["z"])})
        wrong = {**whole, "options": {"timeout_ms": "soon"}}
        self.assertIn("timeout_ms", self.call("POST", "workflows", wrong, expect=400).error["message"])

    def test_each_step_has_an_id_before_it_has_a_job(self):
        steps = [{"type": "test.id", "args": [], "options": {"queue": self.queue}} for _ in range(2)]
        made = self.call("POST", "workflows", {"type": "chain", "steps": steps}, expect=201).json
        first, second = made["steps"]
        self.assertEqual((first["id"], second["id"], second["job_id"]), ("step-0", "step-1", None))

    def test_a_time_that_no_strict_reader_takes_comes_back_as_what_it_means(self):
        for written, told in [("2099-01-01t00:00:00z", "2099-01-01T00:00:00.000Z"),
                              ("2099-12-31T23:59:60Z", "2100-01-01T00:00:00.000Z"),
                              ("2099-01-01T00:00:00+02:00", "2099-01-01T00:00:00+02:00")]:
            self.assertEqual(self.put_job(expires_at=written)["expires_at"], told)

    def test_a_fetch_takes_a_batch_size(self):
        for _ in range(3):
            self.put_job()
        self.assertEqual(len(self.call("POST", "workers/fetch", {"queues": [self.queue], "batch_size": 2}, expect=200)
                             .json["jobs"]), 2)

    def test_a_worker_that_names_its_jobs_and_not_itself_renews_their_leases(self):
        self.put_job()
        job = self.fetch(visibility_timeout_ms=30_000)[0]
        for said in ({"job_ids": [job["id"]]}, {"job_id": job["id"]}):
            self.call("POST", "test/clock", {"advance_ms": 20_000}, expect=200)  # longer together than the lease
            beat = self.call("POST", "workers/heartbeat", said, expect=200).json
            self.assertEqual((beat["jobs_extended"], beat["state"]), ([job["id"]], "running"))
        foreign = self.call("POST", "workers/heartbeat", {"job_id": job["id"]}, expect=200, headers={"X-OJS-Tenant": "other"}).json
        self.assertEqual(foreign["jobs_extended"], [], "a job of another tenant is not renewed")
        for said in ({}, {"active_jobs": [job["id"]]}):
            self.assertEqual(self.call("POST", "workers/heartbeat", said, expect=400).error["details"]["field"], "worker_id")

    def test_a_schema_has_a_version_of_numbers_or_of_text(self):
        for version in (2, "3", "4.0.1", "5.0.0-rc.1"):
            made = self.call("POST", "schemas", {"uri": f"urn:v:{version}", "type": "test.versions", "version": version,
                                                 "schema": {}}, expect=201).json
            self.assertEqual(made["schema"]["version"], version)
        self.call("POST", "schemas", {"uri": "urn:v:latest", "type": "test.versions", "version": "4.10",
                                      "schema": {"maxItems": 0}}, expect=201)
        checked = {"type": "test.versions", "args": [1], "meta": {"ojs_validate": True}}
        self.enqueue(**checked)  # by 5.0.0-rc.1
        self.call("POST", "schemas", {"uri": "urn:v:5", "type": "test.versions", "version": 5, "schema": {"maxItems": 0}}, expect=201)
        self.enqueue(expect=422, **checked)  # by 5, which is later than its candidate
        self.call("DELETE", "schemas/urn:v:5", expect=200)
        self.enqueue(**checked)
        self.call("DELETE", "schemas/urn:v:5.0.0-rc.1", expect=200)
        self.enqueue(expect=422, **checked)  # by 4.10, which is later than 4.0.1
        for wrong in ("", "one", "1.2.3.4", -1, 1.5, True):
            self.assertEqual(self.call("POST", "schemas", {"uri": "urn:v:x", "type": "test.versions", "version": wrong,
                                                           "schema": {}}, expect=400).error["details"]["field"], "version")
        self.call("GET", "schemas/urn:v:x", expect=404)

    def test_health_tells_its_latency_in_whole_milliseconds(self):
        self.assertIsInstance(self.call("GET", "health", expect=200).json["backend"]["latency_ms"], int)

    def test_a_page_of_any_list_goes_by_its_number_too(self):
        names = [f"{self.queue}-{i}"[-60:] for i in range(3)]
        for name in names:
            self.call("POST", "cron", {"name": name, "cron": "@hourly", "type": "test.page", "enabled": False}, expect=201)
        first, second = (self.call("GET", f"crons?page={page}&per_page=2", expect=200).json for page in (1, 2))
        self.assertEqual([cron["id"] for cron in first["items"] + second["items"]], names)
        said = second["pagination"]
        self.assertEqual([said[name] for name in ("total", "page", "per_page", "has_more")], [3, 2, 2, False])
        for path in ("workflows", "schemas", "queues"):
            self.assertEqual(self.call("GET", path + "?page=2&per_page=7", expect=200).json["pagination"]["page"], 2)
        self.call("GET", "crons?page=0", expect=400)
        part = self.call("GET", "crons?per_page=1&cursor=2", expect=200).json
        self.assertEqual([cron["id"] for cron in part["items"]], names[2:])
        self.call("GET", "crons?page=2&cursor=2", expect=400)

    def test_a_page_of_an_operators_list_is_as_long_as_its_limit(self):
        dead = {"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}}
        for name in (self.queue, self.queue + "-b"):
            self.put_job(queue=name, **dead)
            self.call("POST", "workers/heartbeat", {"worker_id": name}, expect=200)
            self.call("PUT", "admin/pools/" + name, {"queues": [name]}, expect=201)
            self.call("PUT", "rate-limits/" + name, {"concurrency": 1}, expect=200)
            job, = self.fetch(queues=[name])
            self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "x", "message": "y"}}, expect=200)
        for path in ("admin/jobs", "admin/queues", "admin/workers", "admin/dead-letter", "admin/pools", "admin/rate-limits"):
            first = self.call("GET", path + "?limit=1", expect=200).json
            said = first["pagination"]
            self.assertEqual((len(first["items"]), said["per_page"], said["has_more"]), (1, 1, True), path)
            last = self.call("GET", f"{path}?limit=1&page={said['total']}", expect=200).json
            self.assertEqual((len(last["items"]), last["pagination"]["has_more"]), (1, False), path)
            self.assertEqual(self.call("GET", path + "?per_page=2&limit=1", expect=200).json["pagination"]["per_page"], 2, path)
            for wrong in ("0", "101", "many"):
                self.assertEqual(self.call("GET", f"{path}?limit={wrong}", expect=400).error["details"]["field"], "limit", path)
        self.assertIn("has_more", self.call("GET", "admin/tenants", expect=200).json["pagination"])

    def test_a_cron_is_read_without_its_wrapper_and_sent_back(self):
        self.call("POST", "cron", {"name": self.queue, "cron": "@hourly", "type": "test.flat"}, expect=201)
        flat = self.call("GET", "crons/" + self.queue, expect=200).json
        self.assertEqual((flat["id"], flat["name"], flat["schedule"]), (self.queue, self.queue, "@hourly"))
        self.assertEqual(flat["cron"], flat["cron_job"])
        self.call("PATCH", "cron/" + self.queue, flat["cron"], expect=200)
        self.call("PATCH", "crons/" + flat["id"], {"enabled": False}, expect=200)
        self.call("DELETE", "crons/" + flat["id"], expect=200)

    def test_the_detail_of_a_healthy_job_has_its_errors_and_its_result(self):
        job = self.put_job()
        detail = self.call("GET", "admin/jobs/" + job["id"], expect=200).json
        self.assertEqual((detail["errors"], detail["result"]), ([], None))
        listed = self.call("GET", "admin/jobs?queue=" + self.queue, expect=200).json
        self.assertEqual(([each["id"] for each in listed["items"]], listed["jobs"]), ([job["id"]], listed["items"]))
        self.call("POST", "workers/ack", {"job_id": self.fetch()[0]["id"], "result": 7}, expect=200)
        self.assertEqual(self.call("GET", "admin/jobs/" + job["id"], expect=200).json["result"], 7)

    def test_a_step_of_a_chain_depends_on_the_one_before(self):
        step = {"type": "test.order", "args": [], "options": {"queue": self.queue}}
        whole = {"type": "chain", "steps": [{**step, "name": "first"}, {"type": "group", "jobs": [step, step]}, step]}
        made = self.call("POST", "workflows", whole, expect=201).json
        self.assertEqual([(each["id"], each.get("depends_on")) for each in made["steps"]],
                         [("first", []), ("step-1", None), ("step-2", ["step-1"])])
        self.assertEqual([made[name] for name in ("steps_total", "steps_completed")], [3, 0])
        group = self.call("POST", "workflows", {"type": "group", "jobs": [step]}, expect=201).json
        self.assertEqual([group[name] for name in ("steps_total", "jobs_total")], [1, 1])
        self.assertEqual(self.call("GET", "workflows?state=pending", expect=200).json["workflows"], [])

    def test_a_limit_is_set_by_a_number_and_a_period(self):
        said = self.call("PUT", "rate-limits/" + self.queue, {"limit": 5, "period": "1m"}, expect=200).json
        self.assertEqual((said["rate"]["limit"], said["rate"]["period"]), (5, "PT1M"))
        self.call("PUT", "rate-limits/" + self.queue, {"limit": 5}, expect=400)
        self.call("PUT", "rate-limits/" + self.queue, {"limit": 5, "period": "1m", "pace": 1}, expect=400)
        error = self.call("PUT", "rate-limits/" + self.queue, {"limit": 5, "period": "1m", "max_per_second": 1}, expect=400).error
        self.assertEqual(error["details"]["field"], "limit")

    def test_dead_letters_are_retried_at_the_path_of_the_administration(self):
        job = self.put_job(retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})
        self.call("POST", "workers/nack", {"job_id": self.fetch()[0]["id"], "error": {"code": "e", "message": "m"}}, expect=200)
        done = self.call("POST", "admin/dead-letter/retry", {"filter": {"queue": self.queue}, "confirm": True}, expect=200).json
        self.assertEqual([done[name] for name in ("matched", "succeeded", "failed")], [1, 1, 0])
        self.assertEqual(self.get(job)["state"], "available")

    def test_maintenance_may_say_how_long_it_lasts(self):
        self.addCleanup(self.call, "POST", "admin/system/maintenance", {"enabled": False})
        said = self.call("POST", "admin/system/maintenance", {"enabled": True, "duration": "30m"}, expect=200).json
        self.assertIn("estimated_end", said)
