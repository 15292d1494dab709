# SPDX-License-Identifier: Apache-2.0
"""What a connection tells of the segment and changes in it: queues, pools, limits, settings, dead letters."""

from __future__ import annotations

import ctypes
import datetime
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from . import _abi, errors
from ._abi import library
from ._handles import Handles
from .events import Events
from .jobs import JobInfo, state_number, to_json
from .queue_stats import QueueStats, stats_of
from .times import Duration, Moment, milliseconds, unix_milliseconds


_PAGE_ORDERS = ("created", "scheduled", "priority")  # of OJS_SHM_ORDER_


def _ago(duration: Duration, name: str) -> int:
    """A moment in Unix ms; never 0, which would choose all jobs."""
    return max(1, int(time.time() * 1000) - milliseconds(duration, name, 64))


class Administration:
    """The part of Queue that looks at the segment and administers it. Thread-safe."""

    queue: str
    _segment: int | None
    _observers: Handles
    _admins: Handles

    def stats(self, queue: str | None = None) -> QueueStats:
        """Errors: NotFound for a queue that was never used."""
        with self._observers.lent() as observer:
            return stats_of(json.loads(observer.text(library().queue, _abi.text_in(queue or self.queue, "queue"))))

    def queues(self) -> list[QueueStats]:
        with self._observers.lent() as observer:
            return [stats_of(each) for each in json.loads(observer.text(library().queues))]

    def segment_stats(self) -> dict[str, Any]:
        """Options, pools, processes and totals of the whole segment."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().stats))

    def jobs(self, *, limit: int = 0, **filter: Any) -> list[JobInfo]:
        """Available ones in the order of fetching (with weights: level by level), then the others, queue by queue, by
        creation. limit 0: all.

        `filter`: queue, type, state, dead_letter, waiting (scheduled, available, pending or retryable), tenant, priority
        (a number or a name), older_than (a duration since its creation), ended_ago (a duration since it was completed,
        cancelled or discarded, at least), error_type (of its last failure).
        """
        wanted = self._filter(limit=limit, **filter)
        with self._observers.lent() as observer:
            return [JobInfo(each) for each in json.loads(observer.text(library().list, ctypes.byref(wanted)))]

    def page(self, *, sort: str = "created", falling: bool = True, offset: int = 0, limit: int = 50,
             **filter: Any) -> tuple[list[JobInfo], int]:
        """A part of a sorted list, and how many jobs the whole has; picked without reading the rest.

        `sort`: created, scheduled or priority; falling: the newest, latest or highest number first. `filter` as for jobs().
        """
        if sort not in _PAGE_ORDERS:
            raise ValueError("sort must be created, scheduled or priority")
        wanted = self._filter(limit=limit, **filter)
        order, skipped = _PAGE_ORDERS.index(sort), _abi.whole(offset, "offset", 64)
        with self._observers.lent() as observer:
            text = observer.text(library().page, ctypes.byref(wanted), order, falling, skipped)
        page = json.loads(text)
        return [JobInfo(each) for each in page["jobs"]], page["total"]

    def _filter(self, *, queue: str | None = None, type: str | None = None, state: str | None = None,
                dead_letter: bool = False, waiting: bool = False, tenant: str | None = None,
                priority: int | str | None = None, older_than: Duration | None = None,
                ended_ago: Duration | None = None, error_type: str | None = None,
                limit: int = 0) -> _abi.JobFilter:
        wanted = _abi.JobFilter()
        wanted.queue, wanted.type = _abi.text_in(queue, "queue"), _abi.text_in(type, "type")
        wanted.tenant, wanted.error_type = _abi.text_in(tenant, "tenant"), _abi.text_in(error_type, "error_type")
        wanted.limit = _abi.whole(limit, "limit", 64)
        if state is not None:
            wanted.state, wanted.flags = state_number(state), _abi.FILTER_HAS_STATE
        if priority is not None:
            wanted.priority, wanted.flags = self.priority(priority), wanted.flags | _abi.FILTER_HAS_PRIORITY
        if older_than is not None:
            wanted.created_before_ms = _ago(older_than, "older_than")
        if ended_ago is not None:
            wanted.ended_before_ms = _ago(ended_ago, "ended_ago") + 1
        wanted.flags |= _abi.FILTER_DEAD_LETTER * dead_letter | _abi.FILTER_WAITING * waiting
        return wanted

    def _bulk(self, action: int, filter: dict[str, Any]) -> int:
        wanted, report = self._filter(**filter), _abi.BulkReport()
        with self._admins.lent() as admin:
            admin.call(library().bulk, action, ctypes.byref(wanted), ctypes.byref(report))
        return report.done

    def cancel_all(self, **filter: Any) -> int:
        """Cancels every job that the filter chooses (see jobs()); returns how many. Errors: NotFound for its queue."""
        return self._bulk(_abi.BULK_CANCEL, filter)

    def clear(self, queue: str | None = None) -> int:
        """Cancels every job of the queue that waits; active ones go on. Errors: NotFound."""
        return self.cancel_all(queue=queue or self.queue, waiting=True)

    def promote_all(self, **filter: Any) -> int:
        """Makes scheduled and retryable jobs available now; returns how many. Errors: NotFound for the filter's queue."""
        return self._bulk(_abi.BULK_PROMOTE, filter)

    def retry_all(self, **filter: Any) -> int:
        """Sends discarded jobs out again, or cancelled ones with `state="cancelled"`; returns how many. Errors: NotFound."""
        return self._bulk(_abi.BULK_RETRY, filter)

    def retry_all_dead(self, **filter: Any) -> int:
        """Sends dead letters out again; returns how many. Errors: NotFound for the filter's queue."""
        return self._bulk(_abi.BULK_RETRY_DEAD, filter)

    def drop_all_dead(self, **filter: Any) -> int:
        """Removes dead letters; returns how many. Errors: NotFound for the filter's queue."""
        return self._bulk(_abi.BULK_DROP_DEAD, filter)

    def drop_all(self, **filter: Any) -> int:
        """Removes what is kept of jobs that are over; returns how many. Errors: NotFound for the filter's queue."""
        return self._bulk(_abi.BULK_DROP, filter)

    def pools(self) -> list[dict[str, Any]]:
        """Pools of workers, as they are set and what they have in hand."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().pools))

    def pool(self, name: str) -> dict[str, Any]:
        """Errors: NotFound."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().pool, _abi.text_in(name, "pool")))

    def registered_workers(self) -> list[dict[str, Any]]:
        """Registered workers, by id, with those that ended in the last ten minutes."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().registered_workers))

    def registered_worker(self, id: str) -> dict[str, Any]:
        """Errors: NotFound."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().registered_worker, _abi.text_in(id, "id")))

    def direct_worker(self, id: str, directive: str) -> None:
        """What that worker shall do: "quiet" (take no more jobs), "terminate" (and end when its jobs are done) or "running".
        Errors: NotFound, InvalidArgument."""
        if directive not in _abi.DIRECTIVES:
            raise errors.InvalidArgument(f"directive must be one of {', '.join(_abi.DIRECTIVES)}", code="invalid",
                                         number=-2, subject="directive")
        with self._admins.lent() as admin:
            admin.call(library().direct_worker, _abi.text_in(id, "id"), _abi.DIRECTIVES.index(directive))

    def remove_worker(self, id: str) -> None:
        """Forgets the worker; its jobs stay with their leases. Errors: NotFound."""
        with self._admins.lent() as admin:
            admin.call(library().remove_worker, _abi.text_in(id, "id"))

    def scheduling(self) -> dict[str, Any]:
        """`queues`, with `name`, `dispatch_count_1m`, `dispatch_ratio_1m`, `avg_wait_ms` and `active_jobs` of each, and the
        `window`: what was handed out in the last minute."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().scheduling))

    def census(self) -> dict[str, Any]:
        """One look at everything that ojs-shm-top shows, in one walk: `segment`, `totals`, `queues`, `workers`, `pools`,
        `tenants`, `limits`; docs/top_sample.schema.json describes it."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().census))

    def waits(self) -> list[dict[str, Any]]:
        """By queue and priority, how long jobs waited until they were handed out, `from_enqueue` and `from_available`, and
        how long their attempts ran, `runs`: of each `count`, `sum_ms`, and `up_to_ms`, which maps a bound to how many took
        no longer."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().waits))

    def recent(self, most: int = 1000) -> list[dict[str, Any]]:
        """The newest transitions of jobs, oldest first, from the flight recorder: `time`, `handle`, `pid`, `slot`, `job`,
        `queue`, `from`, `to`; what is not known is left out."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().recent, most))

    def set_events(self, on: bool) -> None:
        """Whether every handle of the segment, of whatever process, tells what it does from now on."""
        with self._admins.lent() as admin:
            admin.call(library().set_events, int(on))

    def set_strict_envelopes(self, on: bool) -> None:
        """Whether programs that read envelopes for this segment refuse members that mean nothing."""
        with self._admins.lent() as admin:
            admin.call(library().set_strict_envelopes, int(on))

    def set_immutable_priorities(self, on: bool) -> None:
        """Whether jobs keep the priority they were enqueued with, in place of what the convention says: on in `qo`."""
        with self._admins.lent() as admin:
            admin.call(library().set_immutable_priorities, int(on))

    def events(self, *, follow: bool = True, **choice: Any) -> Events:
        """What happens in the segment, once set_events(True) has been called; see Events.

        from_start                       begin with the events that the segment still keeps
        after, after_position            instead: behind the event with this `id`, also when another reader gave it
                                         out; Events.position there, so that Events.lost is exact
        types, queues, jobs, job_types   lists: only events of these; "job.*" names all types that begin so
        tenant                           only of its jobs and workflows

        Errors: InvalidArgument (there is no such type, or no event's id), Closed.
        """
        if self._segment is None:
            raise errors.Closed("this queue is closed", code="closed", number=-16)
        return Events(self._segment, follow, choice)

    def _events_to_poll(self, choice: dict[str, Any]) -> Events:
        if self._segment is None:
            raise errors.Closed("this queue is closed", code="closed", number=-16)
        return Events(self._segment, True, choice, sleeps=False)

    def audit(self) -> list[dict[str, Any]]:
        """The violated invariants, each with its number and a text; empty when the segment is sound."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().audit))

    def configure(self, queue: str | None = None, *, max_depth: int | None = None,
                  max_size_bytes: int | None = None, paused: bool | None = None,
                  aging: dict[str, Any] | str | None = None, level_weights: dict[str, int] | None = None,
                  shards: int | None = None, tenant_fairness: dict[str, Any] | None = None,
                  strategy: str | None = None, warning_threshold: float | None = None,
                  clear_threshold: float | None = None, drop: str | None = None, tenant_max_depth: int | None = None,
                  tenant_max_size_bytes: int | None = None,
                  tenant_bounds: dict[str, dict[str, int]] | None = None,
                  retention: dict[str, str | int | None] | None = None) -> None:
        """Changes what is given, and makes the queue when it does not exist. 0 means unbounded.

        `strategy` is what a full queue does: "reject", "block" (a producer may wait, see submit) or "drop_oldest", by
        `drop` "oldest" or "lowest_priority". Fuller than `warning_threshold` (0 to 1) it warns, until it has
        fallen below that, or below a lower `clear_threshold`. `tenant_...` bound each tenant; `tenant_bounds` maps all
        that have their own to max_depth and max_size_bytes.

        `retention` maps "completed", "discarded" and "cancelled" to how long such jobs are kept after their end ("P7D",
        "1h", seconds), None: as the segment keeps them; a member that is not given stays as it is.

        `aging` has enabled, preset ("ojs", "qo"), interval, rate, and cap or floor, or is "default": the segment's;
        `level_weights` maps a priority (a number or a name, "*" for all others) to its turns, and is strict again when
        empty; `tenant_fairness` has enabled, scope ("within" a level, or "across" all), default_weight and weights, which
        maps a tenant (`meta.tenant_id`) to its turns.
        """
        settings = _abi.QueueSettings()
        for bit, member, value in ((_abi.QUEUE_MAX_DEPTH, "max_depth", max_depth),
                                   (_abi.QUEUE_MAX_SIZE_BYTES, "max_size_bytes", max_size_bytes)):
            if value is not None:
                setattr(settings, member, _abi.whole(value, member, 64))
                settings.set |= bit
        if paused is not None:
            settings.paused = int(paused)
            settings.set |= _abi.QUEUE_PAUSED
        order = {name: value for name, value in (("aging", aging), ("level_weights", level_weights), ("shards", shards),
                                                 ("tenant_fairness", tenant_fairness),
                                                 ("retention", retention)) if value is not None}
        bounds = {name: value for name, value in (("strategy", strategy), ("warning_threshold", warning_threshold),
                                                  ("clear_threshold", clear_threshold),
                                                  ("drop", drop), ("tenant_max_depth", tenant_max_depth),
                                                  ("tenant_max_size_bytes", tenant_max_size_bytes),
                                                  ("tenant_bounds", tenant_bounds)) if value is not None}
        if bounds:
            order["backpressure"] = bounds
        name = _abi.text_in(queue or self.queue, "queue")
        with self._admins.lent() as admin:
            if order:
                text = to_json(order)
                admin.call(library().configure_queue, name, text, len(text))
            if settings.set or not order:
                admin.call(library().set_queue, name, ctypes.byref(settings))

    def configure_default_aging(self, **aging: Any) -> None:
        """Ageing of all queues that have none of their own, now and later; segment_stats()["segment"]["aging"] reads it."""
        text = to_json({"aging": aging})
        with self._admins.lent() as admin:
            admin.call(library().configure_queue, None, text, len(text))

    def configure_pool(self, name: str, *, queues: Iterable[str], strategy: str = "round-robin",
                       weights: Mapping[str, int] | None = None, concurrency: int = 0, isolated: bool = False,
                       starvation_prevention: dict[str, Any] | None = None) -> bool:
        """Makes or changes a pool of workers, effective at once; true when it is new.

        `strategy` is "strict", "round-robin", "weighted" or "least-loaded"; `concurrency` bounds the active jobs of all its
        workers together (0: unlimited); an isolated pool's queues have jobs for its workers alone;
        `starvation_prevention` has the members enabled, rotation_interval and min_dispatch_ratio.
        """
        text = to_json({"queues": list(queues), "strategy": strategy, "weights": dict(weights or {}),
                        "concurrency": concurrency, "isolated": isolated,
                        "starvation_prevention": starvation_prevention or {}})
        with self._admins.lent() as admin:
            return bool(admin.call(library().set_pool, _abi.text_in(name, "pool"), text, len(text)))

    def remove_pool(self, name: str) -> None:
        """Its queues stay, open to all workers. Errors: NotFound."""
        with self._admins.lent() as admin:
            admin.call(library().remove_pool, _abi.text_in(name, "pool"))

    def limits(self) -> list[dict[str, Any]]:
        """The keys that have or had a limit, with the jobs that work and wait."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().limits))

    def limit(self, key: str) -> dict[str, Any]:
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().limit, _abi.text_in(key, "key")))

    def set_limit(self, key: str, *, concurrency: int | None = None, rate: dict[str, Any] | None = None,
                  throttle: dict[str, Any] | None = None, on_limit: str = "wait",
                  expires_at: Moment | None = None) -> None:
        """All limits of a key, in place of what jobs bring. The key stands on `queue:NAME`, `type:NAME`, `tenant:ID`, or on
        the jobs that bring it. `rate` has limit, period and window ("fixed", "sliding"), `throttle` limit, period and
        burst; `on_limit` is "wait", "reschedule" or "drop". It is taken back at `expires_at`, in whole seconds."""
        end = None
        if expires_at is not None:
            ms = unix_milliseconds(expires_at, "expires_at")
            end = datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc).isoformat()
        rule = {name: value for name, value in (("concurrency", concurrency), ("rate", rate), ("throttle", throttle),
                                                ("on_limit", on_limit), ("expires_at", end)) if value is not None}
        text = to_json(rule)
        with self._admins.lent() as admin:
            admin.call(library().set_limit, _abi.text_in(key, "key"), text, len(text))

    def clear_limit(self, key: str) -> None:
        with self._admins.lent() as admin:
            admin.call(library().clear_limit, _abi.text_in(key, "key"))

    def pause(self, queue: str | None = None) -> None:
        """A paused queue accepts jobs and gives none."""
        self.configure(queue, paused=True)

    def resume(self, queue: str | None = None) -> None:
        self.configure(queue, paused=False)

    def retry_dead(self, id: str) -> None:
        """A dead letter back to available, as if it were new. jobs(dead_letter=True) lists them."""
        with self._admins.lent() as admin:
            admin.call(library().dead_retry, _abi.text_in(id, "id"))

    def drop_dead(self, id: str) -> None:
        with self._admins.lent() as admin:
            admin.call(library().dead_drop, _abi.text_in(id, "id"))

    def drop(self, id: str) -> None:
        """Removes what is kept of a job that is completed, cancelled or discarded. Errors: NotFound, WrongState (it is not
        over, or its workflow runs and may ask for its result)."""
        with self._admins.lent() as admin:
            admin.call(library().drop, _abi.text_in(id, "id"))

    def set_maintenance(self, on: bool, reason: str = "", *, estimated_end: Moment | None = None) -> None:
        """While it is on, no process gets a job from any queue, no scheduled job or retry becomes available, and no cron
        fires; enqueues go on, and active jobs may end. segment_stats()["segment"]["maintenance"] reads it. `estimated_end`
        is told, and ends nothing. Errors: InvalidArgument (a reason of more than 256 bytes)."""
        with self._admins.lent() as admin:
            end_ms = 0 if estimated_end is None else unix_milliseconds(estimated_end, "estimated_end")
            admin.call(library().set_maintenance_until, int(on), _abi.text_in(reason, "reason"), end_ms)

    def set_dead_retention(self, *, max_age: Duration | None = None, max_count: int | None = None) -> None:
        """How long dead letters are kept since they were discarded, and how many of the segment, the oldest going first; 0:
        without limit, None: as it is. A new segment keeps 10,000 for 180 days; segment_stats()["segment"] reads both."""
        age = _abi.AS_IT_IS if max_age is None else milliseconds(max_age, "max_age", 63)
        count = _abi.AS_IT_IS if max_count is None else _abi.whole(max_count, "max_count", 63)
        with self._admins.lent() as admin:
            admin.call(library().set_dead_retention, age, count)

    def delete_queue(self, queue: str, *, discard: bool = False) -> int:
        """The queue loses its settings and is no longer listed, until a job or a setting makes it anew. With `discard` its
        unfinished jobs are discarded; returns how many. Errors: NotFound, WrongState (unfinished jobs)."""
        with self._admins.lent() as admin:
            return admin.call(library().delete_queue, _abi.text_in(queue, "queue"), int(discard))
