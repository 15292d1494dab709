# SPDX-License-Identifier: Apache-2.0
"""More events than the segment keeps: what streams say of those that they lost."""

import ctypes
import os
import signal
import unittest

from gateways import Up, eventually, program, stop
from test_events import Stream


OJS_SHM_QUEUE_PAUSED = 4


class QueueSettings(ctypes.Structure):
    """ojs_shm_queue_settings"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("max_depth", ctypes.c_uint64), ("max_size_bytes", ctypes.c_uint64),
                ("paused", ctypes.c_uint32), ("set", ctypes.c_uint32), ("warning_threshold", ctypes.c_double),
                ("strategy", ctypes.c_uint32), ("drop", ctypes.c_uint32)]


class Overrun(unittest.TestCase):
    def setUp(self):
        if os.environ.get("OJS_SHM_SANITIZED"):
            self.skipTest("the interpreter loads no library that is built for a sanitizer")
        self.up = self.enterContext(Up(size=("--slots", "64")))
        library = ctypes.CDLL(os.path.join(os.path.dirname(program("x")), "..", "lib", "libojs_shm.so"))
        segment, self.admin = ctypes.c_void_p(), ctypes.c_void_p()
        self.assertEqual(library.ojs_shm_segment_attach(b"test", self.up.dir.encode(), ctypes.byref(segment)), 0)
        self.assertEqual(library.ojs_shm_admin_open(segment, ctypes.byref(self.admin)), 0)
        self.library = library

    def tell(self, pairs):
        """Two events each."""
        for _ in range(pairs):
            for paused in (1, 0):
                settings = QueueSettings(ctypes.sizeof(QueueSettings), 0, 0, paused, OJS_SHM_QUEUE_PAUSED)
                self.assertEqual(self.library.ojs_shm_set_queue(self.admin, b"busy", ctypes.byref(settings)), 0)

    def test_a_stream_is_told_how_many_events_were_overwritten_before_the_gateway_read_them(self):
        stream = Stream(self, "events/stream")
        self.tell(1)
        self.assertEqual([stream.next()["event"] for _ in range(2)], ["queue.paused", "queue.resumed"])
        gateway, pairs, seen = self.up.child("ojs-shm-gateway"), 100_000, 0
        stop(gateway)
        self.tell(pairs)
        os.kill(gateway, signal.SIGCONT)
        lost = 0
        while lost + seen < 2 * pairs:
            event = stream.next()
            if event["event"] == "system.gap":
                lost += event["data"]["data"]["lost"]
            else:
                seen += 1
        self.assertGreater(lost, 0)
        self.assertEqual(lost + seen, 2 * pairs)
        self.assertGreater(seen, 0)

    def test_the_gap_of_a_sole_client_that_comes_back_is_exact(self):
        alone = Stream(self, "events/stream")
        self.up.call("POST", "jobs", {"type": "test.quiet", "args": []})  # told by a handle that tells little, so it is kept
        self.assertEqual(alone.next()["event"], "job.enqueued")
        self.tell(1)
        first = alone.next()["id"]
        alone.next()
        alone.connection.close(), alone.answer.close()
        port = f":{int(self.up.address.rpartition(':')[2]):04X}"
        eventually(lambda: not any(row[1].endswith(port) and row[3] in ("01", "08")
                                   for row in map(str.split, open("/proc/net/tcp"))))  # the gateway has let it go
        self.tell(20_000)  # more than the segment keeps
        self.tell(1)
        again = Stream(self, "events/stream", {"Last-Event-ID": first})
        gap = again.next()
        self.assertEqual((gap["event"], gap["data"]["data"]["after"]), ("system.gap", first))
        lost, seen = gap["data"]["data"]["lost"], 0
        self.assertGreater(lost, 0)
        while lost + seen < 2 * 20_001 + 1:
            self.assertIn(again.next()["event"], ("queue.paused", "queue.resumed"), "and nothing that it has read before")
            seen += 1
        self.assertGreater(seen, 1000)
        self.tell(1)
        self.assertEqual([again.next()["event"] for _ in range(2)], ["queue.paused", "queue.resumed"], "and nothing more was left")

    def test_the_gap_behind_a_known_event_is_exact(self):
        listener = Stream(self, "events/stream")
        self.tell(1)
        first = last = listener.next()["id"]
        listener.next()
        pairs = 20_000
        for _ in range(pairs // 100):
            self.tell(100)
            for _ in range(200):
                last = listener.next()["id"]
        again = Stream(self, "events/stream", {"Last-Event-ID": first})
        gap = again.next()
        self.assertEqual((gap["event"], gap["data"]["data"]["after"]), ("system.gap", first))
        lost, seen = gap["data"]["data"]["lost"], 1
        while again.next()["id"] != last:
            seen += 1
        self.assertEqual(lost + seen, 2 * pairs + 1)
