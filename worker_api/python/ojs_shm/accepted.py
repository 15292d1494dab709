# SPDX-License-Identifier: Apache-2.0
"""What the library says of jobs that it took."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _abi
from ._abi import library

if TYPE_CHECKING:
    from ._handles import Handle
    from .jobs import NewJob


class Pressure(NamedTuple):
    """How full a queue above its warning threshold was with a job that was submitted."""

    depth: int       #: the job included, in `unit`
    bound: int       #: in `unit`
    pressure: float  #: depth / bound, at most 1
    unit: str        #: "jobs" or "bytes"


@dataclasses.dataclass(frozen=True, slots=True)
class Accepted:
    """One submitted job."""

    id: str
    buffered: bool = False
    deduplicated: bool = False
    pressure: Pressure | None = None


def accepted(jobs: Sequence[NewJob], ids: Any, code: int, handle: Handle, *, waited: bool = False) -> list[Accepted]:
    """Of the jobs that the last call through a handle took: a producer's or, with `waited`, that of what has waited."""
    names = _abi.ids_of(ids, len(jobs))
    if code == _abi.BUFFERED:
        return [Accepted(id, True) for id in names]
    lib = library()
    ask, measure = ((lib.enqueue_deduplicated, lib.enqueue_pressure) if waited else
                    (lib.last_deduplicated, lib.last_pressure))
    told = _pressure(handle, measure) if len({job.queue for job in jobs}) == 1 else None
    return [Accepted(id, False, job.unique is not None and handle.call(ask, place) == 1, told)
            for place, (id, job) in enumerate(zip(names, jobs))]


def _pressure(handle: Handle, measure: Any) -> Pressure | None:
    of = _abi.Pressure()
    handle.call(measure, of)
    return Pressure(of.depth, of.bound, of.pressure, of.unit.decode()) if of.bound else None
