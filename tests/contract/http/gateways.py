# SPDX-License-Identifier: Apache-2.0
"""A gateway with a segment of its own for each class of tests, and requests to it."""

import collections
import contextlib
import ctypes
import functools
import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
import urllib.parse

from description import Description

ROOT = pathlib.Path(__file__).resolve().parents[3]
MEDIA_TYPE = "application/openjobspec+json"

#: No test waits longer than this for anything, in seconds.
BOUND = 30


def program(name: str) -> str:
    return str(pathlib.Path(os.environ.get("OJS_SHM_BIN_DIR", ROOT / "build" / "bin")) / name)


def eventually(done):
    """The first true answer of `done`; AssertionError when the bound passes without one."""
    end = time.monotonic() + BOUND
    while not (answer := done()):
        if time.monotonic() > end:
            raise AssertionError("it did not happen in time")
        time.sleep(0.002)
    return answer


def stop(pid):
    """All threads of the process stand still when this returns; SIGCONT lets them go on."""
    os.kill(pid, signal.SIGSTOP)
    threads = pathlib.Path(f"/proc/{pid}/task")
    eventually(lambda: all((each / "stat").read_text().rpartition(")")[2].split()[0] == "T"
                           for each in threads.iterdir()))


def end_with_parent():
    """In the child, before it becomes the program: whatever kills the tests ends their programs too."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


class Reply:
    def __init__(self, answer):
        self.status, self.headers, self.body = answer.status, answer.headers, answer.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]


class Authority:
    """Certificates for 127.0.0.1 and their keys, made by the openssl command in a folder that goes with `clean_up`."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="ojs-shm-tls-")
        self.clean_up = self._folder.cleanup

    def path(self, name):
        return os.path.join(self._folder.name, name)

    def make(self, name, *flags, key=("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")):
        """`name`.pem and `name`.key, which take the place of earlier ones; their paths."""
        pair = self.path(name + ".pem"), self.path(name + ".key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", *key, "-days", "2", "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
                        "-out", pair[0], "-keyout", pair[1], *(flags or ("-nodes",))],
                       check=True, capture_output=True, timeout=BOUND)
        return pair

    def flags(self, name):
        return "--tls-certificate", self.path(name + ".pem"), "--tls-key", self.path(name + ".key")

    def trust_in(self, name):
        trust = ssl.create_default_context(cafile=self.path(name + ".pem"))
        trust.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF  # an end without close_notify is an error
        return trust


class Up:
    """`ojs-shm up` with a segment in a temporary directory. Used with `with`; `trust` is how to speak TLS with it."""

    trust = None

    def __init__(self, *flags, listen="127.0.0.1:0", trust=None, size=("--slots", "8192")):
        self._flags, self._listen, self.trust = (*size, *flags), listen, trust

    def __enter__(self):
        self._scratch = tempfile.TemporaryDirectory(prefix="ojs-shm-http-")
        self.dir = self._scratch.name
        self.log = open(os.path.join(self.dir, "log"), "w+")
        self.process = subprocess.Popen(
            [program("ojs-shm"), "up", "--name", "test", "--dir", self.dir, "--listen",
             self._listen.format(dir=self.dir), "--remove", *self._flags],
            stdout=subprocess.PIPE, stderr=self.log, text=True, preexec_fn=end_with_parent)
        words = self.process.stdout.readline().split()
        if words[:1] != ["READY"]:
            self.__exit__()
            raise AssertionError(f"ojs-shm up said {words!r}")
        self.url = words[1]
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(BOUND)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.log.close()
        self._scratch.cleanup()

    @property
    def address(self):
        return urllib.parse.urlsplit(self.url).netloc

    def connection(self):
        if self.trust:
            return http.client.HTTPSConnection(self.address, timeout=BOUND, context=self.trust)
        return http.client.HTTPConnection(self.address, timeout=BOUND)

    def dial_plain(self):
        host, port = self.address.split(":")
        return socket.create_connection((host, int(port)), timeout=BOUND)

    def dial(self):
        """A connection whose bytes the test writes itself, through TLS where the gateway speaks it."""
        plain = self.dial_plain()
        if not self.trust:
            return plain
        return self.trust.wrap_socket(plain, server_hostname="127.0.0.1", suppress_ragged_eofs=False)

    def child(self, name):
        """The pid of the program of that name that it runs."""
        children = open(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read().split()
        return next(int(child) for child in children if os.readlink(f"/proc/{child}/exe").endswith(name))

    def call(self, method, path, body=None, headers=None, connection=None):
        """One request; `body` is a value that becomes JSON, or bytes as they are. Both it and the reply must be as the
        gateway describes them."""
        headers = dict(headers or {})
        target = path if path.startswith("/") else "/ojs/v1/" + path
        if body is not None:
            headers.setdefault("Content-Type", MEDIA_TYPE)
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        with contextlib.closing(connection or self.connection()) as spoken:
            spoken.request(method, target, body, headers)
            reply = Reply(spoken.getresponse())
        must_be_as_described(method, target, body, reply)
        return reply

    def native(self, *words, text=None):
        """The command line on the same segment."""
        return subprocess.run([program("ojs-shm"), *words], input=text, capture_output=True, text=True, timeout=BOUND,
                              env={**os.environ, "OJS_SHM_NAME": "test", "OJS_SHM_DIR": str(self.dir)})


class UpUnix(Up):
    """The same at a Unix socket, for bytes that the test writes itself."""

    address = "localhost"

    def __init__(self, *flags):
        super().__init__(*flags, listen="unix:{dir}/socket")

    def dial(self):
        dialed = socket.socket(socket.AF_UNIX)
        dialed.settimeout(BOUND)
        dialed.connect(os.path.join(self.dir, "socket"))
        return dialed


@functools.cache
def description():
    """What the gateway says of itself."""
    with Up("--test-hooks") as up, contextlib.closing(up.connection()) as spoken:
        spoken.request("GET", "/ojs/v1/openapi.json")
        return Description(Reply(spoken.getresponse()).json)


_looked_at = collections.Counter()


def must_be_as_described(method, target, body, reply):
    """Of the many alike that a storm sends, a hundred."""
    if method == "HEAD":
        return
    found = description().operation(method, target)
    _looked_at[found and found[0], method, reply.status] += 1
    if _looked_at[found and found[0], method, reply.status] > 100:
        return
    problems = description().problems(method, target, body, reply.status, reply.headers["Content-Type"], reply.body)
    if problems:
        raise AssertionError("not as described: " + "; ".join(problems))


class OnGateway(unittest.TestCase):
    """One gateway for a class of tests; each test uses a queue named after itself, so that none disturbs another."""

    flags = ("--test-hooks",)
    trust = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.up = cls.enterClassContext(Up(*cls.flags, trust=cls.trust))

    @property
    def queue(self):
        return self._testMethodName.lower().replace("_", "-")[:100]

    def call(self, method, path, body=None, expect=None, **options):
        reply = self.up.call(method, path, body, **options)
        if expect is not None:
            self.assertEqual(reply.status, expect, reply.body)
        return reply

    def enqueue(self, expect=201, headers=None, **members):
        body = {"type": "test.http", "args": [], "queue": self.queue} | members
        return self.call("POST", "jobs", body, expect=expect, headers=headers)

    def put_job(self, **members):
        return self.enqueue(**members).json["job"]

    def fetch(self, count=1, **members):
        body = {"queues": [self.queue], "count": count, "worker_id": "w-" + self.queue} | members
        return self.call("POST", "workers/fetch", body, expect=200).json["jobs"]

    def get(self, job):
        return self.call("GET", "jobs/" + job["id"], expect=200).json["job"]

    def configure(self, expect=200, **settings):
        return self.call("PUT", f"admin/queues/{self.queue}/config", settings, expect=expect)

    def stats(self):
        return self.call("GET", f"queues/{self.queue}/stats", expect=200).json["queue"]


class OnPrograms(unittest.TestCase):
    """Programs of a segment of its own, each started, and perhaps killed, by the test."""

    def setUp(self):
        self.dir = self.enterContext(tempfile.TemporaryDirectory(prefix="ojs-shm-http-"))

    def start(self, name, *flags):
        process = subprocess.Popen([program(name), "--name", "test", "--dir", self.dir, *flags], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True, preexec_fn=end_with_parent)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, BOUND)
        self.addCleanup(process.terminate)
        return process
