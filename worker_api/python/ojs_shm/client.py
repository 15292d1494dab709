# SPDX-License-Identifier: Apache-2.0
"""The blocking client: connect_sync(), Queue, Task."""

from __future__ import annotations

import ctypes
import json
import operator
import time
import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from . import _abi, errors
from ._abi import library
from ._handles import Handles
from .events import Events
from .jobs import (NOTHING, Duration, JobInfo, NewJob, QueueStats, milliseconds, state_number, stats_of,
                   to_json)
from .on_full import OnFull, Unsent, unsent_of
from .priority import Priority
from .task import Task

if TYPE_CHECKING:
    from .worker import Worker


def connect_sync(name: str | None = None, *, dir: str | None = None, queue: str = "default",
                 on_full: OnFull | None = None) -> Queue:
    """Attaches to the living segment DIR/ojs-shm.NAME (else OJS_SHM_DIR and OJS_SHM_NAME, else /dev/shm and default).

    Errors: CannotAttach, OtherFormat, PermissionDenied, SegmentFull.
    """
    return Queue(name, dir=dir, queue=queue, on_full=on_full)


class Queue:
    """A connection to a segment: puts jobs in, asks about them, changes and cancels them. Thread-safe.

    `queue` is where jobs go that name none; every queue of the segment can be reached. `on_full` says what submit() does
    before it raises QueueFull or SegmentFull; None: nothing.
    """

    def __init__(self, name: str | None = None, *, dir: str | None = None, queue: str = "default",
                 on_full: OnFull | None = None) -> None:
        lib = library()
        self.queue = queue
        self._segment: int | None = lib.open(lib.segment_attach, _abi.text_in(name, "name"),
                                             _abi.text_in(dir, "dir"))
        self.on_full = on_full
        self._first: int | None = None  # of the producers that share circuits and buffer
        self._producers = Handles("queue", self._open_producer)
        self._observers = Handles("queue", lambda: lib.open(lib.observer_open, self._segment))
        self._admins = Handles("queue", lambda: lib.open(lib.admin_open, self._segment))
        self._workers: list[Handles] = []
        self._names: dict[str, int] = {}
        self.convention = lib.read_text(self._segment, lib.segment_convention, self._segment)
        self.path = lib.read_text(self._segment, lib.segment_path, self._segment)

    # --- Submitting ---------------------------------------------------------------------------------------------------

    def submit(self, type: str, input: Any = NOTHING, *, block_timeout: Duration = 0, **options: Any) -> Task:
        """Puts one job in; on return it survives the death of every process. `options` are the members of NewJob.
        `block_timeout`: how long to wait for room in a full queue whose strategy is block.

        Errors: InvalidArgument, TooLarge, QueueFull, SegmentFull, Duplicate, Closed; nothing is stored then. TimedOut:
        another process stands still in the middle of bringing the same id, or has died of it: ask again.
        """
        job = NewJob(type, input, **options)
        if block_timeout:
            return Task(self, self._submit_within([job], block_timeout)[0])
        return Task(self, *self._submit(job))

    def submit_many(self, jobs: Iterable[NewJob], *, block_timeout: Duration = 0) -> list[Task]:
        """All or none, in this order; `block_timeout` as for submit(), until there is room for all of them."""
        if block_timeout:
            return [Task(self, id) for id in self._submit_within(jobs, block_timeout)]
        ids, buffered = self._submit_many(jobs)
        return [Task(self, id, buffered) for id in ids]

    def _open_producer(self) -> int:
        if self.on_full is None:
            return library().open(library().producer_open, self._segment)
        made = self.on_full._open(self._segment, self._first)
        self._first = self._first or made
        return made

    def _submit(self, job: NewJob) -> tuple[str, bool]:
        spec, id = _abi.JobSpec(), ctypes.create_string_buffer(_abi.ID_SIZE)
        kept = job._struct(spec, self.priority(job.priority), self.queue, _now_ms())
        with self._producers.lent() as producer:
            code = producer.call(library().enqueue, ctypes.byref(spec), id)
        del kept  # the struct pointed into it until here
        return id.value.decode(), code == _abi.BUFFERED

    def _submit_many(self, jobs: Iterable[NewJob]) -> tuple[list[str], bool]:
        specs, kept = self._specs(jobs)
        ids = ctypes.create_string_buffer(max(1, len(specs) * _abi.ID_SIZE))
        with self._producers.lent() as producer:
            code = producer.call(library().enqueue_batch, specs, len(specs), ids)
        del kept
        return _abi.ids_of(ids, len(specs)), code == _abi.BUFFERED

    def _submit_within(self, jobs: Iterable[NewJob], block_timeout: Duration) -> list[str]:
        specs, kept = self._specs(jobs)
        ids = ctypes.create_string_buffer(max(1, len(specs) * _abi.ID_SIZE))
        with self._producers.lent() as producer:
            producer.call(library().enqueue_within, specs, len(specs),
                          milliseconds(block_timeout, "block_timeout", 53), ids)
        del kept
        return _abi.ids_of(ids, len(specs))

    def _specs(self, jobs: Iterable[NewJob]) -> tuple[Any, list[Any]]:
        """The array of structs, and what must live as long as it."""
        listed = list(jobs)
        specs, now = (_abi.JobSpec * len(listed))(), _now_ms()
        kept = []
        for spec, job in zip(specs, listed):
            spec.struct_size = ctypes.sizeof(spec)
            kept.append(job._struct(spec, self.priority(job.priority), self.queue, now))
        return specs, kept

    # --- The local buffer of OnFull -----------------------------------------------------------------------------------

    def flush(self, timeout: Duration | None = None) -> None:
        """Until nothing in the buffer waits to be brought. Errors: TimedOut (`depth` jobs are left), Closed."""
        if self._buffers:
            with self._producers.lent() as producer:
                producer.call(library().flush, -1 if timeout is None else milliseconds(timeout, "timeout", 53))

    def take_failed(self) -> list[Unsent]:
        """Jobs that the buffer tried to bring and that were refused for good. They count against its bounds until taken."""
        return self._unsent(library().take_failed)

    @property
    def _buffers(self) -> bool:
        return self.on_full is not None and self.on_full.buffer > 0

    def _unsent(self, entry: Any) -> list[Unsent]:
        if not self._buffers:
            return []
        with self._producers.lent() as producer:
            return unsent_of(producer.text(entry))

    # --- One job ------------------------------------------------------------------------------------------------------

    def get(self, id: str) -> JobInfo:
        """Errors: NotFound."""
        return self._ask(library().get, id)

    def wait(self, id: str, timeout: Duration | None = None) -> JobInfo:
        """Until it is finished. Errors: NotFound, TimedOut."""
        return self._ask(library().wait, id, -1 if timeout is None else milliseconds(timeout, "timeout", 53))

    def result(self, id: str, timeout: Duration | None = None) -> Any:
        """Waits and returns what its handler returned. Errors: JobFailed, JobCancelled, NotFound, TimedOut."""
        return self.wait(id, timeout).outcome()

    def cancel(self, id: str) -> JobInfo:
        """The handler of an active job is told. Errors: NotFound, WrongState (finished)."""
        return self._ask(library().cancel, id)

    def reprioritize(self, id: str, priority: int | str) -> int:
        """Changes an available or scheduled job; returns the previous priority.

        Errors: InvalidArgument, NotFound, WrongState (also where the convention makes priorities immutable).
        """
        previous, number = ctypes.c_int64(), self.priority(priority)
        if number is None:
            raise TypeError("reprioritize needs a priority")
        with self._producers.lent() as producer:
            producer.call(library().reprioritize, _abi.text_in(id, "id"), number, ctypes.byref(previous))
        return previous.value

    def activate(self, id: str) -> None:
        """pending -> available. Errors: NotFound, WrongState."""
        with self._producers.lent() as producer:
            producer.call(library().activate, _abi.text_in(id, "id"))

    def _ask(self, entry: Any, id: str, *arguments: Any) -> JobInfo:
        with self._producers.lent() as producer:
            return JobInfo(json.loads(producer.text(entry, _abi.text_in(id, "id"), *arguments)))

    # --- Priorities ---------------------------------------------------------------------------------------------------

    def priority(self, value: int | str | None) -> int | None:
        """A number as it is, a name or a Priority as this segment's number for it, None as None."""
        if value is None:
            return None
        if isinstance(value, Priority):
            return int(value) if self.convention == "qo" else self._by_name(value.name.lower())
        if isinstance(value, str):
            return self._by_name(value.lower())
        if isinstance(value, bool):
            raise TypeError("a priority is a number or a name, not a bool")
        number = operator.index(value)
        if not -1 << 63 <= number < 1 << 63:  # then the library cannot be asked, and says what it would say
            bounds = self.segment_stats()["segment"]["priority"]
            raise errors.InvalidArgument(f"priority {number} is out of range: the minimum is {bounds['min']} and the "
                                         f"maximum is {bounds['max']}", code="invalid", number=-2, subject="priority",
                                         bound=bounds["max"])
        return number

    def _by_name(self, name: str) -> int:
        if name not in self._names:
            number = ctypes.c_int64()
            with self._observers.lent() as observer:
                observer.call(library().priority_by_name, _abi.text_in(name, "priority"), ctypes.byref(number))
            self._names[name] = number.value
        return self._names[name]

    def set_default_priority(self, type: str, priority: int | str | None) -> None:
        """For jobs of this type that are submitted without one, by anybody from now on; None: the convention's again."""
        name, number = _abi.text_in(type, "type"), self.priority(priority)
        with self._admins.lent() as admin:
            numbers = [] if number is None else [number]
            admin.call(library().set_default_priority if numbers else library().clear_default_priority, name, *numbers)

    def default_priority(self, type: str) -> int | None:
        """None when the type has none of its own."""
        number = ctypes.c_int64()
        try:
            with self._observers.lent() as observer:
                observer.call(library().default_priority, _abi.text_in(type, "type"), ctypes.byref(number))
        except errors.NotFound:
            return None
        return number.value

    # --- Queues and the segment ---------------------------------------------------------------------------------------

    def stats(self, queue: str | None = None) -> QueueStats:
        """Errors: NotFound for a queue that nobody has used."""
        with self._observers.lent() as observer:
            return stats_of(json.loads(observer.text(library().queue, _abi.text_in(queue or self.queue, "queue"))))

    def queues(self) -> list[QueueStats]:
        with self._observers.lent() as observer:
            return [stats_of(each) for each in json.loads(observer.text(library().queues))]

    def segment_stats(self) -> dict[str, Any]:
        """Options, pools, processes and totals of the whole segment."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().stats))

    def jobs(self, *, queue: str | None = None, type: str | None = None, state: str | None = None,
             dead_letter: bool = False, limit: int = 0) -> list[JobInfo]:
        """Available ones in the order of fetching (with weights: level by level), then the others by time. limit 0: all."""
        wanted = _abi.JobFilter()
        wanted.queue, wanted.type = _abi.text_in(queue, "queue"), _abi.text_in(type, "type")
        wanted.limit = _abi.whole(limit, "limit", 64)
        if state is not None:
            wanted.state, wanted.flags = state_number(state), _abi.FILTER_HAS_STATE
        if dead_letter:
            wanted.flags |= _abi.FILTER_DEAD_LETTER
        with self._observers.lent() as observer:
            return [JobInfo(each) for each in json.loads(observer.text(library().list, ctypes.byref(wanted)))]

    def pools(self) -> list[dict[str, Any]]:
        """Pools of workers, as they are set and what they have in hand."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().pools))

    def pool(self, name: str) -> dict[str, Any]:
        """Errors: NotFound."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().pool, _abi.text_in(name, "pool")))

    def scheduling(self) -> dict[str, Any]:
        """`queues`, with `name`, `dispatch_count_1m`, `dispatch_ratio_1m`, `avg_wait_ms` and `active_jobs` of each, and the
        `window`: what was handed out in the last minute."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().scheduling))

    def waits(self) -> list[dict[str, Any]]:
        """By queue and priority, how long jobs waited between becoming available and being handed out: `count`, `sum_ms`,
        and `up_to_ms`, which maps a bound to how many waited no longer."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().waits))

    def set_events(self, on: bool) -> None:
        """Whether every handle of the segment, of whatever process, tells what it does from now on."""
        with self._admins.lent() as admin:
            admin.call(library().set_events, int(on))

    def events(self, *, from_start: bool = False, follow: bool = True) -> Events:
        """What happens in the segment, once set_events(True) has been called; see Events."""
        if self._segment is None:
            raise errors.Closed("this queue is closed", code="closed", number=-16)
        return Events(self._segment, from_start, follow)

    def audit(self) -> list[dict[str, Any]]:
        """The violated invariants, each with its number and a text; empty when the segment is sound."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().audit))

    def configure(self, queue: str | None = None, *, max_depth: int | None = None,
                  max_size_bytes: int | None = None, paused: bool | None = None,
                  aging: dict[str, Any] | str | None = None, level_weights: dict[str, int] | None = None,
                  shards: int | None = None, tenant_fairness: dict[str, Any] | None = None,
                  strategy: str | None = None, warning_threshold: float | None = None,
                  drop: str | None = None, tenant_max_depth: int | None = None, tenant_max_size_bytes: int | None = None,
                  tenant_bounds: dict[str, dict[str, int]] | None = None) -> None:
        """Changes what is given, and makes the queue when it does not exist. 0 means unbounded.

        `strategy` is what a full queue does: "reject", "block" (a producer may wait, see submit) or "drop_oldest", by
        `drop` "oldest" or "lowest_priority". Fuller than `warning_threshold` (0 to 1) it warns. `tenant_...` bound each
        tenant; `tenant_bounds` maps all that have their own to max_depth and max_size_bytes.

        `aging` has enabled, preset ("ojs", "qo"), interval, rate, and cap or floor, or is "default": the segment's;
        `level_weights` maps a priority (a number or a name, "*" for all others) to its turns, and is strict again when
        empty; `tenant_fairness` has enabled, default_weight and weights, which maps a tenant (`meta.tenant_id`) to its turns.
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
                                                 ("tenant_fairness", tenant_fairness)) if value is not None}
        bounds = {name: value for name, value in (("strategy", strategy), ("warning_threshold", warning_threshold),
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
        """Its queues stay, open to everybody. Errors: NotFound."""
        with self._admins.lent() as admin:
            admin.call(library().remove_pool, _abi.text_in(name, "pool"))

    def limits(self) -> list[dict[str, Any]]:
        """The keys that have or had a limit, with who works and who waits."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().limits))

    def limit(self, key: str) -> dict[str, Any]:
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().limit, _abi.text_in(key, "key")))

    def set_limit(self, key: str, *, concurrency: int | None = None, rate: dict[str, Any] | None = None,
                  throttle: dict[str, Any] | None = None, on_limit: str = "wait") -> None:
        """All limits of a key, in place of what jobs bring. The key stands on `queue:NAME`, `type:NAME`, `tenant:ID`, or on
        the jobs that bring it. `rate` has limit, period and window ("fixed", "sliding"), `throttle` limit, period and
        burst; `on_limit` is "wait", "reschedule" or "drop"."""
        rule = {name: value for name, value in (("concurrency", concurrency), ("rate", rate), ("throttle", throttle),
                                                ("on_limit", on_limit)) if value is not None}
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

    # --- Workers and the end ------------------------------------------------------------------------------------------

    def worker(self, **options: Any) -> Worker:
        """A worker on this connection; the options are those of Worker."""
        from .worker import Worker
        return Worker(self, **options)

    def _worker_handles(self, queues: Iterable[str] | Mapping[str, int], lease: Duration | None,
                        spin: Duration, pool: str | None = None) -> Handles:
        named = [_abi.text_in(each, "queue") for each in queues]
        options = _abi.WorkerOptions()
        if isinstance(queues, Mapping):
            weights = [_abi.whole(each, "weights", 32) for each in queues.values()]
            options.weights, options.flags = (ctypes.c_uint32 * max(1, len(weights)))(*weights), _abi.WORKER_WEIGHTED
        options.queues, options.queue_count = (ctypes.c_char_p * max(1, len(named)))(*named), len(named)
        options.lease_ms = 0 if lease is None else max(1, milliseconds(lease, "lease"))
        options.pool = None if pool is None else _abi.text_in(pool, "pool")
        options.spin_us = _abi.whole(round(milliseconds(spin, "spin") * 1000), "spin", 32)
        lib = library()
        made = Handles("worker", lambda: lib.open(lib.worker_open, self._segment, ctypes.byref(options)))
        self._workers = [*(each for each in self._workers if not each.closed), made]
        return made

    def close(self) -> list[Unsent]:
        """Detaches. Workers of this connection end as well: what they still hold goes back to the front. Returns what the
        local buffer has not sent; flush() first to wait for it."""
        unsent = [] if self._producers.closed else self._unsent(library().close_buffer)
        for workers in self._workers:
            workers.interrupt()
        for handles in (*self._workers, self._producers, self._observers, self._admins):
            handles.close()
        segment, self._segment = self._segment, None
        if segment is not None:
            library().close(segment)
        return unsent

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, *_: object) -> None:
        if unsent := self.close():
            warnings.warn(f"{len(unsent)} jobs in the local buffer were not sent: {unsent[-1].error}", ResourceWarning,
                          stacklevel=2)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
