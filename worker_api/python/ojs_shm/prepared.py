# SPDX-License-Identifier: Apache-2.0
"""Jobs that are alike but for input and priority, checked once: Queue.prepare()."""

from __future__ import annotations

import ctypes
import dataclasses
import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import _abi
from ._abi import library
from .accepted import accepted
from .jobs import NOTHING, NewJob, to_json
from .task import Task

if TYPE_CHECKING:
    from .client import Queue


class Prepared:
    """What Queue.prepare() returns. Thread-safe; good as long as its connection. Each job still passes the middlewares
    that there are."""

    def __init__(self, queue: Queue, kind: NewJob) -> None:
        if kind.delay is not None:
            raise TypeError("a delay begins with one job; a kind of jobs may have scheduled_at")
        self._queue, self._kind = queue, kind
        spec = _abi.JobSpec()
        kept = kind._struct(spec, queue.priority(kind.priority), queue.queue, 0)
        handle = ctypes.c_void_p()
        with queue._producers.lent() as producer:
            producer.call(library().prepare, ctypes.byref(spec), ctypes.byref(handle))
        del kept
        self._handle = handle.value
        weakref.finalize(self, library().close, handle.value)

    def submit(self, input: Any = NOTHING, *, priority: int | str | None = None) -> Task | None:
        """As Queue.submit(); without a priority, with that of the kind."""
        return self.submit_many([input], priority=priority)[0]

    def submit_many(self, inputs: Iterable[Any], *, priority: int | str | None = None) -> list[Task | None]:
        """One job for each input: all or none, in this order. Errors: as Queue.submit_many()."""
        if len(self._queue.middleware):
            own = {} if priority is None else {"priority": priority}
            return self._queue.submit_many([dataclasses.replace(self._kind, input=each, args=None, **own) for each in inputs])
        texts = [to_json([] if each is NOTHING else [each]) for each in inputs]
        jobs, number = (_abi.Args * len(texts))(), self._queue.priority(priority)
        for job, text in zip(jobs, texts):
            job.struct_size, job.args, job.args_size = ctypes.sizeof(job), text, len(text)
            if number is not None:
                job.priority, job.flags = _abi.whole(number, "priority", 64, signed=True), _abi.JOB_HAS_PRIORITY
        ids = ctypes.create_string_buffer(max(1, len(texts) * _abi.ID_SIZE))
        with self._queue._producers.lent() as producer:
            code = producer.call(library().enqueue_prepared_batch, self._handle, jobs, len(texts), ids)
            taken = accepted([self._kind] * len(texts), ids, code, producer)
        return [Task(self._queue, each) for each in taken]
