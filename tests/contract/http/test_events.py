# SPDX-License-Identifier: Apache-2.0
"""Events over HTTP: what streams tell, what they say of what is lost, and to whom."""

import contextlib
import json
import time
import unittest

from gateways import BOUND, OnGateway, OnPrograms, Up, eventually


class Stream:
    """A stream of server-sent events."""

    def __init__(self, test, path, headers=None, up=None):
        self.connection = (up or test.up).connection()
        test.addCleanup(self.connection.close)
        self.connection.request("GET", "/ojs/v1/" + path, headers=headers or {})
        self.answer = self.connection.getresponse()
        test.assertEqual((self.answer.status, self.answer.headers["Content-Type"]), (200, "text/event-stream"))

    def next(self):
        """The next event with its data as JSON; None at the end. Heartbeats do not count as a sign of it."""
        event, end = {}, time.monotonic() + BOUND
        while True:
            if time.monotonic() > end:
                raise AssertionError("the event did not come in time")
            line = self.answer.readline().decode()
            if not line:
                return None
            name, _, value = line.rstrip("\n").partition(": ")
            if name and name not in (":heartbeat", "retry"):
                event[name] = value
            elif not name and "event" in event:
                return event | {"data": json.loads(event["data"])}

    def until(self, kind):
        """All up to the first of that kind, which is the last one."""
        events = [self.next()]
        while events[-1] is not None and events[-1]["event"] != kind:
            events.append(self.next())
        return events


class Told(OnGateway):
    def finish(self, job, **result):
        self.fetch()
        self.call("POST", "workers/ack", {"job_id": job["id"]} | result, expect=200)

    # --- Changes of state ---------------------------------------------------------------------------------------------

    def settle(self):
        """Makes all events so far old enough to be given out at once."""
        self.call("POST", "test/clock", {"advance_ms": 1000}, expect=200)

    def changes(self, job, count):
        self.settle()
        stream = Stream(self, f"events/stream?channel=job:{job['id']}&types=job.state_changed", {"Last-Event-ID": self.before})
        return [stream.next()["data"] for _ in range(count)]

    def mark(self):
        """The last event so far; streams go on behind it."""
        self.put_job(queue=self.queue + "-mark")
        events = eventually(lambda: self.call("GET", f"events?queues={self.queue}-mark", expect=200).json["events"])
        self.before = events[-1]["id"]
        # In one millisecond an event of another handle may be sorted before it.
        eventually(lambda: self.put_job(queue=self.queue + "-clock")["created_at"] > events[-1]["time"])

    def test_each_change_of_state_is_told(self):
        self.mark()
        job = self.put_job(retry={"max_attempts": 2, "initial_interval": "PT0.001S", "jitter": False})
        self.fetch()
        self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "x", "message": "y"}}, expect=200)
        again = eventually(self.fetch)[0]
        self.call("POST", "workers/ack", {"job_id": again["id"]}, expect=200)
        changes = self.changes(job, 5)
        self.assertEqual([(change["from"], change["to"]) for change in changes],
                         [("available", "active"), ("active", "retryable"), ("retryable", "available"),
                          ("available", "active"), ("active", "completed")])
        self.assertEqual({(change["job_id"], change["queue"], change["type"]) for change in changes},
                         {(job["id"], self.queue, "test.http")})
        self.assertTrue(all(change["timestamp"].endswith("Z") for change in changes))

    def test_changes_of_jobs_that_wait_are_told(self):
        self.mark()
        late = self.put_job(scheduled_at="2099-01-01T00:00:00Z")
        self.call("DELETE", "jobs/" + late["id"], expect=200)
        self.assertEqual([(each["from"], each["to"]) for each in self.changes(late, 1)], [("scheduled", "cancelled")])
        given_back = self.put_job()
        self.fetch()
        self.call("POST", "workers/nack", {"job_id": given_back["id"], "requeue": True,
                                           "error": {"code": "x", "message": "y"}}, expect=200)
        self.assertEqual([(each["from"], each["to"]) for each in self.changes(given_back, 2)],
                         [("available", "active"), ("active", "available")])

    def test_the_stream_of_a_job_has_its_changes_and_a_stream_of_all_only_when_asked(self):
        self.mark()
        job = self.put_job()
        of_job = Stream(self, f"jobs/{job['id']}/events", {"Last-Event-ID": self.before})
        plain = Stream(self, f"events/stream?queues={self.queue}", {"Last-Event-ID": self.before})
        self.finish(job)
        kinds = [of_job.next()["event"] for _ in range(5)]
        self.assertEqual(kinds, ["job.enqueued", "job.started", "job.state_changed", "job.completed", "job.state_changed"])
        self.assertEqual([plain.next()["event"] for _ in range(3)], ["job.enqueued", "job.started", "job.completed"])

    def test_the_stream_of_a_job_that_ended_tells_how_and_ends(self):
        job = self.put_job()
        self.finish(job)
        stream = Stream(self, f"jobs/{job['id']}/events")
        event = stream.next()
        self.assertEqual((event["event"], event["data"]["from"], event["data"]["to"]),
                         ("job.state_changed", "active", "completed"))
        self.assertIsNone(stream.next())

    def test_a_stream_after_a_pause_tells_the_same_changes(self):
        self.mark()
        job = self.put_job(retry={"max_attempts": 1})
        self.fetch()
        self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "x", "message": "y"}}, expect=200)

        def told():
            stream = Stream(self, f"jobs/{job['id']}/events", {"Last-Event-ID": self.before})
            return [(event["event"], event["data"].get("from"), event["data"].get("to")) for event in stream.until(None)[:-1]]
        self.settle()
        first = told()
        self.assertIn(("job.state_changed", "active", "discarded"), first)
        self.assertNotIn(("job.state_changed", "discarded", "available"), first)
        self.assertEqual(told(), first)

    def test_what_becomes_of_a_dead_letter_is_told(self):
        self.mark()
        wanted = f"events/stream?queues={self.queue}&types=job.discarded,dead_letter.*"
        error = {"code": "smtp", "message": "no network"}
        dead = [self.put_job(retry={"max_attempts": 1, "on_exhaustion": kind}) for kind in ("dead_letter", "discard")]
        self.fetch(2)
        stream, told = Stream(self, wanted, {"Last-Event-ID": self.before}), []
        for job, events in zip(dead, (2, 1)):
            self.call("POST", "workers/nack", {"job_id": job["id"], "error": error}, expect=200)
            told += [stream.next() for _ in range(events)]
        self.assertEqual([(event["event"], event["data"]["type"], event["data"]["subject"]) for event in told],
                         [(kind, kind, job["id"]) for kind, job in
                          (("job.discarded", dead[0]), ("dead_letter.added", dead[0]), ("job.discarded", dead[1]))])
        added = told[1]
        self.assertEqual((added["id"], added["data"]["id"]), (told[0]["id"] + "-dead_letter",) * 2)
        self.assertEqual(added["data"]["data"], told[0]["data"]["data"])
        self.assertEqual(added["data"]["data"]["last_error"]["code"], "smtp")
        of_job = Stream(self, f"jobs/{dead[0]['id']}/events", {"Last-Event-ID": told[0]["id"]})
        self.assertEqual([event and event["event"] for event in of_job.until(None)], ["dead_letter.added", "job.state_changed", None])
        self.call("POST", f"dead-letter/{dead[0]['id']}/retry", expect=200)
        again = stream.next()
        self.assertEqual((again["event"], again["data"]["subject"]), ("dead_letter.retried", dead[0]["id"]))
        behind = Stream(self, wanted, {"Last-Event-ID": added["id"]})
        self.assertEqual([behind.next()["event"] for _ in range(2)], ["job.discarded", "dead_letter.retried"])

    def test_a_dead_letter_that_is_deleted_is_told(self):
        self.mark()
        error = {"code": "smtp", "message": "no network"}
        dead = [self.put_job(retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})["id"] for _ in range(3)]
        self.fetch(3)
        for job in dead:
            self.call("POST", "workers/nack", {"job_id": job, "error": error}, expect=200)
        stream = Stream(self, f"events/stream?queues={self.queue}&types=dead_letter.deleted", {"Last-Event-ID": self.before})
        self.call("DELETE", "dead-letter/" + dead[0], expect=200)
        self.call("POST", "jobs/bulk/delete", {"job_ids": [dead[1]]}, expect=200)
        self.call("DELETE", f"dead-letter?queue={self.queue}", expect=200)
        told = [stream.next() for _ in range(3)]
        self.assertCountEqual([(event["event"], event["data"]["subject"]) for event in told], [("dead_letter.deleted", job) for job in dead])

    def listed(self, types):
        found = self.call("GET", f"events?types={types}&queues={self.queue}", expect=200).json
        return [event["data"] for event in found["events"]]

    def test_an_event_tells_nothing_of_what_came_later(self):
        job = self.put_job(retry={"max_attempts": 2})
        self.fetch()
        for part, message in ((0.25, "a quarter"), (0.75, "three")):
            self.call("PUT", f"jobs/{job['id']}/progress", {"progress": part, "message": message}, expect=200)
        told = [(data["progress_percent"], data.get("message")) for data in self.listed("job.progress")]
        self.assertEqual(sorted(told), [(25, None), (75, "three")], "of one millisecond either may come first")

        nack = lambda code: self.call("POST", f"jobs/{job['id']}/nack", {"error": {"code": code, "message": "m"}}, expect=200)
        nack("first")
        self.assertEqual([data["error"]["code"] for data in self.listed("job.failed")], ["first"])
        self.call("DELETE", "jobs/" + job["id"], expect=200)
        self.call("POST", "test/clock", {"advance_ms": 60_000}, expect=200)
        self.call("POST", f"admin/jobs/{job['id']}/retry", expect=200)
        self.fetch()
        nack("second")
        self.assertEqual([data.get("error", {}).get("code") for data in self.listed("job.failed")], [None, "second"])

    def test_a_silence_is_called_a_stall_where_the_job_limits_it(self):
        for name, members, kind in (("own", {"heartbeat_timeout": 60}, "stalled"), ("meta", {"meta": {"heartbeat_timeout": 1}}, "visibility_timeout")):
            queue = f"{self.queue}.{name}"
            self.put_job(queue=queue, visibility_timeout_ms=60_000, **members)
            self.fetch(queues=[queue])
            self.call("POST", "test/clock", {"advance_ms": 61_000}, expect=200)
            told = eventually(lambda: self.call("GET", f"events?types=job.failed&queues={queue}", expect=200).json["events"])
            self.assertEqual(told[0]["data"]["error"]["type"], kind)

    def test_a_list_names_its_whole_length_on_each_page(self):
        before = self.call("POST", "test/clock", {"advance_ms": 1000}, expect=200).json["now"]
        for _ in range(3):
            self.put_job()
        look = lambda query: self.call("GET", f"events?queues={self.queue}{query}", expect=200).json
        whole = look("")
        self.assertEqual(whole["pagination"], {"total": 3, "limit": 100, "has_more": False})
        first = look("&limit=2")["pagination"]
        self.assertEqual((first["total"], first["has_more"]), (3, True))
        rest = look("&limit=2&cursor=" + first["next_cursor"])["pagination"]
        self.assertEqual((rest["total"], rest["has_more"]), (3, False))
        second = look("&page=2&per_page=2")
        self.assertEqual(second["items"], whole["items"][2:])
        self.assertEqual(second["pagination"], {"total": 3, "limit": 2, "page": 2, "per_page": 2, "has_more": False})
        self.assertTrue(look("&page=1&per_page=2")["has_more"])
        after = self.call("POST", "test/clock", {"advance_ms": 1000}, expect=200).json["now"]
        self.assertEqual([look("&since=" + since)["pagination"]["total"] for since in (before, after)], [3, 0])
        self.assertEqual(self.call("GET", "events?since=soon", expect=400).error["details"]["field"], "since")

    def test_a_queue_that_is_not_there_has_no_stream(self):
        self.call("GET", "queues/never/events", expect=404)

    # --- Traces -------------------------------------------------------------------------------------------------------

    def test_every_kind_of_event_of_a_traced_job_names_its_trace(self):
        self.mark()
        job = self.put_job(meta={"trace_id": "t-1"}, retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})
        self.call("PATCH", "jobs/" + job["id"], {"priority": 1}, expect=200)
        self.fetch()
        self.call("PUT", f"jobs/{job['id']}/progress", {"progress": 0.5}, expect=200)
        self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "x", "message": "y"}}, expect=200)
        told = Stream(self, f"events/stream?jobs={job['id']}", {"Last-Event-ID": self.before}).until("job.discarded")
        self.assertEqual({event["data"]["data"].get("trace_id") for event in told}, {"t-1"}, told)
        self.assertLessEqual({"job.enqueued", "priority.changed", "job.started", "job.progress", "job.failed",
                              "job.discarded"}, {event["event"] for event in told})

    def test_a_trace_is_known_by_its_parent_too(self):
        trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
        zero = "0" * 32
        for meta, told in (({"traceparent": f"00-{trace}-{span}-01"}, trace),
                           ({"traceparent": f"01-{trace}-{span}-01-more"}, trace),
                           ({"traceparent": f"00-{trace}-{span}-01", "trace_id": "own"}, "own"),
                           ({"traceparent": f"00-{zero}-{span}-01"}, None),
                           ({"traceparent": f"00-{trace}-{span}-01-more"}, None),
                           ({"traceparent": f"ff-{trace}-{span}-01"}, None),
                           ({"traceparent": f"00-{trace.upper()}-{span}-01"}, None),
                           ({"traceparent": f"00-{trace}-{span}"}, None),
                           ({"traceparent": 7}, None)):
            job = self.put_job(meta=meta)
            events = eventually(lambda: self.call("GET", "events?jobs=" + job["id"], expect=200).json["events"])
            self.assertEqual(events[0]["data"].get("trace_id"), told, meta)

    # --- Filters ------------------------------------------------------------------------------------------------------

    def test_the_data_of_a_jobs_events_name_its_type_its_state_and_the_time(self):
        self.finish(self.put_job())
        later = self.put_job(scheduled_at="+PT1H")
        self.call("DELETE", "jobs/" + later["id"], expect=200)
        self.put_job(retry={"max_attempts": 2, "initial_interval": "PT1H"})
        failed, = self.fetch()
        self.call("POST", "workers/nack", {"job_id": failed["id"], "error": {"code": "c", "message": "m"}}, expect=200)
        events = self.call("GET", "events?types=job.*&queues=" + self.queue, expect=200).json["events"]
        self.assertCountEqual([(event["type"], event["data"].get("state")) for event in events], [
            ("job.enqueued", "available"), ("job.started", "active"), ("job.completed", "completed"),
            ("job.scheduled", "scheduled"), ("job.cancelled", "cancelled"),
            ("job.enqueued", "available"), ("job.started", "active"), ("job.failed", "retryable"), ("job.retrying", "retryable")])
        for event in events:
            self.assertEqual((event["data"]["type"], event["data"]["timestamp"]), (event["data"]["job_type"], event["time"]))

    def test_a_failure_says_what_becomes_of_its_job(self):
        states = []
        for attempts in (2, 1):
            job = self.put_job(retry={"max_attempts": attempts, "initial_interval": "PT1H"})
            self.fetch()
            self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "c", "message": "m"}}, expect=200)
            failed = eventually(lambda: self.call("GET", f"events?types=job.failed&jobs={job['id']}", expect=200).json["events"])
            states += [event["data"]["state"] for event in failed]
        silent = self.put_job()
        self.fetch(visibility_timeout_ms=1000)
        self.call("POST", "test/clock", {"advance_ms": 1001}, expect=200)
        query = f"events?types=job.stalled,job.failed&jobs={silent['id']}"
        told = eventually(lambda: found if len(found := self.call("GET", query, expect=200).json["events"]) == 2 else None)
        self.assertEqual(states + [event["data"]["state"] for event in told], ["retryable", "discarded", "available", "available"])

    def test_a_job_that_had_no_time_at_all_says_so(self):
        job = self.put_job(expires_at="2020-01-01T00:00:00Z")
        told = eventually(lambda: self.call("GET", f"events?types=job.expired&jobs={job['id']}", expect=200).json["events"])
        self.assertEqual(told[0]["data"]["ttl_ms"], 0)

    def test_types_and_sources_may_end_in_a_star(self):
        job = self.put_job()
        self.finish(job)

        def kinds(query):
            events = self.call("GET", f"events?jobs={job['id']}&{query}", expect=200).json["events"]
            return [event["type"] for event in events]
        everything = ["job.enqueued", "job.started", "job.completed"]
        self.assertEqual(kinds(""), everything)
        self.assertEqual([kinds("types=" + types) for types in ("*", "job.*", "job.st*", "worker.*")],
                         [everything, everything, ["job.started"], []])
        self.assertEqual([kinds("sources=" + sources) for sources in ("ojs://test/*", "ojs://other/*", "ojs://test")],
                         [everything, [], []])

    # --- Workflows ----------------------------------------------------------------------------------------------------

    def workflow_events(self, workflow, end):
        query = f"events?types=workflow.*&queues={self.queue}"

        def told():
            events = [event for event in self.call("GET", query, expect=200).json["events"]
                      if event["subject"] == workflow["id"]]
            return events if events and events[-1]["type"] == end else None
        return eventually(told)

    def test_a_workflow_tells_each_step(self):
        steps = [{"type": kind, "args": [], "options": {"queue": self.queue}} for kind in ("data.fetch", "data.load")]
        steps[0]["id"] = "extract"
        made = self.call("POST", "workflows", {"type": "chain", "name": "etl", "steps": steps}, expect=201).json
        types = f"events?types=workflow.*&queues={self.queue}"
        self.assertEqual(self.call("GET", types, expect=200).json["events"], [], "it begins with its first job")
        jobs = []
        for _ in steps:
            jobs += self.fetch()
            self.call("POST", "workers/ack", {"job_id": jobs[-1]["id"]}, expect=200)
        told = self.workflow_events(made, "workflow.completed")
        self.assertEqual([event["type"] for event in told],
                         ["workflow.started", "workflow.step_completed", "workflow.step_completed", "workflow.completed"])
        for event in told:
            data = event["data"]
            self.assertEqual((data["workflow_id"], data["workflow_name"], data["workflow_type"]), (made["id"], "etl", "chain"))
        begun, first, second, done = [event["data"] for event in told]
        self.assertEqual((begun["total_steps"], done["total_steps"]), (2, 2))
        self.assertEqual([(step["step_id"], step["step_type"], step["steps_remaining"]) for step in (first, second)],
                         [("extract", "data.fetch", 1), (jobs[1]["id"], "data.load", 0)])
        self.assertTrue(all(isinstance(each["duration_ms"], int) for each in (first, second, done)))
        self.assertGreaterEqual(done["duration_ms"], first["duration_ms"] + second["duration_ms"])

    def test_a_workflow_that_fails_tells_by_which_step(self):
        steps = [{"type": kind, "args": [], "options": {"queue": self.queue}} for kind in ("a", "b", "c")]
        made = self.call("POST", "workflows", {"type": "chain", "steps": steps}, expect=201).json
        self.call("POST", "workers/ack", {"job_id": self.fetch()[0]["id"]}, expect=200)
        second = self.fetch()[0]
        self.call("POST", "workers/nack", {"job_id": second["id"], "error": {"code": "boom", "message": "no", "retryable": False}},
                  expect=200)
        failed = self.workflow_events(made, "workflow.failed")[-1]["data"]
        self.assertEqual((failed["workflow_name"], failed["failed_step_id"], failed["failed_step_type"]),
                         ("", second["id"], "b"))
        self.assertEqual((failed["error"]["code"], failed["error"]["message"]), ("boom", "no"))

    def test_a_tenant_sees_its_workflows_events(self):
        steps = [{"type": "a", "args": [], "options": {"queue": self.queue}}]
        header = {"X-OJS-Tenant": "acme"}
        self.call("POST", "workflows", {"type": "group", "jobs": steps}, headers=header, expect=201)
        self.fetch()
        events = f"events?types=workflow.*&queues={self.queue}"
        told = eventually(lambda: self.call("GET", events, headers=header, expect=200).json["events"])
        self.assertEqual(told[0]["data"]["tenant_id"], "acme")
        self.assertEqual(self.call("GET", events, headers={"X-OJS-Tenant": "other"}, expect=200).json["events"], [])

    # --- Tenants ------------------------------------------------------------------------------------------------------

    def test_a_tenant_sees_its_own_events_alone(self):
        self.mark()
        jobs = {tenant: self.enqueue(headers={"X-OJS-Tenant": tenant}).json["job"]["id"] for tenant in ("acme", "other")}
        self.put_job()
        for tenant, job in jobs.items():
            header = {"X-OJS-Tenant": tenant}
            for path, headers in ((f"events?queues={self.queue}", header), (f"events?queues={self.queue}&tenant={tenant}", {})):
                events = self.call("GET", path, headers=headers, expect=200).json["events"]
                self.assertEqual([(event["data"]["job_id"], event["data"]["tenant_id"]) for event in events], [(job, tenant)], path)
            stream = Stream(self, f"events/stream?queues={self.queue}", header | {"Last-Event-ID": self.before})
            self.assertEqual(stream.next()["data"]["data"]["job_id"], job)
        self.call("GET", "events?tenant=acme", headers={"X-OJS-Tenant": "other"}, expect=400)

    # --- Workers ------------------------------------------------------------------------------------------------------

    def test_what_workers_do_is_told(self):
        stream = Stream(self, "events/stream?types=worker.*")
        worker = "w-" + self.queue

        def next_of_it():
            while (event := stream.next()["data"])["subject"] != worker:
                pass  # of the workers of other tests
            return event
        self.call("POST", "workers/register", {"worker_id": worker, "queues": ["a", "b"], "concurrency": 3}, expect=200)
        started = next_of_it()
        self.assertEqual((started["type"], started["subject"], started["data"]),
                         ("worker.started", worker, {"worker_id": worker, "queues": ["a", "b"], "concurrency": 3}))
        self.call("POST", "workers/heartbeat", {"worker_id": worker, "state": "quiet", "active_jobs": []}, expect=200)
        quiet = next_of_it()
        self.assertEqual((quiet["type"], quiet["data"]), ("worker.quiet", {"worker_id": worker, "active_jobs": 0}))
        self.call("POST", "workers/heartbeat", {"worker_id": worker, "state": "running", "active_jobs": []}, expect=200)
        self.assertEqual(next_of_it()["type"], "worker.resumed")
        self.call("DELETE", "workers/" + worker, expect=200)
        stopped = next_of_it()
        self.assertEqual((stopped["type"], stopped["data"]["worker_id"], stopped["data"]["reason"]),
                         ("worker.stopped", worker, "shutdown"))

    def test_events_of_a_running_job_name_its_worker(self):
        job = self.put_job()
        self.fetch(worker_id="own-name")
        self.call("PUT", f"jobs/{job['id']}/progress", {"progress": 0.5}, expect=200)
        self.call("POST", "workers/heartbeat", {"worker_id": "own-name", "active_jobs": [job["id"]]}, expect=200)
        query = f"events?jobs={job['id']}&types=job.started,job.progress,job.heartbeat"
        events = eventually(lambda: found if len(found := self.call("GET", query, expect=200).json["events"]) == 3 else None)
        self.assertEqual([event["data"]["worker_id"] for event in events], ["own-name"] * 3)
        self.assertEqual(self.get(job)["worker_id"], "own-name")
        self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)
        self.assertEqual(self.call("GET", query, expect=200).json["events"][0]["data"]["worker_id"], "own-name")
        other = self.put_job()
        body = {"queues": [self.queue]}
        self.call("POST", "workers/fetch", body, expect=200)
        query = f"events?jobs={other['id']}&types=job.started"
        started = eventually(lambda: self.call("GET", query, expect=200).json["events"])
        self.assertNotIn("worker_id", started[0]["data"], "it did not say who it is")

    # --- What is lost -------------------------------------------------------------------------------------------------

    def test_an_event_that_the_tape_never_had_leaves_the_number_open(self):
        job = self.put_job()
        query = f"events?jobs={job['id']}"
        eventually(lambda: self.call("GET", query, expect=200).json["events"])
        stream = Stream(self, f"events/stream?jobs={job['id']}", {"Last-Event-ID": "evt_never"})
        gap = stream.next()
        self.assertEqual((gap["event"], gap["data"]["data"]), ("system.gap", {"after": "evt_never", "lost": None}))
        self.assertEqual(stream.next()["event"], "job.enqueued", "what is kept follows")


class Switch(OnPrograms):
    """A gateway switches the segment's events on unless it is told to leave them as they are."""

    def gateway(self, *flags):
        up = Up()
        up.url = self.start("ojs-shm-gateway", "--listen", "127.0.0.1:0", *flags).stdout.readline().split()[1]
        return up

    def pass_a_job(self, up):
        job = up.call("POST", "jobs", {"type": "test.switch", "args": []}).json["job"]["id"]
        fetched = up.call("POST", "workers/fetch", {"queues": ["default"]}).json["jobs"]
        self.assertEqual([each["id"] for each in fetched], [job])
        self.assertEqual(up.call("POST", "workers/ack", {"job_id": job}).status, 200)
        return job

    @staticmethod
    def told(up):
        reply = up.call("GET", "events")
        return [(each["type"], each["data"].get("job_id")) for each in reply.json["events"]]

    def all_of(self, job):
        return [(kind, job) for kind in ("job.enqueued", "job.started", "job.completed")]

    def test_no_events_leaves_them_off(self):
        self.start("ojs-shm-broker", "--slots", "256", "--remove").stdout.readline()
        quiet = self.gateway("--no-events")
        unheard = self.pass_a_job(quiet)
        self.assertEqual(self.told(quiet), [])
        other = self.gateway()
        heard = self.pass_a_job(quiet)
        for up in (quiet, other):
            # Events of the first job would stand before these.
            eventually(lambda: ("job.completed", heard) in self.told(up))
            self.assertEqual([event for event in self.told(up) if event[1] in (heard, unheard)], self.all_of(heard))

    def test_up_passes_no_events_on(self):
        quiet = self.enterContext(Up("--no-events"))
        self.pass_a_job(quiet)
        self.assertEqual(self.told(quiet), [])

    def test_no_events_leaves_them_on(self):
        self.start("ojs-shm-broker", "--slots", "256", "--remove", "--events").stdout.readline()
        quiet = self.gateway("--no-events")
        job = self.pass_a_job(quiet)
        eventually(lambda: ("job.completed", job) in self.told(quiet))
        self.assertEqual([event for event in self.told(quiet) if event[1] == job], self.all_of(job))


class Gone(unittest.TestCase):
    """In a segment of a few slots, which are used again at once."""

    def setUp(self):
        self.up = self.enterContext(Up("--test-hooks", size=("--slots", "64")))

    def job(self, tenant=None, **members):
        headers = {"X-OJS-Tenant": tenant} if tenant else {}
        return self.up.call("POST", "jobs", {"type": "test.gone", "args": [], "queue": "gone"} | members, headers).json["job"]

    def wear_out(self, job):
        """Its slot is used again."""
        self.up.call("POST", "workers/fetch", {"queues": ["gone"]})
        self.assertEqual(self.up.call("POST", "workers/ack", {"job_id": job["id"], "result": 1}).status, 200)
        for _ in range(20):
            with contextlib.closing(self.up.connection()) as spoken:
                body = json.dumps({"jobs": [{"type": "fill", "args": [], "queue": "fill"}] * 30}).encode()
                spoken.request("POST", "/ojs/v1/jobs/batch", body, {"Content-Type": "application/json"})
                self.assertEqual(spoken.getresponse().status, 201)
            for done in self.up.call("POST", "workers/fetch", {"queues": ["fill"], "count": 30}).json["jobs"]:
                self.up.call("POST", "workers/ack", {"job_id": done["id"]})
            if self.up.call("GET", "jobs/" + job["id"]).status == 404:
                return
        self.fail("its slot was not used again")

    def test_the_trace_outlives_the_job(self):
        job = self.job(meta={"trace_id": "t-2"})
        self.wear_out(job)
        events = self.up.call("GET", f"events?jobs={job['id']}").json["events"]
        self.assertEqual([(event["type"], event["data"].get("trace_id")) for event in events],
                         [("job.enqueued", "t-2"), ("job.started", "t-2"), ("job.completed", "t-2")])

    def test_another_tenants_job_that_is_gone_never_was(self):
        job = self.job(tenant="acme")
        self.wear_out(job)
        statuses = [self.up.call("GET", f"jobs/{job['id']}/result", headers=headers).status
                    for headers in ({}, {"X-OJS-Tenant": "acme"}, {"X-OJS-Tenant": "other"})]
        self.assertEqual(statuses, [410, 410, 404])
