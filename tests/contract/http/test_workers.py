# SPDX-License-Identifier: Apache-2.0
"""Registered workers: two gateways of one segment, native workers and the command line see the same ones."""

import contextlib
import http.client
import json
import os
import signal
import subprocess

from gateways import BOUND, OnGateway, Reply, end_with_parent, eventually, program


class Workers(OnGateway):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.other = subprocess.Popen(
            [program("ojs-shm-gateway"), "--name", "test", "--dir", cls.up.dir, "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=cls.up.log, text=True, preexec_fn=end_with_parent)
        cls.addClassCleanup(cls.end_other)
        words = cls.other.stdout.readline().split()
        assert words[:1] == ["READY"], words
        cls.address = words[1].split("//", 1)[1]

    @classmethod
    def end_other(cls):
        cls.other.terminate()
        cls.other.wait(BOUND)
        cls.other.stdout.close()

    def elsewhere(self, method, path, body=None, expect=200):
        """The same request to the second gateway."""
        with contextlib.closing(http.client.HTTPConnection(self.address, timeout=BOUND)) as spoken:
            spoken.request(method, "/ojs/v1/" + path, None if body is None else json.dumps(body),
                           {"Content-Type": "application/json"})
            reply = Reply(spoken.getresponse())
        self.assertEqual(reply.status, expect, reply.body)
        return reply.json

    def worker(self, **members):
        return {"worker_id": "w-" + self.queue, "queues": [self.queue]} | members

    def cli(self, *words, code=0):
        done = self.up.native(*words)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_FS_T09_two_gateways_have_the_same_workers(self):
        self.call("PUT", "admin/pools/" + self.queue, {"queues": [self.queue]}, expect=201)
        self.call("PUT", "admin/pools/second-" + self.queue, {"queues": ["other"]}, expect=201)
        self.call("POST", "workers/register",
                  self.worker(pool=self.queue, concurrency=3, labels={"zone": "a"}, hostname="h"), expect=200)
        seen = self.elsewhere("GET", "admin/workers/w-" + self.queue)
        self.assertEqual((seen["pool"], seen["concurrency"], seen["labels"], seen["hostname"], seen["queues"], seen["state"]),
                         (self.queue, 3, {"zone": "a"}, "h", [self.queue], "running"))
        self.elsewhere("POST", "workers/register", self.worker(pool="second-" + self.queue), expect=409)
        self.elsewhere("POST", "workers/heartbeat", self.worker(pool="second-" + self.queue), expect=409)
        self.assertIn("w-" + self.queue, self.elsewhere("GET", "admin/pools/" + self.queue)["pool"]["workers"])
        listed = self.elsewhere("GET", "admin/workers?per_page=100")
        self.assertIn("w-" + self.queue, [worker["id"] for worker in listed["items"]])
        # each gateway may show a look that is a tenth of a second old
        eventually(lambda: self.call("GET", "health").json["workers"] == self.elsewhere("GET", "health")["workers"])
        self.elsewhere("DELETE", "workers/w-" + self.queue)
        self.call("GET", "admin/workers/w-" + self.queue, expect=404)

    def test_what_a_worker_names_is_bounded(self):
        many, name = [f"q{number}" for number in range(1001)], "w" * 129
        for members, field in (({"queues": many, "strategy": "weighted", "weights": {"q0": 0}}, "queues"),
                               ({"strategy": "weighted", "weights": dict.fromkeys(many, 1)}, "weights"),
                               ({"worker_id": name}, "worker_id")):
            error = self.call("POST", "workers/fetch", self.worker(**members), expect=400).error
            self.assertEqual(error["details"]["field"], field)
        job = self.put_job()
        self.assertEqual(len(self.fetch(worker_id=name[1:])), 1)
        self.call("POST", "workers/heartbeat", {"worker_id": name, "active_jobs": [job["id"]]}, expect=400)
        self.call("POST", "workers/ack", {"worker_id": name, "job_id": job["id"]}, expect=400)
        self.call("POST", "workers/ack", {"worker_id": name[1:], "job_id": job["id"]}, expect=200)

    def test_a_job_is_held_by_its_worker_for_every_gateway(self):
        job = self.put_job()
        self.call("POST", "workers/heartbeat", self.worker(), expect=200)
        self.assertEqual(len(self.fetch()), 1)
        self.assertEqual(self.elsewhere("GET", "jobs/" + job["id"])["job"]["worker_id"], "w-" + self.queue)
        self.elsewhere("POST", "workers/ack", {"job_id": job["id"], "worker_id": "another"}, expect=409)
        beat = self.elsewhere("POST", "workers/heartbeat", {"worker_id": "another", "active_jobs": [job["id"]]})
        self.assertEqual(beat["jobs_extended"], [])
        self.elsewhere("POST", "workers/ack", {"job_id": job["id"], "worker_id": "w-" + self.queue})

    def test_silence_returns_the_jobs(self):
        job = self.put_job()
        self.call("POST", "workers/register", self.worker(), expect=200)
        self.assertEqual(len(self.fetch()), 1)
        kept = self.call("DELETE", "admin/workers/w-" + self.queue, expect=409).error
        self.assertEqual((kept["code"], kept["details"]["expected_state"]), ("conflict", "stale"))
        self.call("POST", "test/clock", {"advance_ms": 20_000}, expect=200)
        self.elsewhere("POST", "workers/heartbeat", self.worker())
        self.call("POST", "test/clock", {"advance_ms": 20_000}, expect=200)
        self.assertEqual(self.get(job)["state"], "active", "the sign to the other gateway counts")
        self.call("POST", "test/clock", {"advance_ms": 11_000}, expect=200)
        came = eventually(lambda: self.get(job)["state"] == "available" and self.get(job))
        self.assertEqual((came["attempt"], came["errors"][0]["code"]), (1, "worker_death"))
        path = "admin/workers/w-" + self.queue  # the job is there before its worker's end is written down
        silent = eventually(lambda: (known := self.call("GET", path, expect=200).json).get("returned_jobs") == 1 and known)
        self.assertEqual((silent["state"], silent["ended"]), ("stale", "silent"))
        eventually(lambda: self.elsewhere("GET", "health")["workers"]["stale"] >= 1)
        eventually(lambda: self.call("DELETE", path).status == 200)
        self.call("GET", path, expect=404)
        again = self.fetch(worker_id="next-" + self.queue)
        self.assertEqual([(each["id"], each["attempt"]) for each in again], [(job["id"], 2)])
        self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)

    def test_a_worker_that_only_fetches_keeps_its_job(self):
        job = self.put_job()
        self.assertEqual(len(self.fetch()), 1)
        self.call("POST", "test/clock", {"advance_ms": 65_000}, expect=200)
        self.assertEqual(self.get(job)["state"], "active")
        self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)

    def test_FS_T05_a_registered_worker_takes_jobs_as_its_pool_says(self):
        name = "p-" + self.queue
        self.call("PUT", "admin/pools/" + name, {"queues": [self.queue], "concurrency": 2, "isolated": True}, expect=201)
        self.call("POST", "workers/register", self.worker(pool=name), expect=200)
        for _ in range(3):
            self.put_job()
        self.assertEqual(self.fetch(5, worker_id="other-" + self.queue), [], "the queue is the pool's alone")
        self.assertEqual(len(self.fetch(5)), 2, "the pool takes two at once")
        self.call("DELETE", "admin/pools/" + name, expect=200)
        self.assertEqual(len(self.fetch(5)), 1, "a pool that is gone says nothing")

    def test_a_worker_that_goes_is_not_told_to_run(self):
        for said, told in (("running", "running"), ("quiet", "quiet"), ("drain", "quiet"), ("draining", "quiet"),
                           ("shutting_down", "quiet"), ("terminate", "terminate")):
            beat = self.call("POST", "workers/heartbeat", self.worker(state=said), expect=200).json
            self.assertEqual(beat["state"], told)
            self.assertEqual(self.call("GET", f"workers/w-{self.queue}/health").json["state"], said, "its own word")
        self.call("POST", "admin/workers/directive", {"worker_id": "w-" + self.queue, "directive": "terminate"}, expect=200)
        self.assertEqual(self.call("POST", "workers/heartbeat", self.worker(state="drain"), expect=200).json["state"], "terminate")

    def test_a_heartbeat_says_a_state_that_there_is(self):
        self.call("POST", "workers/register", self.worker(), expect=200)
        for wrong in ("", "Running", "busy", "stopped", "idle"):
            for path in ("workers/heartbeat", "workers/beat"):
                body = self.worker(state=wrong, active_jobs=7)
                self.assertEqual(self.call("POST", path, body, expect=400).error["details"]["field"], "state", wrong)
        known = self.call("GET", "admin/workers/w-" + self.queue, expect=200).json
        self.assertEqual((known["state"], known["active_jobs"]), ("running", 0))
        for said in ("running", "draining", "shutting_down"):
            self.call("POST", "workers/beat", self.worker(state=said), expect=200)

    def test_a_heartbeat_tells_which_jobs_were_cancelled(self):
        kept, gone = self.put_job(), self.put_job()
        self.fetch(2)
        self.call("DELETE", "jobs/" + gone["id"], expect=200)
        beat = self.call("POST", "workers/heartbeat", self.worker(active_jobs=[kept["id"], gone["id"]]), expect=200).json
        self.assertEqual((beat["jobs_extended"], beat["jobs_cancelled"]), ([kept["id"]], [gone["id"]]))

    def test_a_worker_is_shown_with_its_jobs(self):
        self.call("POST", "workers/register", self.worker(version="1.2", pid=7), expect=200)
        job = self.put_job()
        self.fetch()
        shown = self.call("GET", "admin/workers/w-" + self.queue, expect=200).json
        self.assertEqual((shown["version"], shown["pid"], [each["id"] for each in shown["jobs"]]), ("1.2", 7, [job["id"]]))
        self.assertEqual(self.call("GET", "admin/workers/w-" + self.queue, headers={"X-OJS-Tenant": "another"}).json["jobs"], [])

    def test_a_directive_holds_everywhere(self):
        self.call("POST", "workers/register", self.worker(), expect=200)
        self.put_job()
        self.elsewhere("POST", f"admin/workers/w-{self.queue}/quiet")
        self.assertEqual(self.call("POST", "workers/heartbeat", self.worker(), expect=200).json["state"], "quiet")
        self.assertEqual(self.fetch(), [])
        self.cli("workers", "resume", "w-" + self.queue)
        self.assertEqual(self.elsewhere("POST", "workers/heartbeat", self.worker())["state"], "running")
        self.assertEqual(len(self.fetch()), 1)

    def test_a_native_worker_is_listed_and_obeys(self):
        name = "n-" + self.queue
        native = subprocess.Popen(
            [program("ojs-shm"), "work", "--queue", self.queue, "--worker-id", name, "--labels", "zone=a,size=2",
             "--concurrency", "2", "--name", "test", "--dir", self.up.dir, "--", "cat"],
            stdout=subprocess.PIPE, stderr=self.up.log, text=True, preexec_fn=end_with_parent)
        try:
            seen = eventually(lambda: next((each for each in self.elsewhere("GET", "admin/workers?per_page=100")["items"]
                                            if each["id"] == name), None))
            self.assertEqual((seen["labels"], seen["concurrency"], seen["native"], seen["pid"]),
                             ({"zone": "a", "size": "2"}, 2, True, native.pid))
            self.call("POST", "admin/workers/directive", {"worker_id": name, "directive": "quiet"}, expect=200)
            job = self.put_job()
            self.assertEqual(self.get(job)["state"], "available")
            self.assertEqual(self.fetch(worker_id="other-" + self.queue)[0]["id"], job["id"], "it takes no more")
            self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)
            self.elsewhere("POST", "admin/workers/directive", {"worker_id": name, "directive": "terminate"})
            self.assertEqual(native.wait(BOUND), 0, "it has ended by itself")
            self.call("GET", "admin/workers/" + name, expect=404)
        finally:
            if native.poll() is None:
                native.kill()
                native.wait()
            native.stdout.close()

    def test_a_native_worker_that_is_killed_is_ended_with_its_process(self):
        name = "k-" + self.queue
        native = subprocess.Popen(
            [program("ojs-shm"), "work", "--queue", self.queue, "--worker-id", name, "--name", "test", "--dir", self.up.dir,
             "--", "cat"], stdout=subprocess.PIPE, stderr=self.up.log, text=True, preexec_fn=end_with_parent)
        eventually(lambda: self.up.native("workers", "get", name).returncode == 0)
        os.kill(native.pid, signal.SIGKILL)
        native.wait()
        native.stdout.close()
        eventually(lambda: self.call("GET", "admin/workers/" + name).json.get("ended") == "died")
        listed = [line.split("\t")[:2] for line in self.cli("workers", "list").stdout.splitlines()]
        self.assertIn([name, "stale (died)"], listed)

    def test_the_command_line_lists_and_directs(self):
        self.call("POST", "workers/register", self.worker(concurrency=2, labels={"a": 1}), expect=200)
        name = "w-" + self.queue
        rows = [line.split("\t") for line in self.cli("workers", "list").stdout.splitlines()]
        row = next(row for row in rows if row[0] == name)
        self.assertEqual((row[1], row[2], row[3], row[4], row[5]), ("running", "-", self.queue, "2", "0"))
        self.assertEqual(self.cli("workers", "list", "--pool", "nowhere").stdout, "")
        shown = json.loads(self.cli("workers", "get", name, "--json").stdout)
        self.assertEqual((shown["id"], shown["labels"], shown["directive"]), (name, {"a": 1}, "running"))
        for command, state in (("quiet", "quiet"), ("terminate", "terminate"), ("resume", "running")):
            self.cli("workers", command, name)
            self.assertEqual(self.call("GET", "admin/workers/" + name).json["state"], state)
        wrong = self.cli("workers", "get", name + "x", code=4)
        self.assertIn(f"did you mean '{name}'?", wrong.stderr)
        self.cli("workers", "quiet", "nothing-like-it", "--json", code=4)
        self.assertIn("did you mean `quiet`", self.cli("workers", "quite", name, code=2).stderr)
        self.cli("workers", "rm", name)
        self.cli("workers", "rm", name, code=4)
        self.call("GET", "admin/workers/" + name, expect=404)

    def test_what_does_not_fit_is_refused(self):
        refused = self.call("POST", "workers/register", {"worker_id": "w" * 129}, expect=400)
        self.assertIn("128", refused.error["message"])
        self.call("POST", "workers/register", self.worker(metadata={"node": "n1"}), expect=200)  # as ojs-admin-api has it
        listed = self.call("GET", "admin/workers", expect=200).json["items"]
        own = next(one for one in listed if one["id"] == self.worker()["worker_id"])
        self.assertEqual((own["labels"], own["metadata"]), ({"node": "n1"},) * 2)
        self.call("POST", "workers/register", self.worker(labels="x" * 900), expect=400)
        self.call("POST", "workers/heartbeat", self.worker(labels="x" * 900), expect=400)
        self.call("POST", "admin/workers/directive", {"directive": "sleep"}, expect=400)
