# SPDX-License-Identifier: Apache-2.0
"""A submitted job as its submitter sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .jobs import JobInfo
from .times import Duration

if TYPE_CHECKING:
    from .client import Queue


class Task:
    """A job that was submitted here. `buffered`: it went into the local buffer, and is in the segment later."""

    def __init__(self, queue: Queue, id: str, buffered: bool = False) -> None:
        self._queue = queue
        self.id = id
        self.buffered = buffered

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
