# SPDX-License-Identifier: Apache-2.0
"""What wakes a thread that sleeps in poll or select."""

from __future__ import annotations

import os


class OwnBell:
    """An eventfd, for select and poll: rung it stays until it is hushed. Only the process that made it rings it, as the
    child of a fork shares it with its parent. Takes no lock, so handlers of signals may ring."""

    def __init__(self) -> None:
        self._descriptor = -1
        self._process = os.getpid()
        self._descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def fileno(self) -> int:
        return self._descriptor

    def ring(self) -> None:
        if os.getpid() == self._process:
            os.eventfd_write(self._descriptor, 1)

    def hush(self) -> None:
        try:
            os.eventfd_read(self._descriptor)
        except BlockingIOError:
            pass

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
