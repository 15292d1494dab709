# SPDX-License-Identifier: Apache-2.0
"""Numbers of one queue."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class QueueStats:
    """One queue at one instant. `raw` has every number the library gave."""

    name: str
    depth: int              #: available + scheduled + retryable + pending
    max_depth: int          #: 0: unbounded
    paused: bool
    by_state: dict[str, int]
    oldest_age: float       #: seconds for which the longest available job has been available; 0: there is none
    dead_letters: int       #: discarded jobs that are kept for an operator
    failed_attempts: int    #: attempts that ever ended in a failure or a timeout, and jobs that a limit dropped
    raw: dict[str, Any] = dataclasses.field(repr=False)


def stats_of(raw: dict[str, Any]) -> QueueStats:
    return QueueStats(name=raw["name"], depth=raw["depth"], max_depth=raw["max_depth"], paused=raw["paused"],
                      by_state=raw["by_state"], oldest_age=raw["oldest_age_ms"] / 1000,
                      dead_letters=raw["dead_letters"], failed_attempts=raw["failed_attempts_total"], raw=raw)
