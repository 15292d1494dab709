# SPDX-License-Identifier: Apache-2.0
"""What is full: the segment, and the buffers of a client that reads late or never."""

import json
import os
import socket
import subprocess
import threading
import time
import unittest

from gateways import BOUND, Up, eventually, program
from test_events import Stream

JOBS = 90
#: So many bytes of each that no kernel's buffers hold the reply.
FILLER = "x" * 60_000


class FullSegment(unittest.TestCase):
    def test_it_is_503_and_a_full_queue_is_429(self):
        with Up(size=("--slots", "64")) as up:
            job = {"type": "fill", "args": [], "queue": "bounded"}
            up.call("PUT", "admin/queues/bounded/config", {"backpressure": {"max_depth": 1}})
            self.assertEqual(up.call("POST", "jobs", job).status, 201)
            refused = up.call("POST", "jobs", job)
            self.assertEqual((refused.status, refused.error["code"]), (429, "QUEUE_FULL"))
            job["queue"], stored = "open", 0
            while (reply := up.call("POST", "jobs", job)).status == 201:
                stored += 1
            self.assertGreater(stored, 50)
            self.assertEqual((reply.status, reply.error["code"], reply.error["retryable"]), (503, "SEGMENT_FULL", True))
            self.assertEqual(reply.error["details"], {"pool": "slots", "used": 64, "capacity": 64})
            self.assertGreaterEqual(int(reply.headers["Retry-After"]), 1)
            self.assertIn("--slots", reply.error["message"])
            # what is there is served, and gives its room to others
            fetched = up.call("POST", "workers/fetch", {"queues": ["open"]}).json["jobs"][0]
            up.call("POST", "workers/ack", {"job_id": fetched["id"]})
            self.assertEqual(eventually(lambda: up.call("POST", "jobs", job).status == 201), True)


class NoHandleLeft(unittest.TestCase):
    """The gateway is told of what others do by a handle that it takes when a request first waits. Where there is none
    it looks by itself."""

    def setUp(self):
        with Up("--threads", "1", size=("--slots", "1024")) as up:
            own = self.handles(up)["used"]
        self.up = self.enterContext(Up("--threads", "1", size=("--slots", "1024", "--handles", str(own + 1))))
        # the last one
        self.enqueuing = subprocess.Popen(
            [program("ojs-shm"), "enqueue", "--name", "test", "--dir", self.up.dir],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.enqueuing.wait, BOUND)
        self.addCleanup(self.enqueuing.stdout.close)
        self.addCleanup(self.enqueuing.stdin.close)
        self.put(queue="first")
        handles = self.handles(self.up)
        self.assertEqual(handles["used"], handles["capacity"])

    def handles(self, up):
        told = json.loads(up.native("stats", "--json").stdout)
        return next(pool for pool in told["pools"] if pool["name"] == "handles")

    def put(self, **members):
        self.enqueuing.stdin.write(json.dumps({"type": "native.job", "args": []} | members) + "\n")
        self.enqueuing.stdin.flush()
        return self.enqueuing.stdout.readline().split()[-1]

    def meanwhile(self, *call, headers=None):
        """The request runs until this is called again."""
        replies = []
        request = threading.Thread(target=lambda: replies.append(self.up.call(*call, headers=headers)))
        request.start()

        def reply():
            request.join(BOUND)
            return replies[0]
        return reply

    def test_a_fetch_that_waits_gets_the_job_of_another_process(self):
        # A job that came before the request waited, or after it, says nothing.
        for _ in range(5):
            reply = self.meanwhile("POST", "workers/fetch", {"queues": ["waited"], "wait_ms": 2000})
            time.sleep(0.2)
            job = self.put(queue="waited")
            if [each["id"] for each in reply().json["jobs"]] == [job]:
                return
            self.up.call("POST", "workers/fetch", {"queues": ["waited"]})
        self.fail("no request was told while it waited")

    def test_an_enqueue_that_waits_gets_the_room_of_a_job_that_ended(self):
        self.up.call("PUT", "admin/queues/small/config", {"backpressure": {"max_depth": 1, "strategy": "block"}})
        job = {"type": "small.job", "args": [], "queue": "small"}
        self.assertEqual(self.up.call("POST", "jobs", job).status, 201)
        reply = self.meanwhile("POST", "jobs", job, headers={"OJS-Block-Timeout": str(BOUND)})
        eventually(lambda: self.up.call("GET", "queues/small/stats").json["stats"]["waiting"] == 1)
        self.up.call("POST", "workers/fetch", {"queues": ["small"]})
        self.assertEqual(reply().status, 201)

    def test_whoever_waits_for_a_result_hears_of_the_end(self):
        job = self.put(queue="watched")
        reply = self.meanwhile("GET", f"jobs/{job}/result?wait=true&timeout={BOUND}")
        time.sleep(0.2)
        self.up.call("POST", "workers/fetch", {"queues": ["watched"]})
        self.up.call("POST", "workers/ack", {"job_id": job, "result": 3})
        self.assertEqual(reply().json["result"], 3)

    def test_a_stream_tells_what_another_process_does(self):
        stream = Stream(self, "events/stream?types=job.enqueued", up=self.up)
        job = self.put(queue="told")
        while stream.next()["data"]["subject"] != job:
            pass


class LongReply(unittest.TestCase):
    def fill(self, *flags):
        self.up = self.enterContext(Up(*flags, size=("--slots", "1024", "--size", "64M")))
        for _ in range(JOBS // 10):
            self.up.call("POST", "jobs/batch", {"jobs": [{"type": "long", "args": [FILLER]}] * 10})

    def ask(self, receive_buffer=None):
        """A client that has asked for all jobs, and takes nothing yet."""
        client = self.up.dial()
        self.addCleanup(client.close)
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        body = json.dumps({"queues": ["default"], "count": JOBS}).encode()
        client.sendall(b"POST /ojs/v1/workers/fetch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                       b"Content-Length: %d\r\n\r\n" % len(body) + body)
        started = "events?types=job.started&queues=default&limit=1000"  # stays when the jobs have gone back
        eventually(lambda: self.up.call("GET", started).json["pagination"]["total"] >= JOBS)
        return client

    def counts(self):
        return self.up.call("GET", "queues/default/stats").json["stats"]

    def test_it_comes_whole_to_a_client_that_reads_late(self):
        self.fill()
        with self.ask().makefile("rb") as answer:
            self.assertIn(b" 200 ", answer.readline())
            length = 0
            while (header := answer.readline().strip()):
                if header.lower().startswith(b"content-length:"):
                    length = int(header.split()[1])
            jobs = json.loads(answer.read(length))["jobs"]
        self.assertEqual([job["args"] for job in jobs], [[FILLER]] * JOBS)
        for job in jobs:
            self.assertEqual(self.up.call("POST", "workers/ack", {"job_id": job["id"]}).status, 200)

    def test_jobs_that_a_client_never_takes_come_back_uncounted(self):
        self.fill("--write-timeout", "1s")
        self.ask(receive_buffer=4096)
        eventually(lambda: self.counts()["available"] == JOBS)
        again = self.up.call("POST", "workers/fetch", {"queues": ["default"], "count": JOBS}).json["jobs"]
        self.assertEqual([job["attempt"] for job in again], [1] * JOBS)
