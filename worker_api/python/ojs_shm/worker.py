# SPDX-License-Identifier: Apache-2.0
"""The blocking worker: handlers on a pool of threads, or one job at a time by hand."""

from __future__ import annotations

import asyncio
import contextlib
import select
import signal
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from . import _abi, errors
from ._abi import library
from .client import Queue
from .jobs import Job
from .middleware import Passage
from .own_bell import OwnBell
from .registry import Keeper, Registry, catch_signals, complete, fail, give_back, restore_signals, say
from .times import Duration, in_pieces, milliseconds


class Worker(Registry):
    """Takes jobs out of queues. Thread-safe.

    queues  a list is tried strictly from the first to the last at every fetch; of a mapping of queues to weights
            (1 to 1,000) each gets its share: {"critical": 5, "default": 2, "low": 1}
    pool    whose queues and strategy it serves, whatever `queues` says; None: pool "default", if there is one
    lease   how long this worker may be silent before a job goes to another one; None: the job's own
    grace   how long run() waits for running handlers after stop()
    id      registers a worker, which operators see and direct; without a sign of life for 30 s, which run(), fetch() and
            heartbeats give, its jobs go to other workers. `labels`: what else is said of it
    """

    def __init__(self, queue: Queue, *, queues: Iterable[str] | Mapping[str, int] | None = None,
                 concurrency: int = 1, lease: Duration | None = None, grace: Duration = 30.0, spin: Duration = 0,
                 pool: str | None = None, id: str | None = None, labels: Mapping[str, Any] | None = None) -> None:
        super().__init__(queue)
        if concurrency < 1:
            raise errors.InvalidArgument("concurrency must be at least 1", code="invalid", number=-2,
                                         subject="concurrency")
        self._concurrency = concurrency
        self._grace = milliseconds(grace, "grace") / 1000
        self._handles = queue._worker_handles(queues or (queue.queue,), lease, spin, pool,
                                              id, labels, concurrency)
        self._id = id
        self._stop = OwnBell()
        self._stopped = False  # at once visible to the threads; the bell wakes run()
        self._changed = OwnBell()  # run() is to say whether it is quiet
        self._quiet = self._resuming = False
        self._broken: BaseException | None = None
        self._running = threading.Lock()

    # --- By hand ------------------------------------------------------------------------------------------------------

    def fetch(self, timeout: Duration | None = None) -> Job | None:
        """The best job, or None when the time passed; timeout 0: at once, None: without end. Errors: Closed, NotFound (its
        pool was removed), CannotAttach (the segment's file is gone)."""
        wait = -1 if timeout is None else milliseconds(timeout, "timeout", 53)
        lib = library()
        pointer = lib.open(lib.job_new)
        try:
            with self._handles.lent() as worker:
                try:
                    in_pieces(lambda piece: worker.call(lib.fetch, pointer, piece), wait)
                    return Job(self._handles, pointer)
                except (errors.Empty, errors.TimedOut):
                    lib.close(pointer)
                    return None
                except BaseException:
                    lib.requeue(worker.pointer, pointer)  # a handler of a signal may raise when the job is there
                    raise
        except BaseException:
            lib.close(pointer)
            raise

    def close(self) -> None:
        """What this worker still holds goes back to the front of its level."""
        self._handles.interrupt()
        self._handles.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- Handlers -----------------------------------------------------------------------------------------------------

    def run(self, *, signals: bool = True) -> None:
        """Runs the registered handlers until stop(); in the main thread SIGTERM and SIGINT stop it too, SIGTSTP calls
        quiet() and SIGCONT resume().

        Then nothing more is fetched and running handlers finish; what still runs after the grace time is given back
        for other workers to run, and TimedOut is raised. A worker runs once.
        """
        if not self._running.acquire(blocking=False):
            raise errors.WrongState("a worker runs once", code="wrong_state", number=-5)
        self.middleware._freeze()
        restored = catch_signals({signal.SIGTERM: self.stop, signal.SIGINT: self.stop, signal.SIGTSTP: self._rest,
                                  signal.SIGCONT: self.resume}) if signals else {}
        keeper = Keeper(self._handles, None if self._id is None else self._be_told)
        try:
            threads = [threading.Thread(target=self._work, args=(keeper,), name=f"ojs-shm-{number}", daemon=True)
                       for number in range(self._concurrency)]
            for thread in threads:
                thread.start()
            while self._stop not in select.select([self._stop, self._changed], [], [])[0]:
                self._changed.hush()
                self._resuming = False
                self._say("quiet" if self._quiet else "running")
            self._handles.interrupt()
            self._say("terminate")
            self._drain(threads, keeper)
            if self._broken is not None:
                raise self._broken
        finally:
            keeper.close()
            restore_signals(restored)

    def stop(self) -> None:
        """Ends run(). From any thread, and from a signal handler."""
        # Nothing here takes a lock, which the thread that the signal interrupts may hold.
        self._stopped = True
        self._stop.ring()

    def quiet(self) -> None:
        """Nothing more is fetched until resume(); running handlers go on. From any thread, and from a signal handler."""
        self._be_quiet(True)

    def resume(self) -> None:
        """Ends quiet(). From any thread, and from a signal handler."""
        self._resuming = True
        self._be_quiet(False)

    def _be_quiet(self, quiet: bool) -> None:
        self._quiet = quiet
        while True:  # another signal may come in between, and is then the last one
            wanted = self._quiet
            self._handles.be_quiet(wanted)
            if self._quiet == wanted:
                break
        self._changed.ring()

    def _say(self, state: str) -> None:
        if self._id is not None:
            with contextlib.suppress(errors.OjsError), self._handles.lent() as worker:
                say(worker, state)

    def _be_told(self, directive: int) -> None:
        if directive == _abi.DIRECTIVES.index("terminate"):
            self.stop()

    def _rest(self) -> None:
        # Of signals that wait together Python tells SIGCONT first, whichever came first: then run() has not gone on since.
        if not self._resuming:
            self.quiet()

    def _work(self, keeper: Keeper) -> None:
        while not self._stopped:
            try:
                job = self.fetch()
            except errors.OjsError as error:
                # Closed: interrupted by run(), or the connection ended. Either way this worker is done.
                if not isinstance(error, errors.Closed):
                    self._broken = error
                self.stop()
                return
            if job is None:
                continue
            try:
                self._run_job(job, keeper)
            except BaseException as error:  # noqa: BLE001  our own bug, or the segment's end: not to be silent about
                self._broken = error
                self.stop()
                return

    def _run_job(self, job: Job, keeper: Keeper) -> None:
        keeper.watch(job)
        passage = Passage(())
        try:
            handler = self._handler_of(job)
            passage = Passage(self.middleware._entries)
            result = passage.run(job, lambda: asyncio.run(handler(job)) if handler.is_async else handler(job))
        except BaseException as error:  # noqa: BLE001  also SystemExit: a thread of a pool has nothing to exit
            keeper.forget(job)
            fail(job, error, passage.code)
        else:
            keeper.forget(job)
            complete(job, result)

    def _drain(self, threads: list[threading.Thread], keeper: Keeper) -> None:
        end = time.monotonic() + self._grace
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        if not any(thread.is_alive() for thread in threads):
            return
        left = keeper.watched()
        for job in left:
            give_back(job)  # unless it was finished or taken at the last moment
        if left:
            raise errors.TimedOut(f"{len(left)} jobs were still running after {self._grace:g} s of grace and were "
                                  "given back for other workers to run", code="timeout", number=-14, subject="grace")
