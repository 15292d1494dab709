# SPDX-License-Identifier: Apache-2.0
"""What a producer does when the queue is full: OnFull, and Unsent for what came back."""

from __future__ import annotations

import ctypes
import dataclasses
import json
from collections.abc import Iterator
from typing import Any

from . import _abi, errors
from ._abi import library
from .times import Duration, milliseconds


@dataclasses.dataclass(frozen=True)
class OnFull:
    """What submit() does when the queue or the segment is full. Nothing that is not asked for: connect(on_full=...).

    First the retries, which block for the recommended pause (at least a second), then twice as long each time up to
    `max_delay`. After `breaker` refusals in a row a queue is not asked for `cooldown`, and QueueFull is raised at once;
    then one submit() may try. Last the buffer: what is still refused is kept and brought later by a thread, and its Task
    is `buffered`.

    The buffer is memory of this process: what is in it dies with the process. Queue.flush() waits for it,
    Queue.close() gives back what was not sent. All threads of a connection share circuits and buffer.
    """

    retries: int = 0            #: after the first refusal; 0: none
    max_delay: Duration = 60
    breaker: int = 0            #: refusals in a row that open the circuit, 5 is usual; 0: no circuit breaker
    cooldown: Duration = 10
    buffer: int = 0             #: jobs that the buffer may hold; 0: no buffer
    buffer_bytes: int = 64 << 20

    def _struct(self) -> _abi.Resilience:
        made = _abi.Resilience()
        made.buffer_jobs = _abi.whole(self.buffer, "buffer", 64)
        made.buffer_bytes = _abi.whole(self.buffer_bytes, "buffer_bytes", 64)
        made.retries = _abi.whole(self.retries, "retries", 32)
        made.max_delay_ms = max(1, milliseconds(self.max_delay, "max_delay"))
        made.breaker_refusals = _abi.whole(self.breaker, "breaker", 32)
        made.breaker_cooldown_ms = max(1, milliseconds(self.cooldown, "cooldown"))
        return made

    def _pauses(self) -> Iterator[float]:
        """Those of the retries, in seconds; as the library makes them."""
        pause, longest = 1.0, milliseconds(self.max_delay, "max_delay") / 1000
        for _ in range(self.retries):
            yield pause
            pause = max(1.0, min(2 * pause, longest))

    def _open(self, segment: int | None, like: int | None) -> int:
        """A producer of this kind; `like` is the first of its connection."""
        options = None if like else ctypes.byref(self._struct())
        return library().open(library().producer_open_resilient, segment, options, like)


@dataclasses.dataclass(frozen=True)
class Unsent:
    """A job that left the buffer for no segment: its envelope, and the last error it got."""

    job: dict[str, Any]
    error: errors.OjsError


def unsent_of(text: str) -> list[Unsent]:
    """What the library says of them, with the class that the error has elsewhere."""
    made = []
    for each in json.loads(text):
        error = dict(each["error"])
        number = next((n for n in errors.BY_NUMBER if library().code_name(n).decode() == error["code"]), -1)
        made.append(Unsent(each["job"], errors.BY_NUMBER[number](error.pop("message"), number=number, **error)))
    return made
