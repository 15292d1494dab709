#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Style as a test: what a compiler does not see. Prints one line for each finding; a case is a file.

usage: ./dev tidy [--no-headers] [--clang]

--no-headers leaves out the compilation of each header by itself, --clang adds clang-tidy over build/.
"""

import pathlib
import re
import sys
from typing import Callable, Iterator, NamedTuple

import mutants
import tidy_atomics
import tidy_documents
import tidy_headers
import tidy_layout
import tidy_operations
from tidy_source import ROOT, SHIPPED, Source, read_tree

RANK = {"shm": 0, "engine": 1, "worker_api": 2, "tools": 3}


class Finding(NamedTuple):
    file: str
    line: int  # 0: the whole file
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


# --- Rules: each yields (line, text) for one file ---------------------------------------------------------------------
def spdx(source: Source) -> Iterator[tuple[int, str]]:
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in source.lines[:3]):
        yield 1, "no SPDX line at the top"


def size(source: Source) -> Iterator[tuple[int, str]]:
    bound = 600 if source.room == "tests" else 450
    if source.path == "engine/actor.hpp":
        bound = 475  # until it is cut into collaborators
    if len(source.lines) > bound:
        yield 0, f"{len(source.lines)} lines, more than {bound}: split it by meaning"


def name(source: Source) -> Iterator[tuple[int, str]]:
    if pathlib.PurePath(source.path).stem in ("util", "utils", "common", "misc", "helper", "helpers", "manager"):
        yield 0, "a file's name says what it holds"
    if source.is_cxx and not re.fullmatch(r"[a-z0-9_]+\.[a-z]+", pathlib.PurePath(source.path).name):
        yield 0, "file names are snake_case"


def include_rank(source: Source) -> Iterator[tuple[int, str]]:
    """shm <- engine <- worker_api <- tools; tests and bench see all, and no room sees them."""
    if not source.is_cxx:
        return
    for line, included in source.includes:
        room = "worker_api" if included.startswith("ojs_shm/") else included.partition("/")[0]
        if source.room in RANK and (room in ("tests", "bench") or RANK.get(room, 0) > RANK[source.room]):
            yield line, f"{source.room} must not include {included}"
        if source.room == "tools" and room == "tools":
            program = included.split("/")[1]
            if program not in ("shell", "metrics", source.path.split("/")[1]):
                yield line, f"a program shares with others through tools/shell and tools/metrics, not {included}"


def once(source: Source) -> Iterator[tuple[int, str]]:
    if source.is_header and not re.search(r"^#(pragma once|ifndef \w+_H)", source.text, re.M):
        yield 1, "no #pragma once"


def atomics_door(source: Source) -> Iterator[tuple[int, str]]:
    """The one door is shm/atomics.hpp, so that tests can stand in it."""
    if source.room not in SHIPPED or source.path == "shm/atomics.hpp" or not source.is_cxx:
        return
    for line, code in source.code_lines():
        if re.search(r"#\s*include\s*<atomic>|\bmemory_order|\bstd::atomic\b|__atomic_|__sync_", code):
            yield line, "atomics only through shm/atomics.hpp"


WORDS = {
    "shm": ("job jobs queue queues priority priorities retry", "shm knows words and bytes"),
    "engine": ("json printf fprintf snprintf cout cerr pid getpid mmap munmap",
               "engine decides and does no input or output"),
    "worker_api": ("printf fprintf cout cerr", "the library prints nothing"),
}
ALLOWED_WORDS = {"moodycamel", "concurrentqueue", "blockingconcurrentqueue"}
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def words(source: Source) -> Iterator[tuple[int, str]]:
    if source.room not in WORDS or not source.is_cxx:
        return
    banned, reason = WORDS[source.room]
    banned = set(banned.split())
    for line, code in source.code_lines():
        last_words = "abort()" in "".join(source.lines[line:line + 2])  # before the process ends it may say why
        if last_words or re.match(r"\s*#\s*include\b", code):
            continue
        for identifier in re.findall(r"[A-Za-z_]\w*", code):
            used = {part.lower() for part in WORD.findall(identifier)} & banned
            if used and identifier.lower() not in ALLOWED_WORDS:
                yield line, f"'{identifier}': {reason}"


def json_place(source: Source) -> Iterator[tuple[int, str]]:
    """Below tools, JSON exists in one place."""
    if source.room in ("shm", "engine", "worker_api") and not source.path.startswith("worker_api/json/"):
        for line, included in source.includes:
            if re.match(r"boost/json|nlohmann|rapidjson|simdjson", included):
                yield line, "JSON below tools is read and written in worker_api/json alone"


def no_main(source: Source) -> Iterator[tuple[int, str]]:
    if source.room in ("shm", "engine", "worker_api") and source.is_cxx:
        for line, code in source.code_lines():
            if re.search(r"\bint main\s*\(", code):
                yield line, "main() belongs to tools, tests and bench"


ROW_ID = re.compile(r"\b(?:PRI|SUM|QO|FS|BP)[-_](?:[A-Z]\d{1,3}|\d{2,3}|[A-Z]\d)\b")


def row_id(source: Source) -> Iterator[tuple[int, str]]:
    """What ships does not know who tests it."""
    if source.room in SHIPPED and not source.path.startswith("tools/dev/"):
        for line, text in enumerate(source.lines, 1):
            if ROW_ID.search(text) or re.search(r"\btests/(unit|contract|crash|stress|model)\b", text):
                yield line, "shipped code must not name a test or a requirement row"


UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E|X[X]X|HA[C]K|not implemen[t]ed|unimplemen[t]ed|st[u]b)\b")
# The parts of a path that only one machine has, put together here so that this file does not contain them.
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:home|root|work|Users)/[\w.-]+")


def finished(source: Source) -> Iterator[tuple[int, str]]:
    for line, text in enumerate(source.lines, 1):
        if UNFINISHED.search(text):
            yield line, "unfinished by its own words"
        if MACHINE_PATH.search(text):
            yield line, "a path of one machine"


EMPTY_TEST = re.compile(r"\bDISABLED_|\bEXPECT_TRUE\(true\)|\bSUCCEED\(\)|\bsleep_(?:for|until)\b|\bu?sleep\s*\(")


def honest_test(source: Source) -> Iterator[tuple[int, str]]:
    if source.room != "tests" or not source.is_cxx:
        return
    for line, code in source.code_lines():
        if EMPTY_TEST.search(code):
            yield line, "a test that sleeps, is switched off or asserts nothing"
        if "GTEST_SKIP" in code and "NOT RUN" not in " ".join(source.lines[line - 1:line + 2]):
            yield line, "a skip says NOT RUN and why"


def stale_breaks() -> Iterator[Finding]:
    """A row of the mutants' table whose text has gone breaks nothing."""
    for mutant in mutants.read_table():
        path = ROOT / mutant.file
        times = path.read_text().count(mutant.text) if path.is_file() else 0
        if times != 1:
            table = str(mutants.TABLE.relative_to(ROOT))
            yield Finding(table, 0, f"{mutant.id}: its text occurs {times} times in {mutant.file}, not once")


RULES: list[Callable] = [spdx, size, name, include_rank, once, atomics_door, words, json_place, no_main, row_id,
                         finished, honest_test]


def main() -> int:
    arguments = set(sys.argv[1:])
    if arguments - {"--no-headers", "--clang"}:
        print(__doc__, file=sys.stderr)
        return 2
    sources = read_tree()
    findings = [Finding(source.path, line, text) for source in sources for rule in RULES for line, text in rule(source)]
    findings += [Finding(*found) for found in tidy_atomics.pairs(sources)]
    findings += [Finding(*found) for found in tidy_atomics.crash_points(sources)]
    findings += [Finding(*found) for found in tidy_operations.everywhere(sources)]
    findings += [Finding(*found) for found in tidy_documents.all_documents(sources)]
    findings += [Finding(*found) for found in tidy_layout.all_of_the_layout(sources)]
    findings += stale_breaks()
    if "--no-headers" not in arguments:
        findings += [Finding(*found) for found in tidy_headers.compile_alone(sources)]
    if "--clang" in arguments:
        findings += [Finding(*found) for found in tidy_headers.clang_tidy(sources)]
    for finding in sorted(set(findings)):
        print(finding)
    for path, line, text in tidy_atomics.unexplained_relaxed(sources):
        print(f"warning: {path}:{line}: {text}")
    print(tidy_atomics.tally(sources))
    bad = len({finding.file for finding in findings})
    good = len(sources) - len({finding.file for finding in findings} & {source.path for source in sources})
    if not sources:
        print("no source was found, which is a failure")
    print(f"TIDY: {good} passed, {bad or int(not sources)} failed, 0 skipped")
    return 1 if bad or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
