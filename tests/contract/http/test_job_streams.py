# SPDX-License-Identifier: Apache-2.0
"""Streams of one job over HTTP, which end when the job has."""

from gateways import OnGateway, eventually
from test_events import Stream


class JobStreams(OnGateway):
    def ack(self, job, **result):
        self.call("POST", "workers/ack", {"job_id": job["id"]} | result, expect=200)

    def nack(self, job):
        self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "x", "message": "y"}}, expect=200)

    def rest(self, stream):
        events = []
        while (event := stream.next()) is not None:
            events.append(event)
        return events

    def begin(self, **members):
        job = self.put_job(**members)
        self.fetch()
        return job

    def streams(self, job, query=""):
        return (Stream(self, f"jobs/{job['id']}/events?{query}"),
                Stream(self, f"events/stream?channel=job:{job['id']}&{query}"))

    def test_an_event_of_the_future_is_told_as_a_gap(self):
        job = self.put_job()
        eventually(lambda: self.call("GET", "events?jobs=" + job["id"], expect=200).json["events"])
        future = "evt_ffffffff-ffff-7fff-8000-000000000000"
        stream = Stream(self, f"events/stream?jobs={job['id']}", {"Last-Event-ID": future})
        gap = stream.next()
        self.assertEqual((gap["event"], gap["data"]["data"]["after"]), ("system.gap", future))
        self.assertEqual(stream.next()["event"], "job.enqueued")

    # --- What happens to it -------------------------------------------------------------------------------------------

    def test_they_end_behind_the_last_change(self):
        job = self.begin(retry={"max_attempts": 2, "initial_interval": "PT0.001S", "jitter": False})
        streams = self.streams(job)
        self.nack(job)
        eventually(self.fetch)
        self.ack(job)
        for stream in streams:
            events = self.rest(stream)
            self.assertEqual([event["event"] for event in events[-2:]], ["job.completed", "job.state_changed"])
            self.assertEqual(events[-1]["data"]["to"], "completed")
            self.assertEqual([event["event"] for event in events].count("job.failed"), 1)

    def test_each_end_is_one(self):
        cancelled = self.begin()
        streams = self.streams(cancelled)
        self.call("DELETE", "jobs/" + cancelled["id"], expect=200)
        for stream in streams:
            self.assertEqual(self.rest(stream)[-1]["data"]["to"], "cancelled")
        discarded = self.begin(retry={"max_attempts": 1})
        streams = self.streams(discarded, "types=priority.changed")
        self.nack(discarded)
        for stream in streams:
            self.assertEqual(self.rest(stream), [], "its types let nothing of the end pass")

    def test_of_a_job_that_has_ended_end_at_once(self):
        job = self.begin()
        self.ack(job)
        for stream in self.streams(job):
            events = self.rest(stream)
            self.assertEqual([event["event"] for event in events], ["job.state_changed"])
            again = Stream(self, f"jobs/{job['id']}/events", {"Last-Event-ID": events[0]["id"]})
            self.assertEqual([event["event"] for event in self.rest(again)], ["job.state_changed"])
        for stream in self.streams(job, "types=job.progress"):
            self.assertEqual(self.rest(stream), [])

    def test_behind_an_id_all_comes_up_to_the_end(self):
        job = self.begin()
        first = Stream(self, f"jobs/{job['id']}/events")
        self.call("PUT", f"jobs/{job['id']}/progress", {"progress": 0.5}, expect=200)
        seen = first.until("job.progress")[-1]
        self.ack(job)
        first = self.rest(first)
        listens = Stream(self, "events/stream")  # the tape goes on
        again = self.rest(Stream(self, f"jobs/{job['id']}/events", {"Last-Event-ID": seen["id"]}))
        self.assertEqual([event["event"] for event in again], ["job.completed", "job.state_changed"])
        last = self.rest(Stream(self, f"jobs/{job['id']}/events", {"Last-Event-ID": first[-1]["id"]}))
        self.assertEqual([event["event"] for event in last], ["job.state_changed"], "it knows the end")
        listens.connection.close()

    def test_a_dead_letter_that_is_retried_goes_on(self):
        job = self.begin(retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})
        stream = Stream(self, f"jobs/{job['id']}/events")
        self.nack(job)
        dead = self.rest(stream)[-1]
        self.assertEqual(dead["data"]["to"], "discarded")
        self.call("POST", f"dead-letter/{job['id']}/retry", expect=200)
        again = Stream(self, f"jobs/{job['id']}/events")
        self.fetch()
        self.ack(job)
        self.assertEqual(self.rest(again)[-1]["data"]["to"], "completed")

    def test_there_is_none_of_a_job_that_is_not_there(self):
        never = "019539a4-b68c-7def-8000-1a2b3c4d5e6f"
        for path in (f"jobs/{never}/events", f"events/stream?channel=job:{never}", f"jobs/{never}/progress/stream"):
            self.call("GET", path, expect=404)
        other = self.enqueue(headers={"X-OJS-Tenant": "acme"}).json["job"]["id"]
        self.call("GET", "events/stream?channel=job:" + other, headers={"X-OJS-Tenant": "else"}, expect=404)

    def test_a_report_stands_at_the_top_of_its_data(self):
        job = self.begin()
        streams = self.streams(job) + (Stream(self, f"queues/{self.queue}/events"),)
        self.call("PUT", f"jobs/{job['id']}/progress", {"progress": 0.579, "message": "more"}, expect=200)
        for stream in streams:
            told = stream.until("job.progress")[-1]["data"]
            self.assertEqual((told["job_id"], told["progress"], told["message"], told["timestamp"]), (job["id"], 57, "more", told["time"]))
            self.assertEqual((told["type"], told["data"]["progress_percent"]), ("job.progress", 57.9))

    # --- How far it is ------------------------------------------------------------------------------------------------

    def test_progress_is_told_until_the_end(self):
        job = self.begin()
        path = f"jobs/{job['id']}/progress"
        stream = Stream(self, path + "/stream")
        self.call("PUT", path, {"progress": 0.47, "data": {"rows": 14}}, expect=200)
        told = stream.next()
        self.assertEqual((told["event"], {name: told["data"][name] for name in ("progress", "data")}),
                         ("progress", {"progress": 0.47, "data": {"rows": 14}}))
        self.assertTrue(told["data"]["updated_at"].endswith("Z"))
        self.call("PUT", path, {"progress": 0.2, "data": {"rows": 1}}, expect=200)  # behind: no event
        self.call("PUT", path, {"progress": 0.52, "message": "more"}, expect=200)
        told = stream.next()["data"]
        self.assertEqual((told["progress"], told["data"], told["message"]), (0.52, None, "more"))
        self.ack(job)
        end = stream.next()
        self.assertEqual((end["event"], end["data"]["progress"], end["data"]["state"]), ("completed", 1.0, "completed"))
        self.assertTrue(end["data"]["updated_at"].endswith("Z"))
        self.assertIsNone(stream.next())
        late = self.rest(Stream(self, path + "/stream"))
        self.assertEqual([(event["event"], event["data"]["state"]) for event in late], [("completed", "completed")])

    def test_progress_of_what_fails_stays_where_it_was(self):
        job = self.begin(retry={"max_attempts": 1})
        path = f"jobs/{job['id']}/progress"
        self.call("PUT", path, {"progress": 0.73}, expect=200)
        stream = Stream(self, path + "/stream")
        self.nack(job)
        end = self.rest(stream)[-1]
        self.assertEqual((end["event"], end["data"]["progress"], end["data"]["state"]), ("failed", 0.73, "discarded"))
        silent = self.begin()
        stream = Stream(self, f"jobs/{silent['id']}/progress/stream")
        self.call("DELETE", "jobs/" + silent["id"], expect=200)
        end = self.rest(stream)[-1]
        self.assertEqual((end["event"], end["data"]["progress"], end["data"]["state"]), ("cancelled", None, "cancelled"))
