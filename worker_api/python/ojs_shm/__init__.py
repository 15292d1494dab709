# SPDX-License-Identifier: Apache-2.0
"""Open Job Spec jobs between processes through shared memory.

    queue = await connect("my-segment")                  # asyncio; connect_sync() for blocking programs
    task = await queue.submit("send_email", {"to": "user@example.com"}, priority=Priority.HIGH)
    print(await task.result())

    worker = queue.worker(concurrency=8)

    @worker.task("send_email", default_priority=Priority.LOW)
    async def send_email(input): ...

    await worker.run()
"""

from ._abi import library as _library
from .accepted import Pressure
from .aio import AsyncQueue, AsyncTask, connect
from .aio_worker import AsyncWorker
from .client import Queue, connect_sync
from .crons import cron_times
from .errors import (CannotAttach, Closed, Duplicate, Empty, Failure, InternalError, InUse, InvalidArgument,
                     JobCancelled, JobFailed, LibraryNotFound, Lost, NoSpace, NotFound, OjsError, OtherFormat,
                     PermissionDenied, QueueFull, ResultPruned, SegmentFull, StaleVersion, TimedOut, TooLarge,
                     WrongState)
from .events import Events
from .jobs import Job, JobError, JobInfo, NackOutcome, NewJob, Retry
from .queue_stats import QueueStats
from .middleware import Chain
from .on_full import OnFull, Unsent
from .prepared import Prepared
from .priority import Priority
from .proxy import Proxy
from .segments import create_segment, examine_segment, export_segment, import_segment, remove_segment
from .task import Task
from .worker import Worker

__version__ = "0.1.0"

__all__ = [
    "AsyncQueue", "AsyncTask", "AsyncWorker", "CannotAttach", "Chain", "Closed", "Duplicate", "Empty", "Events", "Failure",
    "InUse", "InternalError", "InvalidArgument", "Job", "JobCancelled", "JobError", "JobFailed", "JobInfo",
    "LibraryNotFound", "Lost", "NackOutcome", "NewJob", "NoSpace", "NotFound", "OjsError", "OnFull", "OtherFormat",
    "PermissionDenied", "Prepared", "Pressure", "Priority", "Proxy", "Queue", "QueueFull", "QueueStats", "ResultPruned", "Retry", "SegmentFull", "StaleVersion",
    "Task", "TimedOut", "TooLarge", "Unsent", "Worker", "WrongState", "connect", "connect_sync", "create_segment", "cron_times",
    "examine_segment", "export_segment", "import_segment", "library_version", "remove_segment",
]


def library_version() -> str:
    """The version of the loaded library, such as "0.1.0"."""
    return _library().version().decode()
