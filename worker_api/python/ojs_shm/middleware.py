# SPDX-License-Identifier: Apache-2.0
"""What runs around submitting and around handlers: chains of functions that call the next one."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

from . import errors
from .jobs import Job, NewJob

Middleware = Callable[..., Any]
Entry = tuple[str, Middleware]


class Chain:
    """Middlewares in their order, the first the outermost. Each is a function of a job and `next`, or an object with
    such a method `call`; it is found by its name (that of the function or class, unless one is given) or by itself.

    A job keeps the chain with which it began, whatever is changed meanwhile; that of a worker is fixed once it runs.
    Middlewares may be called from several threads at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: tuple[Entry, ...] = ()
        self._frozen = False

    def add(self, middleware: Middleware, *, name: str | None = None) -> Middleware:
        """Puts it at the end; also a decorator. Errors: InUse (the name), WrongState; so for all that add."""
        return self._put(lambda: len(self._entries), middleware, name)

    def prepend(self, middleware: Middleware, *, name: str | None = None) -> Middleware:
        return self._put(lambda: 0, middleware, name)

    def insert_before(self, existing: str | Middleware, middleware: Middleware, *, name: str | None = None) -> Middleware:
        """Errors: NotFound (`existing`) as well."""
        return self._put(lambda: self._find(existing), middleware, name)

    def insert_after(self, existing: str | Middleware, middleware: Middleware, *, name: str | None = None) -> Middleware:
        return self._put(lambda: self._find(existing) + 1, middleware, name)

    def remove(self, existing: str | Middleware) -> None:
        """Errors: NotFound, WrongState."""
        with self._lock:
            self._check(_name_of(existing))
            place = self._find(existing)
            self._entries = self._entries[:place] + self._entries[place + 1:]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self._entries]

    def __len__(self) -> int:
        return len(self._entries)

    def _put(self, place_of: Callable[[], int], middleware: Middleware, name: str | None) -> Middleware:
        name = name or _name_of(middleware)
        with self._lock:
            self._check(name)
            if name in self.names:
                raise errors.InUse(f"the chain has a middleware {name} already", code="in_use", number=-9, subject=name)
            place = place_of()
            self._entries = (*self._entries[:place], (name, middleware), *self._entries[place:])
        return middleware

    def _find(self, existing: str | Middleware) -> int:
        for place, (name, middleware) in enumerate(self._entries):
            if existing == name or existing is middleware:
                return place
        name = _name_of(existing)
        raise errors.NotFound(f"the chain has no middleware {name}", code="not_found", number=-4, subject=name)

    def _check(self, name: str) -> None:
        if self._frozen:
            raise errors.WrongState(f"the worker runs, so its chain does not change: {name}", code="wrong_state",
                                    number=-5, subject=name)

    def _freeze(self) -> tuple[Entry, ...]:
        with self._lock:
            self._frozen = True
            return self._entries

    # --- Submitting ---------------------------------------------------------------------------------------------------

    def _pass(self, job: NewJob) -> NewJob | None:
        """The job as it goes in; None: dropped."""
        return self._pass_from(self._entries, job)

    def _pass_from(self, entries: tuple[Entry, ...], job: NewJob) -> NewJob | None:
        if not entries:
            return job
        turn = _Turn(job)
        passed = _callable(entries[0][1])(job, lambda changed: self._pass_from(entries[1:], turn.take(changed)))
        # What was returned without calling next is passed on.
        return passed if passed is None or turn.taken else self._pass_from(entries[1:], turn.take(passed))

    async def _pass_async(self, job: NewJob) -> NewJob | None:
        return await self._pass_async_from(self._entries, job)

    async def _pass_async_from(self, entries: tuple[Entry, ...], job: NewJob) -> NewJob | None:
        if not entries:
            return job
        turn = _Turn(job)

        async def next(changed: NewJob) -> NewJob | None:
            return await self._pass_async_from(entries[1:], turn.take(changed))

        passed = await _awaited(_callable(entries[0][1])(job, next))
        return passed if passed is None or turn.taken else await next(passed)


class Passage:
    """One job on its way through a worker's chain to its handler."""

    def __init__(self, entries: tuple[Entry, ...]) -> None:
        self._entries = entries
        self._handler_raised = False

    @property
    def code(self) -> str:
        """Of an error without a code of its own: whether the handler raised one, or a middleware by itself."""
        return "middleware_error" if self._entries and not self._handler_raised else "error"

    def run(self, job: Job, handle: Callable[[], Any], place: int = 0) -> Any:
        if place < len(self._entries):
            turn = _Turn(job)
            return _callable(self._entries[place][1])(
                job, lambda: self.run(turn.take(job), handle, place + 1))
        try:
            return handle()
        except BaseException:
            self._handler_raised = True
            raise

    async def run_async(self, job: Job, handle: Callable[[], Any], place: int = 0) -> Any:
        if place < len(self._entries):
            turn = _Turn(job)

            async def next() -> Any:
                return await self.run_async(turn.take(job), handle, place + 1)

            return await _awaited(_callable(self._entries[place][1])(job, next))
        try:
            return await handle()
        except BaseException:
            self._handler_raised = True
            raise


class _Turn:
    """One call of one middleware, which may call next once."""

    def __init__(self, job: Any) -> None:
        self._job = job
        self.taken = False

    def take(self, job: Any) -> Any:
        if self.taken:
            raise RuntimeError("a middleware called next a second time")
        if isinstance(self._job, NewJob):
            if not isinstance(job, NewJob):
                raise TypeError(f"a middleware passes on a NewJob, not {type(job).__name__} {job!r}")
            if job.id != self._job.id:
                raise errors.InvalidArgument("a middleware must not change the id of a job", code="invalid", number=-2,
                                             subject="id")
        self.taken = True
        return job


def _callable(middleware: Middleware) -> Middleware:
    return getattr(middleware, "call", middleware)


def _name_of(middleware: str | Middleware) -> str:
    if isinstance(middleware, str):
        return middleware
    return getattr(middleware, "__name__", type(middleware).__name__)


async def _awaited(result: Any) -> Any:
    return await result if inspect.isawaitable(result) else result
