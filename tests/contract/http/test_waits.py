# SPDX-License-Identifier: Apache-2.0
"""Requests that wait, for a job or for a result, and jobs of native processes that end the wait."""

import contextlib
import http.client
import json
import os
import signal
import threading
import time

from gateways import BOUND, OnGateway, Up


class Jobs(OnGateway):
    def test_a_long_poll_gets_the_job_that_comes(self):
        for put in (self.put_job, self.put_natively):
            got = []
            poll = threading.Thread(target=lambda: got.extend(self.fetch(wait_ms=2000)))
            poll.start()
            put()
            poll.join()
            if not got:  # it came after two seconds, on a busy machine
                got = self.fetch()
            self.assertEqual(len(got), 1)

    def test_a_request_that_waits_is_told_of_a_native_job(self):
        self.is_told_while_it_waits()

    def test_a_request_that_waits_in_a_pool_is_told_of_a_native_job(self):
        self.call("PUT", "admin/pools/" + self.queue, {"queues": [self.queue]}, expect=201)
        self.is_told_while_it_waits(pool=self.queue)

    def is_told_while_it_waits(self, **wanted):
        """Each poll looks when it begins, and then only when it is told; a job that came before or after it says nothing."""
        self.put_natively()
        self.fetch(**wanted)
        for _ in range(5):
            got = []
            poll = threading.Thread(target=lambda: got.extend(self.fetch(wait_ms=2000, **wanted)))
            poll.start()
            time.sleep(0.2)
            self.put_natively()
            poll.join()
            if got:
                return
            self.assertEqual(len(self.fetch(**wanted)), 1)
        self.fail("no request was told")

    def put_natively(self):
        made = self.up.native("enqueue", "-t", "native.job", "-i", "1", "--queue", self.queue)
        self.assertEqual(made.returncode, 0, made.stderr)
        return made.stdout.split()[-1]

    def test_native_processes_and_HTTP_share_one_queue(self):
        self.put_natively()
        job, = self.fetch()
        self.assertEqual((job["type"], job["args"]), ("native.job", [1]))
        self.call("POST", "workers/ack", {"job_id": job["id"], "result": 5}, expect=200)
        seen = self.up.native("get", job["id"], "--json")
        self.assertEqual(json.loads(seen.stdout)["result"], 5)

    def test_results_of_many_jobs(self):
        job = self.put_job()
        self.fetch()
        self.call("POST", "workers/ack", {"job_id": job["id"], "result": 3}, expect=200)
        unknown = "019b2c3d-4e5f-7a6b-8c9d-0e1f2a3b4c5d"
        results = self.call("POST", "jobs/results", {"job_ids": [job["id"], unknown]}, expect=200).json["results"]
        self.assertEqual((results[job["id"]]["result"], results[unknown]["error"]["code"]), (3, "not_found"))
        waited = self.call("GET", f"jobs/{job['id']}/result?wait=true&timeout=5", expect=200).json
        self.assertEqual((waited["state"], waited["result"]), ("completed", 3))

    def test_a_wait_for_a_result_that_does_not_come_is_over_in_time(self):
        job = self.put_job()
        self.assertEqual(self.call("GET", f"jobs/{job['id']}/result", expect=200).json["state"], "available")
        self.call("GET", f"jobs/{job['id']}/result?wait=maybe&timeout=5", expect=400)
        error = self.call("GET", f"jobs/{job['id']}/result?wait=True&timeout=0.05", expect=408).error
        self.assertEqual((error["code"], error["retryable"], error["details"]),
                         ("timeout", True, {"job_id": job["id"], "state": "available"}))

    def answered_by_a_gateway_that_ends(self):
        """The reply to a wait for a result; None when the gateway ended before it had read the request."""
        with Up() as up, contextlib.closing(up.connection()) as spoken:
            job = up.call("POST", "jobs", {"type": "a.b", "args": []}).json["job"]["id"]
            spoken.connect()
            ask = "GET {} HTTP/1.1\r\nHost: " + up.address + "\r\n\r\n"
            wait = f"/ojs/v1/jobs/{job}/result?wait=true&timeout=20"
            spoken.sock.sendall((ask.format("/health") + ask.format(wait)).encode())
            with http.client.HTTPResponse(spoken.sock) as first:
                first.begin()
                first.read()
            os.kill(up.child("ojs-shm-gateway"), signal.SIGTERM)
            with contextlib.suppress(http.client.BadStatusLine, ConnectionError):
                answer = http.client.HTTPResponse(spoken.sock)
                answer.begin()
                return answer.status, answer.getheader("Retry-After"), json.loads(answer.read())["error"]
        return None

    def test_a_wait_that_the_gateways_end_cuts_off_is_no_result(self):
        answers = filter(None, (self.answered_by_a_gateway_that_ends() for _ in range(10)))
        status, when, error = next(answers)
        self.assertEqual((status, when, error["retryable"]), (503, "1", True))
        self.assertIn("available", error["message"])

    def test_whoever_waits_for_a_result_hears_of_the_end(self):
        ends = {"completed": lambda job: self.call("POST", "workers/ack", {"job_id": job["id"], "result": 7}, expect=200),
                "cancelled": lambda job: self.call("DELETE", "jobs/" + job["id"], expect=200)}
        for state, end in ends.items():
            job = self.put_job()
            self.fetch()
            replies = []
            # The wait is longer than the client's patience: an answer at its end would come too late.
            waits = [threading.Thread(target=lambda path: replies.append(self.call("GET", path, expect=200).json["state"]),
                                      args=(f"jobs/{job['id']}/result?wait=true&timeout=60",)) for _ in range(3)]
            for each in waits:
                each.start()
            end(job)
            for each in waits:
                each.join(BOUND)
            self.assertEqual(replies, [state] * 3)
