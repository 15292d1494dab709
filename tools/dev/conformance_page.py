#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/conformance.md from the reports of conformance.py.

conformance_page.py [--write] REPORT...; a report is named conformance-CONVENTION.json. Without --write it says where the page
differs; a case that a short run left out counts as the page has it. For `./dev conformance`.
"""

import collections
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/conformance.md"
BEGIN, END = "<!-- made by ./dev conformance --slow --write -->\n", "<!-- end of what is made -->\n"


def title(suite: str) -> str:
    """"0 core" of level-0-core, "extension admin api" of ext-admin-api."""
    level = re.fullmatch(r"level-(\d)-(.*)", suite)
    return f"level {level[1]}, {level[2]}" if level else "extension " + suite.removeprefix("ext-").replace("-", " ")


def tables(reports: dict[str, list[dict]]) -> str:
    conventions = list(reports)
    passed, cases = collections.Counter(), collections.Counter()
    others = collections.defaultdict(list)
    for convention, told in reports.items():
        for case in told:
            cases[convention, case["suite"]] += 1
            left_out = case["verdict"] == "SKIP" and case["reason"].startswith("waits ")
            if case["verdict"] in ("PASS", "XPASS") or left_out:
                passed[convention, case["suite"]] += 1
            else:
                others[case["id"], case["reason"]].append(convention)
    suites = sorted({suite for _, suite in cases}, key=lambda suite: (suite.startswith("ext"), suite))
    lines = ["| suite | cases | " + " | ".join(f"pass in `{each}`" for each in conventions) + " |",
             "|---|---:|" + "---:|" * len(conventions)]
    for suite in suites:
        lines.append(f"| {title(suite)} | {cases[conventions[0], suite]} | " +
                     " | ".join(str(passed[each, suite]) for each in conventions) + " |")
    total = sum(count for (convention, _), count in cases.items() if convention == conventions[0])
    lines.append(f"| all | {total} | " + " | ".join(
        str(sum(count for (convention, _), count in passed.items() if convention == each))
        for each in conventions) + " |")
    lines += ["", "| does not pass | in | why |", "|---|---|---|"]
    lines += [f"| {id} | {', '.join(f'`{each}`' for each in where)} | {reason} |"
              for (id, reason), where in sorted(others.items())]
    return "\n".join(lines) + "\n"


def main() -> int:
    write = "--write" in sys.argv
    reports = {re.fullmatch(r"conformance-(.*)\.json", pathlib.Path(path).name)[1]: json.loads(pathlib.Path(path).read_text())
               for path in sys.argv[1:] if path != "--write"}
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    made = before + BEGIN + "\n" + tables(reports) + "\n" + END + rest.split(END)[1]
    if write:
        PAGE.write_text(made)
    same = write or made == page
    print(("ok" if same else "not ok") + " conformance.page")
    if not same:
        print("docs/conformance.md says something else; ./dev conformance --slow --write makes it anew:\n" + tables(reports))
    print(f"PAGE: {int(same)} passed, {int(not same)} failed, 0 skipped")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
