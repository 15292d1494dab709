# SPDX-License-Identifier: Apache-2.0
"""The one descriptor of an asyncio connection, which all that waits on it shares."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from . import errors
from ._abi import library
from ._handles import Handle
from .client import Queue


class Bell:
    """A proxy and its descriptor; its listener is called in the event loop when something may have come. For one loop."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._proxy: Handle | None = None
        self._descriptor = -1
        self._listeners: dict[Callable[[], None], None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._followers = 0
        self.closed = False

    def proxy(self) -> Handle:
        if self._proxy is None:
            if self._queue._segment is None:
                raise errors.Closed("this queue is closed", code="closed", number=-16)
            proxy = Handle(library().open(library().proxy_open, self._queue._segment))
            try:
                self._descriptor = proxy.call(library().proxy_await, None, 0, None, 0)
            except errors.OjsError:
                library().close(proxy.pointer)
                raise
            self._proxy = proxy
        return self._proxy

    def listen(self, look: Callable[[], None]) -> None:
        self.proxy()
        self._listeners[look] = None
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._stop()
            self._loop = loop
            loop.add_reader(self._descriptor, self._ring)

    def leave(self, look: Callable[[], None]) -> None:
        self._listeners.pop(look, None)
        if not self._listeners:
            self._stop()

    def follow_events(self, look: Callable[[], None]) -> bool:
        """False: the segment has no handle left for that."""
        try:
            self.proxy().call(library().proxy_await_events, 1)
        except errors.SegmentFull:
            return False
        self._followers += 1
        self.listen(look)
        return True

    def leave_events(self, look: Callable[[], None]) -> None:
        if look not in self._listeners:
            return
        self.leave(look)
        self._followers -= 1
        if self._followers == 0 and self._proxy is not None:
            self._proxy.call(library().proxy_await_events, 0)

    def close(self) -> None:
        """Calls the listener once more."""
        self.closed = True
        for look in tuple(self._listeners):
            look()
        self._listeners.clear()
        self._stop()
        if self._proxy is not None:
            library().close(self._proxy.pointer)
            self._proxy = None

    def _stop(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._descriptor)
        self._loop = None

    def _ring(self) -> None:
        try:
            os.eventfd_read(self._descriptor)
        except BlockingIOError:
            pass
        for look in tuple(self._listeners):
            look()
