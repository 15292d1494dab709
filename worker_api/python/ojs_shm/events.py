# SPDX-License-Identifier: Apache-2.0
"""What happens in a segment, as it happens: Queue.events()."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

from . import errors
from ._abi import EVENTS_AT_ONCE, EVENTS_FROM_START, library
from ._handles import Handle

#: Seconds between two looks while nothing happens.
LOOK = 0.05


class Events(Iterator[dict[str, Any]]):
    """Iterates over the events of ojs-events as dicts: what is kept from the start, if wanted, then what happens, for
    ever if it follows. `lost` counts those that were overwritten before they could be read. Thread-safe.
    """

    def __init__(self, segment: int, from_start: bool, follow: bool) -> None:
        flags = (EVENTS_FROM_START if from_start else 0) | (0 if follow else EVENTS_AT_ONCE)
        self._handle: Handle | None = Handle(library().open(library().events_open, segment, flags))
        self._follow = follow
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self.lost = 0

    def poll(self) -> dict[str, Any] | None:
        """The next event, or None when there is none now."""
        with self._lock:
            if self._handle is None:
                raise errors.Closed("these events are closed", code="closed", number=-16)
            try:
                event = json.loads(self._handle.text(library().next_event))
            except errors.Empty:
                event = None
            self.lost = self._handle.call(library().events_lost)
            return event

    def __next__(self) -> dict[str, Any]:
        while not self._closed.is_set():
            event = self.poll()
            if event is not None:
                return event
            if not self._follow:
                break
            self._closed.wait(LOOK)
        raise StopIteration

    def close(self) -> None:
        """Ends the iteration, also one that waits in another thread."""
        self._closed.set()
        with self._lock:
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
