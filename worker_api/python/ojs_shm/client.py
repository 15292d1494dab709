# SPDX-License-Identifier: Apache-2.0
"""The blocking client: connect_sync(), Queue, Task."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import operator
import os
import select
import threading
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _abi, errors
from ._abi import library
from ._handles import Handle, Handles
from .accepted import Accepted, accepted
from .administration import Administration
from .crons import Crons
from .jobs import NOTHING, JobInfo, NewJob, to_json
from .middleware import Chain
from .on_full import OnFull, Unsent, unsent_of
from .priority import Priority
from .task import Task
from .times import Duration, in_pieces, milliseconds

if TYPE_CHECKING:
    from .prepared import Prepared
    from .proxy import Proxy
    from .worker import Worker


def connect_sync(name: str | None = None, *, dir: str | None = None, queue: str = "default",
                 on_full: OnFull | None = None) -> Queue:
    """Attaches to the living segment DIR/ojs-shm.NAME (else OJS_SHM_DIR and OJS_SHM_NAME, else /dev/shm and default).

    Errors: InvalidArgument (the name), CannotAttach, OtherFormat, PermissionDenied, SegmentFull, InUse (its lock file is
    gone, and a process lives in it).
    """
    return Queue(name, dir=dir, queue=queue, on_full=on_full)


class Queue(Administration, Crons):
    """A connection to a segment: puts jobs in, asks about them, changes and cancels them. Thread-safe.

    `queue` is where jobs go that name none; every queue of the segment can be reached. `on_full` says what submit() does
    before it raises QueueFull or SegmentFull; None: nothing. It does not hold for a submit with `block_timeout`.
    """

    def __init__(self, name: str | None = None, *, dir: str | None = None, queue: str = "default",
                 on_full: OnFull | None = None) -> None:
        lib = library()
        self.queue = queue
        self._segment: int | None = lib.open(lib.segment_attach, _abi.text_in(name, "name"),
                                             _abi.text_in(dir, "dir"))
        self.on_full = on_full
        #: Around submit() and submit_many(): each a function of a NewJob and `next`, see Chain.
        self.middleware = Chain()
        self._first: int | None = None  # of the producers that share circuits and buffer
        self._producers = Handles("queue", self._open_producer)
        self._plain_producers = Handles("queue", lambda: lib.open(lib.producer_open, self._segment))  # without on_full
        self._observers = Handles("queue", lambda: lib.open(lib.observer_open, self._segment))
        self._room = Handles("queue", lambda: lib.open(lib.proxy_open, self._segment))
        self._admins = Handles("queue", lambda: lib.open(lib.admin_open, self._segment))
        self._workers: list[Handles] = []
        self._proxies: list[Handles] = []
        self._names: dict[str, int] = {}
        self.convention = lib.read_text(self._segment, lib.segment_convention, self._segment)
        self.path = lib.read_text(self._segment, lib.segment_path, self._segment)

    # --- Submitting ---------------------------------------------------------------------------------------------------

    def submit(self, type: str, input: Any = NOTHING, *, block_timeout: Duration = 0, **options: Any) -> Task | None:
        """Puts one job in; on return it survives the death of every process. `options` are the members of NewJob.
        `block_timeout`: how long to wait for room in a full queue whose strategy is block. None: a middleware dropped it.

        Errors: InvalidArgument, TooLarge, QueueFull, SegmentFull, Duplicate, Closed; nothing is stored then. TimedOut:
        another process was enqueueing a job with the same id and has stopped or died: try again. Or a stopped process has
        its unique key in hand, or changes a limit; then nothing is stored.
        """
        job = self.middleware._pass(self._complete(NewJob(type, input, **options)))
        if job is None:
            return None
        return Task(self, self._submit_within([job], block_timeout)[0] if block_timeout else self._submit(job))

    def submit_many(self, jobs: Iterable[NewJob], *, block_timeout: Duration = 0) -> list[Task | None]:
        """All or none, in any queues; `block_timeout` as for submit(), until there is room for all of them. Each passes the
        middlewares by itself: None stands for one that was dropped, and an error refuses them all."""
        passed = [self.middleware._pass(self._complete(each)) for each in jobs]
        kept = [each for each in passed if each is not None]
        if passed and not kept:
            return [None for _ in passed]
        taken = iter(self._submit_within(kept, block_timeout) if block_timeout else self._submit_many(kept))
        return [None if each is None else Task(self, next(taken)) for each in passed]

    def prepare(self, type: str, **options: Any) -> Prepared:
        """Jobs that are alike but for input and priority: what they have in common is checked here, once. `options` are the
        members of NewJob. With no more than queue, priority, retry, timeout and lease all is checked, and the queue is made
        if need be; else queue and times are checked at each submit(). Errors: InvalidArgument, SegmentFull, Closed."""
        from .prepared import Prepared
        return Prepared(self, self._complete(NewJob(type, **options)))

    def _complete(self, job: NewJob) -> NewJob:
        """As middlewares see it: with the queue that it goes to."""
        return job if job.queue is not None else dataclasses.replace(job, queue=self.queue)

    def _open_producer(self) -> int:
        if self.on_full is None:
            return library().open(library().producer_open, self._segment)
        made = self.on_full._open(self._segment, self._first)
        self._first = self._first or made
        return made

    def _submit(self, job: NewJob, producers: Handles | None = None) -> Accepted:
        spec, id = _abi.JobSpec(), ctypes.create_string_buffer(_abi.ID_SIZE)
        kept = job._struct(spec, self.priority(job.priority), self.queue, _now_ms())
        with (producers or self._producers).lent() as producer:
            code = producer.call(library().enqueue, ctypes.byref(spec), id)
            del kept  # the struct pointed into it until here
            return accepted([job], id, code, producer)[0]

    def _submit_many(self, jobs: Sequence[NewJob], producers: Handles | None = None) -> list[Accepted]:
        specs, kept = self._specs(jobs)
        ids = ctypes.create_string_buffer(max(1, len(specs) * _abi.ID_SIZE))
        with (producers or self._producers).lent() as producer:
            code = producer.call(library().enqueue_batch, specs, len(specs), ids)
            del kept
            return accepted(jobs, ids, code, producer)

    def _submit_within(self, jobs: Sequence[NewJob], block_timeout: Duration) -> list[Accepted]:
        specs, kept = self._specs(jobs)
        ids = ctypes.create_string_buffer(max(1, len(specs) * _abi.ID_SIZE))
        wait_ms = milliseconds(block_timeout, "block_timeout", 53)
        if jobs and threading.current_thread() is threading.main_thread() and self._has_room_handle():
            return self._await_room(jobs, specs, wait_ms, ids)
        with self._producers.lent() as producer:
            code = producer.call(library().enqueue_within, specs, len(specs), wait_ms, ids)
            del kept
            return accepted(jobs, ids, code, producer)

    def _has_room_handle(self) -> bool:
        try:
            with self._room.lent():
                return True
        except errors.SegmentFull:  # no handle is left for it
            return False

    def _await_room(self, jobs: Sequence[NewJob], specs: Any, wait_ms: int, ids: Any) -> list[Accepted]:
        """As enqueue_within, but it is Python that waits: Ctrl-C and handlers of signals come through, and the place in line
        is kept all the time."""
        lib, pointer, tag = library(), ctypes.c_void_p(), ctypes.c_uint64()
        with self._room.lent() as proxy:
            bell = proxy.call(lib.proxy_enqueue_begin, specs, len(specs), wait_ms, 0, ctypes.byref(pointer))
            waiting, rings = Handle(pointer.value), select.poll()
            rings.register(bell, select.POLLIN)
            try:
                while True:
                    try:
                        return accepted(jobs, ids, waiting.call(lib.enqueue_poll, ids), waiting, waited=True)
                    except errors.Empty:
                        rings.poll()
                    with contextlib.suppress(BlockingIOError):
                        os.eventfd_read(bell)
                    proxy.call(lib.proxy_take_decided, ctypes.byref(tag), 1)
            finally:
                lib.close(waiting.pointer)

    def _specs(self, jobs: Sequence[NewJob]) -> tuple[Any, list[Any]]:
        """The array of structs, and what must live as long as it."""
        specs, now = (_abi.JobSpec * len(jobs))(), _now_ms()
        kept = []
        for spec, job in zip(specs, jobs):
            spec.struct_size = ctypes.sizeof(spec)
            kept.append(job._struct(spec, self.priority(job.priority), self.queue, now))
        return specs, kept

    # --- The local buffer of OnFull -----------------------------------------------------------------------------------

    def flush(self, timeout: Duration | None = None) -> None:
        """Until nothing in the buffer waits to be brought. Errors: TimedOut (`depth` jobs are left), Closed."""
        if self._buffers:
            with self._producers.lent() as producer:
                in_pieces(lambda piece_ms: producer.call(library().flush, piece_ms),
                          -1 if timeout is None else milliseconds(timeout, "timeout", 53))

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
        """Until it is finished. Errors: NotFound, TimedOut, CannotAttach (the segment's file is gone)."""
        wait_ms = -1 if timeout is None else milliseconds(timeout, "timeout", 53)
        return in_pieces(lambda piece_ms: self._ask(library().wait, id, piece_ms), wait_ms)

    def result(self, id: str, timeout: Duration | None = None) -> Any:
        """Waits and returns what its handler returned. Errors: JobFailed, JobCancelled, ResultPruned, and those of
        wait()."""
        return self.wait(id, timeout).outcome()

    def cancel(self, id: str) -> JobInfo:
        """The handler of an active job is told. Errors: NotFound, WrongState (finished)."""
        return self._ask(library().cancel, id)

    def reprioritize(self, id: str, priority: int | str) -> int:
        """Changes an available or scheduled job; returns the previous priority.

        Errors: InvalidArgument, NotFound, WrongState (also where priorities are immutable), SegmentFull.
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

    def promote(self, id: str) -> None:
        """scheduled or retryable -> available now, before its time. Errors: NotFound, WrongState."""
        with self._producers.lent() as producer:
            producer.call(library().promote, _abi.text_in(id, "id"))

    def retry(self, id: str) -> None:
        """discarded or cancelled -> available, as if it had never been tried.

        Errors: NotFound, WrongState, Duplicate (it is unique, and another job has its key).
        """
        with self._producers.lent() as producer:
            producer.call(library().retry_job, _abi.text_in(id, "id"))

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
        """For jobs of this type that any process submits without one from now on; None: the convention's again."""
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

    # --- Workflows ----------------------------------------------------------------------------------------------------

    def create_workflow(self, workflow: Mapping[str, Any]) -> str:
        """All of its jobs or none, in the words of docs/workflows.md: {"type": "chain", "steps": [...]}; its id. Errors:
        InvalidArgument (`subject` is the place, such as "$.steps[2].args"), TooLarge, QueueFull, SegmentFull, Duplicate (its
        id, or a unique key of its jobs, is taken), TimedOut."""
        text, made = to_json(workflow), ctypes.create_string_buffer(37)
        with self._producers.lent() as producer:
            producer.call(library().create_workflow, text, len(text), made)
        return made.value.decode()

    def cancel_workflow(self, id: str) -> None:
        """Cancels all of its jobs that have not begun; active ones may end. Errors: NotFound, WrongState."""
        with self._producers.lent() as producer:
            producer.call(library().cancel_workflow, _abi.text_in(id, "id"))

    def workflow(self, id: str) -> dict[str, Any]:
        """How it stands, with the state of each part. Errors: NotFound."""
        with self._observers.lent() as observer:
            return json.loads(observer.text(library().workflow, _abi.text_in(id, "id")))

    def workflows(self, state: str | None = None, tenant: str | None = None) -> list[dict[str, Any]]:
        """The newest first, 1,000 at most, of that state ("running", "completed", "failed" or "cancelled"); of these, those
        all of whose jobs are the tenant's."""
        with self._observers.lent() as observer:
            all_of_them = json.loads(observer.text(library().workflows, _abi.text_in(state, "state")))
        return [each for each in all_of_them if tenant is None or each.get("tenant_id") == tenant]

    # --- Workers and the end ------------------------------------------------------------------------------------------

    def worker(self, **options: Any) -> Worker:
        """A worker on this connection; the options are those of Worker."""
        from .worker import Worker
        return Worker(self, **options)

    def proxy(self) -> Proxy:
        """Works for many clients by the ids of their jobs. Ends with this connection at the latest."""
        from .proxy import Proxy
        return Proxy(self)

    def _proxy_handles(self) -> Handles:
        made = Handles("proxy", lambda: library().open(library().proxy_open, self._segment))
        self._proxies = [*(each for each in self._proxies if not each.closed), made]
        return made

    def _worker_handles(self, queues: Iterable[str] | Mapping[str, int], lease: Duration | None,
                        spin: Duration, pool: str | None = None, id: str | None = None,
                        labels: Mapping[str, Any] | None = None, concurrency: int = 0) -> Handles:
        if isinstance(queues, str):
            queues = (queues,)
        named = [_abi.text_in(each, "queue") for each in queues]
        options = _abi.WorkerOptions()
        if isinstance(queues, Mapping):
            weights = [_abi.whole(each, "weights", 32) for each in queues.values()]
            options.weights, options.flags = (ctypes.c_uint32 * max(1, len(weights)))(*weights), _abi.WORKER_WEIGHTED
        options.queues, options.queue_count = (ctypes.c_char_p * max(1, len(named)))(*named), len(named)
        options.lease_ms = 0 if lease is None else max(1, milliseconds(lease, "lease"))
        options.pool = None if pool is None else _abi.text_in(pool, "pool")
        options.id = None if id is None else _abi.text_in(id, "id")
        options.labels = None if labels is None else to_json(dict(labels))
        options.total_concurrency = _abi.whole(concurrency, "concurrency", 32)
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
        for handles in (*self._workers, *self._proxies, self._room, self._plain_producers, self._producers, self._observers,
                        self._admins):
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
