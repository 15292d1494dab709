# SPDX-License-Identifier: Apache-2.0
"""Handles of the library, each used by one thread at a time, lent from a pool."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from . import errors
from ._abi import library


class Handle:
    """One opaque handle. The thread that has borrowed it is alone with it."""

    __slots__ = ("pointer",)

    def __init__(self, pointer: int) -> None:
        self.pointer = pointer

    def call(self, entry, *arguments) -> int:
        result = entry(self.pointer, *arguments)
        if result < 0:
            raise library().error(result, self.pointer)
        return result

    def text(self, entry, *arguments) -> str:
        return library().read_text(self.pointer, entry, self.pointer, *arguments)


class Handles:
    """As many handles of one kind as threads need at once, opened when needed and used again. Thread-safe."""

    def __init__(self, name: str, open_one: Callable[[], int]) -> None:
        self._name = name
        self._open = open_one
        # Re-entrant, because a signal handler may close what its own thread is just borrowing.
        self._lock = threading.RLock()
        self._all: set[Handle] = set()
        self._free: list[Handle] = []
        self._interrupted = self._quiet = False
        self._closed = False
        #: interrupt() calls what it returns as well.
        self.on_interrupt: Callable[[], Callable[[], None] | None] = lambda: None

    def take(self) -> Handle:
        with self._lock:
            if self._closed:
                raise errors.Closed(f"this {self._name} is closed", code="closed", number=-16)
            if self._free:
                return self._free.pop()
            handle = Handle(self._open())
            self._all.add(handle)
            if self._interrupted:
                library().interrupt(handle.pointer)
            if self._quiet:
                library().worker_quiet(handle.pointer)
            return handle

    def put(self, handle: Handle) -> None:
        with self._lock:
            if self._closed:
                self._end(handle)
            else:
                self._free.append(handle)

    @contextlib.contextmanager
    def lent(self) -> Iterator[Handle]:
        handle = self.take()
        try:
            yield handle
        finally:
            self.put(handle)

    def interrupt(self) -> None:
        """Makes all running fetches, and all later ones, end with Closed. Only for handles of workers."""
        if (told := self.on_interrupt()) is not None:
            told()
        with self._lock:
            self._interrupted = True
            for handle in tuple(self._all):
                library().interrupt(handle.pointer)

    def be_quiet(self, quiet: bool) -> None:
        """Whether all fetches, also running ones, find nothing. Only for handles of workers."""
        with self._lock:
            self._quiet = quiet
            for handle in tuple(self._all):
                (library().worker_quiet if quiet else library().worker_resume)(handle.pointer)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Ends the handles that are not borrowed now, and the borrowed ones when they come back."""
        with self._lock:
            self._closed = True
            while self._free:
                self._end(self._free.pop())

    def _end(self, handle: Handle) -> None:
        self._all.discard(handle)
        library().close(handle.pointer)
