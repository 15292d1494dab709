#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev requirements: how each row of docs/requirements.tsv stands after the last ./dev test.

usage: ./dev requirements [--open] [A.1 | PRI-001 | PRI-001..PRI-006 ...]

Prints ID, level, state and tests, separated by tabs. A row is
  closed  when a test named after it ran green, natively and, where the row speaks of HTTP, also through HTTP (through
          HTTP alone, where the table says "http alone": there is nothing of it below); for M, M*
          and S rows a break of the source must also be listed for it in tests/mutants/mutants.tsv; an informational row
          needs an anchor in docs/requirements.tsv instead, a phrase that stands in the document it names, and a row without
          a level may be closed by one;
  half    when only the native test of a row that speaks of HTTP ran green;
  open    otherwise. --open lists what is not closed alone. Exit 1 when a row that was asked for is not closed.
"""

import collections
import pathlib
import re
import sys
from typing import NamedTuple

import mutants
import results

ROOT = pathlib.Path(__file__).resolve().parents[2]
FEWEST_WORDS = 5  # of an anchor: less says nothing
SAME_AS = re.compile(r"(?:= |see )?([A-Z]+-[A-Z]?\d+)")


class Row(NamedTuple):
    id: str
    part: str
    level: str
    http: str  # "-", "http", "http alone"
    text: str
    same_as: str  # the row whose tests close this one too, or empty
    anchor: str = ""  # "FILE: PHRASE": what the documents say of it


def read_rows() -> list[Row]:
    rows = []
    for line in (ROOT / "docs" / "requirements.tsv").read_text().splitlines():
        if not line.startswith("#"):
            id_, part, level, http, text, check, *anchor = line.split("\t")
            same = SAME_AS.fullmatch(check)
            rows.append(Row(id_, part, level, http, text, same[1] if same else "", *anchor))
    return rows


def select(rows: list[Row], wanted: list[str]) -> list[Row]:
    """In the order of the table; a range takes every row that stands between its ends."""
    if not wanted:
        return rows
    place = {row.id: index for index, row in enumerate(rows)}
    chosen: set[int] = set()
    for word in wanted:
        first, _, last = word.partition("..")
        in_part = {index for index, row in enumerate(rows) if row.part == word}
        if in_part:
            chosen |= in_part
        elif first in place and (last or first) in place:
            chosen |= set(range(place[first], place[last or first] + 1))
        else:
            print(f"requirements: no row, range or part '{word}' in docs/requirements.tsv", file=sys.stderr)
            raise SystemExit(2)
    return [rows[index] for index in sorted(chosen)]


class Evidence(NamedTuple):
    native: list[str]
    http: list[str]


def read_evidence(rows: list[Row], reports: list[pathlib.Path]) -> dict[str, Evidence]:
    """The green tests of each row: those whose name contains its id, with _ for -, as words of their own."""
    ids = {row.id.replace("-", "_"): row.id for row in rows}
    pattern = re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(sorted(ids, key=len, reverse=True)) + r")(?![A-Za-z0-9])")
    evidence = {row.id: Evidence([], []) for row in rows}
    failed: set[str] = set()
    for report in reports:
        for case in results.read(report):
            for found in set(pattern.findall(case.name.replace("-", "_"))):
                if case.outcome == "passed":
                    over_http = "http" in case.name.lower() or report.stem.startswith("http")
                    evidence[ids[found]][over_http].append(case.name)
                elif case.outcome == "failed":
                    failed.add(ids[found])
    for id_ in failed:  # one red test of a row outweighs its green ones
        evidence[id_] = Evidence([], [])
    return evidence


def wrong_anchor(row: Row) -> str:
    """What is wrong with the row's anchor; nothing when its phrase stands in the document, however the lines break."""
    file, _, phrase = row.anchor.partition(": ")
    if not row.anchor:
        return "an informational row needs an anchor in docs/requirements.tsv" if row.level == "I" else ""
    if len(phrase.split()) < FEWEST_WORDS:
        return f"its anchor must be FILE: and a phrase of at least {FEWEST_WORDS} words"
    if not file.endswith(".md") or not (ROOT / file).is_file():
        return f"its anchor names {file}, which is not a document of the tree"
    if " ".join(phrase.split()) not in " ".join((ROOT / file).read_text().split()):
        return f"{file} does not say: {phrase}"
    return ""


def judge(row: Row, evidence: dict[str, Evidence], broken: set[str]) -> tuple[str, str]:
    if wrong := wrong_anchor(row):
        return "open", wrong
    if row.anchor and row.level in ("I", "-"):
        return "closed", row.anchor
    native, http = evidence[row.id]
    has_break = row.id in broken
    if row.same_as:
        native, http = native + evidence[row.same_as].native, http + evidence[row.same_as].http
        has_break = has_break or row.same_as in broken
    tests = " ".join(native + http)
    if row.level in ("M", "M*", "S", "M/S") and (native or http) and not has_break:
        return "open", f"{tests} (no break is listed for it)"
    if row.http == "http alone":
        return "closed" if http else "open", tests or "no green test"
    if not native:
        return "open", tests or "no green test"
    return ("half" if row.http == "http" and not http else "closed"), tests


def main() -> int:
    arguments = sys.argv[1:]
    if any(word in ("-h", "--help") or word.startswith("-") and word != "--open" for word in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    only_open = "--open" in arguments
    all_rows = read_rows()
    rows = select(all_rows, [word for word in arguments if word != "--open"])
    folder = ROOT / "build" / "results"
    reports = sorted([*folder.glob("*.xml"), *folder.glob("*.lines")])
    if not reports:
        print("requirements: there is no report in build/results; run ./dev test first", file=sys.stderr)
    evidence = read_evidence(all_rows, reports)
    broken = {row for mutant in mutants.read_table() for row in mutant.rows}
    tally = collections.Counter()
    for row in rows:
        state, tests = judge(row, evidence, broken)
        tally[state] += 1
        if not only_open or state != "closed":
            print(row.id, row.level, state, tests, sep="\t")
    if not rows:
        print("requirements: no row was found, which is a failure", file=sys.stderr)
    missing = tally["open"] + tally["half"]
    print(f"REQUIREMENTS: {tally['closed']} passed, {missing or int(not rows)} failed, 0 skipped")
    return 1 if missing or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
