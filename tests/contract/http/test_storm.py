# SPDX-License-Identifier: Apache-2.0
"""HTTP clients and native ones on one segment while gateways are killed; a ledger and a journal outside judge.
And bytes that mean nothing."""

import contextlib
import itertools
import json
import os
import random
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from gateways import BOUND, OnGateway, Up, end_with_parent, eventually, program

#: OJS_SHM_HTTP_STORM_JOBS makes it as long as one likes: some 100 jobs a second, and a kill for 60 of them.
JOBS = int(os.environ.get("OJS_SHM_HTTP_STORM_JOBS", 400))
LEASE = 2.0  # seconds


class Ledger:
    """Who holds which job, as far as clients can be sure: from the reply to a fetch until the ack is sent, the lease may
    have ended, or the gateway that gave the job was killed."""

    def __init__(self):
        self._lock, self._held, self.doubles = threading.Lock(), {}, []

    def took(self, job, gateway, asked, now):
        """A client that asked then has the job now."""
        with self._lock:
            before = self._held.get(job)
            if before is not None:
                giver, received, until = before
                # it was handed out again between the two times, while the first client had it
                if not giver.killed and received <= asked and now < until:
                    self.doubles.append((job, before, asked, now))
            self._held[job] = gateway, now, asked + LEASE

    def gives(self, job):
        with self._lock:
            self._held.pop(job, None)


class Journal:
    """A file of the begins and ends of holds, by HTTP clients and by the native worker. Each line is one write behind
    all others. So the lines stand in the order in which things happened, and no clocks are compared.

    The native worker holds a job at least from its command's first act to the last one: nothing kills the worker, and
    its lease of an hour does not end. The command succeeds, so its first hold of a job is the last hold of that job.

    An HTTP client holds a job from the reply to its fetch until it sends the ack or nack. It was sure of that when the
    lease could not have ended, and the gateway that gave the job lived, until the ack was answered. An ack of a client
    that was not sure may have ended the hold of another client. The journal does not judge such a job.
    """

    LEASE = "1h"
    COMMAND = ('echo "begin $OJS_JOB_ID native-$OJS_FENCE" >> "$0" && cat && '
               'echo "end $OJS_JOB_ID native-$OJS_FENCE" >> "$0"')

    def __init__(self, path):
        self.command = ["sh", "-c", self.COMMAND, path]
        self._path, self._sure, self._numbers = path, set(), itertools.count()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)

    def close(self):
        os.close(self._file)

    def _write(self, *words):
        line = (" ".join(words) + "\n").encode()
        assert os.write(self._file, line) == len(line)

    def begins(self, job):
        hold = f"http-{next(self._numbers)}"
        self._write("begin", job, hold)
        return hold

    def ends(self, job, hold):
        self._write("end", job, hold)

    def was_sure(self, hold):
        """Of an HTTP client; without this call it was not."""
        self._sure.add(hold)

    def lines(self):
        with open(self._path) as file:
            return [line.split() for line in file]

    def judge(self):
        """How many jobs the native worker had, how many of them are judged, and the lines of those that do not fit."""
        jobs = {}
        for word, job, hold in self.lines():
            jobs.setdefault(job, []).append((word, hold))
        native = {job: acts for job, acts in jobs.items() if any(hold.startswith("native-") for _, hold in acts)}
        judged = {job: acts for job, acts in native.items()
                  if all(hold in self._sure or hold.startswith("native-") for _, hold in acts)}
        return len(native), len(judged), {job: acts for job, acts in judged.items() if not self._fits(acts)}

    @staticmethod
    def _fits(acts):
        """Whether each hold before the native worker's had ended when that one began, and no hold began later."""
        first = next(place for place, (_, hold) in enumerate(acts) if hold.startswith("native-"))
        before, hold = acts[:first], acts[first][1]
        began, ended = ([each for word, each in before if word == wanted] for wanted in ("begin", "end"))
        return sorted(began) == sorted(ended) and acts[first:] == [("begin", hold), ("end", hold)]


class Gateway(Up):
    """One more gateway on a segment that a broker serves."""

    trust = None
    killed = False

    def __init__(self, folder):
        self.dir = folder

    def start(self):
        self.process = subprocess.Popen(
            [program("ojs-shm-gateway"), "--name", "storm", "--dir", self.dir, "--listen", "127.0.0.1:0", "--threads", "2"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=end_with_parent)
        self.url = self.process.stdout.readline().split()[1]
        return self

    def kill(self):
        self.killed = True
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Storm(unittest.TestCase):
    def test_no_job_is_lost_or_done_twice_while_gateways_are_killed(self):
        with tempfile.TemporaryDirectory(prefix="ojs-shm-http-storm-") as folder:
            broker = subprocess.Popen([program("ojs-shm-broker"), "--name", "storm", "--dir", folder, "--slots", str(max(8192, 2 * JOBS)),
                                       "--remove"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                      preexec_fn=end_with_parent)
            self.assertTrue(broker.stdout.readline().startswith("READY"))
            gateways = [Gateway(folder).start() for _ in range(2)]
            try:
                self.storm(folder, gateways)
            finally:
                for gateway in gateways:
                    gateway.kill()
                broker.terminate()
                broker.wait(BOUND)
                broker.stdout.close()

    def storm(self, folder, gateways):
        seed = random.randrange(1 << 32)
        print("# seed", seed)
        dice, lock = random.Random(seed), threading.Lock()
        asked, accepted, done, stop = set(), set(), [], threading.Event()
        ledger, journal = Ledger(), Journal(os.path.join(folder, "journal"))
        self.addCleanup(journal.close)

        def call(method, path, body, gateway=None):
            """None when the gateway died meanwhile: what became of the request is then open."""
            try:
                return (gateway or chosen()).call(method, path, body)
            except (OSError, ValueError, __import__("http.client").client.HTTPException):
                return None

        def chosen():
            with lock:
                return dice.choice(gateways)

        def put(number):
            with lock:
                asked.add(number)
            reply = call("POST", "jobs", {"type": "storm", "args": [number], "queue": "storm"})
            if reply is not None and reply.status == 201:
                with lock:
                    accepted.add(number)

        def produce(first):
            for number in range(first, JOBS, 2):
                put(number)

        def work(name):
            while not stop.is_set():
                gateway, began = chosen(), time.monotonic()
                reply = call("POST", "workers/fetch", {"queues": ["storm"], "count": 3, "wait_ms": 100,
                                                       "visibility_timeout_ms": int(LEASE * 1000)}, gateway)
                jobs = reply.json["jobs"] if reply is not None and reply.status == 200 else []
                for job in jobs:
                    ledger.took(job["id"], gateway, began, time.monotonic())
                holds = [journal.begins(job["id"]) for job in jobs]
                for job, hold in zip(jobs, holds):
                    with lock:
                        fate = dice.random()
                    if fate < 0.2:
                        call("POST", "workers/heartbeat", {"worker_id": f"w{name}", "active_jobs": [job["id"]]})
                        call("PUT", f"jobs/{job['id']}/progress", {"progress": fate, "checkpoint": {"at": fate}})
                    ledger.gives(job["id"])
                    journal.ends(job["id"], hold)
                    if fate < 0.1:
                        call("POST", "workers/nack", {"job_id": job["id"], "requeue": True})
                    else:
                        acked = call("POST", "workers/ack", {"job_id": job["id"], "result": name})
                        if acked is not None and acked.status == 200:
                            with lock:
                                done.append(job["args"][0])
                    if not gateway.killed and time.monotonic() < began + LEASE:
                        journal.was_sure(hold)

        native = subprocess.Popen([program("ojs-shm"), "work", "--queue", "storm", "--lease", Journal.LEASE,
                                   "--name", "storm", "--dir", folder, "--", *journal.command],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=end_with_parent)
        threads = [threading.Thread(target=produce, args=(first,)) for first in range(2)]
        threads += [threading.Thread(target=work, args=(name,)) for name in range(2)]
        try:
            put(JOBS)
            eventually(journal.lines)  # the native worker takes the first job, however slowly it starts
            for thread in threads:
                thread.start()
            for _ in range(max(6, JOBS // 60)):
                with lock:
                    place = dice.randrange(len(gateways))
                    wanted = len(accepted) + dice.randrange(1, 60)
                eventually(lambda: len(accepted) >= wanted or not threads[0].is_alive())
                gateways[place].kill()
                gateways[place] = Gateway(folder).start()
            for thread in threads[:2]:
                thread.join()
            while not self.has_ended(folder):
                completed = self.states(folder).get("completed", 0)
                eventually(lambda: self.has_ended(folder) or self.states(folder).get("completed", 0) > completed)
        finally:
            stop.set()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()
            native.terminate()
            native.wait(BOUND)
        self.assertEqual(ledger.doubles, [], "two held a job at once")
        native_jobs, judged, wrong = journal.judge()
        self.assertEqual(wrong, {}, "a job that the native worker held was held by another client then or later")
        self.assertGreater(judged, 0, "no job of the native worker could be judged")
        listed = [json.loads(line) for line in self.listed(folder)]
        there = [job["args"][0] for job in listed]
        self.assertEqual(len(there), len(set(there)), "a job was stored twice")
        self.assertLessEqual(accepted, set(there), "a job whose enqueue was answered is gone")
        self.assertLessEqual(set(there), asked)
        self.assertEqual(len(done), len(set(done)), "an ack was taken twice")
        print(f"# {len(there)} jobs, {len(done)} by HTTP, {native_jobs} by the native worker, {judged} of them judged,",
              len(asked) - len(accepted), "requests without an answer")

    def test_the_ledger_sees_two_holders_and_no_others(self):
        class Giver:
            killed = False
        first, ledger = Giver(), Ledger()
        ledger.took("a", first, 1.0, 1.1)
        ledger.took("a", first, 1.05, 1.2)  # asked before the first had it: it may have gone back unseen
        ledger.took("b", first, 1.0, 1.1)
        ledger.took("b", first, 1.0 + LEASE, 1.2 + LEASE)
        ledger.took("c", first, 1.0, 1.1)
        ledger.gives("c")
        ledger.took("c", first, 1.2, 1.3)
        self.assertEqual(ledger.doubles, [])
        ledger.took("d", first, 1.0, 1.1)
        ledger.took("d", Giver(), 1.2, 1.3)
        self.assertEqual([double[0] for double in ledger.doubles], ["d"])
        first.killed = True
        ledger.took("b", Giver(), 3.3, 3.4)
        self.assertEqual(len(ledger.doubles), 1)

    def judgement(self, *lines, sure=("http-1", "http-2")):
        """Of a journal with these lines."""
        with tempfile.TemporaryDirectory(prefix="ojs-shm-http-storm-") as folder:
            path = os.path.join(folder, "journal")
            with contextlib.closing(Journal(path)) as journal:
                for hold in sure:
                    journal.was_sure(hold)
                with open(path, "a") as file:
                    file.writelines(line + "\n" for line in lines)
                return journal.judge()

    def test_the_journal_sees_a_native_holder_beside_an_HTTP_one(self):
        native, first = ["begin a native-7", "end a native-7"], ["begin a http-1", "end a http-1"]
        for good in (native, first + native, [first[0], "begin b http-2", first[1], *native, "end b http-2"]):
            self.assertEqual(self.judgement(*good), (1, 1, {}), good)
        self.assertEqual(self.judgement(*first), (0, 0, {}))
        for bad in ([first[0], native[0], first[1], native[1]], [first[0], *native, first[1]],
                    [native[0], first[0], native[1], first[1]], [native[0], *first, native[1]],
                    native + first, native + ["begin a native-8", "end a native-8"], [first[0], *native]):
            self.assertEqual(self.judgement(*bad)[2].keys(), {"a"}, bad)
            if any("http" in line for line in bad):
                self.assertEqual(self.judgement(*bad, sure=()), (1, 0, {}), "a client that was not sure shows nothing")

    def test_a_native_command_writes_what_the_journal_reads(self):
        with tempfile.TemporaryDirectory(prefix="ojs-shm-http-storm-") as folder, \
                contextlib.closing(Journal(os.path.join(folder, "journal"))) as journal:
            hold = journal.begins("a")
            ran = subprocess.run(journal.command, input="[1]", capture_output=True, text=True, timeout=BOUND,
                                 env={**os.environ, "OJS_JOB_ID": "b", "OJS_FENCE": "7"}, check=True)
            journal.ends("a", hold)
            self.assertEqual(ran.stdout, "[1]")
            acts = ("begin", "a", hold), ("begin", "b", "native-7"), ("end", "b", "native-7"), ("end", "a", hold)
            self.assertEqual(journal.lines(), [list(act) for act in acts])

    def has_ended(self, folder):
        return self.states(folder).keys() <= {"completed"}

    @staticmethod
    def listed(folder):
        seen = subprocess.run([program("ojs-shm"), "list", "--queue", "storm", "--limit", "0", "--json", "--name", "storm",
                               "--dir", folder], capture_output=True, text=True, timeout=BOUND)
        return seen.stdout.splitlines()

    def states(self, folder):
        states = {}
        for line in self.listed(folder):
            state = json.loads(line)["state"]
            states[state] = states.get(state, 0) + 1
        return states


class Noise(OnGateway):
    def test_an_empty_body_is_answered_everywhere(self):
        for method, path in (("PUT", "admin/queues/q/config"), ("POST", "queues"), ("PUT", "admin/pools/p"),
                             ("PUT", "rate-limits/k"), ("POST", "jobs"), ("POST", "jobs/batch"), ("POST", "cron"),
                             ("PATCH", "cron/c"), ("POST", "workflows"), ("POST", "workers/fetch"), ("POST", "workers/ack")):
            self.assertLess(self.call(method, path).status, 500, (method, path))

    def test_bytes_that_mean_nothing_end_no_gateway(self):
        seed = random.randrange(1 << 32)
        print("# seed", seed)
        dice = random.Random(seed)
        host, port = self.up.address.split(":")
        paths = ["/ojs/v1/jobs", "/ojs/v1/jobs/batch", "/ojs/v1/workers/fetch", "/ojs/v1/workers/ack", "/ojs/v1/workers/nack",
                 "/ojs/v1/workers/heartbeat", "/ojs/v1/admin/pools/p", "/ojs/v1/admin/queues/q/config", "/ojs/v1/queues",
                 "/ojs/v1/rate-limits/k", "/ojs/v1/events", "/ojs/v1/jobs/%zz", "/ojs/v1/jobs/results", "/%00", "/a?%"]
        values = ["null", "true", "-0", "1e999", "9" * 40, '""', '"\\ud800"', '"PT1S"', "[]", "{}", '["a"]', '{"a":1,"a":2}',
                  "[" * 200 + "]" * 200, '"' + "x" * 3000 + '"', '"2026-99-99T00:00:00Z"', '"+PT9999999999999S"']
        names = ["type", "args", "queue", "priority", "options", "retry", "jobs", "queues", "count", "job_id", "error", "worker_id",
                 "active_jobs", "visibility_timeout_ms", "backpressure", "aging", "rate_limit", "scheduled_at", "meta", "weights",
                 "strategy", "concurrency", "rate", "name", "wait_ms", "job_ids", "unique"]
        for _ in range(600):
            body = "{" + ",".join(f'"{dice.choice(names)}":{dice.choice(values)}' for _ in range(dice.randrange(6))) + "}"
            data = bytearray(body.encode())
            for _ in range(dice.choice((0, 0, 1, 3))):
                if data:
                    data[dice.randrange(len(data))] = dice.randrange(256)
            head = bytearray(f"{dice.choice(('POST', 'PUT', 'GET', 'PATCH', 'DELETE'))} {dice.choice(paths)} HTTP/1.1\r\nHost: x\r\n"
                             f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n".encode())
            if dice.random() < 0.2:
                head[dice.randrange(len(head))] = dice.randrange(256)
            with socket.create_connection((host, int(port)), timeout=BOUND) as client:
                answer = b""
                with contextlib.suppress(OSError):  # a gateway that has refused it may have closed by now
                    client.sendall(head + data)
                    client.shutdown(socket.SHUT_WR)
                with contextlib.suppress(ConnectionError):
                    answer = client.recv(64)
                if answer.startswith(b"HTTP/1.1 "):
                    self.assertNotIn(answer[9:12], (b"500",), (seed, bytes(head + data)))
        self.call("GET", "health", expect=200)
