# SPDX-License-Identifier: Apache-2.0
"""How the gateway behaves towards clients that are odd, and how it begins and ends."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import resource
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest

from gateways import BOUND, OnGateway, Up, eventually, program, stop


def post(path, value, more=b""):
    """The bytes of a request with a value as JSON, and with `more` header lines."""
    body = json.dumps(value).encode()
    return (b"POST /ojs/v1/%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s"
            % (path.encode(), more, len(body), body))


class Raw:
    """A connection whose bytes the test writes itself."""

    def __init__(self, up):
        self.socket = up.dial()
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def send(self, text):
        self.socket.sendall(text if isinstance(text, bytes) else text.encode())

    def flood(self, up):
        """Asks for large replies, and takes none, until the gateway reads no more: a write to this client is blocked."""
        asked = b"GET /ojs/v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 64
        self.socket.setblocking(False)
        end, full_since = time.monotonic() + BOUND, None
        while full_since is None or time.monotonic() - full_since < 0.2:
            assert time.monotonic() < end, "the gateway reads all that is sent, and its client takes nothing"
            try:
                self.socket.send(asked)
                full_since = None
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                full_since = full_since or time.monotonic()
                time.sleep(0.01)
        self.socket.setblocking(True)

    def status(self):
        """Of the next reply, which is read whole; 0 when the connection has ended."""
        return self.reply()[0]

    def reply(self):
        """Status and body of the next reply; 0 and no bytes when the connection has ended."""
        line = self.file.readline().split()
        if not line:
            return 0, b""
        length = 0
        while (header := self.file.readline().strip()):
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return int(line[1]), self.file.read(length)


class Patience(unittest.TestCase):
    @staticmethod
    def in_time(ask):
        """What it gets; again when this side was too slow itself, on a busy machine."""
        def once():
            with contextlib.suppress(ConnectionError):
                return ask()
        return eventually(once)

    def test_a_client_that_is_too_slow_is_dropped_and_one_that_waits_is_not(self):
        with Up("--request-timeout", "300ms", "--idle-timeout", "400ms") as up:
            with Raw(up) as slow, Raw(up) as quiet:
                slow.send("POST /ojs/v1/jobs HTTP/1.1\r\nHo")
                self.assertEqual(slow.file.read(), b"", "in the middle of its head")
                self.assertEqual(quiet.file.read(), b"", "before its first request")
            with Raw(up) as half:
                half.send("POST /ojs/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
                self.assertEqual(half.file.read(), b"", "in the middle of its body")
            # what has begun is answered, however long it takes
            polled = self.in_time(lambda: up.call("POST", "workers/fetch", {"queues": ["none"], "wait_ms": 1500}))
            self.assertEqual((polled.status, polled.json["jobs"]), (200, []))

            def listen():
                stream = up.connection()
                stream.request("GET", "/ojs/v1/events/stream")
                return stream, stream.getresponse()
            stream, told = self.in_time(listen)
            time.sleep(1)
            self.in_time(lambda: up.call("POST", "jobs", {"type": "late", "args": []}))
            self.assertTrue(eventually(lambda: b"job.enqueued" in told.readline()), "a stream has no end")
            stream.close()


    def test_a_client_that_takes_no_reply_is_dropped(self):
        with Up("--write-timeout", "1s") as up, Raw(up) as raw:
            eventually(lambda: self.connections(up) == 1)
            begun = time.monotonic()
            with contextlib.suppress(ConnectionError):  # it is dropped already
                raw.flood(up)
            eventually(lambda: self.connections(up) == 0)
            self.assertGreaterEqual(time.monotonic() - begun, 1, "it has the time that it is given")
            self.assertEqual(up.call("GET", "/healthz").status, 200)

    def test_a_client_that_does_not_read_its_stream_is_dropped(self):
        with Up("--write-timeout", "1s") as up, Raw(up) as raw:
            raw.send("GET /ojs/v1/events/stream HTTP/1.1\r\nHost: x\r\n\r\n")
            raw.file.readline()
            jobs = {"jobs": [{"type": "fill", "args": [], "queue": "fill"}] * 500}
            ended = False
            while not ended:
                up.call("POST", "jobs/batch", jobs)
                up.call("POST", "admin/jobs/bulk/cancel", {"filter": {"queue": "fill"}, "confirm": True})
                ended = self.connections(up) == 0
            self.assertEqual(up.call("GET", "/healthz").status, 200)

    @staticmethod
    def connections(up):
        """Established ones at the gateway's port, but for those that are closing."""
        port = int(up.address.rpartition(":")[2])
        rows = [line.split() for line in open("/proc/net/tcp").readlines()[1:]]
        return sum(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


class Manners(OnGateway):
    many = 5000

    def test_requests_may_be_sent_ahead(self):
        with Raw(self.up) as raw:
            raw.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
            self.assertEqual([raw.status() for _ in range(3)], [200, 200, 200])

    def test_a_gateway_that_was_asked_fast_sleeps_afterwards(self):
        with contextlib.closing(self.up.connection()) as connection:
            for _ in range(300):
                connection.request("GET", "/health")
                connection.getresponse().read()
            threads = pathlib.Path(f"/proc/{self.up.child('ojs-shm-gateway')}/task")
            looks = []

            def sleeps_on():
                looks.append({(each / "stat").read_text().rpartition(")")[2].split()[0] for each in threads.iterdir()})
                return looks[-20:] == [{"S"}] * 20
            eventually(sleeps_on)

    def test_what_is_no_request_is_refused_and_the_connection_ends(self):
        for text, status in (("GET / HTTP/9\r\n\r\n", 400), ("\x00\x01\x02\r\n\r\n", 400),
                             (f"GET / HTTP/1.1\r\nA: {'x' * 40000}\r\n\r\n", 431),
                             ("POST /ojs/v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
                             ("POST /ojs/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n", 413)):
            with Raw(self.up) as raw:
                raw.send(text)
                self.assertEqual((raw.status(), raw.status()), (status, 0), text[:40])

    def test_a_body_in_another_coding_is_not_the_next_request(self):
        for coding in ("xchunked", "identity", "gzip", "gzip, chunked", "chunked, identity", "chunked, chunked", "",
                       "chunked\r\nTransfer-Encoding: chunked"):
            with Raw(self.up) as raw:
                raw.send(f"GET /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: {coding}\r\n\r\n"
                         "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertEqual((raw.status(), raw.status()), (400, 0), coding)
        with Raw(self.up) as raw:
            raw.send("GET /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n"
                     "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual((raw.status(), raw.status()), (200, 200))

    def test_what_is_no_request_is_refused_without_a_body_when_it_asks_for_the_head_alone(self):
        for text, status in (("HEAD /\x01 HTTP/1.1\r\n\r\n", 400), (f"HEAD / HTTP/1.1\r\nA: {'x' * 40000}\r\n\r\n", 431),
                             ("HEAD / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999\r\n\r\n", 413)):
            with Raw(self.up) as raw:
                raw.send(text)
                head, _, body = raw.file.read().partition(b"\r\n\r\n")
                self.assertEqual((int(head.split()[1]), body), (status, b""), text[:40])

    def test_a_client_is_told_that_its_body_is_too_long_however_much_it_sends_before_it_reads(self):
        for size in (2 << 20, 16 << 20):
            with contextlib.closing(self.up.connection()) as connection:
                connection.request("POST", "/ojs/v1/jobs", b"x" * size, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                self.assertEqual((answer.status, json.loads(answer.read())["error"]["code"]), (413, "envelope_too_large"))

    def test_a_client_that_asks_first_is_told_to_go_on(self):
        body = json.dumps({"type": "asks.first", "args": [], "queue": self.queue}).encode()
        with Raw(self.up) as raw:
            raw.send(b"POST /ojs/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-Continue\r\n"
                     b"Content-Length: %d\r\n\r\n" % len(body))
            self.assertEqual(raw.status(), 100)
            raw.send(body)
            self.assertEqual(raw.status(), 201)

    def test_what_stands_behind_a_body_in_pieces_is_no_header(self):
        body = json.dumps({"type": "in.pieces", "args": [], "queue": self.queue}).encode()
        pieces = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (body[:7], body[7:]))
        with Raw(self.up) as raw:
            raw.send(b"POST /ojs/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                     b"Transfer-Encoding: chunked\r\nTrailer: X-OJS-Tenant\r\n\r\n" + pieces + b"0\r\nX-OJS-Tenant: b\r\n\r\n")
            self.assertEqual(raw.status(), 201)
        self.assertEqual([job["meta"] for job in self.fetch()], [{}])

    def test_clients_that_stand_still_leave_others_served(self):
        still = [Raw(self.up) for _ in range(50)]
        try:
            for number, raw in enumerate(still):
                if number % 3 == 0:
                    raw.send("POST /ojs/v1/jobs HTTP/1.1\r\nHo")  # in the middle of its head
                elif number % 3 == 1:
                    raw.flood(self.up)
            self.call("GET", "health", expect=200)
            self.put_job()
        finally:
            for raw in still:
                raw.__exit__()

    def test_a_client_that_closes_its_half_is_answered(self):
        with Raw(self.up) as raw:
            raw.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            raw.socket.shutdown(socket.SHUT_WR)
            self.assertEqual(raw.status(), 200)

    def test_a_job_whose_client_went_during_a_long_poll_comes_back(self):
        body = json.dumps({"queues": [self.queue], "wait_ms": 2000}).encode()
        with Raw(self.up) as raw:
            raw.send(b"POST /ojs/v1/workers/fetch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                     b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        job = self.put_job()
        eventually(lambda: self.get(job)["state"] == "available")
        got = eventually(self.fetch)
        self.assertEqual((got[0]["id"], got[0]["attempt"]), (job["id"], 1))

    def test_a_job_that_was_fetched_for_a_client_that_went_comes_back_uncounted(self):
        job = self.put_job()
        body = json.dumps({"queues": [self.queue]}).encode()
        gateway = self.up.child("ojs-shm-gateway")
        with Raw(self.up) as raw:
            stop(gateway)  # so that it sees the request only when its client has gone
            raw.send(b"POST /ojs/v1/workers/fetch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                     b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        os.kill(gateway, signal.SIGCONT)
        told = f"events?types=job.started&queues={self.queue}"
        eventually(lambda: self.call("GET", told, expect=200).json["events"])
        got = eventually(self.fetch)
        self.assertEqual((got[0]["id"], got[0]["attempt"]), (job["id"], 1))

    def test_a_client_that_went_leaves_its_place_whatever_it_sent_ahead(self):
        self.configure(backpressure={"max_depth": 1, "strategy": "block"})
        self.put_job()
        body = b'{"type":"late","args":[],"queue":"%s"}' % self.queue.encode()
        with Raw(self.up) as raw:
            raw.send(b"POST /ojs/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                     b"OJS-Block-Timeout: 600\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            eventually(lambda: self.stats()["waiting"] == 1)
            raw.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        eventually(lambda: self.stats()["waiting"] == 0)
        self.assertEqual(self.stats()["enqueued_total"], 1)

    def test_HEAD_has_no_body(self):
        reply = self.call("HEAD", "/ojs/manifest", expect=200)
        self.assertEqual((reply.body, int(reply.headers["Content-Length"]) > 0), (b"", True))

    def test_metrics_are_the_exporters(self):
        self.put_job()
        reply = self.call("GET", "/metrics", expect=200)
        self.assertTrue(reply.headers["Content-Type"].startswith("text/plain"))
        self.assertIn(b'ojs_segment_up{segment="test"} 1', reply.body)

    def test_an_event_of_a_traced_job_names_its_trace(self):
        self.put_job(meta={"trace_id": "t-1"})
        events = self.call("GET", "events?queues=" + self.queue, expect=200).json["events"]
        self.assertEqual([event["data"]["trace_id"] for event in events], ["t-1"])

    def test_a_trace_that_is_no_short_text_is_not_told(self):
        for trace, told in (("t" * 128, "t" * 128), ("t" * 129, None), ({"t": 1}, None)):
            job = self.put_job(meta={"trace_id": trace})
            events = eventually(lambda: self.call("GET", "events?jobs=" + job["id"], expect=200).json["events"])
            self.assertEqual(events[0]["data"].get("trace_id"), told, trace)

    def test_OpenMetrics_for_who_prefers_it(self):
        headers = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"}
        reply = self.call("GET", "/metrics", expect=200, headers=headers)
        self.assertTrue(reply.headers["Content-Type"].startswith("application/openmetrics-text"))
        self.assertTrue(reply.body.endswith(b"# EOF\n"))

    def test_many_connections_take_no_threads(self):
        """Listeners, blocked enqueues, long polls and idle ones at once; others are served meanwhile."""
        self.allow_descriptors(self.many + 200)
        self.configure(backpressure={"max_depth": 1, "strategy": "block"})
        self.put_job()
        blocked = post("jobs", {"type": "late", "args": [], "queue": self.queue}, b"OJS-Block-Timeout: 600\r\n")
        listen = b"GET /ojs/v1/events/stream HTTP/1.1\r\nHost: x\r\n\r\n"
        before, clients, polls = self.threads(), [], []
        try:
            for number in range(self.many):
                clients.append(Raw(self.up))
                if number % 50 == 0:
                    clients[-1].send(blocked)
                elif number % 3 == 0:
                    clients[-1].send(listen)
                elif number % 3 == 1:
                    polls.append(clients[-1])
            eventually(lambda: self.stats()["waiting"] == len(range(0, self.many, 50)))
            # A poll waits for two seconds at most: all of them are sent behind what takes longer.
            for poll in polls:
                poll.send(post("workers/fetch", {"queues": [self.queue + "-polled"], "wait_ms": 2000}))
            self.call("GET", "health", expect=200)
            # Each thread that serves may have one that awaits jobs and room, and one more awaits events.
            # Without --threads at most four serve.
            self.assertLessEqual(self.threads() - before, 5, "threads for those that wait")
            self.each_is_answered_and_each_job_is_handed_out_once(polls)
            self.assertEqual(len(self.fetch()), 1)
            eventually(lambda: self.stats()["enqueued_total"] == 2)
            self.call("GET", "health", expect=200)
            print("#", self.many, "connections,", len(polls), "of them long polls,", self.threads(), "threads")
        finally:
            for client in clients:
                client.__exit__()
        eventually(lambda: self.stats()["waiting"] == 0)

    def allow_descriptors(self, wanted):
        """For this test; it is not run where so many are not allowed, because a smaller number would show less."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < wanted:
            self.skipTest(f"{self.many} connections need {wanted} descriptors, and RLIMIT_NOFILE allows {hard}")
        if soft != resource.RLIM_INFINITY and soft < wanted:
            self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    def each_is_answered_and_each_job_is_handed_out_once(self, polls):
        """How many of them get a job depends on how fast the machine is; the jobs that are left are fetched here."""
        queue, jobs = self.queue + "-polled", 50
        batch = {"jobs": [{"type": "poll", "args": [], "queue": queue}] * jobs}
        made = self.call("POST", "jobs/batch", batch, expect=201)
        replies = [poll.reply() for poll in polls]
        self.assertEqual({status for status, _ in replies}, {200})
        handed_out = [job["id"] for _, body in replies for job in json.loads(body)["jobs"]]
        handed_out += [job["id"] for job in self.fetch(jobs, queues=[queue])]
        self.assertCountEqual(handed_out, [job["id"] for job in made.json["jobs"]])

    def threads(self):
        status = open(f"/proc/{self.up.child('ojs-shm-gateway')}/status").read()
        return int(re.search(r"^Threads:\s*(\d+)", status, re.M)[1])

    def test_the_description_names_what_is_served(self):
        description = self.call("GET", "openapi.json", expect=200).json
        self.assertEqual(description["openapi"], "3.1.0")
        for path, methods in description["paths"].items():
            for method, operation in methods.items():
                if "text/event-stream" in json.dumps(operation) or "bulk" in path or "test" in path or "purge" in path:
                    continue
                asked = path
                for name in ("id", "name", "key", "uri"):
                    asked = asked.replace("{%s}" % name, "019b2c3d-4e5f-7a6b-8c9d-0e1f2a3b4c5d")
                reply = self.call(method.upper(), asked, None if method in ("get", "delete") else {})
                self.assertNotEqual(reply.status, 405, (method, path))
                self.assertLess(reply.status, 500, (method, path, reply.body))
                if reply.status == 404:
                    self.assertIn("resource_type", reply.error["details"], (method, path))

    def stream(self, query, headers=None):
        connection = self.up.connection()
        self.addCleanup(connection.close)
        connection.request("GET", "/ojs/v1/" + query, headers=headers or {})
        answer = connection.getresponse()
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "text/event-stream"))
        return answer

    @staticmethod
    def next_event(answer):
        event = {}
        while (line := answer.readline().decode().rstrip("\n")) or not event:
            name, _, value = line.partition(": ")
            if name not in ("", "retry"):
                event[name] = value
        return event

    def test_a_stream_tells_what_happens_and_goes_on_behind_an_id(self):
        first = self.stream(f"events/stream?channel=queue:{self.queue}&types=job.enqueued,job.completed")
        job = self.put_job()
        event = self.next_event(first)
        data = json.loads(event["data"])
        self.assertEqual((event["event"], event["id"], data["data"]["job_id"]), ("job.enqueued", data["id"], job["id"]))
        self.fetch()
        self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)
        self.assertEqual(self.next_event(first)["event"], "job.completed")
        again = self.stream(f"queues/{self.queue}/events?types=job.completed", {"Last-Event-ID": event["id"]})
        self.assertEqual(self.next_event(again)["event"], "job.completed")
        lost = self.stream("events/stream", {"Last-Event-ID": "evt_gone"})
        self.assertEqual(self.next_event(lost)["event"], "system.gap")
        self.call("GET", "events?after=evt_gone", expect=410)


class Beginning(unittest.TestCase):
    def test_a_unix_socket(self):
        with Up(listen="unix:{dir}/socket") as up:
            spoken = http.client.HTTPConnection("localhost", timeout=BOUND)
            spoken.sock = socket.socket(socket.AF_UNIX)
            spoken.sock.connect(os.path.join(up.dir, "socket"))
            spoken.request("GET", "/health")
            self.assertEqual(spoken.getresponse().status, 200)
            spoken.close()
            path = os.path.join(up.dir, "socket")
            up.process.terminate()
            self.assertEqual(up.process.wait(BOUND), 0)
            self.assertFalse(os.path.exists(path))

    def test_tokens_have_scopes(self):
        with tempfile.NamedTemporaryFile("w", suffix=".tokens") as file:
            file.write("# who may what\nreader-0123456789 read\nwriter-0123456789 read,write\nboss-0123456789ab admin\n")
            file.flush()
            with Up("--token-file", file.name) as up:
                job = {"type": "a", "args": []}

                def status(token, method, path, body=None):
                    return up.call(method, path, body, {"Authorization": "Bearer " + token} if token else {}).status
                self.assertEqual(status("", "GET", "/health"), 200)
                self.assertEqual(up.call("GET", "queues").headers["WWW-Authenticate"], "Bearer")
                self.assertEqual([status(token, "GET", "queues") for token in ("", "wrong-0123456789", "reader-0123456789")],
                                 [401, 401, 200])
                self.assertEqual([status(token, "POST", "jobs", job) for token in ("reader-0123456789", "writer-0123456789")],
                                 [403, 201])
                pause = ("POST", "queues/default/pause")
                self.assertEqual([status(token, *pause) for token in ("writer-0123456789", "boss-0123456789ab")], [403, 200])

    def test_by_default_100000_jobs_and_256_queues_fit_into_the_shm_of_a_container(self):
        def capacities(up):
            told = json.loads(up.native("stats", "--json").stdout)
            return {pool["name"]: pool["capacity"] for pool in told["pools"]}

        with Up(size=()) as up:
            self.assertLessEqual(os.path.getsize(os.path.join(up.dir, "ojs-shm.test")), 64 << 20)
            self.assertGreaterEqual(capacities(up)["slots"], 100_000)
            self.assertEqual(capacities(up)["queues"], 256)
        with Up("--max-queues=8", size=("--slots", "500")) as up:
            self.assertEqual((capacities(up)["queues"], capacities(up)["slots"]), (8, 500))

    def test_test_hooks_are_off_unless_asked_for(self):
        with Up() as up:
            for path in ("test/reset", "test/clock"):
                self.assertEqual(up.call("POST", path, {}).status, 404)

    def test_a_name_or_a_port_in_use_is_3(self):
        with Up() as up, tempfile.TemporaryDirectory() as other:
            for where, listen in ((up.dir, "127.0.0.1:0"), (other, up.address)):
                ended = subprocess.run([program("ojs-shm"), "up", "--name", "test", "--dir", where, "--listen", listen],
                                       capture_output=True, text=True, timeout=BOUND)
                self.assertEqual((ended.returncode, ended.stdout), (3, ""), ended.stderr)
            self.assertEqual([name for name in os.listdir(other) if not name.endswith(".lock")], [])

    def test_an_address_beyond_loopback_needs_a_token(self):
        with tempfile.TemporaryDirectory() as folder:
            ended = subprocess.run([program("ojs-shm"), "up", "--name", "test", "--dir", folder, "--listen", "0.0.0.0:0"],
                                   capture_output=True, text=True, timeout=BOUND)
            self.assertEqual(ended.returncode, 7, ended.stderr)
            self.assertIn("--token-file", ended.stderr)

    def test_an_address_beyond_loopback_is_taken_with_tokens_or_when_it_is_open_to_all(self):
        with tempfile.NamedTemporaryFile("w", suffix=".tokens") as file:
            file.write("reader-0123456789 read\n")
            file.flush()
            token = {"Authorization": "Bearer reader-0123456789"}
            for flags, headers, status_without in ((("--open",), {}, 200), (("--token-file", file.name), token, 401)):
                with self.subTest(flags=flags), Up(*flags, listen="0.0.0.0:0") as up:
                    host, port = up.address.split(":")
                    self.assertEqual(host, "0.0.0.0")

                    def status(headers):
                        # An address that 127.0.0.1 alone would not serve, and a name that loopback alone would refuse.
                        spoken = http.client.HTTPConnection("127.0.0.9", int(port), timeout=BOUND)
                        return up.call("GET", "queues", None, {"Host": "jobs.example"} | headers, spoken).status
                    self.assertEqual((status(headers), status({})), (200, status_without))

    def test_when_one_dies_the_other_is_stopped(self):
        for name in ("ojs-shm-gateway", "ojs-shm-broker"):
            with Up() as up:
                os.kill(up.child(name), 9)
                self.assertEqual(up.process.wait(BOUND), 1)

    def test_the_end_keeps_unfinished_jobs_and_tells_streams(self):
        with tempfile.TemporaryDirectory() as folder:
            words = [program("ojs-shm"), "up", "--name", "kept", "--dir", folder, "--listen", "127.0.0.1:0"]
            for state in ("made", "there"):
                up = Up()
                up.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                up.url = up.process.stdout.readline().split()[1]
                if state == "made":
                    job = up.call("POST", "jobs", {"type": "a", "args": []}).json["job"]["id"]
                    stream = up.connection()
                    stream.request("GET", "/ojs/v1/events/stream")
                    answer = stream.getresponse()
                else:
                    self.assertEqual(up.call("GET", "jobs/" + job).json["job"]["state"], "available")
                    up.call("DELETE", "jobs/" + job)
                up.process.terminate()
                if state == "made":
                    self.assertIn(b"server.shutdown", answer.read())
                    stream.close()
                self.assertEqual(up.process.wait(BOUND), 0)
                up.process.stdout.close()
