# SPDX-License-Identifier: Apache-2.0
"""The asyncio client: connect(), AsyncQueue, AsyncTask.

Entries of the library that only touch shared memory take microseconds and are called in the loop's own thread. What
walks the whole segment goes to a thread, and all waiting for results is done by one thread for each connection.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any

from . import _abi, errors
from .accepted import Accepted
from .client import Queue
from .events import LOOK
from .aio_bell import Bell
from .aio_room import Room
from .jobs import NOTHING, JobInfo, NewJob
from .middleware import Chain
from .on_full import OnFull, Unsent
from .queue_stats import QueueStats
from .times import Duration, Moment, milliseconds

if TYPE_CHECKING:
    from .aio_worker import AsyncWorker

#: How long the waiting thread sleeps on one job before it looks at all of them, in seconds.
_TURN = 0.01


async def connect(name: str | None = None, *, dir: str | None = None, queue: str = "default",
                  on_full: OnFull | None = None) -> AsyncQueue:
    """Attaches to the living segment DIR/ojs-shm.NAME (else OJS_SHM_DIR and OJS_SHM_NAME, else /dev/shm and default).

    Errors: InvalidArgument (the name), CannotAttach, OtherFormat, PermissionDenied, SegmentFull, InUse (its lock file is
    gone, and a process lives in it).
    """
    return AsyncQueue(Queue(name, dir=dir, queue=queue, on_full=on_full))


class AsyncQueue:
    """A connection to a segment for one event loop. Its methods are those of Queue, to be awaited; what it lacks is
    `sync`'s, whose calls do not wait."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._watcher = _Watcher(queue)
        self._bell = Bell(queue)
        self._room = Room(queue, self._bell)
        #: Around submit() and submit_many(): functions of a NewJob and `next`, to be awaited; not those of `sync`.
        self.middleware = Chain()

    @property
    def sync(self) -> Queue:
        """The blocking client of the same connection, for other threads."""
        return self._queue

    @property
    def convention(self) -> str:
        return self._queue.convention

    async def submit(self, type: str, input: Any = NOTHING, *, block_timeout: Duration = 0,
                     **options: Any) -> AsyncTask | None:
        """Puts one job in; on return it survives the death of every process. `options` are the members of NewJob.
        `block_timeout`: how long to wait for room in a full queue whose strategy is block. None: a middleware dropped it.
        A task that is cancelled meanwhile leaves nothing behind; only where `on_full` has retries and a breaker or a buffer,
        its job may still come.

        Errors: InvalidArgument, TooLarge, QueueFull, SegmentFull, Duplicate, Closed; nothing is stored then. TimedOut:
        another process was enqueueing a job with the same id and has stopped or died: try again. Or a stopped process has
        its unique key in hand, or changes a limit; then nothing is stored.
        """
        job = await self.middleware._pass_async(self._queue._complete(NewJob(type, input, **options)))
        if job is None:
            return None
        if block_timeout:
            return AsyncTask(self, (await self._room.submit([job], block_timeout))[0])
        return AsyncTask(self, await self._patiently(self._queue._submit, job))

    async def submit_many(self, jobs: Iterable[NewJob], *, block_timeout: Duration = 0) -> list[AsyncTask | None]:
        """All or none, in any queues; `block_timeout` as for submit(), until there is room for all of them. Each passes the
        middlewares by itself: None stands for one that was dropped, and an error refuses them all."""
        passed = [await self.middleware._pass_async(self._queue._complete(each)) for each in jobs]
        kept = [each for each in passed if each is not None]
        if passed and not kept:
            return [None for _ in passed]
        taken = iter(await self._room.submit(kept, block_timeout) if block_timeout else
                     await self._patiently(self._queue._submit_many, kept))
        return [None if each is None else AsyncTask(self, next(taken)) for each in passed]

    async def _patiently(self, submit: Any, what: Any) -> Any:
        """A submit that pauses between its retries does so here, where it may be cancelled; in a thread if the library has a
        circuit or a buffer to look after meanwhile."""
        on_full = self._queue.on_full
        if on_full is None or on_full.retries == 0:
            return submit(what)
        if on_full.breaker or on_full.buffer:
            return await asyncio.to_thread(submit, what)
        pauses = on_full._pauses()
        while True:
            try:
                return submit(what, self._queue._plain_producers)
            except (errors.QueueFull, errors.SegmentFull) as error:
                pause = next(pauses, None)
                too_large = isinstance(what, list) and error.unit == "jobs" and len(what) > error.bound > 0
                if pause is None or too_large:
                    raise
            await asyncio.sleep(pause)

    async def flush(self, timeout: Duration | None = None) -> None:
        """Until nothing in the buffer waits to be brought. Errors: TimedOut (`depth` jobs are left), Closed."""
        await asyncio.to_thread(self._queue.flush, timeout)

    async def take_failed(self) -> list[Unsent]:
        """Jobs that the buffer tried to bring and that were refused for good."""
        return self._queue.take_failed()

    async def get(self, id: str) -> JobInfo:
        return self._queue.get(id)

    async def wait(self, id: str, timeout: Duration | None = None) -> JobInfo:
        """Until it is finished. Errors: NotFound, TimedOut, CannotAttach (the segment's file is gone)."""
        _abi.text_in(id, "id")  # a wrong id is refused here, not in the thread that waits
        finished = self._watcher.watch(id)
        try:
            async with asyncio.timeout(None if timeout is None else milliseconds(timeout, "timeout", 53) / 1000):
                return await finished
        except TimeoutError as error:
            if isinstance(error, errors.OjsError):
                raise
            raise errors.TimedOut(f"job {id} was not finished in time", code="timeout", number=-14) from None
        finally:
            self._watcher.forget(id, finished)

    async def result(self, id: str, timeout: Duration | None = None) -> Any:
        """Waits and returns what its handler returned. Errors: JobFailed, JobCancelled, ResultPruned, and those of
        wait()."""
        return (await self.wait(id, timeout)).outcome()

    async def cancel(self, id: str) -> JobInfo:
        return self._queue.cancel(id)

    async def reprioritize(self, id: str, priority: int | str) -> int:
        return self._queue.reprioritize(id, priority)

    async def activate(self, id: str) -> None:
        self._queue.activate(id)

    async def promote(self, id: str) -> None:
        self._queue.promote(id)

    async def retry(self, id: str) -> None:
        self._queue.retry(id)

    async def cancel_all(self, **filter: Any) -> int:
        return await asyncio.to_thread(lambda: self._queue.cancel_all(**filter))

    async def clear(self, queue: str | None = None) -> int:
        return await asyncio.to_thread(self._queue.clear, queue)

    async def promote_all(self, **filter: Any) -> int:
        return await asyncio.to_thread(lambda: self._queue.promote_all(**filter))

    async def retry_all(self, **filter: Any) -> int:
        return await asyncio.to_thread(lambda: self._queue.retry_all(**filter))

    async def retry_all_dead(self, **filter: Any) -> int:
        return await asyncio.to_thread(lambda: self._queue.retry_all_dead(**filter))

    async def drop_all_dead(self, **filter: Any) -> int:
        return await asyncio.to_thread(lambda: self._queue.drop_all_dead(**filter))

    async def set_default_priority(self, type: str, priority: int | str | None) -> None:
        self._queue.set_default_priority(type, priority)

    async def default_priority(self, type: str) -> int | None:
        return self._queue.default_priority(type)

    async def stats(self, queue: str | None = None) -> QueueStats:
        return await asyncio.to_thread(self._queue.stats, queue)

    async def queues(self) -> list[QueueStats]:
        return await asyncio.to_thread(self._queue.queues)

    async def segment_stats(self) -> dict[str, Any]:
        return await asyncio.to_thread(self._queue.segment_stats)

    async def jobs(self, **filter: Any) -> list[JobInfo]:
        return await asyncio.to_thread(lambda: self._queue.jobs(**filter))

    async def set_events(self, on: bool) -> None:
        await asyncio.to_thread(self._queue.set_events, on)

    async def registered_workers(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._queue.registered_workers)

    async def registered_worker(self, id: str) -> dict[str, Any]:
        return await asyncio.to_thread(self._queue.registered_worker, id)

    async def direct_worker(self, id: str, directive: str) -> None:
        await asyncio.to_thread(self._queue.direct_worker, id, directive)

    async def remove_worker(self, id: str) -> None:
        await asyncio.to_thread(self._queue.remove_worker, id)

    async def set_strict_envelopes(self, on: bool) -> None:
        await asyncio.to_thread(self._queue.set_strict_envelopes, on)

    async def set_immutable_priorities(self, on: bool) -> None:
        await asyncio.to_thread(self._queue.set_immutable_priorities, on)

    async def events(self, **choice: Any) -> AsyncIterator[dict[str, Any]]:
        """What happens in the segment, once set_events(True) has been called: `async for event in queue.events()`.
        It may be chosen as in Queue.events()."""
        told = asyncio.Event()
        with self._queue._events_to_poll(choice) as events:
            rings = self._bell.follow_events(told.set)
            try:
                while not self._bell.closed:
                    told.clear()
                    while (event := events.poll()) is not None:
                        yield event
                    await (told.wait() if rings else asyncio.sleep(LOOK))
            finally:
                self._bell.leave_events(told.set)

    async def audit(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._queue.audit)

    async def configure(self, queue: str | None = None, **settings: Any) -> None:
        self._queue.configure(queue, **settings)

    async def pause(self, queue: str | None = None) -> None:
        self._queue.pause(queue)

    async def resume(self, queue: str | None = None) -> None:
        self._queue.resume(queue)

    async def retry_dead(self, id: str) -> None:
        self._queue.retry_dead(id)

    async def drop_dead(self, id: str) -> None:
        self._queue.drop_dead(id)

    async def drop(self, id: str) -> None:
        self._queue.drop(id)

    async def set_maintenance(self, on: bool, reason: str = "", *, estimated_end: Moment | None = None) -> None:
        await asyncio.to_thread(functools.partial(self._queue.set_maintenance, on, reason, estimated_end=estimated_end))

    async def set_dead_retention(self, *, max_age: Duration | None = None, max_count: int | None = None) -> None:
        self._queue.set_dead_retention(max_age=max_age, max_count=max_count)

    async def delete_queue(self, queue: str, *, discard: bool = False) -> int:
        return await asyncio.to_thread(lambda: self._queue.delete_queue(queue, discard=discard))

    async def set_cron(self, name: str, expression: str, type: str, input: Any = NOTHING, **options: Any) -> bool:
        return self._queue.set_cron(name, expression, type, input, **options)

    async def cron(self, name: str) -> dict[str, Any]:
        return self._queue.cron(name)

    async def crons(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self._queue.crons)

    async def remove_cron(self, name: str) -> None:
        self._queue.remove_cron(name)

    async def enable_cron(self, name: str, enabled: bool = True) -> None:
        self._queue.enable_cron(name, enabled)

    async def trigger_cron(self, name: str) -> str:
        return self._queue.trigger_cron(name)

    def worker(self, **options: Any) -> AsyncWorker:
        """A worker on this connection; the options are those of AsyncWorker."""
        from .aio_worker import AsyncWorker
        return AsyncWorker(self._queue, **options)

    async def close(self) -> list[Unsent]:
        """Detaches; a task that still waits for a result gets Closed. Returns what the local buffer has not sent."""
        await asyncio.to_thread(self._watcher.close)
        self._room.close()
        self._bell.close()
        return await asyncio.to_thread(self._queue.close)

    async def __aenter__(self) -> AsyncQueue:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class AsyncTask:
    """A job that was submitted here; `buffered`, `deduplicated` and `pressure` as those of Task."""

    def __init__(self, queue: AsyncQueue, accepted: Accepted) -> None:
        self._queue = queue
        self.id = accepted.id
        self.buffered = accepted.buffered
        self.deduplicated = accepted.deduplicated
        self.pressure = accepted.pressure

    async def info(self) -> JobInfo:
        return await self._queue.get(self.id)

    @property
    def priority(self) -> int:
        return self._queue.sync.get(self.id).priority

    @property
    def state(self) -> str:
        return self._queue.sync.get(self.id).state

    async def wait(self, timeout: Duration | None = None) -> JobInfo:
        return await self._queue.wait(self.id, timeout)

    async def result(self, timeout: Duration | None = None) -> Any:
        return await self._queue.result(self.id, timeout)

    async def cancel(self) -> JobInfo:
        return await self._queue.cancel(self.id)

    async def reprioritize(self, priority: int | str) -> int:
        return await self._queue.reprioritize(self.id, priority)

    async def activate(self) -> None:
        await self._queue.activate(self.id)

    def __repr__(self) -> str:
        return f"<AsyncTask {self.id}>"


class _Watcher:
    """One thread that waits for any number of jobs: it sleeps on the oldest for a short turn (a finished job wakes it
    at once), then looks at all other jobs. Without a job to wait for it sleeps for good."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._changed = threading.Condition()
        self._waiting: dict[str, list[asyncio.Future[JobInfo]]] = {}
        self._thread: threading.Thread | None = None
        self._closed = False

    def watch(self, id: str) -> asyncio.Future[JobInfo]:
        finished = asyncio.get_running_loop().create_future()
        with self._changed:
            if self._closed:
                raise errors.Closed("this queue is closed", code="closed", number=-16)
            self._waiting.setdefault(id, []).append(finished)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ojs-shm-results", daemon=True)
                self._thread.start()
            self._changed.notify()
        return finished

    def forget(self, id: str, finished: asyncio.Future[JobInfo]) -> None:
        with self._changed:
            waiting = self._waiting.get(id, [])
            if finished in waiting:
                waiting.remove(finished)
            if not waiting:
                self._waiting.pop(id, None)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()
        for id in list(self._waiting):
            self._tell(id, errors.Closed("this queue was closed", code="closed", number=-16))

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                ids = list(self._waiting)
            for place, id in enumerate(ids):
                try:
                    self._tell(id, self._queue.wait(id, _TURN if place == 0 else 0))
                except errors.TimedOut:
                    pass
                except Exception as error:  # noqa: BLE001  the others are still waited for
                    self._tell(id, error)

    def _tell(self, id: str, outcome: JobInfo | Exception) -> None:
        with self._changed:
            waiting = self._waiting.pop(id, [])
        for future in waiting:
            try:
                future.get_loop().call_soon_threadsafe(_settle, future, outcome)
            except RuntimeError:
                pass  # its loop has ended, so no task is left to tell


def _settle(future: asyncio.Future[JobInfo], outcome: JobInfo | Exception) -> None:
    if future.done():
        return
    if isinstance(outcome, JobInfo):
        future.set_result(outcome)
    else:
        future.set_exception(outcome)
