# SPDX-License-Identifier: Apache-2.0
"""Crons: jobs that are enqueued again and again."""

from __future__ import annotations

import ctypes
import datetime
import json
from typing import Any

from . import _abi
from ._abi import library
from ._handles import Handles
from .jobs import NOTHING, to_json
from .times import Moment, moment, unix_milliseconds


class Crons:
    """The part of Queue that is about crons. Each is told as over HTTP: `name`, `expression`, `timezone`, `enabled`,
    `overlap_policy`, `next_run_at`, `last_run_at`, `run_count`, `job_template`, ... Thread-safe."""

    queue: str
    _observers: Handles
    _admins: Handles

    def set_cron(self, name: str, expression: str, type: str, input: Any = NOTHING, *,
                 args: list[Any] | None = None, timezone: str = "UTC", overlap_policy: str = "skip",
                 enabled: bool = True, description: str | None = None, meta: dict[str, Any] | None = None,
                 **options: Any) -> bool:
        """Makes a cron, or replaces the one of that name, whose counts stay; True when it is new.

        expression      "0 9 * * MON-FRI", "@hourly" and the like, on the clocks of `timezone`
        overlap_policy  while its last job is not finished: "skip", "enqueue", "allow" or "cancel_previous"
        options         of its jobs, as over HTTP: queue, priority, timeout (seconds), retry, tags, unique, ...

        Errors: InvalidArgument (`subject` is the member, such as "expression"), TooLarge, SegmentFull.
        """
        if args is not None and input is not NOTHING:
            raise TypeError("a cron has either an input or args")
        options.setdefault("queue", self.queue)
        if options.get("priority") is not None:
            options["priority"] = self.priority(options["priority"])  # type: ignore[attr-defined]
        job = {"type": type, "args": args if args is not None else [] if input is NOTHING else [input],
               "options": {key: value for key, value in options.items() if value is not None}}
        if meta is not None:
            job["meta"] = meta
        text = to_json({"name": name, "expression": expression, "timezone": timezone, "overlap_policy": overlap_policy,
                        "enabled": enabled, "description": description, "job_template": job})
        with self._admins.lent() as admin:
            return bool(admin.call(library().set_cron, text, len(text)))

    def cron(self, name: str) -> dict[str, Any]:
        """Errors: NotFound."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().cron, _abi.text_in(name, "name")))

    def crons(self) -> list[dict[str, Any]]:
        """All of them by name."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().crons))

    def remove_cron(self, name: str) -> None:
        """Its jobs stay. Errors: NotFound."""
        with self._admins.lent() as admin:
            admin.call(library().remove_cron, _abi.text_in(name, "name"))

    def enable_cron(self, name: str, enabled: bool = True) -> None:
        """False: it fires at no time until it is enabled again. Errors: NotFound."""
        with self._admins.lent() as admin:
            admin.call(library().enable_cron, _abi.text_in(name, "name"), int(enabled))

    def trigger_cron(self, name: str) -> str:
        """Enqueues its job now, beside its times; the id. Errors: NotFound, WrongState (its last job goes on and its
        overlap_policy is skip), Duplicate (another job has its unique key), QueueFull, SegmentFull."""
        id = ctypes.create_string_buffer(_abi.ID_SIZE)
        with self._admins.lent() as admin:
            admin.call(library().trigger_cron, _abi.text_in(name, "name"), id)
        return id.value.decode()


def cron_times(expression: str, timezone: str = "UTC", *, after: Moment | None = None,
               count: int = 5) -> list[datetime.datetime]:
    """When such a cron fires after `after` (None: now). Errors: InvalidArgument."""
    since = datetime.datetime.now(datetime.UTC) if after is None else after
    times = (ctypes.c_uint64 * max(1, count))()
    lib = library()
    found = lib.cron_times(_abi.text_in(expression, "expression"), _abi.text_in(timezone, "timezone"),
                           unix_milliseconds(since, "after"), times, _abi.whole(count, "count", 32))
    if found < 0:
        raise lib.error(found, None)
    return [moment(times[place]) for place in range(found)]
