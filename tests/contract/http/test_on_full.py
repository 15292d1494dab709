# SPDX-License-Identifier: Apache-2.0
"""Clients of full queues, as ojs-backpressure 8 wants them, with nothing but what the gateway answers."""

import collections
import json

from gateways import OnGateway


class Clock:
    """A client's: it moves when the client waits. What else happens meanwhile, `meanwhile` does."""

    def __init__(self, meanwhile=None):
        self.now, self.waits, self._meanwhile = 0.0, [], meanwhile or (lambda waits: None)

    def wait(self, seconds):
        self.now += seconds
        self.waits.append(seconds)
        self._meanwhile(len(self.waits))


class Full(Exception):
    """The queue had no room; its member `error` is the gateway's."""

    def __init__(self, error):
        super().__init__(error["message"])
        self.error = error


class Client:
    """What a library for HTTP does on 429: tries again, stops asking for a while, keeps jobs for later."""

    def __init__(self, send, clock, retries=0, longest=30, breaker=0, cooldown=10, room=0):
        self._send, self._clock, self._retries, self._longest = send, clock, retries, longest
        self._breaker, self._cooldown, self._room = breaker, cooldown, room
        self._refusals, self._closed_until, self.buffer = 0, 0.0, collections.deque()

    def once(self, job):
        if self._breaker and self._refusals >= self._breaker and self._clock.now < self._closed_until:
            raise Full({"message": "the circuit is open"})
        reply = self._send(job)
        if reply.status != 429:
            self._refusals = 0
            return reply.json["job"]
        self._refusals += 1
        self._closed_until = self._clock.now + self._cooldown
        raise Full(reply.error | {"after": reply.headers["Retry-After"]})

    def submit(self, job):
        delay = 0
        for attempt in range(self._retries + 1):
            try:
                return self.once(job)
            except Full as full:
                if attempt == self._retries:
                    raise
                delay = min(2 * delay or int(full.error["after"] or 1), self._longest)
                self._clock.wait(delay)

    def submit_or_keep(self, job):
        try:
            return self.once(job)
        except Full:
            if len(self.buffer) == self._room:
                raise
            self.buffer.append(job)

    def flush(self):
        while self.buffer:
            self.once(self.buffer[0])
            self.buffer.popleft()


class OnFull(OnGateway):
    def setUp(self):
        self.configure(backpressure={"max_depth": 1})
        self.put_job()
        self.sent = 0

    def client(self, clock, **options):
        def send(job):
            self.sent += 1
            return self.call("POST", "jobs", job)
        return Client(send, clock, **options)

    def job(self, number=0):
        return {"type": "late", "args": [number], "queue": self.queue}

    def rejected(self):
        return json.loads(self.up.native("queue", "get", self.queue, "--json").stdout)["totals"]["rejected"]

    def test_BP_P1_a_client_waits_as_Retry_After_says_then_twice_as_long_and_gives_up(self):
        clock = Clock()
        with self.assertRaises(Full) as caught:
            self.client(clock, retries=4, longest=4).submit(self.job())
        self.assertEqual((caught.exception.error["code"], caught.exception.error["retryable"]), ("QUEUE_FULL", True))
        first = clock.waits[0]
        self.assertGreaterEqual(first, 1)
        self.assertEqual(clock.waits, [min(first * factor, 4) for factor in (1, 2, 4, 8)])
        self.assertEqual((self.sent, self.rejected(), self.stats()["depth"]), (5, 5, 1))

    def test_BP_P1_room_that_appears_while_it_waits_is_used(self):
        clock = Clock(lambda waits: self.fetch() if waits == 2 else None)
        job = self.client(clock, retries=9).submit(self.job(7))
        self.assertEqual((len(clock.waits), self.get(job)["args"], self.get(job)["state"]), (2, [7], "available"))
        self.assertEqual([each["id"] for each in self.fetch(9)], [job["id"]], "stored once")

    def test_BP_P2_five_refusals_in_a_row_open_the_circuit_and_a_success_closes_it(self):
        clock = Clock()
        client = self.client(clock, breaker=5)
        for _ in range(8):
            with self.assertRaises(Full):
                client.submit(self.job())
        self.assertEqual((self.sent, self.rejected()), (5, 5), "the others never came to the gateway")
        clock.wait(10)
        for _ in range(2):  # half open: one asks
            with self.assertRaises(Full):
                client.submit(self.job())
        self.assertEqual(self.rejected(), 6)
        self.fetch()
        clock.wait(10)
        self.assertEqual(client.submit(self.job())["state"], "available")
        with self.assertRaises(Full) as caught:
            client.submit(self.job())
        self.assertEqual(caught.exception.error["code"], "QUEUE_FULL", "closed: the gateway is asked")

    def test_BP_P3_a_buffer_with_a_bound_brings_its_jobs_in_order_when_there_is_room(self):
        client = self.client(Clock(), room=2)
        for number in (1, 2):
            self.assertIsNone(client.submit_or_keep(self.job(number)))
        with self.assertRaises(Full):
            client.submit_or_keep(self.job(3))
        with self.assertRaises(Full):
            client.flush()
        self.assertEqual((len(client.buffer), self.stats()["depth"]), (2, 1), "refused ones stay in the buffer")
        self.configure(backpressure={"max_depth": 9})
        client.flush()
        self.assertEqual(list(client.buffer), [])
        self.assertEqual([job["args"] for job in self.fetch(9)], [[], [1], [2]])
