# SPDX-License-Identifier: Apache-2.0
"""The gateway over TLS: as over TCP, and what only TLS has. Certificates are made here by the openssl command."""

import json
import os
import signal
import ssl
import subprocess
import tempfile
import unittest

import test_manners
from gateways import BOUND, OnGateway, Authority, Up, eventually, program
from test_manners import Raw
from websockets import CLOSE, WebSocket


class WithCertificate(OnGateway):
    """A gateway with a certificate for the class."""

    @classmethod
    def setUpClass(cls):
        cls.authority = Authority()
        cls.addClassCleanup(cls.authority.clean_up)
        cls.authority.make("own")
        cls.flags = OnGateway.flags + cls.authority.flags("own")
        cls.trust = cls.authority.trust_in("own")
        super().setUpClass()


class MannersOverTls(WithCertificate, test_manners.Manners):
    """All that odd clients do over TCP."""

    many = 600
    test_a_client_that_closes_its_half_is_answered = None  # Python's TLS ends both halves at once


class Tls(WithCertificate):
    def test_the_life_of_a_job_and_a_stream(self):
        self.assertTrue(self.up.url.startswith("https://127.0.0.1:"), self.up.url)
        connection = self.up.connection()
        self.addCleanup(connection.close)
        self.call("POST", "queues", {"name": self.queue}, expect=201)
        connection.request("GET", f"/ojs/v1/queues/{self.queue}/events?types=job.completed")
        stream = connection.getresponse()
        job = self.put_job()
        body = {"queues": [self.queue], "worker_id": "w", "wait_ms": 2000}
        self.assertEqual(self.call("POST", "workers/fetch", body, expect=200).json["jobs"][0]["id"], job["id"])
        self.call("POST", "workers/ack", {"job_id": job["id"], "result": {"n": 1}}, expect=200)
        self.assertEqual(self.call("GET", f"jobs/{job['id']}/result", expect=200).json["result"], {"n": 1})
        event = {}
        while (line := stream.readline().decode().strip()) or not event:
            name, _, value = line.partition(": ")
            if name not in ("", "retry"):
                event[name] = value
        self.assertEqual((event["event"], json.loads(event["data"])["data"]["job_id"]), ("job.completed", job["id"]))

    def test_a_long_body_goes_both_ways(self):
        args = ["x" * 200_000, "y" * 300_000]
        job = self.put_job(args=args)
        self.assertEqual(self.get(job)["args"], args)

    def test_versions_before_1_2_are_refused(self):
        for version, spoken in ((ssl.TLSVersion.TLSv1_1, None), (ssl.TLSVersion.TLSv1_2, "TLSv1.2"),
                                (ssl.TLSVersion.TLSv1_3, "TLSv1.3")):
            trust = self.authority.trust_in("own")
            trust.set_ciphers("DEFAULT@SECLEVEL=0")  # else this side would refuse
            trust.minimum_version = ssl.TLSVersion.TLSv1
            trust.maximum_version = version
            with self.up.dial_plain() as plain:
                if spoken is None:
                    with self.assertRaises(ssl.SSLError) as refused:
                        trust.wrap_socket(plain, server_hostname="127.0.0.1")
                    self.assertEqual(refused.exception.reason, "TLSV1_ALERT_PROTOCOL_VERSION")
                else:
                    with trust.wrap_socket(plain, server_hostname="127.0.0.1") as secret:
                        self.assertEqual(secret.version(), spoken)

    def test_a_client_that_speaks_plain_HTTP_is_closed(self):
        for text in (b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", b"\0" * 600):
            with self.up.dial_plain() as plain:
                plain.sendall(text)
                self.assertNotIn(b"200 OK", self.all_that_comes(plain))
            self.call("GET", "health", expect=200)

    def test_what_is_sent_in_clear_behind_the_handshake_ends_the_connection(self):
        with self.up.dial() as secret:
            os.write(secret.fileno(), b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            with self.assertRaises(OSError):
                while secret.recv(4096):
                    pass
        self.call("GET", "health", expect=200)

    @staticmethod
    def all_that_comes(plain):
        came = b""
        try:
            while piece := plain.recv(4096):
                came += piece
        except ConnectionError:
            pass
        return came

    def test_a_client_that_says_goodbye_during_a_wait_leaves_its_place(self):
        self.configure(backpressure={"max_depth": 1, "strategy": "block"})
        self.put_job()
        body = b'{"type":"late","args":[],"queue":"%s"}' % self.queue.encode()
        secret = self.up.dial()
        secret.sendall(b"POST /ojs/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nOJS-Block-Timeout: 600\r\n"
                       b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        eventually(lambda: self.stats()["waiting"] == 1)
        secret.settimeout(0)
        with self.assertRaises(ssl.SSLWantReadError):
            secret.unwrap()  # close_notify alone: the answer may still be read
        secret.close()
        eventually(lambda: self.stats()["waiting"] == 0)
        self.assertEqual(self.stats()["enqueued_total"], 1)


class Places(unittest.TestCase):
    def setUp(self):
        self.authority = Authority()
        self.addCleanup(self.authority.clean_up)
        self.authority.make("own")

    def up(self, *flags):
        return self.enterContext(Up(*self.authority.flags("own"), *flags, trust=self.authority.trust_in("own")))

    def test_half_a_handshake_holds_no_place_for_long(self):
        up = self.up("--max-connections", "4")
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # the first bytes of a ClientHello
        still = [up.dial_plain() for _ in range(4)]
        for number, plain in enumerate(still):
            self.addCleanup(plain.close)
            plain.sendall(hello[:number * 4])

        def served():
            try:
                return up.call("GET", "/health").status == 200
            except OSError:
                return False
        eventually(lambda: not served())  # all places are taken
        eventually(served)
        self.assertEqual([plain.recv(1) for plain in still], [b""] * 4)

    def test_a_websocket_goes_through_it(self):
        up = self.up()
        with WebSocket(up) as client:
            self.assertEqual(client.ask("subscribe", "all"), {"type": "subscribed", "channel": "all"})
            job = up.call("POST", "jobs", {"type": "a", "args": []}).json["job"]
            while (told := client.next_event())["event"] != "job.enqueued":
                pass
            self.assertEqual(told["data"]["subject"], job["id"])
            up.process.send_signal(signal.SIGTERM)
            self.assertEqual(client.next_event()["event"], "server.shutdown")
            self.assertEqual((client.next(), client.code), (None, 1001))
            client.frame(CLOSE, b"\x03\xe9")
            self.assertEqual(client.file.read(), b"", "and TLS's close_notify behind it")

    def test_the_end_answers_and_says_goodbye(self):
        up = self.up("--threads", "1")  # so the fetch waits already when the next request is answered
        idle, waiting, stream = (Raw(up) for _ in range(3))
        half = up.dial_plain()
        for each in (idle, waiting, stream):
            self.addCleanup(each.__exit__)
        self.addCleanup(half.close)
        idle.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(idle.status(), 200)
        stream.send("GET /ojs/v1/events/stream HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertIn(b"200", stream.file.readline())
        body = '{"queues":["none"],"wait_ms":2000}'
        waiting.send("POST /ojs/v1/workers/fetch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                     f"Content-Length: {len(body)}\r\n\r\n{body}")
        up.call("GET", "/health")
        up.process.send_signal(signal.SIGTERM)
        # An end without close_notify would raise here.
        self.assertEqual(idle.file.read(), b"")
        self.assertIn(b"server.shutdown", stream.file.read())
        self.assertEqual((waiting.status(), waiting.file.read()), (200, b""))
        self.assertEqual(half.recv(1), b"")
        self.assertEqual(up.process.wait(BOUND), 0)

    def test_SIGHUP_reads_certificate_and_tokens_again(self):
        tokens = self.authority.path("tokens")

        def allow(token):
            with open(tokens, "w") as file:
                file.write(token + " admin\n")

        def said(text):
            return eventually(lambda: text in open(os.path.join(up.dir, "log")).read())

        def status(token, connection=None):
            return up.call("GET", "queues", headers={"Authorization": "Bearer " + token}, connection=connection).status
        allow("before-0123456789")
        up = self.up("--token-file", tokens)
        before = Raw(up)
        self.addCleanup(before.__exit__)
        self.assertEqual(status("before-0123456789"), 200)
        self.authority.make("own")
        allow("behind-0123456789")
        up.process.send_signal(signal.SIGHUP)
        said("the token file is read again")
        with self.assertRaises(ssl.SSLCertVerificationError):
            up.dial()
        before.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(before.status(), 200, "a connection goes on with the certificate it began with")
        up.trust = self.authority.trust_in("own")
        self.assertEqual([status("before-0123456789"), status("behind-0123456789")], [401, 200])
        # What cannot be used changes nothing.
        os.remove(self.authority.path("own.key"))
        allow("short")
        up.process.send_signal(signal.SIGHUP)
        said("own.key: No such file")
        said("keep it from being guessed")
        self.assertEqual(status("behind-0123456789"), 200)


class Refused(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.authority = Authority()
        cls.addClassCleanup(cls.authority.clean_up)
        for name in ("own", "other"):
            cls.authority.make(name)
        cls.authority.make("locked", "-passout", "pass:secret")
        cls.authority.make("rsa", key=("rsa:2048",))
        with open(cls.authority.path("text.pem"), "w") as file:
            file.write("-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n")

    def refused(self, expect, *flags, listen="127.0.0.1:0"):
        """Its status is `expect`, nothing is started or left behind; what it said."""
        with tempfile.TemporaryDirectory() as folder:
            ended = subprocess.run([program("ojs-shm"), "up", "--name", "test", "--dir", folder, "--listen", listen, *flags],
                                   stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=BOUND)
            self.assertEqual((ended.returncode, ended.stdout), (expect, ""), ended.stderr)
            self.assertEqual([name for name in os.listdir(folder) if not name.endswith(".lock")], [])
        return ended.stderr

    def test_one_of_the_two_flags(self):
        path = self.authority.path
        self.assertIn("--tls-certificate needs --tls-key", self.refused(2, "--tls-certificate", path("own.pem")))
        self.assertIn("--tls-key needs --tls-certificate", self.refused(2, "--tls-key", path("own.key")))

    def test_files_that_cannot_be_used(self):
        path = self.authority.path
        for certificate, key, words in (
                ("none.pem", "own.key", "cannot read " + path("none.pem")),
                ("own.pem", "none.key", "cannot read " + path("none.key")),
                ("text.pem", "own.key", path("text.pem") + " has no certificate"),
                ("own.key", "own.key", path("own.key") + " has no certificate"),
                ("own.pem", "own.pem", path("own.pem") + " has no key"),
                ("own.pem", "text.pem", path("text.pem") + " has no key"),
                ("own.pem", "other.key", "does not belong to the certificate"),
                ("own.pem", "rsa.key", "does not belong to the certificate"),
                ("rsa.pem", "own.key", "does not belong to the certificate"),
                ("locked.pem", "locked.key", "locked with a pass phrase")):
            with self.subTest(certificate=certificate, key=key):
                said = self.refused(2, "--tls-certificate", path(certificate), "--tls-key", path(key))
                self.assertIn(words, said)

    def test_TLS_alone_opens_no_address_beyond_loopback(self):
        self.assertIn("--token-file", self.refused(7, *self.authority.flags("own"), listen="0.0.0.0:0"))

    def test_a_Unix_socket_is_plain(self):
        path = self.authority.path("socket")
        self.assertIn("Unix socket", self.refused(2, *self.authority.flags("own"), listen="unix:" + path))
        self.assertFalse(os.path.exists(path))
