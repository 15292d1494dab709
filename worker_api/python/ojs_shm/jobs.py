# SPDX-License-Identifier: Apache-2.0
"""Jobs: what is asked for, what a worker holds, and what is known of one."""

from __future__ import annotations

import ctypes
import dataclasses
import datetime
import functools
import json
import threading
from typing import Any

from . import _abi, errors
from ._abi import library
from ._handles import Handles
from .times import Duration, Moment, milliseconds, moment, unix_milliseconds, whole_seconds

FINISHED = frozenset({"completed", "cancelled", "discarded"})


class _Nothing:
    def __repr__(self) -> str:
        return "NOTHING"


#: The input of a job that was given none, which is not the same as None.
NOTHING: Any = _Nothing()


def to_json(value: Any) -> bytes:
    """Errors: InvalidArgument (no finite number, nested too deep or in itself), TypeError."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (ValueError, RecursionError) as error:
        raise errors.InvalidArgument(f"that is not JSON: {error}", code="invalid", number=-2) from None


def text_of(value: Any) -> str:
    try:  # what a handler raised may contain anything, and its text may fail as well
        return value if isinstance(value, str) else str(value)
    except Exception:  # noqa: BLE001
        return f"{type(value).__qualname__}, whose text cannot be had"


def progress_texts(message: str | None, data: Any) -> tuple[bytes | None, bytes | None, int]:
    encoded = to_json(data) if data is not None else None
    return _abi.text_in(message, "message"), encoded, len(encoded or b"")


def input_of(args: list[Any]) -> Any:
    """What a handler gets: the only argument, None when there is none, or all of them as a list."""
    return args[0] if len(args) == 1 else args if args else None


@dataclasses.dataclass(frozen=True)
class Retry:
    """What happens after a failure. `delay` and `max_delay` in seconds.

    The pause before retry n is delay * factor ** (n - 1) for "exponential", delay * n for "linear", delay for
    "constant" and delay * n ** factor for "polynomial", never above max_delay; jitter multiplies it by 0.5 to 1.5.
    """

    max_attempts: int = 3
    delay: Duration = 1.0
    factor: float = 2.0
    max_delay: Duration = 300.0
    backoff: str = "exponential"
    jitter: bool = True
    dead_letter: bool = False

    def _struct(self) -> _abi.RetryPolicy:
        if self.backoff not in _abi.BACKOFFS:
            raise errors.InvalidArgument(f"backoff must be one of {', '.join(_abi.BACKOFFS)}, not {self.backoff!r}",
                                         code="invalid", number=-2, subject="backoff")
        policy = _abi.RetryPolicy()
        # In the struct 0 means the default, so "at once" is a millisecond and "never again" is one attempt.
        policy.max_attempts = max(1, _abi.whole(self.max_attempts, "max_attempts", 16))
        policy.initial_ms = max(1, milliseconds(self.delay, "delay"))
        policy.max_ms = max(1, milliseconds(self.max_delay, "max_delay"))
        policy.coefficient = self.factor
        policy.backoff = _abi.BACKOFFS.index(self.backoff)
        policy.flags = (0 if self.jitter else _abi.RETRY_NO_JITTER) | (
            _abi.RETRY_DEAD_LETTER if self.dead_letter else 0)
        return policy


@dataclasses.dataclass(frozen=True)
class NewJob:
    """A job to be submitted. A handler receives `input` as it stands here; `args` gives several arguments instead."""

    type: str
    input: Any = NOTHING
    args: list[Any] | tuple[Any, ...] | None = None
    priority: int | str | None = None    #: a number of the segment's convention, a name, or a Priority
    queue: str | None = None             #: None: the default queue of the connection
    id: str | None = None                #: a UUIDv7 in lower case
    delay: Duration | None = None        #: not before so much later
    scheduled_at: Moment | None = None   #: not before
    expires_at: Moment | None = None     #: then no attempt begins any more, first or further: it is discarded
    timeout: Duration | None = None      #: longest run of one attempt
    lease: Duration | None = None        #: how long a worker may be silent
    retry: Retry | int | None = None     #: a policy, or just max_attempts
    meta: dict[str, Any] | None = None
    tags: list[str] | None = None
    extra: dict[str, Any] | None = None  #: members of your own beside meta and tags
    pending: bool = False                #: waits for activate()
    priority_age_rate: int | None = None  #: levels per interval by which it rises while it waits; None: its queue's
    rate_limit: dict[str, Any] | None = None  #: key, concurrency, rate, throttle, on_limit; see Queue.set_limit
    #: keys ("type", "queue", "args", "meta"), args_keys, meta_keys, period, states, on_conflict ("reject", "ignore",
    #: "replace", "replace_except_schedule"), raise_priority
    unique: dict[str, Any] | None = None
    #: how long its result is kept after its end, in whole seconds; 0: not stored, -1: without end, None: as long as the job
    result_ttl: Duration | None = None
    enqueue_ttl: Duration | None = None    #: dropped when no attempt has begun so long after its creation; whole seconds
    #: discarded when it has not ended so long after its creation, over all attempts; not below `timeout`; whole seconds
    total_timeout: Duration | None = None
    grace_period: Duration | None = None   #: what an attempt has beyond `timeout` before it is ended; whole seconds

    def arguments(self) -> list[Any]:
        if self.args is None:
            return [] if self.input is NOTHING else [self.input]
        if self.input is not NOTHING:
            raise TypeError("a job has either an input or args")
        return list(self.args)

    def _struct(self, spec: _abi.JobSpec, priority: int | None, queue: str, now_ms: int) -> list[Any]:
        """Fills `spec`; what is returned must live as long as it."""
        args, extra = to_json(self.arguments()), dict(self.extra or {})
        if self.meta is not None:
            extra["meta"] = self.meta
        if self.tags is not None:
            extra["tags"] = self.tags
        limit = None
        if self.rate_limit is not None:
            extra["rate_limit"] = self.rate_limit
            limit = to_json(self.rate_limit)
            spec.rate_limit, spec.rate_limit_size = limit, len(limit)
        unique = None
        if self.unique is not None:
            extra["unique"] = self.unique
            unique = to_json(self.unique)
            spec.unique, spec.unique_size = unique, len(unique)
        tenant = (self.meta or {}).get("tenant_id")
        if tenant is not None:
            spec.tenant = _abi.text_in(tenant, "meta.tenant_id")
        more = to_json(extra) if extra else None
        spec.type, spec.queue = _abi.text_in(self.type, "type"), _abi.text_in(self.queue or queue, "queue")
        spec.id = _abi.text_in(self.id, "id")
        spec.args, spec.args_size = args, len(args)
        spec.extra, spec.extra_size = more, len(more or b"")
        if priority is not None:
            spec.priority = _abi.whole(priority, "priority", 64, signed=True)
            spec.flags |= _abi.JOB_HAS_PRIORITY
        if self.priority_age_rate is not None:
            spec.priority_age_rate = _abi.whole(self.priority_age_rate, "priority_age_rate", 32)
            spec.flags |= _abi.JOB_HAS_AGE_RATE
        if self.pending:
            spec.flags |= _abi.JOB_PENDING
        if self.result_ttl is not None:
            spec.result_ttl_s = whole_seconds(self.result_ttl, "result_ttl")
            spec.flags |= _abi.JOB_HAS_RESULT_TTL
        for name in ("enqueue_ttl", "total_timeout", "grace_period"):
            if (given := getattr(self, name)) is not None:
                setattr(spec, name + "_s", _abi.whole(whole_seconds(given, name), name, 32))
        if self.delay is not None and self.scheduled_at is not None:
            raise TypeError("a job has either a delay or scheduled_at")
        if self.delay is not None:
            spec.scheduled_at_ms = now_ms + milliseconds(self.delay, "delay", 48)
        if self.scheduled_at is not None:
            spec.scheduled_at_ms = unix_milliseconds(self.scheduled_at, "scheduled_at")
        if self.expires_at is not None:
            spec.expires_at_ms = unix_milliseconds(self.expires_at, "expires_at")
        if self.timeout is not None:
            spec.timeout_ms = max(1, milliseconds(self.timeout, "timeout"))
        if self.lease is not None:
            spec.lease_ms = max(1, milliseconds(self.lease, "lease"))
        policy = Retry(max_attempts=self.retry) if isinstance(self.retry, int) else self.retry
        retry = policy._struct() if policy is not None else None
        if retry is not None:
            spec.retry = ctypes.pointer(retry)
        return [args, more, retry, limit, unique]


@dataclasses.dataclass(frozen=True)
class JobError:
    """One recorded failure."""

    attempt: int
    code: str
    type: str
    message: str
    details: Any
    retryable: bool
    occurred_at: datetime.datetime | None
    backtrace: tuple[str, ...] = ()  # what stood under that name in the details


class JobInfo:
    """Everything the segment knew of one job at one instant. `raw` is the JSON object it was read from."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.id: str = raw["id"]
        self.type: str = raw["type"]
        self.queue: str = raw["queue"]
        self.args: list[Any] = raw.get("args", [])
        self.state: str = raw["state"]
        self.priority: int = raw["priority"]
        self.priority_age_rate: int | None = raw.get("priority_age_rate")
        self.attempt: int = raw.get("attempt", 0)
        self.fence: int = raw.get("fence", 0)  #: of its attempt; 0 but in what a Proxy fetched
        self.max_attempts: int = raw.get("max_attempts", 0)
        self.meta: dict[str, Any] = raw.get("meta", {})
        self.tags: list[str] = raw.get("tags", [])
        self.result: Any = raw.get("result")
        self.result_ttl: int | None = raw.get("result_ttl")
        self.enqueue_ttl: int | None = raw.get("enqueue_ttl")
        self.total_timeout: int | None = raw.get("total_timeout")
        self.grace_period: int | None = raw.get("grace_period")
        self.result_expires_at = moment(raw.get("result_expires_at"))
        self.result_pruned: bool = raw.get("result_pruned", False)  #: completed, and its result is kept no longer
        self.workflow_id: str | None = raw.get("workflow_id")
        self.progress: float | None = raw.get("progress")
        self.progress_message: str = raw.get("progress_message", "")
        self.progress_data: Any = raw.get("progress_data")
        self.progress_at = moment(raw.get("progress_at"))
        self.last_checkpoint: Any = raw.get("last_checkpoint")
        self.errors: list[JobError] = [_job_error(each) for each in raw.get("errors", [])]
        self.created_at = moment(raw.get("created_at"))
        self.enqueued_at = moment(raw.get("enqueued_at"))
        self.scheduled_at = moment(raw.get("scheduled_at"))
        self.started_at = moment(raw.get("started_at"))
        self.completed_at = moment(raw.get("completed_at"))

    @property
    def input(self) -> Any:
        return input_of(self.args)

    @property
    def error(self) -> JobError | None:
        return self.errors[-1] if self.errors else None

    @property
    def finished(self) -> bool:
        return self.state in FINISHED

    def outcome(self) -> Any:
        """The result of a finished job; JobFailed, JobCancelled or ResultPruned when it has none."""
        if self.state == "discarded":
            raise errors.JobFailed(self)
        if self.state == "cancelled":
            raise errors.JobCancelled(self)
        if self.result_pruned:
            raise errors.ResultPruned(self)
        return self.result

    def __repr__(self) -> str:
        return f"<JobInfo {self.id} {self.type} {self.state} priority={self.priority} attempt={self.attempt}>"


def _job_error(raw: dict[str, Any]) -> JobError:
    return JobError(attempt=raw.get("attempt", 0), code=raw.get("code", ""), type=raw.get("type", ""),
                    message=raw.get("message", ""), details=raw.get("details"), retryable=raw.get("retryable", True),
                    occurred_at=moment(raw.get("occurred_at")), backtrace=tuple(raw.get("backtrace") or ()))


@dataclasses.dataclass(frozen=True)
class NackOutcome:
    """What became of a failed job: "retryable" after `retry_delay` seconds, or "discarded"."""

    state: str
    retry_delay: float
    next_attempt_at: datetime.datetime | None

    @classmethod
    def _read(cls, outcome: _abi.NackOutcome) -> NackOutcome:
        return cls(_abi.STATES[outcome.state], outcome.retry_delay_ms / 1000, moment(outcome.next_attempt_at_ms))


def failure_report(message: str, code: str, type: str, retryable: bool, details: Any,
                   rate_limit_until: Moment | None) -> _abi.FailureReport:
    report = _abi.FailureReport()
    encoded = to_json(details) if details is not None else None
    # A NUL would end the text.
    report.message = text_of(message).replace("\0", "\\0").encode("utf-8", "replace")
    report.code, report.type = _abi.text_in(code, "code"), _abi.text_in(type or None, "type")
    report.details, report.details_size = encoded, len(encoded or b"")
    report.flags = 0 if retryable else _abi.FAILURE_NOT_RETRYABLE
    if rate_limit_until is not None:
        report.rate_limit_until_ms = unix_milliseconds(rate_limit_until, "rate_limit_until")
    return report


class Job:
    """A job that this process holds. Only ack, nack, requeue and the end of the worker give it back. Thread-safe."""

    def __init__(self, workers: Handles, pointer: int) -> None:
        self._workers = workers
        self._pointer: int | None = pointer
        self._lock = threading.Lock()  # a job's handle may be used by one thread at a time
        fields = _abi.JobFields()
        if (code := library().job_read(pointer, ctypes.byref(fields))) < 0:
            raise library().error(code, pointer)
        self.id = fields.id.read()
        self.type = fields.type.read()
        self.queue = fields.queue.read()
        self.priority: int = fields.priority
        self.attempt: int = fields.attempt            #: 1 for the first
        self.max_attempts: int = fields.max_attempts
        self.fence: int = fields.fence                #: grows with each attempt of this job
        self.created_at = moment(fields.created_at_ms)
        self.enqueued_at = moment(fields.enqueued_at_ms)
        self.started_at = moment(fields.started_at_ms)
        self.deadline = moment(fields.deadline_ms)    #: end of the lease, or of the timeout if that is sooner
        self._lease_ms = max(0, fields.deadline_ms - fields.started_at_ms)
        self.metadata: dict[str, Any] = {}            #: what middlewares and handler of this run tell each other
        self._args_text, self._extra_text = fields.args.read(), fields.extra.read()

    # Read when asked for: another client may have stored anything, and what is not JSON is the handler's failure.
    @functools.cached_property
    def args(self) -> list[Any]:
        return json.loads(self._args_text)

    @functools.cached_property
    def extra(self) -> dict[str, Any]:
        return json.loads(self._extra_text or "{}")

    @property
    def input(self) -> Any:
        return input_of(self.args)

    @functools.cached_property
    def meta(self) -> dict[str, Any]:
        """What the client sent; of a cron's job also `cron_name` and `cron_triggered_at`, if read while it is held."""
        given = self.extra.get("meta", {})
        if not (cron := self.cron_name) or not isinstance(given, dict):
            return given
        return given | {"cron_name": cron, "cron_triggered_at": self.created_at.isoformat(timespec="milliseconds")
                        .replace("+00:00", "Z")}

    @property
    def tags(self) -> list[str]:
        return self.extra.get("tags", [])

    @property
    def cron_name(self) -> str | None:
        """The cron that enqueued the job, while there is that cron."""
        return self._look(library().cron_name) or None

    @property
    def workflow_id(self) -> str | None:
        """The workflow that the job belongs to."""
        return self._look(library().workflow_id) or None

    @property
    def parent_results(self) -> list[Any] | None:
        """The results of the jobs that this one comes after in its workflow; None when it belongs to none."""
        return json.loads(self._look(library().parent_results) or "null")

    @property
    def last_checkpoint(self) -> Any:
        """What checkpoint() kept last, in this attempt or an earlier one; None when there is nothing."""
        return json.loads(self._look(library().last_checkpoint) or "null")

    def _look(self, entry: Any) -> str:
        with self._lock:
            return library().read_text(self._pointer, entry, self._pointer) if self._pointer is not None else ""

    @property
    def cancel_requested(self) -> bool:
        """True once the job was cancelled, or is no longer held here."""
        with self._lock:
            return self._pointer is None or library().cancel_requested(self._pointer) != 0

    def ack(self, result: Any = None) -> None:
        """active -> completed. Errors: Lost, TooLarge, SegmentFull; after the last two it is still held."""
        self._ack(to_json(result) if result is not None else b"")

    def _ack(self, encoded: bytes) -> None:
        self._settle(library().ack, encoded or None, len(encoded))

    def nack(self, message: str = "", *, code: str = "error", type: str = "", retryable: bool = True,
             details: Any = None, rate_limit_until: Moment | None = None) -> NackOutcome:
        """active -> retryable or discarded, by the job's policy. No job of the same limit begins before
        `rate_limit_until`. Errors: Lost."""
        outcome, report = _abi.NackOutcome(), failure_report(message, code, type, retryable, details, rate_limit_until)
        self._settle(library().nack, ctypes.byref(report), ctypes.byref(outcome))
        return NackOutcome._read(outcome)

    def requeue(self) -> None:
        """active -> available at the front of its level; this attempt is not counted. Errors: Lost."""
        self._settle(library().requeue)

    def heartbeat(self, lease: Duration | None = None) -> datetime.datetime | None:
        """The lease ends so much from now (None: its present length); returns its new end. Errors: Lost."""
        deadline = ctypes.c_uint64()
        self._call(library().heartbeat, 0 if lease is None else max(1, milliseconds(lease, "lease")),
                   ctypes.byref(deadline))
        self.deadline = moment(deadline.value)
        return self.deadline

    def progress(self, fraction: float, message: str | None = None, data: Any = None) -> None:
        """0..1; renews the lease. A message or data replace those before. A report behind the attempt's last one changes
        only the lease. Errors: Lost, TooLarge (not even the lease is changed), SegmentFull (only the fraction is kept)."""
        if message is None and data is None:
            self._call(library().progress, fraction)
        else:
            self._call(library().progress_texts, fraction, *progress_texts(message, data))

    def checkpoint(self, data: Any) -> None:
        """For `last_checkpoint` of the next attempt; renews the lease. Errors: Lost, TooLarge, SegmentFull (an earlier one
        of this attempt is kept)."""
        text = to_json(data)
        self._call(library().checkpoint, text, len(text))

    def _call(self, entry: Any, *arguments: Any) -> None:
        with self._lock:
            if self._pointer is None:
                raise errors.Lost(f"job {self.id} is settled already", code="lost", number=-15)
            with self._workers.lent() as worker:
                worker.call(entry, self._pointer, *arguments)

    def _settle(self, entry: Any, *arguments: Any) -> None:
        try:
            self._call(entry, *arguments)
        except errors.Lost:
            self._release()
            raise
        self._release()

    def _release(self) -> None:
        with self._lock:
            pointer, self._pointer = self._pointer, None
            if pointer is not None:
                library().close(pointer)

    def __del__(self) -> None:
        if getattr(self, "_pointer", None) is not None:
            self._release()

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.type} priority={self.priority} attempt={self.attempt}>"


def state_number(state: str) -> int:
    if state not in _abi.STATES:
        raise errors.InvalidArgument(f"state must be one of {', '.join(_abi.STATES)}, not {state!r}", code="invalid",
                                     number=-2, subject="state")
    return _abi.STATES.index(state)
