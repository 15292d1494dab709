# SPDX-License-Identifier: Apache-2.0
"""A program on a pseudo-terminal, and the screen that a person would see."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import pyte

#: No test waits longer than this for anything, in seconds.
BOUND = 30
KEYS = {"up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[1~", "end": "\x1b[4~",
        "pgup": "\x1b[5~", "pgdn": "\x1b[6~", "enter": "\r", "esc": "\x1b", "tab": "\t", "backtab": "\x1b[Z", "f1": "\x1bOP",
        "f6": "\x1b[17~", "f10": "\x1b[21~", "erase": "\x7f", "ctrl-c": "\x03"}
KEYS.update({"up": "\x1bOA", "down": "\x1bOB", "right": "\x1bOC", "left": "\x1bOD"})  # once the keypad sends


class Screen(pyte.Screen):
    """pyte's, which scrolls by S and T too, as terminals do."""

    def _scroll(self, line, step, times):
        kept, self.cursor.y = self.cursor.y, line
        for _ in range(times or 1):
            step()
        self.cursor.y = kept

    def scroll_up(self, times=1):
        self._scroll(self.margins.bottom if self.margins else self.lines - 1, self.index, times)

    def scroll_down(self, times=1):
        self._scroll(self.margins.top if self.margins else 0, self.reverse_index, times)


class Stream(pyte.ByteStream):
    csi = {**pyte.ByteStream.csi, "S": "scroll_up", "T": "scroll_down"}
    events = pyte.ByteStream.events | {"scroll_up", "scroll_down"}


class Terminal:
    """Runs a program until it ends or the `with` does."""

    def __init__(self, words, columns=80, lines=24, term="screen-256color", environment=None):
        self.screen = Screen(columns, lines)
        self._stream = Stream(self.screen)
        self.raw = b""
        self.status = None
        self.pid, self._file = pty.fork()
        if self.pid == 0:
            self._size(columns, lines, 1)  # here, so that the program never sees another size
            os.environ.update({"TERM": term, "LC_ALL": "C.UTF-8", **(environment or {})})
            os.execv(words[0], words)

    def _size(self, columns, lines, file):
        fcntl.ioctl(file, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.status = os.waitpid(self.pid, 0)[1]
        os.close(self._file)

    def resize(self, columns, lines):
        """As terminals do: what was shown is lost, and the kernel tells the program."""
        self.screen.resize(lines, columns)
        self.screen.reset()
        self._size(columns, lines, self._file)

    def read(self, seconds=0.05):
        """Takes in what the program has drawn; False once it is gone."""
        if not select.select([self._file], [], [], seconds)[0]:
            return True
        try:
            drawn = os.read(self._file, 65536)
        except OSError:
            return False
        self.raw += drawn
        self._stream.feed(drawn)
        return bool(drawn)

    def press(self, *keys):
        for key in keys:
            os.write(self._file, KEYS.get(key, key).encode())

    @property
    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self):
        """What is shown, with one space where there are several."""
        return re.sub(" +", " ", "\n".join(self.lines))

    def until(self, seen):
        """Reads until `seen`, a text or a question about the screen, is there."""
        wanted = (lambda: seen in self.text) if isinstance(seen, str) else seen
        end = time.monotonic() + BOUND
        while not wanted():
            alive = self.read()
            if wanted():
                return
            if not alive or time.monotonic() > end:
                raise AssertionError(f"{seen!r} was not shown, but\n{self.text}")

    def ends(self):
        """Its exit status, once it has ended by itself."""
        while self.read():
            pass
        self.status = os.waitpid(self.pid, 0)[1]
        return os.waitstatus_to_exitcode(self.status)

    def cell(self, line, column):
        return self.screen.buffer[line][column]
