# SPDX-License-Identifier: Apache-2.0
"""Waiting for room in full queues, for asyncio: any number of submits at once, and no thread of Python's."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Iterable

from . import _abi, errors
from ._abi import library
from ._handles import Handle
from .client import Queue
from .jobs import NewJob
from .times import Duration, milliseconds


class Room:
    """What waits through one connection, on a handle of its own. For one event loop."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._producer: Handle | None = None
        self._waiting: dict[Handle, tuple[int, asyncio.Future[list[str]]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._descriptor = -1

    async def submit(self, jobs: Iterable[NewJob], timeout: Duration) -> list[str]:
        producer = self._producer or self._open()
        specs, kept = self._queue._specs(jobs)
        if len(specs) == 0:
            return []
        limit = milliseconds(timeout, "block_timeout", 53)
        pointer = ctypes.c_void_p()
        producer.call(library().enqueue_begin, specs, len(specs), limit, ctypes.byref(pointer))
        del kept
        waiting = Handle(pointer.value)
        loop = asyncio.get_running_loop()
        decided: asyncio.Future[list[str]] = loop.create_future()
        self._waiting[waiting] = len(specs), decided
        self._listen(loop)
        timer = loop.call_later(limit / 1000, self._look)
        try:
            self._look_at(waiting)
            return await decided
        finally:
            timer.cancel()
            self._waiting.pop(waiting, None)
            library().close(waiting.pointer)
            if not self._waiting:
                self._listen(None)

    def close(self) -> None:
        for _, decided in self._waiting.values():
            if not decided.done():
                decided.set_exception(errors.Closed("this queue was closed", code="closed", number=-16))
        self._listen(None)
        if self._producer is not None:
            library().close(self._producer.pointer)
            self._producer = None

    def _open(self) -> Handle:
        if self._queue._segment is None:
            raise errors.Closed("this queue is closed", code="closed", number=-16)
        self._producer = Handle(library().open(library().producer_open, self._queue._segment))
        self._descriptor = self._producer.call(library().room_fd)
        return self._producer

    def _listen(self, loop: asyncio.AbstractEventLoop | None) -> None:
        if loop is self._loop:
            return
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._descriptor)
        self._loop = loop
        if loop is not None:
            loop.add_reader(self._descriptor, self._look)

    def _look(self) -> None:
        for waiting in tuple(self._waiting):
            self._look_at(waiting)

    def _look_at(self, waiting: Handle) -> None:
        count, decided = self._waiting[waiting]
        if decided.done():
            return
        ids = ctypes.create_string_buffer(count * _abi.ID_SIZE)
        try:
            waiting.call(library().enqueue_poll, ids)
        except errors.Empty:
            return
        except errors.OjsError as error:
            decided.set_exception(error)
        else:
            decided.set_result(_abi.ids_of(ids, count))
