# SPDX-License-Identifier: Apache-2.0
"""Lengths and points of time, as callers give them and as the library takes them."""

from __future__ import annotations

import datetime
import math
import numbers
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from . import _abi, errors

T = TypeVar("T")

#: Seconds, or a timedelta.
Duration = float | int | datetime.timedelta
#: Unix time in seconds, or a datetime with a time zone.
Moment = float | int | datetime.datetime


#: How long the main thread waits in the library before it looks whether a signal has come.
_PIECE_MS = 200


def in_pieces(call: Callable[[int], T], wait_ms: int) -> T:
    """What `call` returns when it waits for so long; below 0: without end. The main thread waits in pieces, so that Ctrl-C
    and handlers of signals come through. Errors: those of `call`."""
    if wait_ms == 0 or threading.current_thread() is not threading.main_thread():
        return call(wait_ms)
    end = math.inf if wait_ms < 0 else time.monotonic() + wait_ms / 1000
    while True:
        left = (end - time.monotonic()) * 1000
        try:
            return call(max(1, math.ceil(min(left, _PIECE_MS))))
        except errors.TimedOut:
            if left <= _PIECE_MS:
                raise


def milliseconds(value: Duration, member: str, bits: int = 32, wanted: str = "seconds or a timedelta") -> int:
    seconds = value.total_seconds() if isinstance(value, datetime.timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, numbers.Real):
        raise TypeError(f"{member} must be {wanted}, not {type(value).__name__} {value!r}")
    if seconds != seconds or seconds in (float("inf"), float("-inf")):
        raise errors.InvalidArgument(f"{member} must be finite", code="invalid", number=-2, subject=member)
    return _abi.whole(round(seconds * 1000), member, bits)


def whole_seconds(value: Duration, member: str) -> int:
    """A part of a second counts as one; below zero too, where -1 may mean something."""
    seconds = value.total_seconds() if isinstance(value, datetime.timedelta) else value
    below = isinstance(seconds, numbers.Real) and seconds < 0
    milliseconds(-seconds if below else seconds, member, 63)  # refuses what is no time
    return math.floor(seconds) if below else math.ceil(seconds)


def unix_milliseconds(value: Moment, member: str) -> int:
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise errors.InvalidArgument(f"{member} needs a time zone", code="invalid", number=-2, subject=member)
        value = value.timestamp()
    return milliseconds(value, member, 64, "Unix seconds or a datetime")


def moment(given: Any) -> datetime.datetime | None:
    """A time of the library: Unix milliseconds, or RFC 3339. Whatever else a client may have left there reads as None."""
    try:
        if isinstance(given, str):
            return datetime.datetime.fromisoformat(given)
        if type(given) is int and given != 0:
            return datetime.datetime.fromtimestamp(given / 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None
