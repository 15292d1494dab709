# SPDX-License-Identifier: Apache-2.0
"""Segments as files: make one, remove one."""

from __future__ import annotations

import ctypes

from . import _abi
from ._abi import library
from .jobs import Duration, milliseconds


def create_segment(name: str | None = None, *, dir: str | None = None, convention: str = "ojs", size_bytes: int = 0,
                   slots: int = 0, max_queues: int = 0, max_body_bytes: int = 0, max_handles: int = 0, max_tenants: int = 0,
                   mode: int = 0, group: str | None = None, retention: Duration = 0) -> None:
    """Makes a segment without a broker, for tests and for programs that bring their own. 0 means the default.

    Errors: InUse (it exists), NoSpace, InvalidArgument, PermissionDenied.
    """
    options = _abi.SegmentOptions()
    options.convention, options.group = _abi.text_in(convention, "convention"), _abi.text_in(group, "group")
    options.size_bytes = _abi.whole(size_bytes, "size_bytes", 64)
    options.retention_ms = milliseconds(retention, "retention", 64)
    for member, value in (("slots", slots), ("max_queues", max_queues), ("max_body_bytes", max_body_bytes),
                          ("max_handles", max_handles), ("mode", mode), ("max_tenants", max_tenants)):
        setattr(options, member, _abi.whole(value, member, 32))
    segment = library().open(library().segment_create, _abi.text_in(name, "name"), _abi.text_in(dir, "dir"),
                             ctypes.byref(options))
    library().close(segment)


def remove_segment(name: str | None = None, *, dir: str | None = None, force: bool = False) -> None:
    """Removes its files. Errors: NotFound, InUse while anybody lives (unless forced), PermissionDenied."""
    code = library().segment_remove(_abi.text_in(name, "name"), _abi.text_in(dir, "dir"), int(force))
    if code < 0:
        raise library().error(code)
