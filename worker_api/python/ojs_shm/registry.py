# SPDX-License-Identifier: Apache-2.0
"""What both workers share: handlers by type, and how a handler's end is told to the segment."""

from __future__ import annotations

import contextlib
import inspect
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

from . import errors
from ._abi import DIRECTIVES, library
from ._handles import Handle, Handles
from .client import Queue
from .jobs import Job, text_of, to_json
from .middleware import Chain

Function = TypeVar("Function", bound=Callable[..., Any])

#: A traceback becomes the error's backtrace up to this length; its end is the interesting part.
_TRACEBACK_LENGTH = 4000
#: How often a worker with an id gives a sign of life, in seconds.
_SIGN_EVERY = 5.0


class Handler:
    """A function and what it wants to be called with."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        parameters = inspect.signature(function).parameters.values()
        if any(each.kind is each.VAR_POSITIONAL for each in parameters):
            self.wants = 2
        else:
            positional = [each for each in parameters
                          if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
            needed = [each for each in positional if each.default is each.empty]
            if len(needed) > 2:
                raise TypeError(f"{function.__qualname__} wants more than an input and a job")
            # A second parameter that has a value already is the function's own business.
            self.wants = max(len(needed), min(len(positional), 1))

    def __call__(self, job: Job) -> Any:
        return self.function(*(job.input, job)[:self.wants])


class Registry:
    """Handlers by job type."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._handlers: dict[str, Handler] = {}
        #: Around every handler: each a function of the Job and `next`, whose value is the job's result; see Chain.
        self.middleware = Chain()

    def task(self, type: str, *, default_priority: int | str | None = None) -> Callable[[Function], Function]:
        """Registers the function below as the handler of jobs of this type.

        It is called with the job's input, and with the Job as well if it takes two arguments; what it returns is the
        job's result. `default_priority` becomes the segment's default for jobs of this type, from any process.
        """
        def register(function: Function) -> Function:
            if type in self._handlers:
                raise errors.InUse(f"job type {type} has a handler already", code="in_use", number=-9, subject=type)
            handler = Handler(function)
            if default_priority is not None:
                self._queue.set_default_priority(type, default_priority)
            self._handlers[type] = handler
            return function

        return register

    def _handler_of(self, job: Job) -> Handler:
        handler = self._handlers.get(job.type)
        if handler is None:
            raise errors.Failure(f"this worker has no handler for type {job.type}", code="no_handler",
                                 retryable=False)
        return handler


def complete(job: Job, result: Any) -> None:
    """Acks. A job that was lost meanwhile is another holder's to settle, here and in fail()."""
    with contextlib.suppress(errors.Lost, errors.Closed):
        try:
            encoded = to_json(result) if result is not None else b""
        except (TypeError, ValueError) as error:
            _nack(job, f"the result is not JSON: {error}", code="invalid_result", retryable=False)
            return
        try:
            job._ack(encoded)
        except (errors.TooLarge, errors.SegmentFull, errors.InvalidArgument) as error:
            # The work is done but its result cannot be kept. Trying again helps only against a full segment.
            _nack(job, f"the result could not be stored: {error}", code=error.code,
                  retryable=isinstance(error, errors.SegmentFull))


def fail(job: Job, error: BaseException, code: str = "error") -> None:
    if isinstance(error, errors.Failure):
        _nack(job, error.message, code=error.code, retryable=error.retryable, details=error.details,
              rate_limit_until=error.rate_limit_until)
        return
    trace = "".join(traceback.format_exception(error))[-_TRACEBACK_LENGTH:]
    _nack(job, text_of(error), code=code, type=type(error).__qualname__, details={"backtrace": trace.splitlines()})


def give_back(job: Job) -> None:
    """Requeues a job whose handler has no time to end, if it is still held."""
    with contextlib.suppress(errors.Lost, errors.Closed):
        job.requeue()


def _nack(job: Job, message: str, **failure: Any) -> None:
    with contextlib.suppress(errors.Lost, errors.Closed):
        try:
            job.nack(message, **failure)
        except (errors.Lost, errors.Closed):
            raise
        except Exception as error:  # noqa: BLE001
            _nack_plainly(job, message, error, **failure)


def _nack_plainly(job: Job, message: str, error: Exception, *, retryable: Any = True, **failure: Any) -> None:
    """What was to be recorded cannot be, by that error. That the job failed still must be, if possible with its code, which
    may decide whether it is tried again."""
    kept = {name: failure[name] for name in ("code", "type") if name in failure}
    try:
        job.nack(message, retryable=bool(retryable), **kept)
    except (errors.Lost, errors.Closed):
        raise
    except Exception:  # noqa: BLE001
        job.nack(text_of(error), retryable=bool(retryable))


class Keeper:
    """A thread that extends the leases of running jobs at a third of their length, and gives the signs of life of a worker
    that has an id. `told` gets what an operator asks of it, when that has changed."""

    def __init__(self, workers: Handles, told: Callable[[int], None] | None = None) -> None:
        self._workers = workers
        self._told, self._directive, self._sign = told, 0, 0.0
        self._changed = threading.Condition()
        self._due: dict[Job, float] = {}
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="ojs-shm-keeper", daemon=True)
        self._thread.start()

    def watch(self, job: Job) -> None:
        with self._changed:
            self._due[job] = time.monotonic() + _period(job)
            self._changed.notify()

    def forget(self, job: Job) -> None:
        with self._changed:
            self._due.pop(job, None)

    def watched(self) -> list[Job]:
        with self._changed:
            return list(self._due)

    def close(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._ended:
                    return
                now = time.monotonic()
                due = [job for job, at in self._due.items() if at <= now]
                for job in due:
                    self._due[job] = now + _period(job)
                signs = self._told is not None and now >= self._sign
                if not due and not signs:
                    times = [*self._due.values(), *([self._sign] if self._told is not None else [])]
                    self._changed.wait(min(times) - now if times else None)
            if signs:
                self._give_sign()
            for job in due:
                try:
                    job.heartbeat()
                except (errors.Lost, errors.Closed):
                    self.forget(job)
                except errors.OjsError:
                    pass  # the next one may succeed; a lease that ends is the segment's way to say so


    def _give_sign(self) -> None:
        assert self._told is not None
        self._sign = time.monotonic() + _SIGN_EVERY
        with contextlib.suppress(errors.OjsError), self._workers.lent() as worker:
            directive = worker.call(library().worker_beat)
            if directive != self._directive:
                self._directive = directive
                self._told(directive)


def catch_signals(calls: dict[int, Callable[[], None]]) -> dict[int, Any]:
    """Calls them at signals, in the main thread alone; returns what restore_signals() takes back. In a forked child they
    mean what they always do."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    ours = os.getpid()

    def handle(number: int, _: Any) -> None:
        if os.getpid() == ours:
            calls[number]()
            return
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    return {number: signal.signal(number, handle) for number in calls}


def restore_signals(caught: dict[int, Any]) -> None:
    for number, handler in caught.items():
        if handler is not None:
            signal.signal(number, handler)


def say(worker: Handle, state: str) -> None:
    """What lists of workers say of it from now on: "running", "quiet", or "terminate" while its last jobs run."""
    with contextlib.suppress(errors.OjsError):
        worker.call(library().worker_say, DIRECTIVES.index(state))


def _period(job: Job) -> float:
    return max(0.001, job._lease_ms / 3000)
