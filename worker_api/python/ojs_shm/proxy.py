# SPDX-License-Identifier: Apache-2.0
"""Working for many clients on one handle: each call says for which job, by its id."""

from __future__ import annotations

import contextlib
import ctypes
import datetime
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import _abi, errors
from ._abi import library
from ._handles import Handle
from .jobs import JobInfo, NackOutcome, failure_report, progress_texts, text_of, to_json
from .times import Duration, Moment, milliseconds, moment

if TYPE_CHECKING:
    from .client import Queue


class Proxy:
    """What serves clients that are no processes of the segment fetches and ends jobs through this. Thread-safe.

    `fence` is JobInfo.fence of the attempt that is meant; 0: the present one. Errors of all that take an id: NotFound,
    WrongState (not active), Lost (another attempt runs), Closed.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._handles = queue._proxy_handles()
        self._bell: Handle | None = None  # the one that has the descriptor

    def fetch(self, queues: Iterable[str] | Mapping[str, int] | None = None, *, count: int = 1, pool: str | None = None,
              tenant: str | None = None, worker: str | None = None, lease: Duration | None = None,
              held: bool = False) -> list[JobInfo]:
        """The best available jobs, in order; [] when there is none.

        queues  a list is tried from left to right; of a mapping of queues to weights (1 to 1,000) each gets its share
        pool    whose queues and strategy hold; None: the pool in which the worker is registered, else `default`, if any
        tenant  only this tenant's jobs, whatever stands before them
        worker  id of the worker that gets them; a worker told to take no more gets none
        held    until hand_over() they are this process's: should it end before, they come back at once, the attempt not
                counted. Else they belong to their lease from the start

        Errors: InvalidArgument, NotFound (the pool), InUse (the worker is registered in another pool), SegmentFull (no
        handle for the pool).
        """
        request = _abi.FetchRequest()
        request.queues, request.queue_count = _abi.texts_in(
            queues if queues is not None else (self._queue.queue,), "queues")
        if isinstance(queues, Mapping):
            weights = [_abi.whole(each, "weights", 32) for each in queues.values()]
            request.weights = (ctypes.c_uint32 * max(1, len(weights)))(*weights)
        request.pool, request.tenant = _abi.text_in(pool, "pool"), _abi.text_in(tenant, "tenant")
        request.worker, request.count = _abi.text_in(worker, "worker"), _abi.whole(count, "count", 32)
        request.lease_ms = 0 if lease is None else max(1, milliseconds(lease, "lease"))
        request.flags = _abi.FETCH_HELD if held else 0
        with self._handles.lent() as proxy:
            fetched = json.loads(proxy.text(library().proxy_fetch, ctypes.byref(request)))
        return [job for each in fetched if (job := self._shown(each)) is not None]

    def _shown(self, raw: dict[str, Any]) -> JobInfo | None:
        """None: its client left something in it that cannot be shown, and it has failed."""
        try:
            return JobInfo(raw)
        except Exception as error:  # noqa: BLE001  the other jobs are there as well
            with contextlib.suppress(errors.OjsError):
                self.nack(raw["id"], f"the job cannot be shown: {text_of(error)}", fence=raw["fence"])
            return None

    def await_jobs(self, queues: Iterable[str], pools: Iterable[str] = ()) -> int:
        """Jobs of these queues, and of the queues of these pools, are awaited: fetch(). Another call says others; none: it
        rests.

        Returns the proxy's one descriptor, for event loops in which any number of requests wait; the other await_ methods
        return the same one. It becomes readable when something that is awaited may be there, also when it is there already.
        Read it, then look for all that is awaited: reading arms it again. These methods, forget_end() and take_ended() are
        for one thread at a time. Errors: InvalidArgument, SegmentFull.
        """
        named = (*_abi.texts_in(queues, "queues"), *_abi.texts_in(pools, "pools"))
        return self._waiting().call(library().proxy_await, *named)

    def await_end(self, id: str) -> int:
        """The end of this job is awaited, besides those that are already: take_ended(). Returns the descriptor."""
        return self._waiting().call(library().proxy_await_end, _abi.text_in(id, "id"))

    def forget_end(self, id: str) -> None:
        self._waiting().call(library().proxy_forget_end, _abi.text_in(id, "id"))

    def take_ended(self) -> list[str]:
        """Ids of those awaited jobs that have ended, or are not there any more. They are awaited no longer."""
        return json.loads(self._waiting().text(library().proxy_take_ended))

    def await_events(self, on: bool = True) -> int:
        """Events are awaited, some 30 ms after they were told, so that Queue.events() gives them out. Returns the
        descriptor."""
        return self._waiting().call(library().proxy_await_events, int(on))

    def _waiting(self) -> Handle:
        if self._bell is None:
            self._bell = self._handles.take()
        return self._bell

    def hand_over(self, id: str, fence: int = 0) -> None:
        """Of a job that was fetched `held`: its client has it, so it belongs to its lease now, whatever becomes of this
        process. Errors: Lost also when it was handed over before."""
        self._call(library().proxy_hand_over, id, fence)

    def ack(self, id: str, result: Any = None, *, fence: int = 0) -> None:
        """active -> completed. Errors: also TooLarge, SegmentFull; the job stays active then."""
        encoded = to_json(result) if result is not None else None
        self._call(library().proxy_ack, id, fence, encoded, len(encoded or b""))

    def nack(self, id: str, message: str = "", *, fence: int = 0, code: str = "error", type: str = "",
             retryable: bool = True, details: Any = None, rate_limit_until: Moment | None = None) -> NackOutcome:
        """active -> retryable or discarded, by the job's policy. No job of the same limit begins before
        `rate_limit_until`."""
        outcome = _abi.NackOutcome()
        report = failure_report(message, code, type, retryable, details, rate_limit_until)
        self._call(library().proxy_nack, id, fence, ctypes.byref(report), ctypes.byref(outcome))
        return NackOutcome._read(outcome)

    def requeue(self, id: str, *, fence: int = 0) -> None:
        """active -> available at the front of its level; this attempt is not counted."""
        self._call(library().proxy_requeue, id, fence)

    def heartbeat(self, id: str, lease: Duration | None = None, *, fence: int = 0) -> datetime.datetime | None:
        """The lease ends so much from now (None: its present length); returns its new end."""
        deadline = ctypes.c_uint64()
        self._call(library().proxy_heartbeat, id, fence, 0 if lease is None else max(1, milliseconds(lease, "lease")),
                   ctypes.byref(deadline))
        return moment(deadline.value)

    def progress(self, id: str, fraction: float, message: str | None = None, data: Any = None, *,
                 fence: int = 0) -> None:
        """0 to 1; renews the lease. A message or data take the place of those before. A report behind the last one of its
        attempt changes nothing but the lease. Errors: also TooLarge (not even the lease is changed), SegmentFull (only the
        fraction is kept)."""
        if message is None and data is None:
            self._call(library().proxy_progress, id, fence, fraction)
        else:
            self._call(library().proxy_progress_texts, id, fence, fraction, *progress_texts(message, data))

    def checkpoint(self, id: str, data: Any, *, fence: int = 0) -> None:
        """JSON that the next attempt finds in `last_checkpoint`, however this one ends; it replaces the earlier one, and
        renews the lease. Errors: also TooLarge, SegmentFull (an earlier one of this attempt is kept)."""
        text = to_json(data)
        self._call(library().proxy_checkpoint, id, fence, text, len(text))

    def report(self, id: str, *, pool: str | None = None, queues: Iterable[str] | None = None,
               concurrency: int | None = None, active_jobs: int | None = None, hostname: str | None = None,
               version: str | None = None, labels: Mapping[str, Any] | None = None, state: str | None = None,
               pid: int = 0, registers: bool = False, pledges: bool = True,
               silence: Duration | None = None) -> dict[str, Any]:
        """Registers a worker, or brings what is known of it up to date; a sign of its life. What is None stays as it was.
        Returns what is known then, as Queue.registered_worker().

        registers  it begins anew: an earlier directive is over
        pledges    it will give signs of life, and loses its jobs when it does not for 30 s, or for `silence` if that is
                   longer

        Errors: InvalidArgument, InUse (it has another pool), SegmentFull, TimedOut.
        """
        told = _abi.WorkerReport()
        told.id, told.pool, told.state = _abi.text_in(id, "id"), _abi.text_in(pool, "pool"), _abi.text_in(state, "state")
        told.hostname, told.version = _abi.text_in(hostname, "hostname"), _abi.text_in(version, "version")
        told.labels = None if labels is None else to_json(dict(labels))
        if queues is not None:
            told.queues, told.queue_count = _abi.texts_in(queues, "queues")
        told.flags = (_abi.REPORT_REGISTERS if registers else 0) | (0 if pledges else _abi.REPORT_NO_PLEDGE)
        if concurrency is not None:
            told.concurrency = _abi.whole(concurrency, "concurrency", 32)
            told.flags |= _abi.REPORT_CONCURRENCY
        if active_jobs is not None:
            told.active_jobs = _abi.whole(active_jobs, "active_jobs", 32)
            told.flags |= _abi.REPORT_ACTIVE_JOBS
        told.pid = _abi.whole(pid, "pid", 32)
        told.silence_ms = 0 if silence is None else max(1, milliseconds(silence, "silence"))
        with self._handles.lent() as proxy:
            return json.loads(proxy.text(library().proxy_report, ctypes.byref(told)))

    def close(self) -> None:
        """What was fetched `held` and not handed over goes back."""
        if self._bell is not None:
            self._handles.put(self._bell)
            self._bell = None
        self._handles.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, entry: Any, id: str, fence: int, *arguments: Any) -> None:
        with self._handles.lent() as proxy:
            proxy.call(entry, _abi.text_in(id, "id"), _abi.whole(fence, "fence", 64), *arguments)
