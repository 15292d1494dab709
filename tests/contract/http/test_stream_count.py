# SPDX-License-Identifier: Apache-2.0
"""How many event streams and WebSockets one client may have at once."""

import contextlib
import tempfile
import unittest

from gateways import Up, UpUnix, eventually
from test_events import Stream
from websockets import WebSocket


class StreamCount(unittest.TestCase):
    def status(self, up, path="events/stream", headers=None):
        """Of one more stream, which ends at once."""
        with contextlib.closing(up.connection()) as spoken:
            spoken.request("GET", "/ojs/v1/" + path, headers=headers or {})
            return spoken.getresponse().status

    def test_a_client_has_no_more_than_that_at_once(self):
        up = self.enterContext(Up("--max-streams", "2"))
        _ = Stream(self, "admin/stats/stream", up=up)  # which ends when nobody has it any more
        second = Stream(self, "events/stream", up=up)
        with WebSocket(up) as client:
            self.assertEqual(client.answer.status, 429, client.answer.headers)
            self.assertEqual(client.answer.error["code"], "rate_limited")
            self.assertIn("--max-streams", client.answer.error["hint"])
            self.assertEqual(client.answer.headers["retry-after"], "1")
        reply = up.call("GET", "events/stream")
        self.assertEqual((reply.status, reply.json["error"]["retryable"]), (429, True))
        self.assertEqual(up.call("GET", "events").status, 200)
        second.answer.close()
        eventually(lambda: self.status(up) == 200)

    def test_each_token_is_a_client(self):
        with tempfile.NamedTemporaryFile("w", suffix=".tokens") as file:
            file.write("one-0123456789ab read\nanother-01234567 read\n")
            file.flush()
            up = self.enterContext(Up("--max-streams", "1", "--token-file", file.name))
            one, other = {"Authorization": "Bearer one-0123456789ab"}, {"authorization": "bearer another-01234567"}
            _ = Stream(self, "events/stream", one, up)
            self.assertEqual(self.status(up, headers=one | {"Authorization": "bearer one-0123456789ab"}), 429)
            with WebSocket(up, headers=other) as client:
                self.assertEqual(client.answer.status, 101)
                self.assertEqual(self.status(up, headers=other), 429)

    def test_what_is_refused_takes_no_place(self):
        up = self.enterContext(Up("--max-streams", "1"))
        for _ in range(3):
            self.assertEqual(up.call("GET", "queues/none/events").status, 404)
        self.assertEqual(self.status(up), 200)

    def test_clients_of_a_unix_socket_are_one(self):
        with UpUnix("--max-streams", "1") as up, WebSocket(up) as first, WebSocket(up) as second:
            self.assertEqual((first.answer.status, second.answer.status), (101, 429))


if __name__ == "__main__":
    unittest.main()
