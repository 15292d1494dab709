# SPDX-License-Identifier: Apache-2.0
"""What happens in a segment, as it happens: Queue.events()."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from . import _abi, errors
from ._abi import EVENTS_AT_ONCE, EVENTS_FROM_START, library
from ._handles import Handle
from .own_bell import OwnBell

#: Seconds between two looks where the segment has no handle left for a descriptor that tells of events.
LOOK = 0.05


class _Closable:
    """What close() ends at once, or the thread that is inside when it leaves. close() waits for no lock: the handler of a
    signal may call it while its own thread is inside."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False

    @contextlib.contextmanager
    def _inside(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        finally:
            self._end_if_closed()

    def close(self) -> None:
        self._closed = True
        self._end_if_closed()

    def _end_if_closed(self) -> None:
        if self._closed and self._lock.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._lock.release()

    def _end(self) -> None:
        """Once or more often."""
        raise NotImplementedError


class _Bell(_Closable):
    """Sleeps until something is told. Thread-safe."""

    def __init__(self, segment: int) -> None:
        super().__init__()
        self._ended = OwnBell()
        self._descriptor = -1  # none yet, or no handle was left
        try:
            self._proxy: Handle | None = Handle(library().open(library().proxy_open, segment))
        except errors.OjsError:
            self._proxy = None

    def wait(self) -> None:
        with self._inside():
            if self._closed:
                return
            if self._descriptor < 0 and self._proxy is not None:
                self._ask()
            poll = select.poll()
            poll.register(self._ended, select.POLLIN)
            if self._descriptor < 0:
                poll.poll(LOOK * 1000)
                return
            poll.register(self._descriptor, select.POLLIN)
            poll.poll()
            try:
                os.eventfd_read(self._descriptor)
            except BlockingIOError:
                pass

    def close(self) -> None:
        self._closed = True
        self._ended.ring()
        super().close()

    def _end(self) -> None:
        proxy, self._proxy = self._proxy, None
        if proxy is not None:
            library().close(proxy.pointer)

    def _ask(self) -> None:
        try:
            self._descriptor = self._proxy.call(library().proxy_await_events, 1)
        except errors.OjsError:
            library().close(self._proxy.pointer)
            self._proxy = None


def _choice(follow: bool, from_start: bool = False, after: str | None = None, after_position: int = 0,
            types: Iterable[str] = (), queues: Iterable[str] = (), jobs: Iterable[str] = (),
            job_types: Iterable[str] = (), tenant: str | None = None) -> _abi.EventOptions:
    """What Queue.events() takes."""
    options = _abi.EventOptions()
    options.flags = (EVENTS_FROM_START if from_start else 0) | (0 if follow else EVENTS_AT_ONCE)
    options.after, options.tenant = _abi.text_in(after, "after"), _abi.text_in(tenant, "tenant")
    options.after_position = _abi.whole(after_position, "after_position", 64)
    for member, count, texts in (("types", "type_count", types), ("queues", "queue_count", queues),
                                 ("jobs", "job_count", jobs), ("job_types", "job_type_count", job_types)):
        words, number = _abi.texts_in(texts, member)
        setattr(options, member, words)
        setattr(options, count, number)
    return options


class Events(_Closable, Iterator[dict[str, Any]]):
    """Iterates over the events of ojs-events as dicts: what is kept, if wanted, then what happens, for ever if it
    follows. Thread-safe.

    lost      how many were overwritten before they could be read; from behind an event without a known position it
              begins at 0
    position  of the last one given out: its number among all that the segment told. With its `id` it says where to
              go on
    resumed   whether the event to go on behind was still there when the first one was asked for. If not, events begin
              with the first that is kept and not older, and `lost` is exact if the position was given
    """

    def __init__(self, segment: int, follow: bool, choice: dict[str, Any], sleeps: bool = True) -> None:
        super().__init__()
        options = _choice(follow, **choice)
        self._handle: Handle | None = Handle(library().open(library().events_choose, segment, ctypes.byref(options)))
        self._bell = _Bell(segment) if follow and sleeps else None
        self._follow = follow
        self.lost = self.position = 0
        self.resumed = False

    def poll(self) -> dict[str, Any] | None:
        """The next event, or None when there is none now."""
        with self._inside():
            if self._closed or self._handle is None:
                raise errors.Closed("these events are closed", code="closed", number=-16)
            try:
                event = json.loads(self._handle.text(library().next_event))
            except errors.Empty:
                event = None
            self.lost = self._handle.call(library().events_lost)
            self.position = self._handle.call(library().event_position)
            self.resumed = bool(self._handle.call(library().events_resumed))
            return event

    def __next__(self) -> dict[str, Any]:
        while not self._closed:
            try:
                event = self.poll()
            except errors.Closed:
                if self._closed:  # meanwhile
                    break
                raise
            if event is not None:
                return event
            if not self._follow:
                break
            self._bell.wait()
        raise StopIteration

    def close(self) -> None:
        """Ends the iteration, also one that waits in another thread, or in the thread that a signal's handler interrupts."""
        self._closed = True
        if self._bell is not None:
            self._bell.close()
        super().close()

    def _end(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            library().close(handle.pointer)

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()
