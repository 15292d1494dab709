#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/pictures/ORDER.svg from what ojs_shm_orders prints: the minute across, the wait of each dispatch up.

usage: draw_orders.py PROGRAM FOLDER
"""

import collections
import pathlib
import subprocess
import sys

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 260, 52, 40, 30, 16
COLOURS = ("#b3261e", "#d98200", "#2f7d32", "#2458a6")
TITLES = {
    "strict": "strict: the smallest priority goes first",
    "aged": "ageing, one level in five minutes",
    "weighted": "weights 5, 2, 2, 1",
}


def picture(title: str, dots: list[tuple[int, int, int]], last: int, longest: int) -> str:
    def x(minute: float) -> float:
        return LEFT + minute / last * (WIDTH - LEFT - RIGHT)

    def y(wait: float) -> float:
        return HEIGHT - BOTTOM - wait / longest * (HEIGHT - BOTTOM - TOP)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<title>{title}</title>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="18" font-size="13">{title}</text>',
    ]
    for minute in range(0, last + 1, 15):
        lines.append(f'<text x="{x(minute):.0f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">{minute}</text>')
    for wait in range(0, longest + 1, 10):
        lines.append(f'<path d="M{LEFT} {y(wait):.0f}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y(wait) + 4:.0f}" text-anchor="end">{wait}</text>')
    lines.append(f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">minute of the dispatch</text>')
    lines.append(f'<text transform="translate(14 {HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">minutes waited</text>')
    for level, colour in enumerate(COLOURS):
        counts = collections.Counter((minute, wait) for minute, at, wait in dots if at == level)
        marks = "".join(f'<circle cx="{x(minute):.1f}" cy="{y(wait) - level:.1f}" r="{1.2 + 0.25 * count:.2f}"/>'
                        for (minute, wait), count in sorted(counts.items()))
        served = sum(counts.values())
        lines.append(f'<g fill="{colour}" fill-opacity="0.75">{marks}</g>')
        lines.append(f'<text x="{WIDTH - RIGHT}" y="{TOP + 12 + 14 * level}" text-anchor="end" fill="{colour}">'
                     f'priority {level}: {served} jobs</text>')
    return "\n".join(lines + ["</svg>"]) + "\n"


def main() -> None:
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    orders: dict[str, list[tuple[int, int, int]]] = collections.defaultdict(list)
    for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines():
        order, minute, level, wait = line.split("\t")
        orders[order].append((int(minute), int(level), int(wait)))
    last = max(minute for dots in orders.values() for minute, _, _ in dots) + 1
    longest = max(wait for dots in orders.values() for _, _, wait in dots) + 1
    folder.mkdir(parents=True, exist_ok=True)
    for order, dots in orders.items():
        (folder / f"{order}.svg").write_text(picture(TITLES[order], dots, last, longest))
        print(f"ok {order}: {len(dots)} dispatches")


if __name__ == "__main__":
    main()
