# SPDX-License-Identifier: Apache-2.0
"""Waiting for room in full queues, for asyncio: any number of submits at once, and no thread of Python's."""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Sequence

from . import _abi, errors
from ._abi import library
from ._handles import Handle
from .accepted import Accepted, accepted
from .aio_bell import Bell
from .client import Queue
from .jobs import NewJob
from .times import Duration, milliseconds

_AT_ONCE = 256


class Room:
    """What waits through one connection, on its bell. For one event loop."""

    def __init__(self, queue: Queue, bell: Bell) -> None:
        self._queue = queue
        self._bell = bell
        self._waiting: dict[int, tuple[Handle, Sequence[NewJob], asyncio.Future[list[Accepted]]]] = {}
        self._last = 0
        self._tags = (ctypes.c_uint64 * _AT_ONCE)()

    async def submit(self, jobs: Sequence[NewJob], timeout: Duration) -> list[Accepted]:
        if not jobs:
            return []
        specs, kept = self._queue._specs(jobs)
        limit = milliseconds(timeout, "block_timeout", 53)
        pointer = ctypes.c_void_p()
        self._last += 1
        tag = self._last
        self._bell.proxy().call(library().proxy_enqueue_begin, specs, len(specs), limit, tag, ctypes.byref(pointer))
        del kept
        waiting = Handle(pointer.value)
        decided: asyncio.Future[list[Accepted]] = asyncio.get_running_loop().create_future()
        self._waiting[tag] = waiting, jobs, decided
        try:
            self._look_at(tag)
            if not decided.done():
                self._bell.listen(self._look)
            return await decided
        finally:
            del self._waiting[tag]
            library().close(waiting.pointer)
            if not self._waiting:
                self._bell.leave(self._look)

    def close(self) -> None:
        for _, _, decided in self._waiting.values():
            if not decided.done():
                decided.set_exception(errors.Closed("this queue was closed", code="closed", number=-16))
        self._bell.leave(self._look)

    def _look(self) -> None:
        """Those that are decided; the rest is not looked at."""
        count = _AT_ONCE
        while count == _AT_ONCE:
            count = self._bell.proxy().call(library().proxy_take_decided, self._tags, _AT_ONCE)
            for tag in self._tags[:count]:
                if tag in self._waiting:
                    self._look_at(tag)

    def _look_at(self, tag: int) -> None:
        waiting, jobs, decided = self._waiting[tag]
        if decided.done():
            return
        ids = ctypes.create_string_buffer(len(jobs) * _abi.ID_SIZE)
        try:
            code = waiting.call(library().enqueue_poll, ids)
        except errors.Empty:
            return
        except errors.OjsError as error:
            decided.set_exception(error)
        else:
            decided.set_result(accepted(jobs, ids, code, waiting, waited=True))
