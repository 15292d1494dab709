# SPDX-License-Identifier: Apache-2.0
"""A client of WebSockets that sends just what a test says, also what no good client would. Source: RFC 6455."""

import base64
import collections
import hashlib
import json
import os
import struct

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
#: What the server's key is made of.
MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Answer:
    """Of the server to the handshake: status, headers by their names in lower case, and the error in its body."""

    def __init__(self, file):
        line = file.readline().split()
        self.status, self.headers = int(line[1]) if line else 0, {}
        while (header := file.readline().strip()):
            name, _, value = header.decode().partition(":")
            self.headers[name.lower()] = value.strip()
        length = int(self.headers.get("content-length", 0))
        self.error = json.loads(file.read(length))["error"] if length else None


class WebSocket:
    """A connection to `up` after its handshake. Used with `with`. next() answers pings, receive() does not."""

    def __init__(self, up, query="", headers=None, ahead=b"", version="1.1"):
        self.events = collections.deque()
        self.socket = up.dial()
        self.file = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        lines = {"Host": up.address, "Upgrade": "websocket", "Connection": "keep-alive, Upgrade",
                 "Sec-WebSocket-Key": key, "Sec-WebSocket-Version": "13"} | (headers or {})
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value is not None)
        self.socket.sendall(f"GET /ojs/v1/ws{query} HTTP/{version}\r\n{head}\r\n".encode() + ahead)
        self.answer = Answer(self.file)
        if self.answer.status == 101:
            made = base64.b64encode(hashlib.sha1((key + MAGIC).encode()).digest()).decode()
            assert self.answer.headers["sec-websocket-accept"] == made, self.answer.headers

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def frame(self, kind, payload=b"", last=True):
        """Sends one frame, masked as a client's must be."""
        mask, length = os.urandom(4), len(payload)
        size = struct.pack("!B", 0x80 | length) if length < 126 else struct.pack("!BH", 0x80 | 126, length)
        hidden = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.socket.sendall(bytes([(0x80 if last else 0) | kind]) + size + mask + hidden)

    def receive(self):
        """Kind and payload of the next frame; (None, b"") when the connection has ended."""
        head = self.file.read(2)
        if len(head) < 2:
            return None, b""
        assert head[1] < 0x80, "a server's frames are not masked"
        length = head[1]
        if length == 126:
            length, = struct.unpack("!H", self.file.read(2))
        elif length == 127:
            length, = struct.unpack("!Q", self.file.read(8))
        return head[0] & 0x0F, self.file.read(length)

    def say(self, message):
        self.frame(TEXT, (message if isinstance(message, str) else json.dumps(message)).encode())

    def next(self):
        """The next message of the server; None when it says farewell, whose code is `code` then."""
        while True:
            kind, payload = self.receive()
            if kind == TEXT:
                return json.loads(payload)
            if kind == PING:
                self.frame(PONG, payload)
            elif kind in (CLOSE, None):
                self.code = struct.unpack("!H", payload[:2])[0] if payload else None
                return None

    def ask(self, action, channel):
        """Says it; the answer, before which events may come, which next_event() gives then."""
        self.say({"action": action, "channel": channel})
        return self.reply()

    def reply(self):
        while (message := self.next())["type"] == "event":
            self.events.append(message)
        return message

    def next_event(self):
        return self.events.popleft() if self.events else self.next()
