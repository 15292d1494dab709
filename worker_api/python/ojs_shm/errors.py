# SPDX-License-Identifier: Apache-2.0
"""What can go wrong, as exceptions. Each code of the C ABI has a class of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .jobs import JobInfo
    from .times import Moment


class OjsError(Exception):
    """An answer of the library other than success.

    code      its name, such as "not_found" or "QUEUE_FULL"; errors made in Python carry other names than the library's, so
              decide by the class or by `number`
    number    the negative number of ojs_shm.h
    subject   the queue, pool, member or state it speaks of, or ""
    depth, bound, unit   present use and limit, in "jobs", "bytes" or what has run out, such as "blocks"; 0, 0, "" where
              they have no meaning
    strategy, retry_after   of QueueFull: the queue's, and in how many seconds there may be room, at least 1; else "", 0
    state     of Duplicate by a unique key: the state of the job in the way, whose id is `subject`; of NotFound "gone",
              see there; else ""
    tenant    of QueueFull: whose bound it is, "" that of jobs without a tenant; None: the queue's
    """

    def __init__(self, message: str, *, code: str = "", number: int = 0, subject: str = "", depth: int = 0,
                 bound: int = 0, unit: str = "", strategy: str = "", retry_after: float = 0,
                 tenant: str | None = None, state: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.number = number
        self.subject = subject
        self.depth = depth
        self.bound = bound
        self.unit = unit
        self.strategy = strategy
        self.retry_after = retry_after
        self.tenant = tenant
        self.state = state

    def __str__(self) -> str:
        return self.message


class InternalError(OjsError):
    """A bug of the library, or an operating-system call that should not fail."""


class InvalidArgument(OjsError, ValueError):
    """An argument is wrong; the message names it, and `bound` is the allowed maximum where there is one."""


class CannotAttach(OjsError, ConnectionError):
    """There is no such segment, or it is not a readable one."""


class NotFound(OjsError, LookupError):
    """No job, queue or name like that."""

    @property
    def gone(self) -> bool:
        """Whether the segment had that job: it ended and its room was needed, or it was deleted. Of an id that a client
        brought it is not known."""
        return self.state == "gone"


class WrongState(OjsError):
    """The job's state forbids it; `subject` is the state."""


class QueueFull(OjsError):
    """The queue's bound refused the job; `subject` names the queue, `depth`, `bound` and `unit` tell how full it is,
    and `retry_after` when to come again. Nothing was stored."""


class SegmentFull(OjsError):
    """A pool of the segment is exhausted; `subject` names it and the message says which option enlarges it."""


class PermissionDenied(OjsError, PermissionError):
    """The operating system refused access to the segment."""


class InUse(OjsError):
    """Another process has that name or role, or the worker is in another pool."""


class OtherFormat(OjsError):
    """The segment has another format, layout or convention."""


class Duplicate(OjsError):
    """A job with that id exists, or one of the same unique key is in the way: `subject` is its id, `state` its state."""


class TooLarge(OjsError):
    """A body, result or name is longer than the segment's maximum."""


class Empty(OjsError):
    """There is nothing to fetch."""


class TimedOut(OjsError, TimeoutError):
    """The given time passed."""


class Lost(OjsError):
    """The job is no longer held here: cancelled, its lease ended, or it was given back."""


class Closed(OjsError):
    """The handle was closed or interrupted, or belongs to the parent of a fork."""


class NoSpace(OjsError):
    """The file system cannot hold the segment."""


class StaleVersion(OjsError):
    """The library found is older or newer than this package."""


class LibraryNotFound(OjsError, ImportError):
    """libojs_shm.so was not found; the message says where it was looked for."""


#: The class for each negative code of ojs_shm.h.
BY_NUMBER: dict[int, type[OjsError]] = {
    -1: InternalError, -2: InvalidArgument, -3: CannotAttach, -4: NotFound, -5: WrongState, -6: QueueFull,
    -7: SegmentFull, -8: PermissionDenied, -9: InUse, -10: OtherFormat, -11: Duplicate, -12: TooLarge, -13: Empty,
    -14: TimedOut, -15: Lost, -16: Closed, -17: NoSpace, -18: StaleVersion,
}


class JobFailed(OjsError):
    """The job whose result was asked for was discarded. `job` is its last state, with `job.errors`."""

    def __init__(self, job: JobInfo) -> None:
        last = job.errors[-1] if job.errors else None
        reason = f"{last.code}: {last.message}" if last else "no error was recorded"
        super().__init__(f"job {job.id} ({job.type}) was discarded after attempt {job.attempt}: {reason}",
                         code="job_failed", subject=job.state)
        self.job = job


class JobCancelled(OjsError):
    """The job whose result was asked for was cancelled."""

    def __init__(self, job: JobInfo) -> None:
        super().__init__(f"job {job.id} ({job.type}) was cancelled", code="job_cancelled", subject=job.state)
        self.job = job


class ResultPruned(OjsError, LookupError):
    """The job whose result was asked for was completed, and its `result_ttl` is over."""

    def __init__(self, job: JobInfo) -> None:
        super().__init__(f"the result of job {job.id} ({job.type}) is kept no longer", code="result_pruned",
                         subject=job.state)
        self.job = job


class Failure(Exception):
    """Raised by a handler to choose what is recorded, and whether the job may be tried again.

    No job of the same limit begins before `rate_limit_until`, which the service behind it asked for.
    Any other exception is recorded with the code "error", its class and its text, and may be tried again.
    """

    def __init__(self, message: str = "", *, code: str = "error", retryable: bool = True,
                 details: object = None, rate_limit_until: Moment | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.retryable = retryable
        self.details = details
        self.rate_limit_until = rate_limit_until
