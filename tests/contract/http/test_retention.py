# SPDX-License-Identifier: Apache-2.0
"""Dead letters in time, and the end of queues. Source: ojs-dead-letter 5, 8, 10; ojs-queue-config 5.3."""

from gateways import OnGateway, eventually

DAY = 86_400_000


class DeadLetterRetention(OnGateway):
    def setUp(self):
        self.keep(max_age="P180D", max_count=10_000)

    def keep(self, expect=200, path="dead-letter/retention", **retention):
        return self.call("PUT", path, retention, expect=expect)

    def bury(self, **members):
        job = self.put_job(retry={"max_attempts": 1, "on_exhaustion": "dead_letter"}, **members)
        self.fetch(1)
        self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "boom", "message": "no"}}, expect=200)
        return job["id"]

    def left(self):
        return sorted(job["id"] for job in self.call("GET", "dead-letter?limit=1000", expect=200).json["jobs"]
                      if job["queue"] == self.queue)

    def advance(self, ms):
        self.call("POST", "test/clock", {"advance_ms": ms}, expect=200)

    def test_the_numbers_say_how_long_they_are_kept(self):
        for path in ("dead-letter/stats", "admin/dead-letter/stats", "dead-letter/retention", "admin/dead-letter/retention"):
            kept = self.call("GET", path, expect=200).json["retention"]
            self.assertEqual((kept["max_age"], kept["max_count"]), ("P180D", 10_000), path)
            self.assertRegex(kept["next_prune_at"], r":\d[05]:00\.000Z$")
        config = self.call("GET", "admin/system/config", expect=200).json["segment"]
        self.assertEqual(config["dead_letter"]["retention"]["max_count"], 10_000)

    def test_it_is_set_in_parts_and_as_a_whole(self):
        self.assertEqual(self.keep(max_count=5).json["retention"]["max_age"], "P180D")
        self.assertEqual(self.keep(max_age="P365D").json["retention"]["max_count"], 5)
        kept = self.keep(path="admin/dead-letter/retention", dead_letter={"retention": {"max_age": "P1DT12H",
                                                                                        "max_count": 50_000}}).json
        self.assertEqual((kept["retention"]["max_age"], kept["retention"]["max_count"]), ("P1DT12H", 50_000))
        kept = self.keep(max_age=None, max_count=None).json["retention"]
        self.assertEqual((kept["max_age"], kept["max_count"]), (None, None))
        for wrong in ({}, {"max_age": "soon"}, {"max_age": 5}, {"max_count": -1}, {"max_count": "many"},
                      {"dead_letter": {"retention": 3}}):
            self.assertEqual(self.keep(expect=400, **wrong).error["code"], "invalid_request", wrong)

    def test_what_is_too_old_goes(self):
        self.keep(max_age="P2D", max_count=None)
        old = self.bury()
        self.advance(DAY)
        young = self.bury()
        self.advance(DAY + 300_000)
        eventually(lambda: self.left() == [young])
        self.call("GET", "jobs/" + old, expect=404)
        self.assertEqual(self.call("GET", "dead-letter/" + young, expect=200).json["job"]["id"], young)
        self.call("GET", "dead-letter/" + old, expect=404)

    def test_what_is_too_much_goes_and_is_told_and_counted(self):
        ids = []
        for _ in range(4):
            ids.append(self.bury())
            self.advance(1000)  # the youngest is told from the one before
        self.keep(max_count=1)
        eventually(lambda: self.left() == ids[-1:])

        def told():
            found = self.call("GET", f"events?types=dead_letter.pruned&queues={self.queue}", expect=200).json["events"]
            return [event["data"]["count"] for event in found]

        eventually(lambda: sum(told()) == 3)
        counted = f'ojs_dead_letter_pruned_total{{queue="{self.queue}",segment="test"}} 3'
        eventually(lambda: counted in self.call("GET", "/metrics", expect=200).body.decode())

    def test_some_are_chosen_by_error_and_time(self):
        first = self.bury()
        self.advance(60_000)
        other = self.put_job(type="other.job", retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})
        self.fetch(1)
        self.call("POST", "workers/nack", {"job_id": other["id"], "error": {"code": "c", "type": "smtp.down", "message": "m"}},
                  expect=200)
        at = self.get(other)["discarded_at"]

        def listed(query):
            found = self.call("GET", f"dead-letter?queue={self.queue}&{query}", expect=200).json
            self.assertEqual(found["total"], len(found["jobs"]))
            return [job["id"] for job in found["jobs"]]
        self.assertEqual(listed("limit=1000"), [first, other["id"]])
        self.assertEqual(listed("error_type=boom"), [first])
        self.assertEqual(listed("error_type=smtp.down&type=other.job"), [other["id"]])
        self.assertEqual(listed(f"since={at}"), [other["id"]])
        self.assertEqual(listed("until=2020-01-01T00:00:00Z"), [])
        self.call("GET", "dead-letter?since=soon", expect=400)

        queue = {"queue": self.queue}
        for body in ({"filter": {"queu": self.queue}}, queue | {"error": "boom"}, {"filter": queue | {"since": "+PT1S"}}):
            self.call("POST", "dead-letter/retry", body, expect=400)
        for nothing in ({"filter": {"queue": ""}}, {"queue": None}, {"filter": None}):
            self.call("POST", "dead-letter/purge", nothing, expect=400)
        for query in ("queu=" + self.queue, "queue=", "error_type="):
            self.call("DELETE", "dead-letter?" + query, expect=400)
        self.assertEqual(self.left(), sorted([first, other["id"]]), "what was refused has moved none")
        none = {"filter": queue | {"error_type": "none"}, "confirm": True}
        self.assertEqual(self.call("POST", "dead-letter/purge", none, expect=200).json["matched"], 0)
        retried = self.call("POST", "dead-letter/retry", {"filter": queue | {"error_type": "boom"}}, expect=200).json
        self.assertEqual((retried["retried"], retried["matched"]), (1, 1))
        self.assertEqual(self.get({"id": first})["state"], "available")
        purged = self.call("POST", "dead-letter/purge", {"filter": queue | {"since": at}}, expect=200).json
        self.assertEqual((purged["purged"], self.left()), (1, []))

    def test_the_code_of_an_error_decides_over_the_policy(self):
        for code, policy, state, dead in (("DISCARD", "dead_letter", "discarded", 0), ("FAIL", "dead_letter", "discarded", 0),
                                          ("DEAD_LETTER", "discard", "discarded", 1), ("RETRY", "discard", "retryable", 0)):
            before = len(self.left())
            job = self.put_job(retry={"max_attempts": 9, "on_exhaustion": policy})
            self.fetch(1)
            nacked = self.call("POST", "workers/nack",
                               {"job_id": job["id"], "error": {"code": code, "type": "a.b", "message": "m"}}, expect=200).json
            self.assertEqual((nacked["state"], len(self.left()) - before), (state, dead), code)
            self.assertEqual(self.get(job)["errors"][0]["code"], code)

    def test_walking_through_them_while_they_go_passes_none_over(self):
        ids = [self.bury() for _ in range(5)]
        seen, cursor = [], ""
        for more in (True, True, False):
            page = self.call("GET", f"dead-letter?queue={self.queue}&limit=2{cursor}", expect=200).json
            seen += [job["id"] for job in page["jobs"]]
            self.call("DELETE", "dead-letter/" + seen[-1], expect=200)  # the others stay
            self.assertEqual((page["pagination"]["has_more"], "next_cursor" in page["pagination"]), (more, more))
            cursor = "&cursor=" + page["pagination"].get("next_cursor", "")
        self.assertEqual(sorted(seen), sorted(ids))
        self.call("GET", "dead-letter?cursor=a.b", expect=400)

    def test_an_operator_chooses_and_sorts_them_as_jobs(self):
        ids = []
        for kind in ("x.a", "x.b", "y.a"):
            ids.append(self.bury(type=kind))
            self.advance(1)  # the next one is younger
        listed = lambda query: [job["id"] for job in self.call(
            "GET", f"admin/dead-letter?queue={self.queue}&{query}", expect=200).json["items"]]
        self.assertEqual((listed("type=x.*"), listed("order=desc"), listed("order=asc")), (ids[1::-1], ids[::-1], ids))
        self.assertEqual((listed("state=discarded"), listed("state=completed")), (ids[::-1], []))
        for wrong in ("sort=foo", "state=foo"):
            self.call("GET", "admin/dead-letter?" + wrong, expect=400)

    def test_what_is_not_there_or_not_meant_moves_none(self):
        never = "019414d4-0000-7000-8000-000000000000"
        for method, path in (("DELETE", "dead-letter/" + never), ("POST", f"dead-letter/{never}/retry"), ("GET", "dead-letter/" + never)):
            error = self.call(method, path, expect=404).error
            self.assertEqual(error["details"], {"resource_type": "dead_letter_job", "resource_id": never})
            self.assertEqual(error["message"], "no dead letter with id " + never)
            self.assertIn("GET /ojs/v1/dead-letter", error["hint"])
        ended = self.put_job(retry={"max_attempts": 1})["id"]  # discarded, and kept as no dead letter
        self.fetch()
        self.call("POST", "workers/nack", {"job_id": ended, "error": {"code": "c", "message": "m"}}, expect=200)
        for method, path in (("DELETE", "dead-letter/" + ended), ("POST", f"dead-letter/{ended}/retry"), ("GET", "dead-letter/" + ended)):
            self.assertEqual(self.call(method, path, expect=404).error["details"]["resource_type"], "dead_letter_job")
        kept = self.bury()
        for path in ("dead-letter/retry", "dead-letter/purge"):
            self.call("POST", path, {"filter": {"queue": self.queue}, "confirm": False}, expect=400)
            self.call("POST", path, {"filter": {"queue": self.queue, "type": "test.*"}}, expect=400)
        self.assertEqual(self.left(), [kept])
        for nothing in ({"max_count": 0}, {"max_age": "PT0S"}):
            self.keep(400, **nothing)
        shown = self.call("GET", "dead-letter/" + kept, expect=200).json["job"]
        self.assertEqual(shown["metadata"], {name: shown[name] for name in ("created_at", "discarded_at")})

    def test_a_code_that_is_never_retryable_ends_the_job(self):
        for code, members, state in (("NON_RETRYABLE_ERROR", {}, "discarded"), ("JOB_CANCELLED", {}, "discarded"),
                                     ("RETRY", {"retryable": False}, "retryable"), ("c", {"retryable": False}, "discarded")):
            job = self.put_job(retry={"max_attempts": 9, "initial_interval": "PT1H"})
            self.fetch(1)
            error = {"code": code, "message": "m", **members}
            nacked = self.call("POST", f"jobs/{job['id']}/nack", {"error": error}, expect=200).json
            self.assertEqual((nacked["state"], "next_retry_at" in nacked), (state, state == "retryable"), code)

    def test_a_job_that_waits_is_no_dead_letter(self):
        job = self.put_job()
        self.call("GET", "dead-letter/" + job["id"], expect=404)

    def test_an_administrator_confirms_and_says_how_old(self):
        old = self.bury()
        self.advance(60_000)
        young = self.bury()
        path, queue = "admin/dead-letter", {"queue": self.queue}
        self.call("DELETE", path, queue, expect=400)
        first = queue | {"confirm": True, "older_than": "1970-01-01T00:00:00Z"}
        self.assertEqual(self.call("DELETE", path, first, expect=200).json["matched"], 0)
        chosen = queue | {"confirm": True, "older_than": self.get({"id": young})["discarded_at"]}
        self.assertEqual(self.call("DELETE", path, chosen, expect=200).json["purged"], 1)
        self.assertEqual(self.left(), [young])
        self.call("GET", "jobs/" + old, expect=404)

    def test_all_of_a_queue_are_deleted(self):
        self.bury(), self.bury()
        self.assertEqual(self.call("DELETE", f"dead-letter?queue={self.queue}", expect=200).json["purged"], 2)
        self.assertEqual(self.left(), [])


class Purge(OnGateway):
    def test_http_purge_takes_what_is_kept_of_jobs_that_are_over(self):
        old = self.done_job()
        self.call("POST", "test/clock", {"advance_ms": 60_000}, expect=200)
        young, going_on = self.done_job(), self.put_job()
        path = f"admin/queues/{self.queue}/jobs"
        purge = {"states": ["completed", "cancelled", "discarded"], "confirm": True}
        self.assertEqual(self.call("DELETE", path, purge | {"older_than": "P30D"}, expect=200).json["purged_count"], 0)
        ended = self.get(young)["completed_at"]
        self.assertEqual(self.call("DELETE", path, purge | {"older_than": ended}, expect=200).json["purged_count"], 1)
        self.call("GET", "jobs/" + old["id"], expect=404)
        self.assertEqual(self.call("DELETE", path, purge, expect=200).json["purged_count"], 1)
        self.call("GET", "jobs/" + young["id"], expect=404)
        self.assertEqual(self.get(going_on)["state"], "available")
        for wrong in ("active", "gone"):
            self.call("DELETE", path, {"states": [wrong], "confirm": True}, expect=400)

    def test_http_bulk_delete_takes_jobs_that_are_over_alone(self):
        done, going_on = self.done_job(), self.put_job()
        queue = {"queue": self.queue}
        self.call("POST", "admin/jobs/bulk/delete", {"filter": queue | {"state": "available"}, "confirm": True}, expect=400)
        report = self.call("POST", "admin/jobs/bulk/delete", {"filter": queue, "confirm": True}, expect=200).json
        self.assertEqual((report["matched"], report["succeeded"], report["failed"]), (1, 1, 0))
        self.call("GET", "jobs/" + done["id"], expect=404)
        self.assertEqual(self.get(going_on)["state"], "available")

    def done_job(self):
        job = self.put_job()
        self.fetch(1)
        self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)
        return job


class QueueDeletion(OnGateway):
    def delete(self, expect=200, **body):
        return self.call("DELETE", "queues/" + self.queue, body or None, expect=expect)

    def listed(self):
        return [queue["name"] for queue in self.call("GET", "queues?limit=1000", expect=200).json["queues"]]

    def test_unfinished_jobs_are_in_the_way(self):
        job = self.put_job()
        for body in ({}, {"strategy": "reject"}):
            refused = self.delete(expect=409, **body).error
            self.assertEqual((refused["code"], refused["details"]), ("conflict", {"queue": self.queue}))
        self.assertEqual(self.get(job)["state"], "available")
        self.fetch(1)
        self.delete(expect=409, strategy="reject")
        self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)
        gone = self.delete(strategy="reject").json
        self.assertEqual((gone["queue"], gone["strategy"], gone["jobs_affected"], gone["state"]),
                         (self.queue, "reject", 0, "deleted"))
        self.assertNotIn(self.queue, self.listed())
        for method in ("GET", "DELETE"):
            self.assertEqual(self.call(method, "queues/" + self.queue, expect=404).error["code"], "not_found")
        self.assertEqual(self.get(job)["state"], "completed")

    def test_its_jobs_are_discarded(self):
        self.configure(backpressure={"max_depth": 10})
        jobs = [self.put_job(), self.put_job(scheduled_at="+PT1H")]
        self.assertEqual(self.delete(strategy="discard").json["jobs_affected"], 2)
        for job in jobs:
            now = self.get(job)
            self.assertEqual((now["state"], now["error"]["type"]), ("discarded", "queue_deleted"))
        told = self.call("GET", f"events?types=queue.deleted&queues={self.queue}", expect=200).json["events"]
        self.assertEqual([(event["subject"], event["data"]["count"]) for event in told], [(self.queue, 2)])
        self.put_job()
        self.assertIn(self.queue, self.listed())
        self.assertEqual(self.call("GET", f"queues/{self.queue}/stats", expect=200).json["queue"]["max_depth"], 0)

    def test_a_strategy_that_is_not_there_is_refused(self):
        self.put_job()
        self.assertEqual(self.delete(expect=422, strategy="move", target_queue="other").error["code"], "unsupported")
        self.assertEqual(self.delete(expect=400, strategy="burn").error["code"], "invalid_request")
        self.assertIn(self.queue, self.listed())


class JobRetention(OnGateway):
    """Source: ojs-queue-config 6.3, ojs-admin-api 6.6."""

    def end(self, how):
        job = self.put_job(retry={"max_attempts": 1})
        if how == "cancelled":
            self.call("DELETE", "jobs/" + job["id"], expect=200)
            return job["id"]
        self.fetch(1)
        if how == "completed":
            self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)
        else:
            self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "boom", "message": "no"}}, expect=200)
        return job["id"]

    def test_a_queue_keeps_its_jobs_as_long_as_it_says(self):
        path = f"admin/queues/{self.queue}/config"
        shown = self.call("PUT", path, {"retention": {"completed": "P1D", "discarded": "P30D"}}, expect=200).json
        self.assertEqual(shown["configuration"]["retention"], {"completed": "P1D", "discarded": "P30D"})
        done, lost, off = self.end("completed"), self.end("discarded"), self.end("cancelled")
        self.call("POST", "test/clock", {"advance_ms": DAY + 60_000}, expect=200)
        eventually(lambda: self.call("GET", "jobs/" + done).status in (404, 410))
        for other in (lost, off):
            self.call("GET", "jobs/" + other, expect=200)
        self.call("POST", "test/clock", {"advance_ms": 29 * DAY}, expect=200)
        eventually(lambda: self.call("GET", "jobs/" + lost).status in (404, 410))
        self.call("GET", "jobs/" + off, expect=200)

    def test_it_is_set_by_either_path_and_taken_back(self):
        self.call("PUT", f"queues/{self.queue}/config", {"retention": {"cancelled": "PT1H"}}, expect=200)
        shown = self.call("GET", f"queues/{self.queue}/config", expect=200).json
        self.assertEqual(shown["retention"], {"cancelled": "PT1H"})
        self.call("PUT", f"queues/{self.queue}/config", {"config": {"retention": {"cancelled": None}}}, expect=200)
        self.assertEqual(self.call("GET", f"queues/{self.queue}", expect=200).json["queue"]["retention"], {})
        for wrong in ({"complete": "P1D"}, {"completed": "soon"}, {"completed": -5}, "P1D"):
            refused = self.call("PUT", f"queues/{self.queue}/config", {"retention": wrong}, expect=400)
            self.assertIn("retention", refused.error["message"], wrong)

    def test_a_new_queue_may_have_one(self):
        name = self.queue + "-new"
        self.call("POST", "queues", {"name": name, "config": {"retention": {"completed": "P3D"}}}, expect=201)
        self.assertEqual(self.call("GET", "queues/" + name, expect=200).json["retention"], {"completed": "P3D"})


class LostJobs(OnGateway):
    """Source: ojs-admin-api 7.4, 8.1; ojs-bulk-operations."""

    def lose(self):
        job = self.put_job(retry={"max_attempts": 1})
        self.fetch(1)
        self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "boom", "message": "no"}}, expect=200)
        return job["id"]

    def test_a_discarded_or_cancelled_job_runs_again(self):
        lost, off = self.lose(), self.put_job()["id"]
        self.call("DELETE", "jobs/" + off, expect=200)
        for job in (lost, off):
            again = self.call("POST", f"admin/jobs/{job}/retry", expect=200).json["job"]
            self.assertEqual((again["id"], again["state"], again["attempt"]), (job, "available", 0))
            for gone in ("errors", "error", "discarded_at", "cancelled_at", "previous_state", "completed_at"):
                self.assertNotIn(gone, again)
        self.assertEqual({job["id"] for job in self.fetch(2)}, {lost, off})
        self.call("POST", "workers/ack", {"job_id": lost}, expect=200)
        refused = self.call("POST", f"admin/jobs/{lost}/retry", expect=409)
        self.assertEqual(refused.error["details"]["current_state"], "completed")

    def test_many_at_once(self):
        lost, off = [self.lose() for _ in range(3)], self.put_job()["id"]
        self.call("DELETE", "jobs/" + off, expect=200)
        ask = {"filter": {"queue": self.queue}, "confirm": True}
        done = self.call("POST", "admin/jobs/bulk/retry", ask, expect=200).json
        self.assertEqual((done["matched"], done["succeeded"], done["failed"]), (3, 3, 0))
        self.assertEqual(self.get({"id": off})["state"], "cancelled", "nobody named it")
        self.fetch(3)
        done = self.call("POST", "jobs/bulk/retry", {"job_ids": [off, self.lose()]}, expect=207)
        self.assertEqual([item["status"] for item in done.json["items"]], ["skipped", "retried"])
