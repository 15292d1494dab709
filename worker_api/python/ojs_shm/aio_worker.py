# SPDX-License-Identifier: Apache-2.0
"""The asyncio worker: handlers as tasks of the event loop, fed by the segment's event descriptor."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import signal
import threading
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

from . import _abi, errors
from ._abi import library
from ._handles import Handle
from .client import Queue
from .jobs import Job
from .middleware import Passage
from .registry import Handler, Keeper, Registry, catch_signals, complete, fail, give_back, restore_signals, say
from .times import Duration, milliseconds

#: How often running jobs are asked whether they were cancelled, in seconds.
_CANCEL_TURN = 0.05


class AsyncWorker(Registry):
    """Takes jobs out of queues and runs up to `concurrency` handlers at once.

    `async def` handlers run in the event loop, all other handlers in threads. When a job is cancelled, or its lease or timeout
    ends, its `async def` handler is cancelled; leases are extended by a thread, so a handler that blocks the loop for
    a while does not lose them.

    queues  a list is tried strictly from the first to the last at every fetch; of a mapping of queues to weights
            (1 to 1,000) each gets its share: {"critical": 5, "default": 2, "low": 1}
    pool    whose queues and strategy it serves, whatever `queues` says; None: pool "default", if there is one
    lease   how long this worker may be silent before a job goes to another one; None: the job's own
    grace   how long run() waits for running handlers after stop()
    id      registers a worker, which operators see and direct; without a sign of life for 30 s, which run() gives, its jobs
            go to other workers. `labels`: what else is said of it
    """

    def __init__(self, queue: Queue, *, queues: Iterable[str] | Mapping[str, int] | None = None,
                 concurrency: int = 10, lease: Duration | None = None, grace: Duration = 30.0,
                 pool: str | None = None, id: str | None = None, labels: Mapping[str, Any] | None = None) -> None:
        super().__init__(queue)
        if concurrency < 1:
            raise errors.InvalidArgument("concurrency must be at least 1", code="invalid", number=-2,
                                         subject="concurrency")
        self._concurrency = concurrency
        self._grace = milliseconds(grace, "grace") / 1000
        self._handles = queue._worker_handles(queues or (queue.queue,), lease, 0, pool, id,
                                              labels, concurrency)
        self._id = id
        self._running: dict[asyncio.Task[None], Job] = {}
        self._stop = threading.Event()
        self._quiet, self._resuming, self._said = False, False, "running"
        self._woken: asyncio.Event | None = None  # made by run(), in its loop
        self._loop: asyncio.AbstractEventLoop | None = None
        self._began = self._active = self._closing = False
        self._handles.on_interrupt = weakref.WeakMethod(self.stop)  # the connection ends
        self._background: asyncio.Task[None] | None = None

    async def run(self, *, signals: bool = True) -> None:
        """Runs the registered handlers until stop(); in the main thread SIGTERM and SIGINT stop it too, SIGTSTP calls
        quiet() and SIGCONT resume().

        Then nothing more is fetched and running handlers finish; what still runs after the grace time is cancelled
        and given back for other workers to run, and TimedOut is raised, unless run() was cancelled. A worker runs once.
        """
        self._check_begin()
        self._began = self._active = True
        try:
            await self._run(signals)
        finally:
            self._active = False
            if self._closing:
                self._handles.close()

    def _check_begin(self) -> None:
        if self._began:
            raise errors.WrongState("a worker runs once", code="wrong_state", number=-5)

    async def _run(self, signals: bool) -> None:
        self.middleware._freeze()
        self._loop, self._woken = asyncio.get_running_loop(), asyncio.Event()
        calls = {signal.SIGTERM: self.stop, signal.SIGINT: self.stop, signal.SIGTSTP: self._rest,
                 signal.SIGCONT: self.resume}
        caught = catch_signals(calls) if signals else {}
        keeper = Keeper(self._handles, None if self._id is None else self._be_told)
        pool = concurrent.futures.ThreadPoolExecutor(self._concurrency, thread_name_prefix="ojs-shm")
        watch = asyncio.create_task(self._watch_cancels())
        try:
            with self._handles.lent() as fetcher:
                try:
                    await self._feed(fetcher, keeper, pool)
                finally:
                    self._say(fetcher, "terminate")
                    given_back = await self._drain()
            if given_back:  # a cancelled run() ends as what it is
                raise errors.TimedOut(f"{given_back} jobs were still running after {self._grace:g} s of grace and were "
                                      "given back for other workers to run", code="timeout", number=-14, subject="grace")
        finally:
            watch.cancel()
            pool.shutdown(wait=False)
            await asyncio.to_thread(keeper.close)
            restore_signals(caught)

    def stop(self) -> None:
        """Ends run(). From any thread."""
        self._stop.set()
        self._wake()

    def quiet(self) -> None:
        """Nothing more is fetched until resume(); running handlers go on. From any thread."""
        self._quiet = True
        self._wake()

    def resume(self) -> None:
        """Ends quiet(). From any thread."""
        self._resuming = True
        self._quiet = False
        self._wake()

    def _rest(self) -> None:
        # Of signals that wait together Python tells SIGCONT first, whichever came first: then the loop has not gone on since.
        if not self._resuming:
            self.quiet()

    def _wake(self) -> None:
        if self._loop is not None and self._woken is not None:
            try:
                self._loop.call_soon_threadsafe(self._woken.set)
            except RuntimeError:
                pass  # the loop has ended, and run() with it

    def _say(self, fetcher: Handle, state: str) -> None:
        if self._id is not None and self._said != state:
            self._said = state
            say(fetcher, state)

    async def __aenter__(self) -> AsyncWorker:
        """Runs beside the body of `async with`, and drains at its end. What keeps it from beginning is raised here."""
        self._check_begin()
        with self._handles.lent() as fetcher:
            fetcher.call(library().event_fd)
        self._background = asyncio.create_task(self.run(signals=False))
        await asyncio.sleep(0)  # so that it has begun
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        try:
            if self._background is not None:
                await self._background
        finally:
            self.close()

    def close(self) -> None:
        """What this worker still holds goes back to the front of its level. While run() runs, it stops, and closes at the end
        of run()."""
        self._closing = True
        self.stop()
        if not self._active:
            self._handles.close()

    # --- Fetching -----------------------------------------------------------------------------------------------------

    async def _feed(self, fetcher: Handle, keeper: Keeper, pool: concurrent.futures.Executor) -> None:
        """Fetches whenever a job may be waiting and fewer than `concurrency` run."""
        assert self._loop is not None and self._woken is not None
        descriptor = fetcher.call(library().event_fd)
        watching = False
        try:
            while not self._stop.is_set():
                self._woken.clear()
                self._resuming = False
                self._say(fetcher, "quiet" if self._quiet else "running")
                full = self._fill(fetcher, keeper, pool)
                # While all places are taken a waiting job must not wake the loop again and again.
                if watching and full:
                    self._loop.remove_reader(descriptor)
                elif not watching and not full:
                    self._loop.add_reader(descriptor, self._woken.set)
                watching = not full
                if self._stop.is_set():
                    return
                # An operator's order may be taken back before anything tells of it.
                patience = 1.0 if full and self._id is not None else None
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), patience)
        finally:
            if watching:
                self._loop.remove_reader(descriptor)

    def _fill(self, fetcher: Handle, keeper: Keeper, pool: concurrent.futures.Executor) -> bool:
        """Starts handlers until nothing waits (False), or all places are taken or no more are wanted (True)."""
        while len(self._running) < self._concurrency and not self._quiet and not self._stop.is_set():
            if self._id is not None and fetcher.call(library().worker_beat) != 0:
                return True
            lib = library()
            pointer = lib.open(lib.job_new)
            try:
                fetcher.call(lib.fetch, pointer, 0)
                job = Job(self._handles, pointer)
            except errors.Empty:
                lib.close(pointer)
                return False
            except errors.Closed:  # the connection ends, or an operator ends this worker
                lib.close(pointer)
                self.stop()
                return True
            except BaseException:
                lib.close(pointer)
                raise
            keeper.watch(job)
            task = asyncio.create_task(self._run_job(job, keeper, pool), name=f"ojs-shm {job.type} {job.id}")
            self._running[task] = job
            task.add_done_callback(self._ended)
        return True

    def _be_told(self, directive: int) -> None:
        if directive == _abi.DIRECTIVES.index("terminate"):
            self.stop()
        else:
            self._wake()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.pop(task, None)
        if self._woken is not None:
            self._woken.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            # Only our own bug comes here; what a handler raises was told to the segment.
            task.get_loop().call_exception_handler({"message": "ojs-shm worker failed", "exception": error})

    async def _run_job(self, job: Job, keeper: Keeper, pool: concurrent.futures.Executor) -> None:
        passage = Passage(())
        try:
            handler = self._handler_of(job)
            passage = Passage(self.middleware._entries)
            result = await passage.run_async(job, lambda: self._call(handler, job, pool))
        except asyncio.CancelledError as error:
            keeper.forget(job)
            # A job that was lost or given back may not be settled here. Else the loop ends, or it is the handler's own.
            if job.cancel_requested:
                return
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                give_back(job)
            else:
                fail(job, error, passage.code)
        except Exception as error:  # noqa: BLE001
            keeper.forget(job)
            fail(job, error, passage.code)
        else:
            keeper.forget(job)
            complete(job, result)

    async def _call(self, handler: Handler, job: Job, pool: concurrent.futures.Executor) -> Any:
        if handler.is_async:
            return await handler(job)
        return await asyncio.get_running_loop().run_in_executor(pool, handler, job)

    async def _watch_cancels(self) -> None:
        told: weakref.WeakSet[asyncio.Task[None]] = weakref.WeakSet()
        while True:
            await asyncio.sleep(_CANCEL_TURN)
            for task, job in list(self._running.items()):
                # Once: what it does on its way out is not interrupted again. A handler in a thread looks for itself.
                handler = self._handlers.get(job.type)
                if task not in told and handler is not None and handler.is_async and job.cancel_requested:
                    told.add(task)
                    task.cancel()

    # --- Ending -------------------------------------------------------------------------------------------------------

    async def _drain(self) -> int:
        """How many jobs were given back."""
        if not self._running:
            return 0
        _, late = await asyncio.wait(list(self._running), timeout=self._grace)
        given_back = 0
        for task in late:
            job = self._running.get(task)
            if job is None:
                continue
            try:
                with contextlib.suppress(errors.Closed):  # the end of its handle gives it back
                    job.requeue()
                given_back += 1
            except errors.Lost:
                pass  # finished or taken at the last moment
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=1)
        return given_back
