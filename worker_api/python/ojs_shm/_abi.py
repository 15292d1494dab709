# SPDX-License-Identifier: Apache-2.0
"""The structs and entries of ojs_shm.h, as ctypes sees them. Only this file knows the library's binary interface."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
import pathlib
from collections.abc import Iterable
from ctypes import (POINTER, Structure, byref, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32,
                    c_uint64, c_void_p, sizeof)
from typing import Any

from . import errors

ABI_VERSION = 1
ID_SIZE = 37
BUFFERED = 1

JOB_HAS_PRIORITY = 1
JOB_PENDING = 2
JOB_HAS_AGE_RATE = 4
JOB_HAS_RESULT_TTL = 8
RETRY_NO_JITTER = 1
RETRY_DEAD_LETTER = 2
FAILURE_NOT_RETRYABLE = 1
WORKER_LEASE_OWNED, WORKER_WEIGHTED = 1, 2
DIRECTIVES = ("running", "quiet", "terminate")
QUEUE_MAX_DEPTH, QUEUE_MAX_SIZE_BYTES, QUEUE_PAUSED = 1, 2, 4
FILTER_HAS_STATE, FILTER_DEAD_LETTER, FILTER_WAITING, FILTER_HAS_PRIORITY = 1, 2, 4, 8
AS_IT_IS = (1 << 64) - 1
BULK_CANCEL, BULK_PROMOTE, BULK_RETRY_DEAD, BULK_DROP_DEAD, BULK_DROP, BULK_RETRY = range(6)
EVENTS_FROM_START, EVENTS_AT_ONCE = 1, 2
FETCH_HELD = 1
REPORT_REGISTERS, REPORT_NO_PLEDGE, REPORT_CONCURRENCY, REPORT_ACTIVE_JOBS = 1, 2, 4, 8

#: Indexed by the numbers of ojs_shm.h.
STATES = ("scheduled", "available", "pending", "active", "completed", "retryable", "cancelled", "discarded")
BACKOFFS = ("exponential", "linear", "constant", "polynomial")


class Sized(Structure):
    """A struct that begins with its own size; all else starts as zero, which is the default of each member."""

    def __init__(self) -> None:
        super().__init__()
        self.struct_size = sizeof(self)


class Error(Sized):
    _fields_ = [("struct_size", c_size_t), ("message", c_char_p), ("subject", c_char_p), ("unit", c_char_p),
                ("depth", c_uint64), ("bound", c_uint64), ("code", c_int32), ("reserved", c_uint32),
                ("strategy", c_char_p), ("retry_after_ms", c_uint64), ("tenant", c_char_p), ("state", c_char_p)]


class SegmentOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("convention", c_char_p), ("group", c_char_p), ("size_bytes", c_uint64),
                ("retention_ms", c_uint64), ("slots", c_uint32), ("max_queues", c_uint32),
                ("max_body_bytes", c_uint32), ("max_handles", c_uint32), ("mode", c_uint32), ("max_tenants", c_uint32),
                ("max_waiting", c_uint32), ("reserved", c_uint32)]


class RetryPolicy(Sized):
    _fields_ = [("struct_size", c_size_t), ("coefficient", c_double), ("max_attempts", c_uint32),
                ("initial_ms", c_uint32), ("max_ms", c_uint32), ("backoff", c_uint32), ("flags", c_uint32),
                ("reserved", c_uint32)]


class JobSpec(Sized):
    _fields_ = [("struct_size", c_size_t), ("type", c_char_p), ("args", c_char_p), ("args_size", c_size_t),
                ("queue", c_char_p), ("id", c_char_p), ("extra", c_char_p), ("extra_size", c_size_t),
                ("retry", POINTER(RetryPolicy)), ("priority", c_int64), ("scheduled_at_ms", c_uint64),
                ("expires_at_ms", c_uint64), ("timeout_ms", c_uint32), ("lease_ms", c_uint32), ("flags", c_uint32),
                ("priority_age_rate", c_uint32), ("rate_limit", c_char_p), ("rate_limit_size", c_size_t),
                ("tenant", c_char_p), ("unique", c_char_p), ("unique_size", c_size_t), ("result_ttl_s", c_int64),
                ("enqueue_ttl_s", c_uint32), ("total_timeout_s", c_uint32), ("grace_period_s", c_uint32),
                ("reserved", c_uint32)]


class Args(Sized):
    _fields_ = [("struct_size", c_size_t), ("args", c_char_p), ("args_size", c_size_t), ("priority", c_int64),
                ("flags", c_uint32), ("reserved", c_uint32)]


class Resilience(Sized):
    _fields_ = [("struct_size", c_size_t), ("buffer_jobs", c_uint64), ("buffer_bytes", c_uint64),
                ("retries", c_uint32), ("max_delay_ms", c_uint32), ("breaker_refusals", c_uint32),
                ("breaker_cooldown_ms", c_uint32)]


class Text(Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]

    def read(self) -> str:
        return ctypes.string_at(self.data, self.size).decode(errors="replace") if self.size else ""


class JobFields(Sized):
    _fields_ = [("struct_size", c_size_t), ("id", Text), ("type", Text), ("args", Text), ("extra", Text),
                ("queue", Text), ("priority", c_int64), ("fence", c_uint64), ("created_at_ms", c_uint64),
                ("enqueued_at_ms", c_uint64), ("started_at_ms", c_uint64), ("deadline_ms", c_uint64),
                ("timeout_ms", c_uint32), ("attempt", c_uint32), ("max_attempts", c_uint32), ("reserved", c_uint32)]


class WorkerOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("queues", POINTER(c_char_p)), ("queue_count", c_size_t),
                ("lease_ms", c_uint32), ("spin_us", c_uint32), ("flags", c_uint32), ("concurrency", c_uint32),
                ("weights", POINTER(c_uint32)), ("pool", c_char_p), ("id", c_char_p), ("labels", c_char_p),
                ("total_concurrency", c_uint32), ("reserved", c_uint32)]


class FailureReport(Sized):
    _fields_ = [("struct_size", c_size_t), ("code", c_char_p), ("message", c_char_p), ("type", c_char_p),
                ("details", c_char_p), ("details_size", c_size_t), ("flags", c_uint32), ("reserved", c_uint32),
                ("rate_limit_until_ms", c_uint64)]


class NackOutcome(Sized):
    _fields_ = [("struct_size", c_size_t), ("next_attempt_at_ms", c_uint64), ("retry_delay_ms", c_uint32),
                ("state", c_uint32)]


class FetchRequest(Sized):
    _fields_ = [("struct_size", c_size_t), ("queues", POINTER(c_char_p)), ("queue_count", c_size_t),
                ("weights", POINTER(c_uint32)), ("pool", c_char_p), ("tenant", c_char_p), ("worker", c_char_p),
                ("count", c_uint64), ("lease_ms", c_uint32), ("flags", c_uint32)]


class WorkerReport(Sized):
    _fields_ = [("struct_size", c_size_t), ("id", c_char_p), ("pool", c_char_p), ("queues", POINTER(c_char_p)),
                ("queue_count", c_size_t), ("hostname", c_char_p), ("version", c_char_p), ("labels", c_char_p),
                ("state", c_char_p), ("concurrency", c_uint32), ("active_jobs", c_uint32), ("pid", c_uint32),
                ("silence_ms", c_uint32), ("flags", c_uint32), ("reserved", c_uint32)]


class EventOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("after", c_char_p), ("after_position", c_uint64),
                ("types", POINTER(c_char_p)), ("type_count", c_size_t), ("queues", POINTER(c_char_p)),
                ("queue_count", c_size_t), ("jobs", POINTER(c_char_p)), ("job_count", c_size_t),
                ("job_types", POINTER(c_char_p)), ("job_type_count", c_size_t), ("tenant", c_char_p),
                ("flags", c_uint32), ("reserved", c_uint32)]


class QueueSettings(Sized):
    _fields_ = [("struct_size", c_size_t), ("max_depth", c_uint64), ("max_size_bytes", c_uint64),
                ("paused", c_uint32), ("set", c_uint32)]


class Pressure(Sized):
    _fields_ = [("struct_size", c_size_t), ("depth", c_uint64), ("bound", c_uint64), ("pressure", c_double),
                ("unit", c_char_p)]


class JobFilter(Sized):
    _fields_ = [("struct_size", c_size_t), ("queue", c_char_p), ("type", c_char_p), ("limit", c_uint64),
                ("state", c_uint32), ("flags", c_uint32), ("tenant", c_char_p), ("priority", c_int64),
                ("created_before_ms", c_uint64), ("ended_from_ms", c_uint64), ("ended_before_ms", c_uint64),
                ("error_type", c_char_p)]


class BulkReport(Sized):
    _fields_ = [("struct_size", c_size_t), ("matched", c_uint64), ("done", c_uint64), ("skipped", c_uint64)]


class ImportReport(Sized):
    _fields_ = [("struct_size", c_size_t), ("jobs", c_uint64), ("existing", c_uint64), ("refused", c_uint64),
                ("queues", c_uint64), ("pools", c_uint64), ("limits", c_uint64), ("default_priorities", c_uint64),
                ("defaulted", c_uint64), ("clamped", c_uint64), ("displaced", c_uint64), ("crons", c_uint64)]


_handle, _out = c_void_p, POINTER(c_void_p)
_text = (c_void_p, c_size_t)  # the caller's buffer, which ends the arguments of every entry that returns a text

#: name -> (result, arguments)
_ENTRIES = {
    "version": (c_char_p, ()),
    "format": (c_uint32, ()),
    "check_abi": (c_int, (c_uint32,)),
    "code_name": (c_char_p, (c_int,)),
    "last_error_detail": (c_int, (_handle, POINTER(Error))),
    "last_text": (c_int64, (_handle, *_text)),
    "close": (c_int, (_handle,)),
    "segment_attach": (c_int, (c_char_p, c_char_p, _out)),
    "segment_create": (c_int, (c_char_p, c_char_p, POINTER(SegmentOptions), _out)),
    "segment_observe": (c_int, (c_char_p, c_char_p, _out)),
    "segment_convention": (c_int64, (_handle, *_text)),
    "segment_path": (c_int64, (_handle, *_text)),
    "segment_remove": (c_int, (c_char_p, c_char_p, c_int)),
    "producer_open": (c_int, (_handle, _out)),
    "producer_open_resilient": (c_int, (_handle, POINTER(Resilience), _handle, _out)),
    "flush": (c_int, (_handle, c_int64)),
    "take_failed": (c_int64, (_handle, *_text)),
    "close_buffer": (c_int64, (_handle, *_text)),
    "enqueue": (c_int, (_handle, POINTER(JobSpec), c_char_p)),
    "enqueue_batch": (c_int, (_handle, POINTER(JobSpec), c_size_t, c_char_p)),
    "prepare": (c_int, (_handle, POINTER(JobSpec), _out)),
    "enqueue_prepared_batch": (c_int, (_handle, _handle, POINTER(Args), c_size_t, c_char_p)),
    "enqueue_within": (c_int, (_handle, POINTER(JobSpec), c_size_t, c_int64, c_char_p)),
    "enqueue_begin": (c_int, (_handle, POINTER(JobSpec), c_size_t, c_int64, _out)),
    "enqueue_poll": (c_int, (_handle, c_char_p)),
    "enqueue_pressure": (c_int, (_handle, POINTER(Pressure))),
    "enqueue_deduplicated": (c_int, (_handle, c_size_t)),
    "last_deduplicated": (c_int, (_handle, c_size_t)),
    "last_pressure": (c_int, (_handle, POINTER(Pressure))),
    "wait": (c_int64, (_handle, c_char_p, c_int64, *_text)),
    "get": (c_int64, (_handle, c_char_p, *_text)),
    "cancel": (c_int64, (_handle, c_char_p, *_text)),
    "reprioritize": (c_int, (_handle, c_char_p, c_int64, POINTER(c_int64))),
    "activate": (c_int, (_handle, c_char_p)),
    "promote": (c_int, (_handle, c_char_p)),
    "retry_job": (c_int, (_handle, c_char_p)),
    "bulk": (c_int, (_handle, c_int, POINTER(JobFilter), POINTER(BulkReport))),
    "create_workflow": (c_int, (_handle, c_char_p, c_size_t, c_char_p)),
    "cancel_workflow": (c_int, (_handle, c_char_p)),
    "workflow": (c_int64, (_handle, c_char_p, *_text)),
    "workflows": (c_int64, (_handle, c_char_p, *_text)),
    "parent_results": (c_int64, (_handle, *_text)),
    "set_cron": (c_int, (_handle, c_char_p, c_size_t)),
    "remove_cron": (c_int, (_handle, c_char_p)),
    "enable_cron": (c_int, (_handle, c_char_p, c_int)),
    "trigger_cron": (c_int, (_handle, c_char_p, c_char_p)),
    "cron": (c_int64, (_handle, c_char_p, *_text)),
    "crons": (c_int64, (_handle, *_text)),
    "cron_name": (c_int64, (_handle, *_text)),
    "cron_times": (c_int64, (c_char_p, c_char_p, c_uint64, POINTER(c_uint64), c_size_t)),
    "workflow_id": (c_int64, (_handle, *_text)),
    "job_new": (c_int, (_out,)),
    "job_read": (c_int, (_handle, POINTER(JobFields))),
    "cancel_requested": (c_int, (_handle,)),
    "worker_open": (c_int, (_handle, POINTER(WorkerOptions), _out)),
    "fetch": (c_int, (_handle, _handle, c_int64)),
    "ack": (c_int, (_handle, _handle, c_char_p, c_size_t)),
    "nack": (c_int, (_handle, _handle, POINTER(FailureReport), POINTER(NackOutcome))),
    "requeue": (c_int, (_handle, _handle)),
    "heartbeat": (c_int, (_handle, _handle, c_uint32, POINTER(c_uint64))),
    "progress": (c_int, (_handle, _handle, c_double)),
    "progress_texts": (c_int, (_handle, _handle, c_double, c_char_p, c_char_p, c_size_t)),
    "event_fd": (c_int, (_handle,)),
    "interrupt": (c_int, (_handle,)),
    "worker_beat": (c_int, (_handle,)),
    "worker_say": (c_int, (_handle, c_int)),
    "worker_quiet": (c_int, (_handle,)),
    "worker_resume": (c_int, (_handle,)),
    "proxy_open": (c_int, (_handle, _out)),
    "proxy_fetch": (c_int64, (_handle, POINTER(FetchRequest), *_text)),
    "proxy_await": (c_int, (_handle, POINTER(c_char_p), c_size_t, POINTER(c_char_p), c_size_t)),
    "proxy_await_end": (c_int, (_handle, c_char_p)),
    "proxy_forget_end": (c_int, (_handle, c_char_p)),
    "proxy_take_ended": (c_int64, (_handle, *_text)),
    "proxy_await_events": (c_int, (_handle, c_int)),
    "proxy_enqueue_begin": (c_int, (_handle, POINTER(JobSpec), c_size_t, c_int64, c_uint64, _out)),
    "proxy_take_decided": (c_int64, (_handle, POINTER(c_uint64), c_size_t)),
    "proxy_hand_over": (c_int, (_handle, c_char_p, c_uint64)),
    "proxy_ack": (c_int, (_handle, c_char_p, c_uint64, c_char_p, c_size_t)),
    "proxy_nack": (c_int, (_handle, c_char_p, c_uint64, POINTER(FailureReport), POINTER(NackOutcome))),
    "proxy_requeue": (c_int, (_handle, c_char_p, c_uint64)),
    "proxy_heartbeat": (c_int, (_handle, c_char_p, c_uint64, c_uint32, POINTER(c_uint64))),
    "checkpoint": (c_int, (_handle, _handle, c_char_p, c_size_t)),
    "last_checkpoint": (c_int64, (_handle, *_text)),
    "proxy_checkpoint": (c_int, (_handle, c_char_p, c_uint64, c_char_p, c_size_t)),
    "proxy_progress": (c_int, (_handle, c_char_p, c_uint64, c_double)),
    "proxy_progress_texts": (c_int, (_handle, c_char_p, c_uint64, c_double, c_char_p, c_char_p, c_size_t)),
    "proxy_report": (c_int64, (_handle, POINTER(WorkerReport), *_text)),
    "admin_open": (c_int, (_handle, _out)),
    "set_queue": (c_int, (_handle, c_char_p, POINTER(QueueSettings))),
    "set_pool": (c_int, (_handle, c_char_p, c_char_p, c_size_t)),
    "remove_pool": (c_int, (_handle, c_char_p)),
    "direct_worker": (c_int, (_handle, c_char_p, c_int)),
    "remove_worker": (c_int, (_handle, c_char_p)),
    "configure_queue": (c_int, (_handle, c_char_p, c_char_p, c_size_t)),
    "set_limit": (c_int, (_handle, c_char_p, c_char_p, c_size_t)),
    "clear_limit": (c_int, (_handle, c_char_p)),
    "limits": (c_int64, (_handle, *_text)),
    "limit": (c_int64, (_handle, c_char_p, *_text)),
    "set_default_priority": (c_int, (_handle, c_char_p, c_int64)),
    "clear_default_priority": (c_int, (_handle, c_char_p)),
    "dead_retry": (c_int, (_handle, c_char_p)),
    "dead_drop": (c_int, (_handle, c_char_p)),
    "drop": (c_int, (_handle, c_char_p)),
    "set_maintenance_until": (c_int, (_handle, c_int, c_char_p, c_uint64)),
    "set_dead_retention": (c_int, (_handle, c_uint64, c_uint64)),
    "delete_queue": (c_int64, (_handle, c_char_p, c_int)),
    "observer_open": (c_int, (_handle, _out)),
    "pools": (c_int64, (_handle, *_text)),
    "pool": (c_int64, (_handle, c_char_p, *_text)),
    "registered_workers": (c_int64, (_handle, *_text)),
    "registered_worker": (c_int64, (_handle, c_char_p, *_text)),
    "scheduling": (c_int64, (_handle, *_text)),
    "stats": (c_int64, (_handle, *_text)),
    "queues": (c_int64, (_handle, *_text)),
    "queue": (c_int64, (_handle, c_char_p, *_text)),
    "list": (c_int64, (_handle, POINTER(JobFilter), *_text)),
    "page": (c_int64, (_handle, POINTER(JobFilter), c_int, c_int, c_uint64, *_text)),
    "audit": (c_int64, (_handle, *_text)),
    "default_priority": (c_int, (_handle, c_char_p, POINTER(c_int64))),
    "priority_by_name": (c_int, (_handle, c_char_p, POINTER(c_int64))),
    "waits": (c_int64, (_handle, *_text)),
    "census": (c_int64, (_handle, *_text)),
    "segment_examine": (c_int, (c_char_p, _out)),
    "recent": (c_int64, (_handle, c_uint64, *_text)),
    "set_events": (c_int, (_handle, c_int)),
    "set_strict_envelopes": (c_int, (_handle, c_int)),
    "set_immutable_priorities": (c_int, (_handle, c_int)),
    "events_choose": (c_int, (_handle, POINTER(EventOptions), _out)),
    "event_position": (c_int64, (_handle,)),
    "events_resumed": (c_int, (_handle,)),
    "next_event": (c_int64, (_handle, *_text)),
    "events_lost": (c_int64, (_handle,)),
    "export": (c_int64, (_handle, c_int)),
    "import": (c_int, (_handle, c_int, POINTER(ImportReport))),
}


class Library:
    """The loaded library; `library.enqueue` is the entry ojs_shm_enqueue."""

    def __init__(self, path: str) -> None:
        self.path = path
        # CDLL gives up the interpreter's lock during each call, so a waiting thread stops no other.
        loaded = ctypes.CDLL(path)
        for name, (result, arguments) in _ENTRIES.items():
            try:
                entry = getattr(loaded, "ojs_shm_" + name)
            except AttributeError:
                raise errors.StaleVersion(f"{path} has no ojs_shm_{name}: it is another version than this package",
                                          code="stale_version", number=-18) from None
            entry.restype, entry.argtypes = result, arguments
            setattr(self, name, entry)
        if (code := self.check_abi(ABI_VERSION)) < 0:
            raise self.error(code)

    def error(self, number: int, handle: int | None = None) -> errors.OjsError:
        """The exception for a code just returned by a call of `handle`."""
        detail = Error()
        known = self.last_error_detail(handle, byref(detail)) == 0 and detail.code == number
        name = self.code_name(number).decode()
        made = errors.BY_NUMBER.get(number, errors.OjsError)
        if not known:
            return made(name, code=name, number=number)
        return made(detail.message.decode("utf-8", "replace"), code=name, number=number,
                    subject=(detail.subject or b"").decode("utf-8", "replace"), depth=detail.depth,
                    bound=detail.bound, unit=(detail.unit or b"").decode(),
                    strategy=(detail.strategy or b"").decode(), retry_after=detail.retry_after_ms / 1000,
                    tenant=None if detail.tenant is None else detail.tenant.decode("utf-8", "replace"),
                    state=(detail.state or b"").decode())

    def open(self, entry, *arguments) -> int:
        """Calls an entry whose last parameter receives a new handle."""
        handle = c_void_p()
        if (code := entry(*arguments, byref(handle))) < 0:
            raise self.error(code)
        return handle.value

    def read_text(self, handle: int | None, entry, *arguments) -> str:
        """Calls an entry that ends with a caller's buffer and returns a text."""
        size = 2048
        buffer = (c_char * size)()
        length = entry(*arguments, buffer, size)
        if length < 0:
            raise self.error(length, handle)
        if length >= size:
            buffer = (c_char * (length + 1))()
            length = self.last_text(handle, buffer, length + 1)
            if length < 0:
                raise self.error(length, handle)
        return ctypes.string_at(buffer, length).decode(errors="replace")


def _candidates() -> list[str]:
    """Where the library may be, in this order: as told, beside this package, where the system keeps libraries."""
    told = os.environ.get("OJS_SHM_LIBRARY")
    if told:
        return [told]
    beside = sorted(pathlib.Path(__file__).parent.glob("libojs_shm.so*"))
    installed = ctypes.util.find_library("ojs_shm")
    return [*map(str, beside), *([installed] if installed else [])]


@functools.cache
def library() -> Library:
    """Loaded at the first use, so that importing the package needs no library."""
    tried = []
    for path in _candidates():
        try:
            return Library(path)
        except OSError as error:
            tried.append(f"{path}: {error}")
    looked = "; ".join(tried) or "neither beside the package nor on the system"
    raise errors.LibraryNotFound(f"libojs_shm.so was not found ({looked}). Install ojs-shm or set OJS_SHM_LIBRARY",
                                 code="library_not_found")


def text_in(value: str | None, member: str) -> bytes | None:
    """A text for a member that ends with a NUL and therefore cannot contain one."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{member} must be a str, not {type(value).__name__}")
    encoded = value.encode()
    if b"\0" in encoded:
        raise errors.InvalidArgument(f"{member} contains a NUL", code="invalid", number=-2, subject=member)
    return encoded


def texts_in(texts: Iterable[str], member: str) -> tuple[Any, int]:
    """An array of texts and its length. One text is refused: it would be taken for a list of its letters."""
    if isinstance(texts, str):
        raise TypeError(f"{member} is a list of texts")
    words = [text_in(each, member) for each in texts]
    return (c_char_p * max(1, len(words)))(*words), len(words)


def whole(value: int, member: str, bits: int, signed: bool = False) -> int:
    """ctypes cuts numbers that do not fit without a word; this refuses them."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if not low <= value <= high:
        raise errors.InvalidArgument(f"{member} must be {low}..{high}, not {value}", code="invalid", number=-2,
                                     subject=member, bound=high)
    return value


def ids_of(buffer: Any, count: int) -> list[str]:
    """The ids that an entry has written one after the other."""
    return [buffer.raw[at:at + ID_SIZE - 1].decode() for at in range(0, count * ID_SIZE, ID_SIZE)]
