# SPDX-License-Identifier: Apache-2.0
"""The segment's numbers over time, and what guards a gateway from pages of other sites."""

import gzip
import json
import tempfile
import unittest

from gateways import OnGateway, Up, eventually

READ, ADMIN = "a-token-that-reads-01", "a-token-of-an-admin-02"


def next_metrics(reply):
    """The next event of a stream of numbers."""
    while not (line := reply.readline()).startswith(b"data: "):
        if not line:
            raise AssertionError("the stream has ended")
    return json.loads(line[6:])


class Stats(OnGateway):
    def test_http_stream_tells_the_numbers_as_they_change(self):
        connection = self.up.connection()
        try:
            connection.request("GET", "/ojs/v1/admin/stats/stream")
            reply = connection.getresponse()
            self.assertEqual(reply.getheader("Content-Type"), "text/event-stream")
            before = next_metrics(reply)["jobs"]["available"]
            self.put_job()
            looks = iter(lambda: next_metrics(reply), None)
            look = next(look for look in looks if look["jobs"]["available"] == before + 1)
            queue = next(each for each in look["sample"]["queues"] if each["name"] == self.queue)
            self.assertEqual((queue["depth"], queue["totals"]["enqueued"]), (1, 1))
            self.assertEqual(look["queues"], len(look["sample"]["queues"]))
        finally:
            connection.close()

    def test_one_look_is_shared_by_all_who_ask_within_a_moment(self):
        """Of a job that was enqueued between two requests the second one may know nothing, for a tenth of a second."""
        def shared():
            def available():
                return self.call("GET", "admin/stats", expect=200).json["jobs"]["available"]
            before = available()
            self.put_job()
            return available() == before
        eventually(shared)
        before = self.call("GET", "admin/stats", expect=200).json["jobs"]["available"]
        self.put_job()
        eventually(lambda: self.call("GET", "admin/stats", expect=200).json["jobs"]["available"] > before)

    def test_http_stats_count_what_was_discarded_in_the_last_minute(self):
        def failed():
            return self.call("GET", "admin/stats", expect=200).json["throughput"]["failed_per_minute"]
        before = failed()
        for _ in range(3):
            job = self.put_job(retry={"max_attempts": 1})
            self.fetch()
            self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "x", "message": "y"}}, expect=200)
        eventually(lambda: failed() >= before + 3)  # an older look may have known of fewer

    def test_http_a_queue_says_how_many_jobs_ended_and_how_long_they_took(self):
        for fails in (False, False, True):
            job = self.put_job(retry={"max_attempts": 1})
            self.fetch()
            path, body = ("nack", {"error": {"code": "x", "message": "y"}}) if fails else ("ack", {})
            self.call("POST", f"jobs/{job['id']}/{path}", body, expect=200)
        of_binding = self.call("GET", f"queues/{self.queue}/stats?shape=binding", expect=200).json
        self.assertEqual((of_binding["queue"], of_binding["status"]), (self.queue, "active"))
        numbers = of_binding["stats"]
        self.assertEqual((numbers["completed_last_hour"], numbers["failed_last_hour"]), (2, 1))
        self.assertEqual(numbers["throughput_per_second"], 2 / 60)
        self.assertGreaterEqual(min(numbers["avg_duration_ms"], numbers["avg_wait_ms"]), 0)
        seen = self.call("GET", "admin/queues/" + self.queue, expect=200).json
        self.assertEqual(seen["throughput"], {"processed_per_minute": 2, "failed_per_minute": 1})
        listed = self.call("GET", "admin/queues", expect=200).json["items"]
        self.assertIn(seen["latency_ms"], [each.get("latency_ms") for each in listed if each["name"] == self.queue])
        self.assertEqual(sorted(seen["latency_ms"]), ["p50", "p95", "p99"])
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):  # against the whole histogram
            levels = [each for each in self.call("GET", "admin/waits", expect=200).json["items"]
                      if each["queue"] == self.queue]
            waited = [each["from_available"] for each in levels]
            no_longer = sum(each["up_to_ms"][str(seen["latency_ms"][name])] for each in waited)
            self.assertGreaterEqual(no_longer, share * sum(each["count"] for each in waited))

    def test_http_waits_of_each_level(self):
        self.put_job(priority=1)
        self.fetch()
        items = self.call("GET", "admin/waits", expect=200).json["items"]
        own = [each for each in items if each["queue"] == self.queue]
        self.assertEqual([(each["priority"], each["from_available"]["count"]) for each in own], [(1, 1)])

    def test_http_cursors_hold_while_jobs_come(self):
        for _ in range(7):
            self.put_job()
        ids = [job["id"] for job in self.call("GET", f"admin/jobs?queue={self.queue}&order=asc", expect=200).json["items"]]
        self.assertEqual(len(ids), 7)

        def page(order, cursor=""):
            return self.call("GET", f"admin/jobs?queue={self.queue}&per_page=3&order={order}&cursor={cursor}"
                             if cursor else f"admin/jobs?queue={self.queue}&per_page=3&order={order}", expect=200).json

        for order, expected in (("asc", ids), ("desc", ids[::-1])):
            seen, cursor = [], ""
            while True:
                answer = page(order, cursor)
                seen += [job["id"] for job in answer["items"]]
                cursor = answer["pagination"].get("next_cursor")
                if not cursor:
                    break
                if order == "desc":
                    self.put_job()
            self.assertEqual([each for each in seen if each in ids], expected)
        self.call("GET", "admin/jobs?cursor=nonsense", expect=400)
        self.call("GET", "admin/jobs?cursor=1.a&page=2", expect=400)
        self.call("GET", "admin/jobs?cursor=1.a&sort=priority", expect=400)

    def test_http_purge_takes_the_named_states_alone(self):
        waiting = self.put_job()
        later = self.put_job(scheduled_at="+PT1H")
        purge = {"states": ["available"], "confirm": True}
        self.call("DELETE", f"admin/queues/{self.queue}/jobs", {"states": ["available"]}, expect=400)
        self.assertEqual(self.call("DELETE", f"admin/queues/{self.queue}/jobs", purge, expect=200).json["purged_count"], 1)
        self.assertEqual([self.get(job)["state"] for job in (waiting, later)], ["cancelled", "scheduled"])
        purge["states"] = ["scheduled"]
        for older_than, purged in (("2026-01-01T00:00:00Z", 0), ("PT1H", 0), ("2099-01-01T00:00:00Z", 1)):
            reply = self.call("DELETE", f"admin/queues/{self.queue}/jobs", purge | {"older_than": older_than}, expect=200)
            self.assertEqual(reply.json["purged_count"], purged, older_than)
        self.call("DELETE", f"admin/queues/{self.queue}/jobs", purge | {"older_than": "long ago"}, expect=400)

    def test_http_queues_say_since_when_they_are_there(self):
        job = self.put_job()
        listed = {each["name"]: each for each in self.call("GET", "queues?limit=1000", expect=200).json["queues"]}
        seen = self.call("GET", "admin/queues/" + self.queue, expect=200).json
        self.assertEqual(seen["created_at"], listed[self.queue]["created_at"])
        self.assertLessEqual(seen["created_at"], job["created_at"])

    def test_http_pages_of_other_sites_change_nothing(self):
        self.put_job()
        path = f"admin/queues/{self.queue}/pause"
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "https://" + self.up.address + ".evil.example"):
            self.call("POST", path, expect=403, headers={"Origin": origin})
        self.call("POST", path, expect=200, headers={"Origin": self.up.url})
        self.call("GET", "admin/queues", expect=200, headers={"Origin": "http://evil.example"})

    def test_http_a_loopback_gateway_answers_to_addresses_alone(self):
        for host, status in (("evil.example", 403), ("gateway", 200), ("127.0.0.1.evil.example", 403), ("localhost:80", 200), ("[::1]:80", 200)):
            self.call("GET", "admin/queues", expect=status, headers={"Host": host})


class History(OnGateway):
    def history(self, query="", expect=200):
        return self.call("GET", "admin/stats/history" + query, expect=expect)

    def advance(self, ms):
        return self.call("POST", "test/clock", {"advance_ms": ms}, expect=200).json["now"]

    def test_http_history_counts_what_happened_in_each_period(self):
        def enqueued(query):
            data = self.history(query).json["data"]
            self.assertEqual([point["timestamp"] for point in data], sorted({point["timestamp"] for point in data}))
            return {point["timestamp"]: point["enqueued"] for point in data if point["enqueued"]}

        told = self.history().json
        self.assertEqual((told["period"], told["interval_ms"]), ("5m", 300_000))
        for _ in range(3):
            self.put_job()
        eventually(lambda: sum(enqueued("?period=1d").values()) == 3)
        middle = self.advance(600_000)
        for _ in range(2):
            self.put_job()
        eventually(lambda: sum(enqueued("?period=1d").values()) == 5)
        for period, end in (("5s", "Z"), ("1m", ":00.000Z"), ("PT5M", ":00.000Z"), ("1h", ":00:00.000Z"), ("1d", "T00:00:00.000Z")):
            found = enqueued("?period=" + period)
            self.assertEqual(sum(found.values()), 5, period)
            self.assertTrue(all(time.endswith(end) for time in found), found)
        late = enqueued(f"?period=1m&since={middle}")
        self.assertEqual(sum(late.values()), 2)
        self.assertEqual(sum(enqueued(f"?period=1m&until={min(late)}").values()), 3)
        self.advance(7_200_000)
        self.assertEqual(sum(enqueued("?period=1h").values()), 0, "of the last hour alone")
        self.assertEqual(sum(enqueued("?period=1h&since=2020-01-01T00:00:00Z").values()), 5)

    def test_http_history_refuses_what_it_cannot_tell(self):
        for query in ("?period=soon", "?period=1s", "?since=yesterday", "?until=2026-01-01", "?since=2099-01-01T00:00:00Z"):
            self.assertEqual(self.history(query, 400).error["details"]["field"], query[1:].partition("=")[0])
        self.assertEqual(self.history("?queue=nowhere", 404).error["code"], "not_found")

    def test_http_history_of_one_queue(self):
        def sums(*names):
            data = self.history(f"?period=1h&queue={self.queue}").json["data"]
            return tuple(sum(point[name] for point in data) for name in names)

        for number in range(3):
            self.put_job(retry={"max_attempts": 1})
            self.enqueue(queue=self.queue + "-aside")
        for job in self.fetch(2):
            self.call("POST", f"jobs/{job['id']}/ack", {}, expect=200)
        eventually(lambda: sums("enqueued", "dispatched", "processed") == (3, 2, 2))
        self.put_job()
        eventually(lambda: sums("enqueued") == (4,))  # also of a minute that is not over
        self.advance(90_000)
        job = self.fetch()[0]
        self.call("POST", f"jobs/{job['id']}/nack", {"error": {"code": "x", "message": "y"}}, expect=200)
        eventually(lambda: sums("enqueued", "dispatched", "processed", "failed", "discarded") == (4, 3, 2, 1, 1))
        told = self.history(f"?period=1m&queue={self.queue}").json
        self.assertEqual(told["queue"], self.queue)
        last = next(each for each in reversed(told["data"]) if each["dispatched"])  # a minute may begin meanwhile
        self.assertEqual((last["dispatched"], last["depth"], last["active"]), (1, 1, 0))
        self.assertNotIn("bytes_used", last)
        # the last one alone waited for a minute and a half
        self.assertGreaterEqual(min(last["latency_p50_ms"], last["latency_p99_ms"]), 90_000)
        self.assertLess(told["data"][0]["latency_p50_ms"], 90_000)
        self.assertGreaterEqual(sum(point["dispatched"] for point in self.history("?period=1h").json["data"]), 3)
        self.call("GET", f"admin/stats/history?queue={self.queue}", headers={"X-OJS-Tenant": "acme"}, expect=422)

    def test_http_history_is_kept_of_so_many_queues(self):
        with Up() as up:
            names = [f"of-{number:03}" for number in range(131)]
            for name in names:
                up.call("POST", "jobs", {"type": "t", "args": [], "queue": name})

            def told(name):
                return up.call("GET", "admin/stats/history?queue=" + name).status

            seen = len(up.call("GET", "queues?limit=1000").json["queues"])
            eventually(lambda: [told(name) for name in names].count(422) == seen - 128)
            self.assertEqual(sum(told(name) == 200 for name in names), 131 - (seen - 128))


class Access(unittest.TestCase):
    def test_http_access_says_what_a_token_grants(self):
        with tempfile.NamedTemporaryFile("w") as tokens:
            tokens.write(f"{READ} read\n{ADMIN} admin\n")
            tokens.flush()
            with Up("--token-file", tokens.name) as up:
                def ask(token):
                    return up.call("GET", "admin/access", headers={"Authorization": f"Bearer {token}"} if token else {})

                self.assertEqual(ask(READ).json["scopes"], ["read"])
                self.assertEqual(ask(ADMIN).json["scopes"], ["read", "write", "admin"])
                self.assertEqual((ask("another-token-00000").status, ask("").status), (401, 401))
                # A page of another site has no token: neither its origin nor the host is asked.
                reply = up.call("GET", "admin/queues", headers={"Authorization": f"Bearer {READ}", "Host": "jobs.example"})
                self.assertEqual(reply.status, 200)


class Files(OnGateway):
    def test_http_dashboard_comes_with_its_policy(self):
        for path, kind in (("/", "text/html"), ("/dashboard.js", "text/javascript"), ("/dashboard.css", "text/css")):
            reply = self.call("GET", path, expect=200)
            self.assertTrue(reply.headers["Content-Type"].startswith(kind))
            self.assertIn("default-src 'none'", reply.headers["Content-Security-Policy"])
            self.assertEqual(reply.headers["X-Content-Type-Options"], "nosniff")
        self.assertNotIn(b"<script>", self.call("GET", "/").body)

    def test_http_dashboard_is_sent_packed_to_clients_that_unpack(self):
        for path in ("/", "/dashboard.js", "/dashboard.css", "/icon.svg", "/licences.txt"):
            plain = self.call("GET", path, expect=200)
            self.assertIsNone(plain.headers["Content-Encoding"])
            self.assertEqual(plain.headers["Vary"], "Accept-Encoding")
            for accepted in ("gzip", "deflate, gzip;q=0.5, br", "GZIP", "x-gzip", "*", "br;q=0, *;q=0.001"):
                packed = self.call("GET", path, expect=200, headers={"Accept-Encoding": accepted})
                self.assertEqual(packed.headers["Content-Encoding"], "gzip", accepted)
                self.assertEqual(packed.headers["Vary"], "Accept-Encoding")
                self.assertEqual(packed.headers["Content-Security-Policy"], plain.headers["Content-Security-Policy"])
                self.assertEqual(gzip.decompress(packed.body), plain.body)
            for accepted in ("", "identity", "br", "gzip;q=0", "gzip; q=0.000, br", "*, gzip;q=0", "gzip;q=0, *", "*;q=0", "gzipped"):
                bare = self.call("GET", path, expect=200, headers={"Accept-Encoding": accepted})
                self.assertIsNone(bare.headers["Content-Encoding"], accepted)
                self.assertEqual(bare.body, plain.body)
        script = self.call("GET", "/dashboard.js", headers={"Accept-Encoding": "gzip"})
        self.assertLess(len(script.body), len(self.call("GET", "/dashboard.js").body) / 2)
        self.assertEqual(script.headers["Content-Length"], str(len(script.body)))
