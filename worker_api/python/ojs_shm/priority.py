# SPDX-License-Identifier: Apache-2.0
"""Names for priorities."""

from __future__ import annotations

import enum


class Priority(enum.IntEnum):
    """Priorities by name, from the most urgent to the least.

    The numbers are those of the qo convention. A segment of another convention has other numbers (in the convention
    `ojs` HIGH is 1, and lower is sooner), so a queue takes a member of this class by its name: Priority.HIGH means
    "high" everywhere. A name that a convention does not have (`ojs` has no URGENT) is refused with the names it has.
    """

    CRITICAL = 255
    URGENT = 200
    HIGH = 175
    NORMAL = 128
    LOW = 50
    BACKGROUND = 10
    BULK = 0
