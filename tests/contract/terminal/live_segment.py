# SPDX-License-Identifier: Apache-2.0
"""A segment for ojs-shm-top to look at, and waiting without sleeping blindly."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from terminal import BOUND, Terminal

BIN = pathlib.Path(os.environ["OJS_SHM_BIN_DIR"])


class Segment:
    """A broker with a segment in a temporary directory. Used with `with`."""

    def __init__(self, *flags):
        self._flags = flags

    def __enter__(self):
        self._scratch = tempfile.TemporaryDirectory(prefix="ojs-shm-top-")
        self.dir = self._scratch.name
        self.file = pathlib.Path(self.dir) / "ojs-shm.seen"
        self.broker = None
        self.start_broker()
        return self

    def start_broker(self):
        slots = [] if "--slots" in self._flags else ["--slots", "2048"]
        self.broker = subprocess.Popen([BIN / "ojs-shm-broker", *self.where, *slots, "--keep", *self._flags],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if self.broker.stdout.readline().strip() != "READY name=seen":
            raise AssertionError("the broker did not start")

    def __exit__(self, *_):
        self.end_broker(signal.SIGTERM)
        self._scratch.cleanup()

    def end_broker(self, how):
        if self.broker is None:
            return
        self.broker.send_signal(how)
        self.broker.wait(BOUND)
        self.broker.stdout.close()
        self.broker = None

    @property
    def where(self):
        return ["--name", "seen", "--dir", self.dir]

    def cli(self, *words, text=None):
        done = subprocess.run([BIN / "ojs-shm", words[0], *self.where, *words[1:]], input=text, capture_output=True, text=True,
                              timeout=BOUND)
        if done.returncode != 0:
            raise AssertionError(f"{words}: {done.stderr}")
        return done.stdout

    def put(self, queue, count=1, **members):
        lines = [json.dumps({"type": "mail.send", "args": [i], "queue": queue, **members}) for i in range(count)]
        return self.cli("enqueue", text="\n".join(lines) + "\n").split("\n")[0].split("\t")[0]

    def top(self, *flags, columns=120, lines=24, **more):
        return Terminal([str(BIN / "ojs-shm-top"), *self.where, *flags], columns, lines, **more)

    def look(self, *flags):
        done = subprocess.run([BIN / "ojs-shm-top", *self.where, *flags], capture_output=True, text=True, timeout=BOUND)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return done.stdout


def eventually(done):
    end = time.monotonic() + BOUND
    while not (answer := done()):
        if time.monotonic() > end:
            raise AssertionError("it did not happen in time")
        time.sleep(0.01)
    return answer


@contextlib.contextmanager
def worker_at_work(segment, queue, *flags):
    """A process that holds a job of the queue until the end. Looks read-only, for a full segment lets no other in."""
    gate = os.path.join(segment.dir, "gate-" + os.urandom(4).hex())
    active = lambda: sum(one["active"] for one in json.loads(segment.look("--json", "-n", "1"))["queues"] if one["name"] == queue)
    before = active()
    os.mkfifo(gate)
    key = os.open(gate, os.O_RDWR)
    at_work = subprocess.Popen([BIN / "ojs-shm", "work", *segment.where, "--queue", queue, "--count", "1", *flags, "--", "head",
                                "-c1", gate], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: active() == before + 1)
        yield
    finally:
        os.write(key, b"!")
        at_work.wait(BOUND)
        os.close(key)
