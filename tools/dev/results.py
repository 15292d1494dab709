#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the test reports of a run: the XML of GoogleTest, and lines "ok NAME" and "not ok NAME" of other runners.

results.py counts REPORT   prints "passed failed skipped"
results.py notes REPORT    prints one line for each case that failed or was not run
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree
from typing import Iterator, NamedTuple


class Case(NamedTuple):
    name: str
    outcome: str  # passed, failed, skipped
    reason: str


def read(path: pathlib.Path) -> Iterator[Case]:
    return read_xml(path) if path.suffix == ".xml" else read_lines(path)


def read_xml(path: pathlib.Path) -> Iterator[Case]:
    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, OSError) as error:
        yield Case(str(path), "failed", f"unreadable report: {error}")
        return
    for case in root.iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        failure = next((child for tag in ("failure", "error") for child in case.iter(tag)), None)
        skip = next(case.iter("skipped"), None)
        if failure is not None:
            yield Case(name, "failed", one_line(failure.get("message") or failure.text or ""))
        elif skip is not None or case.get("status") == "notrun":
            reason = (skip.get("message") or skip.text or "") if skip is not None else "disabled"
            yield Case(name, "skipped", one_line(reason))
        else:
            yield Case(name, "passed", "")


LINE = re.compile(r"^(?P<not>not )?ok (?P<name>\S+)(?: # NOT RUN (?P<reason>.*))?")


def read_lines(path: pathlib.Path) -> Iterator[Case]:
    for match in filter(None, map(LINE.match, path.read_text(errors="replace").splitlines())):
        outcome = "failed" if match["not"] else "passed" if match["reason"] is None else "skipped"
        yield Case(match["name"], outcome, match["reason"] or "")


def one_line(text: str) -> str:
    """The reason without the source position that GoogleTest writes before it."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if len(lines) > 1 and re.match(r"^\S+:\d+$", lines[0]):
        lines = lines[1:]
    return " ".join(lines)[:200]


def main() -> int:
    if len(sys.argv) != 3 or sys.argv[1] not in ("counts", "notes"):
        print(__doc__, file=sys.stderr)
        return 2
    cases = list(read(pathlib.Path(sys.argv[2])))
    if sys.argv[1] == "counts":
        print(*(sum(case.outcome == outcome for case in cases) for outcome in ("passed", "failed", "skipped")))
    else:
        for case in cases:
            if case.outcome == "failed":
                print(f"FAILED {case.name}: {case.reason}")
            elif case.outcome == "skipped":
                print(f"NOT RUN {case.name}: {case.reason.removeprefix('NOT RUN').lstrip(': ')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
