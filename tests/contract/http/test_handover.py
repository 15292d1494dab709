# SPDX-License-Identifier: Apache-2.0
"""Whose a job is while it is on its way to a client: the gateway's, and its lease's once the client has it."""

import http.client
import json
import signal
import socket
import subprocess

from gateways import BOUND, OnPrograms, eventually, program

JOBS = 90
#: So many bytes of each that no kernel's buffers hold the reply.
FILLER = "x" * 60_000


class HandOver(OnPrograms):
    def setUp(self):
        super().setUp()
        broker = self.start("ojs-shm-broker", "--slots", "1024", "--size", "64M", "--remove")
        broker.stdout.readline()

    def gateway(self):
        """The process, and host and port of its socket."""
        process = self.start("ojs-shm-gateway", "--listen", "127.0.0.1:0", "--threads", "1")
        host, port = process.stdout.readline().split()[1].removeprefix("http://").split(":")
        return process, (host, int(port))

    def call(self, address, method, path, body):
        spoken = http.client.HTTPConnection(*address, timeout=BOUND)
        self.addCleanup(spoken.close)
        spoken.request(method, "/ojs/v1/" + path, json.dumps(body), {"Content-Type": "application/json"})
        answer = spoken.getresponse()
        text = answer.read()
        self.assertLess(answer.status, 300, text)
        return json.loads(text)

    def states(self):
        listed = subprocess.run([program("ojs-shm"), "list", "--json", "--limit", "1000", "--name", "test", "--dir", self.dir],
                                capture_output=True, text=True, timeout=BOUND, check=True).stdout
        return [job["state"] for job in map(json.loads, listed.splitlines())]

    def test_a_gateway_that_is_killed_while_it_replies_gives_the_jobs_back_uncounted(self):
        first, address = self.gateway()
        self.call(address, "POST", "jobs/batch", {"jobs": [{"type": "small", "args": [], "options": {"queue": "small"}}]})
        got = self.call(address, "POST", "workers/fetch", {"queues": ["small"]})["jobs"][0]
        for _ in range(JOBS // 10):
            self.call(address, "POST", "jobs/batch", {"jobs": [{"type": "large", "args": [FILLER]}] * 10})
        with socket.socket() as slow:  # a client that reads nothing
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(address)
            body = json.dumps({"queues": ["default"], "count": JOBS})
            slow.sendall(f"POST /ojs/v1/workers/fetch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
            slow.recv(1, socket.MSG_PEEK)  # the reply has begun
            eventually(lambda: self.states().count("active") == JOBS + 1)
            first.send_signal(signal.SIGKILL)
            first.wait()
        eventually(lambda: self.states().count("active") == 1)
        _, address = self.gateway()
        again = self.call(address, "POST", "workers/fetch", {"queues": ["default"], "count": JOBS})["jobs"]
        self.assertEqual([job["attempt"] for job in again], [1] * JOBS)
        self.assertFalse([job for job in again if job.get("errors")])
        self.call(address, "POST", "workers/ack", {"job_id": got["id"]})
