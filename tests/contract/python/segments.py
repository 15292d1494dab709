# SPDX-License-Identifier: Apache-2.0
"""A broker with a segment of its own for each class of tests, and waiting without sleeping blindly."""

import contextlib
import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[3]
if str(ROOT / "worker_api" / "python") not in sys.path:
    sys.path.insert(0, str(ROOT / "worker_api" / "python"))

#: No test waits longer than this for anything, in seconds.
BOUND = 30


def broker_program() -> str:
    folder = os.environ.get("OJS_SHM_BIN_DIR", str(ROOT / "build" / "bin"))
    return str(pathlib.Path(folder) / "ojs-shm-broker")


def eventually(done):
    """The first true answer of `done`; AssertionError when the bound passes without one."""
    end = time.monotonic() + BOUND
    while not (answer := done()):
        if time.monotonic() > end:
            raise AssertionError("it did not happen in time")
        time.sleep(0.002)
    return answer


def end_with_parent():
    """In the child, before it becomes the program: whatever kills the tests ends their brokers too."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class Broker:
    """The shipped program, with a segment in a temporary directory. Used with `with`."""

    def __init__(self, convention="qo", *flags):
        self.name = "python-" + uuid.uuid4().hex[:12]
        self.convention = convention
        self._flags = flags

    def __enter__(self):
        self._scratch = tempfile.TemporaryDirectory(prefix="ojs-shm-python-")
        self.dir = self._scratch.name
        self._log = open(os.path.join(self.dir, "log"), "w+")
        self._process = subprocess.Popen(
            [broker_program(), "--name", self.name, "--dir", self.dir, "--convention", self.convention, "--slots",
             "4096", *self._flags],
            stdout=subprocess.PIPE, stderr=self._log, text=True, preexec_fn=end_with_parent)
        line = self._process.stdout.readline()
        if line.strip() != f"READY name={self.name}":
            self.__exit__()
            raise AssertionError(f"the broker said {line!r}")
        return self

    def __exit__(self, *_):
        self._process.terminate()
        try:
            self._process.wait(BOUND)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._log.close()
        self._scratch.cleanup()

    @property
    def where(self):
        """The arguments of connect()."""
        return {"name": self.name, "dir": self.dir}


class OnSegment:
    """One broker for a class of tests; each test uses a queue named after itself, so that none disturbs another."""

    convention = "qo"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.broker = cls.enterClassContext(Broker(cls.convention))

    @property
    def queue_name(self):
        return self._testMethodName.lower().replace("_", "-")[:100]


class OnQueue(OnSegment, unittest.TestCase):
    """Blocking tests: self.queue is a connection whose default queue is the test's own."""

    def setUp(self):
        import ojs_shm
        self.queue = ojs_shm.connect_sync(**self.broker.where, queue=self.queue_name)
        self.addCleanup(self.queue.close)

    @contextlib.contextmanager
    def running(self, worker):
        """run() in a thread; what it raises is kept in the list that the block gets."""
        raised = []

        def run():
            try:
                worker.run(signals=False)
            except Exception as error:  # noqa: BLE001
                raised.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield raised
        finally:
            worker.stop()
            thread.join(BOUND)
            self.assertFalse(thread.is_alive(), "run() did not return after stop()")


class OnAsyncQueue(OnSegment, unittest.IsolatedAsyncioTestCase):
    """The same for an event loop."""

    async def asyncSetUp(self):
        import ojs_shm
        self.queue = await ojs_shm.connect(**self.broker.where, queue=self.queue_name)
        self.addAsyncCleanup(self.queue.close)
