# SPDX-License-Identifier: Apache-2.0
"""Requests that wait, for a job or for a result, and jobs of native processes that end the wait."""

import array
import contextlib
import fcntl
import http.client
import itertools
import json
import os
import select
import signal
import termios
import threading
import time

from gateways import BOUND, OnGateway, Up, eventually
from test_manners import Raw, post


class Waits(OnGateway):
    def put_natively(self, queue=None):
        made = self.up.native("enqueue", "-t", "native.job", "-i", "1", "--queue", queue or self.queue)
        self.assertEqual(made.returncode, 0, made.stderr)
        return made.stdout.split()[-1]


class Jobs(Waits):
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


class Line(Waits):
    """Fetches that wait on the one thread of a gateway."""

    flags = OnGateway.flags + ("--threads", "1")
    rounds = itertools.count()

    def test_they_are_served_in_the_order_in_which_they_came(self):
        eventually(lambda: self.are_served_in_order(lambda queue: self.put_job(queue=queue)["id"]))

    def test_they_are_served_native_jobs_in_the_order_in_which_they_came(self):
        eventually(lambda: self.are_served_in_order(self.put_natively))

    def are_served_in_order(self, put):
        """False when one had waited for its two seconds before its job came, on a busy machine: that shows nothing."""
        queue = f"{self.queue}-{next(self.rounds)}"
        other = queue + "-other"
        with contextlib.ExitStack() as polls:
            beside, first, second, third = (
                self.poll(polls, *queues) for queues in ([other], [queue], [other + "-too", queue], [queue]))
            waiting = [beside, first, second, third]
            for wanted, place in ((first, queue), (second, queue), (beside, other), (third, queue)):
                job = put(place)
                answered = self.those_answered(waiting)
                got = {each: json.loads(each.reply()[1])["jobs"] for each in answered}
                if not all(got.values()):
                    return False
                self.assertEqual([waiting.index(each) for each in answered], [waiting.index(wanted)], "it came later")
                self.assertEqual([each["id"] for each in got[wanted]], [job])
                waiting.remove(wanted)
        return True

    def poll(self, polls, *queues):
        """A fetch that waits already when this returns."""
        poll = polls.enter_context(Raw(self.up))
        poll.send(post("workers/fetch", {"queues": list(queues), "wait_ms": 2000}))
        eventually(lambda: self.unacknowledged(poll.socket) == 0)
        eventually(lambda: self.unread(poll.socket) == 0)
        # The one thread has its bytes. What it is asked next, it answers behind that.
        self.call("GET", "health", expect=200)
        return poll

    @staticmethod
    def those_answered(waiting):
        sockets = {each.socket: each for each in waiting}
        select.select(sockets, [], [], BOUND)
        # What was answered before the one that was found first is found now.
        return [sockets[each] for each in select.select(sockets, [], [], 0)[0]]

    @staticmethod
    def unacknowledged(client):
        """Bytes of the client that have not arrived in the gateway's buffer."""
        count = array.array("i", [0])
        fcntl.ioctl(client, termios.TIOCOUTQ, count)
        return count[0]

    @staticmethod
    def unread(client):
        """Bytes of the client that lie in the gateway's buffer."""
        wanted = [f":{port:04X}" for port in (client.getpeername()[1], client.getsockname()[1])]
        for line in open("/proc/net/tcp").readlines()[1:]:
            row = line.split()
            if [each[-5:] for each in row[1:3]] == wanted:
                return int(row[4].partition(":")[2], 16)
        return None  # the list may lack a connection while others come and go
