# SPDX-License-Identifier: Apache-2.0
"""Segments as wholes: make one, remove one, export and import one."""

from __future__ import annotations

import ctypes
import json
import os
from contextlib import contextmanager
from typing import Any, Iterator

from . import _abi
from ._abi import library
from ._handles import Handle
from .times import Duration, milliseconds

_INVALID = -2  # with refused lines: told by the report


def create_segment(name: str | None = None, *, dir: str | None = None, convention: str = "ojs", size_bytes: int = 0,
                   slots: int = 0, max_queues: int = 0, max_body_bytes: int = 0, max_handles: int = 0, max_tenants: int = 0,
                   max_waiting: int = 0, mode: int = 0, group: str | None = None, retention: Duration = 0) -> None:
    """Makes a segment without a broker, for tests and for programs that bring their own. 0 means the default.

    Errors: InUse (it exists), CannotAttach (no such directory), NoSpace, InvalidArgument, PermissionDenied.
    """
    options = _abi.SegmentOptions()
    options.convention, options.group = _abi.text_in(convention, "convention"), _abi.text_in(group, "group")
    options.size_bytes = _abi.whole(size_bytes, "size_bytes", 64)
    options.retention_ms = milliseconds(retention, "retention", 64)
    for member, value in (("slots", slots), ("max_queues", max_queues), ("max_body_bytes", max_body_bytes),
                          ("max_handles", max_handles), ("mode", mode), ("max_tenants", max_tenants),
                          ("max_waiting", max_waiting)):
        setattr(options, member, _abi.whole(value, member, 32))
    segment = library().open(library().segment_create, _abi.text_in(name, "name"), _abi.text_in(dir, "dir"),
                             ctypes.byref(options))
    library().close(segment)


def remove_segment(name: str | None = None, *, dir: str | None = None, force: bool = False) -> None:
    """Removes its files; `force`: also with unfinished jobs, dead letters or crons, and under living processes.

    Errors: NotFound, InUse (a process lives in it), WrongState (jobs or crons are left), OtherFormat (not a segment: never
    removed), PermissionDenied.
    """
    code = library().segment_remove(_abi.text_in(name, "name"), _abi.text_in(dir, "dir"), int(force))
    if code < 0:
        raise library().error(code)


def examine_segment(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Queue.census() of a copy of a segment's file, as its last trace left it. The file is only read.

    Errors: CannotAttach, OtherFormat, PermissionDenied.
    """
    segment = library().open(library().segment_examine, os.fsencode(path))
    try:
        observer = Handle(library().open(library().observer_open, segment))
        try:
            return json.loads(observer.text(library().census))
        finally:
            library().close(observer.pointer)
    finally:
        library().close(segment)


def export_segment(path: str | os.PathLike[str], name: str | None = None, *, dir: str | None = None) -> int:
    """Writes default ageing, queues, pools, limits, crons, default priorities and jobs into a file (docs/export.md) and
    returns how many lines. Only looks.

    Errors: CannotAttach, OtherFormat, PermissionDenied, TimedOut (a workflow does not stand still), OSError if the file
    cannot be opened, InternalError if it cannot be written.
    """
    with open(path, "wb") as file, _opened(library().segment_observe, name, dir) as segment:
        lines = library().export(segment, file.fileno())
        if lines < 0:
            raise library().error(lines)
        return lines


def import_segment(path: str | os.PathLike[str], name: str | None = None, *, dir: str | None = None) -> dict[str, int]:
    """Puts an export into a segment that exists. Returns the counts of docs/export.md; `refused` lines were at fault.

    Errors: CannotAttach, OtherFormat (also: the file is no export), PermissionDenied, SegmentFull, TimedOut (a stopped
    process is in its way), OSError if the file cannot be opened, InternalError if it cannot be read.
    """
    report = _abi.ImportReport()
    with open(path, "rb") as file, _opened(library().segment_attach, name, dir) as segment:
        code = getattr(library(), "import")(segment, file.fileno(), ctypes.byref(report))
        if code < 0 and (code != _INVALID or report.refused == 0):
            raise library().error(code)
    return {member: getattr(report, member) for member, _ in report._fields_ if member != "struct_size"}


@contextmanager
def _opened(entry, name: str | None, dir: str | None) -> Iterator[int]:
    segment = library().open(entry, _abi.text_in(name, "name"), _abi.text_in(dir, "dir"))
    try:
        yield segment
    finally:
        library().close(segment)
