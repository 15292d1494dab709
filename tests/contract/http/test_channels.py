# SPDX-License-Identifier: Apache-2.0
"""Events through a WebSocket, in the channels that its client subscribes to."""

import json
import select
import signal
import socket
import tempfile
import unittest

import test_manners
from gateways import BOUND, OnGateway, Up, UpUnix, eventually
from websockets import CLOSE, PING, PONG, TEXT, WebSocket

NEVER = "019b2c3d-4e5f-7a6b-8c9d-0e1f2a3b4c5d"


class Channels(OnGateway):
    def open(self, query="", **options):
        return self.enterContext(WebSocket(self.up, query, **options))

    def run_one(self, job):
        self.fetch()
        self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)

    def until(self, client, event, channel):
        """All that is said in the channel up to that event."""
        told = []
        while not told or told[-1]["event"] != event:
            message = client.next_event()
            if message["channel"] == channel:
                told.append(message)
        return told

    @staticmethod
    def job_of(message):
        return message["data"].get("job_id") or message["data"]["subject"]

    def end_one_behind_the_other(self, first, second, client):
        """Ends the second job when the client, which hears of the first, has heard of its end."""
        self.call("DELETE", "jobs/" + first["id"], expect=200)
        while client.next_event()["data"].get("to") != "cancelled":
            pass
        self.call("DELETE", "jobs/" + second["id"], expect=200)

    # --- Channels -----------------------------------------------------------------------------------------------------

    def test_what_happens_is_told_in_each_channel_of_it(self):
        job, client = self.put_job(), self.open()
        channels = ["job:" + job["id"], "queue:" + self.queue, "all"]
        for channel in channels:
            self.assertEqual(client.ask("subscribe", channel), {"type": "subscribed", "channel": channel})
        self.run_one(job)
        told = [client.next_event()]
        while (told[-1]["channel"], told[-1]["event"], told[-1]["data"].get("to")) != ("all", "job.state_changed", "completed"):
            told.append(client.next_event())
        # What was just before may be told as well, that the job came, and of all that its worker did.
        kinds = ("job.started", "job.completed", "job.state_changed")
        of_each = [[{**each, "channel": ""} for each in told if each["channel"] == channel and each["event"] in kinds]
                   for channel in channels]
        self.assertEqual([each["event"] for each in of_each[0]],
                         ["job.started", "job.state_changed", "job.completed", "job.state_changed"])
        self.assertEqual(of_each[0], of_each[1])
        self.assertEqual(of_each[0], of_each[2])
        change = of_each[0][1]
        self.assertEqual(sorted(change), ["channel", "data", "event", "id", "timestamp", "type"])
        self.assertEqual(change["data"], {"job_id": job["id"], "queue": self.queue, "type": "test.http", "from": "available",
                                          "to": "active", "timestamp": change["timestamp"]})
        self.assertEqual(len({each["id"] for each in of_each[0]}), 4)
        ended = of_each[0][2]
        self.assertEqual((ended["data"]["type"], ended["data"]["id"], ended["data"]["time"]),
                         ("job.completed", ended["id"], ended["timestamp"]))

    def test_other_jobs_and_queues_are_not_told(self):
        mine, other, client = self.put_job(), self.put_job(queue=self.queue + "-other"), self.open()
        everybody = self.open()
        everybody.ask("subscribe", "queue:" + self.queue + "-other")
        client.ask("subscribe", "job:" + mine["id"].upper())
        self.end_one_behind_the_other(other, mine, everybody)
        told = []
        while not told or told[-1]["event"] != "job.state_changed":
            told.append(client.next_event())
        self.assertEqual({(each["channel"], self.job_of(each)) for each in told}, {("job:" + mine["id"], mine["id"])})

    def test_what_was_unsubscribed_is_told_no_more(self):
        self.put_job()
        client = self.open()
        for channel in ("queue:" + self.queue, "all"):
            client.ask("subscribe", channel)
        self.assertEqual(client.ask("subscribe", "all"), {"type": "subscribed", "channel": "all"}, "twice is once")
        for _ in range(2):
            self.assertEqual(client.ask("unsubscribe", "all"), {"type": "unsubscribed", "channel": "all"})
        client.events.clear()  # of before
        seen = self.put_job()
        self.call("DELETE", "jobs/" + seen["id"], expect=200)
        while (message := client.next_event())["data"].get("to") != "cancelled":
            self.assertEqual(message["channel"], "queue:" + self.queue)

    def test_a_job_that_has_ended_tells_its_end(self):
        job, client = self.put_job(), self.open()
        self.run_one(job)
        client.ask("subscribe", "job:" + job["id"])
        end = client.next_event()
        self.assertEqual((end["event"], end["data"]["from"], end["data"]["to"]), ("job.state_changed", "active", "completed"))
        other = self.open("?types=job.state_changed&sources=else")
        other.ask("subscribe", "job:" + job["id"])
        self.assertEqual(other.next_event()["event"], "job.state_changed", "as a stream tells it")
        narrow = self.open("?types=job.failed")
        narrow.ask("subscribe", "job:" + job["id"])
        self.assertEqual(narrow.ask("unsubscribe", "all")["type"], "unsubscribed")
        self.assertFalse(narrow.events, "its types do not let the change pass")

    def test_what_is_wrong_is_said_and_the_talk_goes_on(self):
        client = self.open()
        for message, code, words in (
                ("nonsense", "invalid_payload", "JSON"), ("[1]", "invalid_request", "object"),
                ({"action": "subscribe"}, "invalid_request", "channel"), ({"channel": "all"}, "invalid_request", "action"),
                ({"action": 7, "channel": "all"}, "invalid_request", "action must be a text"),
                ({"action": "listen", "channel": "all"}, "invalid_request", "subscribe or unsubscribe"),
                ({"action": "subscribe", "channel": "jobs"}, "invalid_request", "job:ID, queue:NAME or all"),
                ({"action": "subscribe", "channel": "queue:" + self.queue}, "not_found", self.queue),
                ({"action": "subscribe", "channel": "job:" + NEVER}, "not_found", NEVER),
                ({"action": "subscribe", "channel": "job:nonsense"}, "not_found", "not a job id")):
            client.say(message)
            answer = client.next()
            self.assertEqual((answer["type"], answer["code"]), ("error", code), message)
            self.assertIn(words, answer["message"], message)
        self.assertEqual(client.ask("subscribe", "all")["type"], "subscribed")

    def test_a_client_has_a_thousand_channels(self):
        client = self.open()
        jobs = [{"type": "many", "args": [], "queue": self.queue}] * 500
        ids = [job["id"] for _ in range(2) for job in self.call("POST", "jobs/batch", {"jobs": jobs}, expect=201).json["jobs"]]
        self.assertEqual({client.ask("subscribe", "job:" + id)["type"] for id in ids}, {"subscribed"})
        self.assertEqual(client.ask("subscribe", "job:" + ids[0])["type"], "subscribed", "it has that")
        self.assertIn("at most 1000 channels", client.ask("subscribe", "all")["message"])
        client.ask("unsubscribe", "job:" + ids[0])
        self.assertEqual(client.ask("subscribe", "all")["type"], "subscribed")

    def test_a_tenant_hears_of_its_own_jobs(self):
        mine, other = (self.put_job(headers={"X-OJS-Tenant": tenant}) for tenant in ("ws-a", "ws-b"))
        client = self.open(headers={"X-OJS-Tenant": "ws-a"})
        for each in (client, self.open("?tenant=ws-a")):
            self.assertEqual(each.ask("subscribe", "job:" + other["id"])["code"], "not_found")
            self.assertEqual(each.ask("subscribe", "job:" + mine["id"])["type"], "subscribed")
            each.ask("unsubscribe", "job:" + mine["id"])
        everybody = self.open()
        for each in (client, everybody):
            each.ask("subscribe", "queue:" + self.queue)
        self.end_one_behind_the_other(other, mine, everybody)
        told = self.until(client, "job.state_changed", "queue:" + self.queue)
        self.assertEqual({self.job_of(each) for each in told}, {mine["id"]})

    def test_the_query_says_of_which_types(self):
        job, client = self.put_job(), self.open("?types=job.completed")
        client.ask("subscribe", "queue:" + self.queue)
        self.run_one(job)
        self.assertEqual(client.next_event()["event"], "job.completed")
        refused = WebSocket(self.up, "?channel=all")
        with refused:
            self.assertEqual(refused.answer.status, 400)

    # --- The handshake ------------------------------------------------------------------------------------------------

    def test_the_subprotocol_is_taken_when_it_is_offered(self):
        for offered, taken in ((None, None), ("chat", None), ("ojs.v1", "ojs.v1"), ("chat, ojs.v1", "ojs.v1")):
            client = self.open(headers={"Sec-WebSocket-Protocol": offered})
            self.assertEqual((client.answer.status, client.answer.headers.get("sec-websocket-protocol")), (101, taken))
            self.assertEqual(client.ask("subscribe", "all")["type"], "subscribed")
        self.assertEqual(self.open(headers={"X-Request-ID": "mine"}).answer.headers["x-request-id"], "mine")

    def test_what_asks_for_no_websocket_gets_none(self):
        plain = self.call("GET", "ws", expect=426)
        self.assertEqual((plain.headers["Upgrade"], plain.error["code"]), ("websocket", "invalid_request"))
        for status, words, headers in (
                (426, "Upgrade: websocket", {"Upgrade": "h2c"}), (426, "Upgrade: websocket", {"Upgrade": None}),
                (426, "Upgrade: websocket", {"Connection": "close"}), (426, "must be 13", {"Sec-WebSocket-Version": "8"}),
                (426, "must be 13", {"Sec-WebSocket-Version": None}), (400, "Key must be", {"Sec-WebSocket-Key": None}),
                (400, "Key must be", {"Sec-WebSocket-Key": "short"}), (400, "Host", {"Host": None})):
            answer = self.open(headers=headers).answer
            self.assertEqual((answer.status, answer.error["code"]), (status, "invalid_request"), headers)
            self.assertIn(words, answer.error["message"])
            if status == 426:
                self.assertEqual((answer.headers["upgrade"], answer.headers["sec-websocket-version"]), ("websocket", "13"))
        self.assertEqual(self.open(version="1.0").answer.status, 426)
        self.assertEqual(self.open(headers={"Upgrade": "h2c, WebSocket"}).answer.status, 101)
        ahead = self.open(ahead=b"\x81\x80\0\0\0\0")
        self.assertEqual((ahead.answer.status, ahead.file.read()), (400, b""), "what came ahead of the answer would be lost")

    def test_pages_of_strangers_get_none(self):
        self.assertEqual(self.open(headers={"Origin": "http://elsewhere.example"}).answer.status, 403)
        self.assertEqual(self.open(headers={"Origin": f"http://{self.up.address}"}).answer.status, 101)

    # --- The talk -----------------------------------------------------------------------------------------------------

    def test_a_message_may_come_in_pieces_with_a_ping_between(self):
        client = self.open()
        whole = json.dumps({"action": "subscribe", "channel": "all"}).encode()
        client.frame(TEXT, whole[:9], last=False)
        client.frame(PING, b"you?")
        client.frame(0, whole[9:])
        self.assertEqual(client.receive(), (PONG, b"you?"))
        self.assertEqual(client.next(), {"type": "subscribed", "channel": "all"})

    def test_messages_sent_ahead_are_answered_in_their_order(self):
        client = self.open()
        for n in range(200):
            client.say({"action": "unsubscribe", "channel": f"queue:{n}"})
        self.assertEqual([client.next()["channel"] for _ in range(200)], [f"queue:{n}" for n in range(200)])

    def test_what_breaks_the_protocol_ends_the_talk(self):
        for kind, payload, code in ((TEXT, b"x" * 5000, 1009), (TEXT, b"\xff\xfe", 1007), (3, b"", 1002)):
            client = self.open()
            client.frame(kind, payload)
            self.assertIsNone(client.next())
            self.assertEqual(client.code, code)
        client = self.open()
        client.socket.sendall(b"\x81\x02{}")
        self.assertIsNone(client.next())
        self.assertEqual(client.code, 1002, "not masked")

    def test_a_farewell_is_answered(self):
        client = self.open()
        client.ask("subscribe", "all")
        client.frame(CLOSE, b"\x03\xe8")
        while (kind := client.receive()[0]) == TEXT:
            pass
        self.assertEqual((kind, client.receive()[0]), (CLOSE, None))


class Endings(unittest.TestCase):
    def test_a_gateway_that_ends_says_so(self):
        with Up() as up, WebSocket(up) as client, WebSocket(up) as rude:
            client.ask("subscribe", "all")
            up.process.send_signal(signal.SIGTERM)
            last = client.next()
            self.assertEqual((last["type"], last["event"], last["data"]), ("event", "server.shutdown", {}))
            self.assertIsNone(client.next())
            self.assertEqual(client.code, 1001)
            client.frame(CLOSE, b"\x03\xe9")
            self.assertEqual(client.receive()[0], None)
            while rude.receive()[0] is not None:  # says no farewell
                pass
            self.assertEqual(up.process.wait(BOUND), 0)

    def test_a_gateway_ends_beside_half_a_message(self):
        with Up() as up, WebSocket(up) as half:
            half.socket.sendall(b"\x81\x84\0\0\0\0{")
            up.call("GET", "/healthz")
            up.process.send_signal(signal.SIGTERM)
            self.assertEqual(json.loads(half.receive()[1])["event"], "server.shutdown")
            self.assertEqual(half.receive()[0], CLOSE)
            half.socket.sendall(b"\xff\xff\xff")  # no UTF-8
            self.assertEqual(up.process.wait(BOUND), 0)

    def test_a_client_that_takes_nothing_and_stays_is_ended(self):
        with UpUnix() as up, WebSocket(up) as client:
            client.ask("subscribe", "all")
            client.socket.shutdown(socket.SHUT_RD)
            up.native("enqueue", "-t", "untold")
            ended = select.poll()
            ended.register(client.socket, 0)  # an end of both ways is told without being asked for
            eventually(lambda: any(what & select.POLLHUP for _, what in ended.poll(100)))

    def test_a_client_is_asked_and_ended_when_it_is_silent(self):
        with Up() as up, WebSocket(up) as polite, WebSocket(up) as silent:
            kind, payload = polite.receive()
            self.assertEqual(kind, PING)
            polite.frame(PONG, payload)
            self.assertEqual((silent.receive()[0], silent.receive()[0]), (PING, None))
            self.assertEqual(polite.ask("subscribe", "all")["type"], "subscribed")

    def test_a_client_that_reads_nothing_is_dropped(self):
        with Up("--write-timeout", "1s") as up, WebSocket(up) as client:
            client.ask("subscribe", "all")
            jobs = {"jobs": [{"type": "fill", "args": ["x" * 100], "queue": "fill"}] * 500}

            def is_dropped():
                up.call("POST", "jobs/batch", jobs)
                up.call("POST", "admin/jobs/bulk/cancel", {"filter": {"queue": "fill"}, "confirm": True})
                return test_manners.Patience.connections(up) == 0
            eventually(is_dropped)
            self.assertEqual(up.call("GET", "/healthz").status, 200)

    def test_a_token_is_needed_where_there_are_tokens(self):
        with tempfile.NamedTemporaryFile("w", suffix=".tokens") as file:
            file.write("reader-0123456789 read\n")
            file.flush()
            with Up("--token-file", file.name) as up:
                for token, status in (("", 401), ("wrong-0123456789", 401), ("reader-0123456789", 101)):
                    with WebSocket(up, headers={"Authorization": "Bearer " + token}) as client:
                        self.assertEqual(client.answer.status, status)
                self.assertEqual(eventually(lambda: up.call("GET", "/healthz")).status, 200)
