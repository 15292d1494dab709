# SPDX-License-Identifier: Apache-2.0
"""A submitted job as its submitter sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .accepted import Accepted
from .jobs import JobInfo
from .times import Duration

if TYPE_CHECKING:
    from .client import Queue


class Task:
    """A job that was submitted here.

    buffered      it went into the local buffer, and is in the segment later
    deduplicated  a unique job that was there already; nothing was stored
    pressure      how full its queue is with it and all of its batch, if that is above the queue's warning threshold; a
                  batch for several queues does not tell
    """

    def __init__(self, queue: Queue, accepted: Accepted) -> None:
        self._queue = queue
        self.id = accepted.id
        self.buffered = accepted.buffered
        self.deduplicated = accepted.deduplicated
        self.pressure = accepted.pressure

    def info(self) -> JobInfo:
        return self._queue.get(self.id)

    @property
    def priority(self) -> int:
        return self.info().priority

    @property
    def state(self) -> str:
        return self.info().state

    def wait(self, timeout: Duration | None = None) -> JobInfo:
        return self._queue.wait(self.id, timeout)

    def result(self, timeout: Duration | None = None) -> Any:
        return self._queue.result(self.id, timeout)

    def cancel(self) -> JobInfo:
        return self._queue.cancel(self.id)

    def reprioritize(self, priority: int | str) -> int:
        return self._queue.reprioritize(self.id, priority)

    def activate(self) -> None:
        self._queue.activate(self.id)

    def __repr__(self) -> str:
        return f"<Task {self.id}>"
