#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""draw_top.py BIN FILE.svg: the screen of ojs-shm-top over a segment at work, from a real run in a terminal of its own. FILE.txt,
beside it, says which picture that is, which views the screen names and which columns it shows."""

import fcntl
import hashlib
import html
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import pyte

COLUMNS, LINES = 120, 20
WIDTH, HEIGHT = 7.8, 17  # of a character, in pixels
COLORS = {"green": "#2da44e", "red": "#cf222e", "magenta": "#a626a4", "cyan": "#0a7ea4", "default": "#24292f"}
JOBS = "\n".join(f'{{"type":"{kind}","queue":"{queue}","priority":{priority},"args":[{n}]}}'
                 for n in range(40) for kind, queue, priority in
                 (("mail.send", "mail", n % 4), ("mail.send", "mail", 3), ("image.resize", "images", 2),
                  ("report.build", "reports", 3)))


def screen_of(program: list[str], environment: dict[str, str], seconds: float) -> pyte.Screen:
    """What a program shows after that time; it is asked to end then."""
    screen = pyte.Screen(COLUMNS, LINES)
    stream = pyte.ByteStream(screen)
    pid, file = pty.fork()
    if pid == 0:
        os.execve(program[0], program, {**environment, "TERM": "xterm", "LC_ALL": "C.UTF-8"})
    fcntl.ioctl(file, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    os.kill(pid, signal.SIGWINCH)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([file], [], [], 0.1)[0]:
            stream.feed(os.read(file, 65536))
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)
    os.close(file)
    return screen


def svg_of(screen: pyte.Screen) -> str:
    """Each run of one style is a text; reverse video is a box behind it."""
    boxes, texts = [], []
    for y in range(LINES):
        row, x = screen.buffer[y], 0
        while x < COLUMNS:
            first, begin, text = row[x], x, ""
            while x < COLUMNS and (row[x].fg, row[x].bold, row[x].reverse) == (first.fg, first.bold, first.reverse):
                text += row[x].data
                x += 1
            color = COLORS.get(first.fg, COLORS["default"])
            if first.reverse:
                boxes.append(f'<rect x="{begin * WIDTH + 8:.1f}" y="{y * HEIGHT + 6}" width="{len(text) * WIDTH:.1f}" '
                             f'height="{HEIGHT}" fill="{color}"/>')
                color = "#ffffff"
            if text.strip():
                weight = ' font-weight="bold"' if first.bold else ""
                texts.append(f'<text x="{begin * WIDTH + 8:.1f}" y="{y * HEIGHT + 19}" fill="{color}"{weight} '
                             f'textLength="{len(text) * WIDTH:.1f}" xml:space="preserve">{html.escape(text)}</text>')
    size = f'width="{COLUMNS * WIDTH + 16:.0f}" height="{LINES * HEIGHT + 14}"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="monospace" font-size="13">',
                      f'<rect {size} rx="6" fill="#f6f8fa"/>', *boxes, *texts, "</svg>", ""])


def main() -> int:
    programs, target = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="ojs-shm-picture-") as folder:
        environment = {**os.environ, "OJS_SHM_NAME": "shop", "OJS_SHM_DIR": folder}
        environment.pop("NO_COLOR", None)
        started = []

        def start(*words: str) -> subprocess.Popen:
            started.append(subprocess.Popen([programs / words[0], *words[1:]], env=environment, text=True,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
            return started[-1]

        def command(*words: str, given: str = "") -> None:
            subprocess.run([programs / "ojs-shm", *words], env=environment, input=given, text=True, check=True,
                           stdout=subprocess.DEVNULL)

        try:
            start("ojs-shm-broker", "--slots", "4096", "--remove").stdout.readline()
            command("queue", "set", "mail", "--max-depth", "90")
            command("enqueue", given=JOBS)
            command("queue", "pause", "reports")
            start("ojs-shm", "work", "--queue", "mail", "--concurrency", "2", "--", "sleep", "0.3")
            start("ojs-shm", "work", "--queue", "images", "--", "sleep", "0.5")
            screen = screen_of([str(programs / "ojs-shm-top")], environment, 6)
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait(30)
                process.stdout.close()
    shown = "\n".join(screen.display)
    for wanted in ("shop", "mail", "images", "reports", "paused"):
        if wanted not in shown:
            print(f"draw_top: the screen does not show '{wanted}':\n{shown}", file=sys.stderr)
            return 1
    picture = svg_of(screen)
    target.write_text(picture)
    views, columns = screen.display[5].split(), screen.display[6].split()
    if screen.display[6][-1] != " ":
        columns.pop()  # the edge may have cut it
    target.with_suffix(".txt").write_text(f"sha256 {hashlib.sha256(picture.encode()).hexdigest()}\n{' '.join(views)}\n{' '.join(columns)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
