# SPDX-License-Identifier: Apache-2.0
"""Requests about many jobs that come twice with an idempotency key. Source: ojs-bulk-operations 10."""

import concurrent.futures
import http.client
import json
import signal
import socket
import subprocess
import threading
import time

from gateways import BOUND, OnGateway, OnPrograms, eventually, program

DAY_MS = 24 * 60 * 60 * 1000


class Receipts(OnGateway):
    def job(self, *args, **members):
        return {"type": "test.again", "args": list(args), "queue": self.queue, **members}

    def bulk(self, *jobs, key=None, header=None, expect=201, path="jobs/bulk", tenant=None, **members):
        headers = ({"Idempotency-Key": header} if header else {}) | ({"X-OJS-Tenant": tenant} if tenant else {})
        body = ({"jobs": list(jobs)} if jobs else {}) | ({"idempotency_key": key} if key is not None else {}) | members
        return self.call("POST", path, body, headers=headers, expect=expect)

    def ids(self, reply):
        return [item["job"]["id"] for item in reply.json["items"]]

    def receipt(self, key):
        listed = self.up.native("list", "--json", "--queue", "ojs.receipts", "--state", "pending", "--limit", "1000").stdout
        return next(job for job in map(json.loads, listed.splitlines()) if job["args"][0]["key"] == key)

    def test_the_same_request_is_answered_as_before_and_stores_nothing(self):
        jobs = [self.job(1), self.job(2)]
        first = self.bulk(*jobs, key="same")
        self.assertEqual(len(self.fetch(10)), 2)
        again = self.bulk(*jobs, key="same")
        self.assertEqual(again.body, first.body)
        self.assertEqual(again.headers["X-OJS-Batch-Size"], "2")
        self.assertEqual(self.fetch(10), [])
        spaced = json.dumps({"idempotency_key": "same", "jobs": jobs}, indent=2).encode()
        self.assertEqual(self.call("POST", "jobs/bulk", spaced, expect=201).body, first.body)

    def test_what_failed_fails_again(self):
        self.configure(backpressure={"max_depth": 1})
        jobs = [self.job(1), self.job(2), self.job(type="")]
        first = self.bulk(*jobs, key="failed", expect=207)
        self.fetch()
        self.assertEqual(self.bulk(*jobs, key="failed", expect=207).body, first.body)
        refused = self.bulk(self.job(type=""), key="none", expect=422)
        self.assertEqual(self.bulk(self.job(type=""), key="none", expect=422).body, refused.body)

    def test_an_atomic_request_too(self):
        other = self.queue + "-b"
        jobs = [self.job(1), self.job(2, queue=other)]
        first = self.bulk(*jobs, key="atomic", atomicity="atomic")
        self.assertEqual(self.bulk(*jobs, key="atomic", atomicity="atomic").body, first.body)
        self.assertEqual(len(self.fetch(10, queues=[self.queue, other])), 2)
        refused = self.bulk(self.job(), self.job(type=""), key="rolled", atomicity="atomic", expect=422)
        self.assertEqual(self.bulk(self.job(), self.job(type=""), key="rolled", atomicity="atomic", expect=422).body, refused.body)

    def test_the_header_counts_for_more(self):
        first = self.bulk(self.job(), header="of the header", key="of the body")
        self.assertEqual(self.bulk(self.job(), header="of the header").body, first.body)
        self.assertNotEqual(self.ids(self.bulk(self.job(), key="of the body")), self.ids(first))

    def test_another_request_with_the_key_is_a_conflict(self):
        self.bulk(self.job(1), key="taken")
        for other in ([self.job(2)], [self.job(1), self.job(1)]):
            self.assertEqual(self.bulk(*other, key="taken", expect=409).error["code"], "conflict")
        self.bulk(self.job(1), key="taken", atomicity="atomic", expect=409)
        self.assertEqual(len(self.fetch(10)), 1)

    def test_keys_are_those_of_an_operation_and_a_tenant(self):
        first = self.bulk(self.job(), key="scoped")
        ids = self.ids(first)
        cancelled = self.bulk(path="jobs/bulk/cancel", key="scoped", job_ids=ids, expect=200)
        self.assertEqual(self.bulk(path="jobs/bulk/cancel", key="scoped", job_ids=ids, expect=200).body, cancelled.body)
        self.assertEqual(self.bulk(path="jobs/bulk/cancel", key="other", job_ids=ids, expect=422).json["skipped"], 1)
        failed = self.put_job(retry={"max_attempts": 1})["id"]
        self.fetch()
        self.call("POST", f"jobs/{failed}/nack", {"error": {"code": "c", "message": "m"}}, expect=200)
        retried = self.bulk(path="jobs/bulk/retry", key="scoped", job_ids=[failed], expect=200)
        self.fetch()
        self.assertEqual(self.bulk(path="jobs/bulk/retry", key="scoped", job_ids=[failed], expect=200).body, retried.body)
        self.assertNotEqual(self.ids(self.bulk(self.job(), key="scoped", tenant="acme")), ids)

    def test_a_key_has_1_to_256_characters(self):
        for wrong in ("", "k" * 257, 7, ["k"]):
            self.bulk(self.job(), key=wrong, expect=400)
        self.assertEqual(self.fetch(10), [])
        self.bulk(self.job(), key="ü" * 256)
        self.bulk(self.job(), key=None)

    def test_a_wrong_request_takes_no_key(self):
        self.call("POST", "jobs/bulk", {"jobs": [], "idempotency_key": "wrong"}, expect=400)
        self.bulk(path="jobs/bulk/cancel", key="wrong", filter={"colour": "red"}, expect=400)
        ids = self.ids(self.bulk(self.job(), key="wrong"))
        self.bulk(path="jobs/bulk/cancel", key="wrong", job_ids=ids, expect=200)

    def test_a_reply_that_is_larger_than_a_job_is_kept_in_short(self):
        jobs = [self.job("x" * 700)] * 1000
        first = self.bulk(*jobs, key="large")
        self.assertEqual(set(first.json["items"][999]["job"]), {"id", "type"})
        self.assertEqual(self.bulk(*jobs, key="large").body, first.body)
        self.assertEqual(self.stats()["available"], 1000)

    def test_of_requests_at_the_same_time_one_is_done(self):
        jobs = [self.job(n) for n in range(50)]
        begin = threading.Barrier(4)

        def ask(_):
            begin.wait(BOUND)
            return self.bulk(*jobs, key="at once", expect=None)

        with concurrent.futures.ThreadPoolExecutor(4) as clients:
            replies = list(clients.map(ask, range(4)))
        self.assertLessEqual({reply.status for reply in replies}, {201, 409})
        stored = self.bulk(*jobs, key="at once")
        for reply in replies:
            if reply.status == 201:
                self.assertEqual(reply.body, stored.body)
            else:
                self.assertTrue(reply.error["retryable"])
                self.assertGreater(int(reply.headers["Retry-After"]), 0)
        self.assertEqual(len(self.fetch(100)), 50)

    def claim(self, key, receipt, first_id, **more):
        """What a gateway leaves that dies at work."""
        self.up.native("cancel", receipt["id"])
        claim = {"type": "ojs.receipt", "queue": "ojs.receipts", "pending": True,
                 "unique": {"keys": ["type", "queue", "args"], "args_keys": ["tenant", "operation", "key"]},
                 "args": [receipt["args"][0], {"request": receipt["args"][1]["request"], "first_id": first_id} | more]}
        self.call("POST", "jobs", claim, expect=201)

    def go_on(self, key, jobs, atomicity):
        """What a gateway says when another died at the request."""
        waiting = self.bulk(*jobs, key=key, atomicity=atomicity, expect=409)
        self.assertTrue(waiting.error["retryable"])
        self.assertIn(int(waiting.headers["Retry-After"]), range(1, 31))
        self.call("POST", "test/clock", {"advance_ms": 30_001}, expect=200)
        again = self.bulk(*jobs, key=key, atomicity=atomicity)
        self.assertEqual(self.bulk(*jobs, key=key, atomicity=atomicity).body, again.body)
        return self.ids(again)

    def test_a_request_goes_on_where_a_dead_gateway_stopped(self):
        jobs = [self.job(n) for n in range(3)]
        ids = self.ids(self.bulk(*jobs, key="dead", atomicity="partial"))
        self.call("DELETE", "jobs/" + ids[2], expect=200)
        self.assertEqual(self.up.native("drop", ids[2]).returncode, 0)
        self.claim("dead", self.receipt("dead"), ids[0])
        self.assertEqual(self.go_on("dead", jobs, "partial"), ids)
        self.assertEqual([job["id"] for job in self.fetch(10)], ids)

    def test_an_atomic_request_that_was_stored_is_not_stored_again(self):
        jobs = [self.job(n) for n in range(3)]
        ids = self.ids(self.bulk(*jobs, key="dead atomic", atomicity="atomic"))
        self.assertEqual(len(self.fetch(10)), 3)
        self.claim("dead atomic", self.receipt("dead atomic"), ids[0])
        self.assertEqual(self.go_on("dead atomic", jobs, "atomic"), ids)
        self.assertEqual(self.fetch(10), [])

    def test_a_change_goes_on_with_the_jobs_that_were_chosen(self):
        ids = self.ids(self.bulk(self.job(), self.job()))
        wanted = {"path": "jobs/bulk/cancel", "key": "chosen", "filter": {"queue": self.queue}}
        self.bulk(**wanted, expect=200)
        self.assertEqual([self.get({"id": each})["state"] for each in ids], ["cancelled"] * 2)
        receipt = self.receipt("chosen")
        self.claim("chosen", receipt, ids[0], chosen=ids)
        later = self.put_job()
        self.call("POST", "test/clock", {"advance_ms": 30_001}, expect=200)
        again = self.bulk(**wanted, expect=422)
        self.assertEqual([item["job_id"] for item in again.json["items"]], ids)
        self.assertEqual(self.get(later)["state"], "available")
        self.assertEqual(self.bulk(**wanted, expect=422).body, again.body)

    def test_an_operator_alone_cancels_receipts(self):
        first = self.bulk(self.job(), key="kept")
        of_receipts = {"filter": {"queue": "ojs.receipts", "state": "pending"}, "confirm": True}
        self.bulk(path="jobs/bulk/cancel", filter={"queue": "ojs.receipts", "state": ["pending"]}, expect=400)
        receipt = self.receipt("kept")["id"]
        self.bulk(path="jobs/bulk/cancel", job_ids=[receipt], expect=422)
        self.assertEqual(self.bulk(self.job(), key="kept").body, first.body)
        self.assertGreaterEqual(self.call("POST", "admin/jobs/bulk/cancel", of_receipts, expect=200).json["succeeded"], 1)
        self.assertNotEqual(self.bulk(self.job(), key="kept").body, first.body)

    def test_an_id_of_the_client_that_another_request_took_is_no_proof(self):
        taken = "019b2c3d-4e5f-7a6b-8c9d-aaaaaaaaaaaa"
        jobs = [self.job(1, id=taken), self.job(2)]
        ids = self.ids(self.bulk(*jobs, key="proof", atomicity="atomic"))
        self.bulk(path="jobs/bulk/cancel", job_ids=ids, expect=200)
        self.bulk(path="jobs/bulk/delete", job_ids=ids, expect=200)  # as if its gateway had not stored them
        self.claim("proof", self.receipt("proof"), ids[1])
        self.put_job(id=taken)
        self.call("POST", "test/clock", {"advance_ms": 30_001}, expect=200)
        again = self.bulk(*jobs, key="proof", atomicity="atomic", expect=422)
        self.assertEqual(again.json["succeeded"], 0)
        self.assertEqual(self.stats()["available"], 1)

    def test_what_cannot_be_read_as_a_receipt_is_a_conflict(self):
        self.bulk(self.job(), key="forged")
        receipt = self.receipt("forged")
        for outcome in (7, {}, {"request": 7}, {"request": receipt["args"][1]["request"], "first_id": "x"},
                        {"request": receipt["args"][1]["request"], "reply": {}, "status": 9}):
            self.up.native("cancel", receipt["id"])
            receipt = self.call("POST", "jobs", {
                "type": "ojs.receipt", "queue": "ojs.receipts", "pending": True, "args": [receipt["args"][0], outcome],
                "unique": {"keys": ["type", "queue", "args"], "args_keys": ["tenant", "operation", "key"]}},
                expect=201).json["job"]
            self.assertIn(self.bulk(self.job(), key="forged", expect=None).status, (400, 409), outcome)


class Ended(OnGateway):
    def test_a_key_is_kept_for_a_day(self):
        ask = lambda: self.call("POST", "jobs/bulk", {"jobs": [{"type": "test.day", "args": []}], "idempotency_key": "day"}, expect=201)
        first = ask()
        self.call("POST", "test/clock", {"advance_ms": DAY_MS - 60_000}, expect=200)
        self.assertEqual(ask().body, first.body)
        self.call("POST", "test/clock", {"advance_ms": 61_000}, expect=200)
        eventually(lambda: ask().body != first.body)


class Killed(OnPrograms):
    """Gateways are killed while they store 1,000 jobs one by one; each retry goes on with what is there."""

    def setUp(self):
        super().setUp()
        # Room for the replies of all deaths, of some 400 KB each: what has no room is not kept.
        self.start("ojs-shm-broker", "--slots", "131072", "--remove").stdout.readline()

    def gateway(self):
        process = self.start("ojs-shm-gateway", "--listen", "127.0.0.1:0", "--threads", "1", "--test-hooks")
        return process, process.stdout.readline().split()[1].removeprefix("http://")

    def post(self, address, path, body):
        spoken = http.client.HTTPConnection(address, timeout=BOUND)
        self.addCleanup(spoken.close)
        spoken.request("POST", "/ojs/v1/" + path, json.dumps(body), {"Content-Type": "application/json"})
        answer = spoken.getresponse()
        return answer.status, json.loads(answer.read())

    def stored(self, queue):
        listed = subprocess.run([program("ojs-shm"), "list", "--json", "--queue", queue, "--limit", "5000", "--name", "test", "--dir",
                                 self.dir], capture_output=True, text=True, timeout=BOUND).stdout
        return sorted(job["args"][0] for job in map(json.loads, listed.splitlines()))

    def kill_at_work(self, request, after_s):
        process, address = self.gateway()
        text = json.dumps(request).encode()
        head = f"POST /ojs/v1/jobs/bulk HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), timeout=BOUND) as spoken:
            spoken.sendall(head.encode() + text)
            time.sleep(after_s)
            process.send_signal(signal.SIGKILL)
            process.wait(BOUND)

    def test_no_job_is_stored_twice_or_lost_when_gateways_are_killed(self):
        too_early, too_late = 0, 0.02  # seconds; each death is nearer to the time at which jobs are stored
        half_way = 0
        for death in range(14):
            if half_way and death >= 10:
                break
            queue = f"work-{death}"
            # Each tenth has an id of the client's.
            named = lambda n: {} if n % 10 else {"id": f"019b2c3d-4e5f-7a6b-8c9d-{death:04x}{n:08x}"}
            jobs = [{"type": "test.kill", "queue": queue, "args": [n]} | named(n) for n in range(700)]
            request = {"jobs": jobs, "idempotency_key": queue}
            moment = (too_early + too_late) / 2
            self.kill_at_work(request, moment)
            stored = len(self.stored(queue))
            half_way += 0 < stored < 700
            if stored >= 350:
                too_late = moment
            else:  # the next gateway may be slower than all before
                too_early, too_late = moment, max(too_late, moment + 0.002)
            another, address = self.gateway()
            self.assertEqual(self.post(address, "test/clock", {"advance_ms": 30_001})[0], 200)
            status, reply = self.post(address, "jobs/bulk", request)
            self.assertEqual((status, reply["succeeded"]), (201, 700))
            self.assertEqual(self.stored(queue), list(range(700)))
            self.assertEqual(self.post(address, "jobs/bulk", request), (status, reply))
            another.terminate()
            another.wait(BOUND)
        if not half_way:
            self.skipTest("NOT RUN: no gateway died while it stored the jobs")
