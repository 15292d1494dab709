# SPDX-License-Identifier: Apache-2.0
"""Rules about shared words: both ends of each pair, a crash point at each write, a reason at each relaxed access."""

import collections
import re
from typing import Iterator, NamedTuple

from tidy_source import ROOT, Source

DOOR = "shm/atomics.hpp"
POINTS = "shm/points.hpp"
LABEL = re.compile(r"//.*?\bPAIR ([a-z0-9][a-z0-9-]*(?:, [a-z0-9]+(?:-[a-z0-9]+)+)*)")
WRITE = re.compile(r"(?:\.|->)(store|cas|cas_once|fetch_add|fetch_or|fetch_and|exchange|set|set_ordered|announce)\s*\("
                   r"|\b(set_both|copy_in)\s*(?:<[^<>;()]*>)?\(")
RECEIVER = re.compile(r"(\w+)(?:\[[^\[\]]*\])*$")
DECLARED = r"(?:[\w:]+::)?{}\s+(\w[^;(){{}}]*);"
PLAIN = re.compile(DECLARED.format(r"Plain<[^;{}]*?>"))
ELSEWHERE = re.compile(DECLARED.format(r"(?:LocalFlags?|bitset<[^;{}]*?>)"))  # in this process alone
READ_SIDE = re.compile(r"(?:\.|->)(?:load|load_seq_cst|get_ordered|get)\s*\(")
BOTH_SIDES = re.compile(r"(?:\.|->)(?:cas|cas_once|fetch_add|fetch_or|fetch_and|exchange)\s*\(")
WRITE_SIDE = re.compile(r"(?:\.|->)(?:store|set_ordered|set|announce)\s*\(")
EXEMPT = "NO CRASH POINT:"
Found = tuple[str, int, str]


def pairs(sources: list[Source]) -> Iterator[Found]:
    """A label stands at a release and at its acquire, and docs/memory_ordering.md lists it."""
    places = collections.defaultdict(list)
    for source in sources:
        if source.room in ("shm", "engine", "worker_api") and source.is_cxx:
            for line, text in enumerate(source.lines, 1):
                for label in labels_of(text):
                    places[label].append((source, line))
    listing = ROOT / "docs" / "memory_ordering.md"
    documented = listing.read_text() if listing.exists() else None
    for label, where in sorted(places.items()):
        source, line = where[0]
        if len(where) < 2:
            yield source.path, line, f"PAIR {label} has only one end"
            continue
        sides = [side_of(place, at) for place, at in where]
        if set(sides) == {"release"} or set(sides) == {"acquire"}:
            yield source.path, line, f"PAIR {label} stands only at a {sides[0]}"
        if documented is not None and not re.search(rf"(?<![\w-]){re.escape(label)}(?![\w-])", documented):
            yield source.path, line, f"PAIR {label} is not listed in docs/memory_ordering.md"


def labels_of(text: str) -> list[str]:
    return [label for found in LABEL.findall(text) for label in found.split(", ")]


def side_of(source: Source, line: int) -> str:
    """Looks at the label's own statement: from its line to the first line of code with an access."""
    code = source.code.split("\n")
    for text in code[line - 1:line + 4]:
        if BOTH_SIDES.search(text):
            return "either"
        if WRITE_SIDE.search(text):
            return "release"
        if READ_SIDE.search(text):
            return "acquire"
    return "either"  # behind a function with a name of its own


class Write(NamedTuple):
    source: Source
    line: int
    kind: str  # point, passed on, exempt, bare exemption, plain, bare plain, none
    points: list[str]


def writes(sources: list[Source]) -> Iterator[Write]:
    """Every write of shared memory; the door's signatures make the compiler demand the point, kNone needs a reason. What
    has no point to give, a plain word or bytes, needs its reason there or where the word is declared."""
    sources = [source for source in sources
               if source.room in ("shm", "engine", "worker_api") and source.is_cxx and source.path != DOOR]
    reasons = plain_words(sources)
    flags = {name for source in sources for _, name in declared(source, ELSEWHERE)}
    for source in sources:
        for match in WRITE.finditer(source.code):
            arguments = balanced(source.code, match.end())
            line = source.line_of(match.start())
            named = re.findall(r"\bPoint::k(\w+)", arguments)
            receiver = RECEIVER.search(source.code, 0, match.start())
            if not arguments.strip() or (match[1] == "set" and receiver and receiver[1] in flags):
                continue  # a function of another name's sake, or nothing shared
            if "None" in named:
                yield Write(source, line, "exempt" if has_reason(source, line) else "bare exemption", named)
            elif named:
                yield Write(source, line, "point", named)
            elif re.search(r"\b(?:point_?|after)\b", arguments):
                yield Write(source, line, "passed on", [])
            elif match[1] == "set" and receiver and receiver[1] in reasons:
                yield Write(source, line, "plain" if reasons[receiver[1]] else "bare plain", [])
            elif match[2] == "set_both":
                words = re.findall(r"\.(\w+)\s*,", arguments)
                yield Write(source, line, "plain" if words and all(map(reasons.get, words)) else "bare plain", [])
            elif match[1] == "set" or match[2]:
                yield Write(source, line, "exempt" if has_reason(source, line) else "bare plain", [])
            else:
                yield Write(source, line, "none", [])


def declared(source: Source, kind: re.Pattern) -> Iterator[tuple[int, str]]:
    """Line and name of the words of that kind."""
    for match in kind.finditer(source.code):
        for name in re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"\[[^\]]*\]|=[^,]*", "", match[1])):
            yield source.line_of(match.start()), name


def plain_words(sources: list[Source]) -> dict[str, bool]:
    """By name: whether a reason stands at the declaration, or right above the struct around it."""
    reasons: dict[str, bool] = {}
    for source in sources:
        for line, name in declared(source, PLAIN):
            struct = max((at for at, code in source.code_lines() if at < line and re.match(r"\s*(?:struct|class)\b", code)),
                         default=line)
            reasons[name] = reasons.get(name, True) and (has_reason(source, line) or has_reason(source, struct))
    return reasons


def balanced(code: str, start: int) -> str:
    depth = 1
    for end in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[end], 0)
        if depth == 0:
            return code[start:end]
    return code[start:]


def has_reason(source: Source, line: int) -> bool:
    """On one of the lines of the statement, or in the comment that stands right above it."""
    code = source.code.split("\n")
    ends = re.compile(r"[;:{}]\s*$")
    first = last = line
    while last < len(code) and not ends.search(code[last - 1]):
        last += 1
    while first > 1 and code[first - 2].strip() and not ends.search(code[first - 2]):
        first -= 1
    if EXEMPT in "\n".join(source.lines[first - 1:last]):
        return True
    above = first - 2
    while above >= 0 and source.lines[above].lstrip().startswith("//"):
        if EXEMPT in source.lines[above]:
            return True
        above -= 1
    return EXEMPT in source.lines[above] if above >= 0 else False


def crash_points(sources: list[Source]) -> Iterator[Found]:
    used = set()
    for write in writes(sources):
        used.update(write.points)
        if write.kind == "bare exemption":
            yield write.source.path, write.line, f"Point::kNone needs '// {EXEMPT} reason'"
        elif write.kind == "bare plain":
            yield write.source.path, write.line, f"needs '// {EXEMPT} reason', here or where its word is declared"
        elif write.kind == "none":
            yield write.source.path, write.line, "a shared write without a crash point"
    for source in sources:  # a point may also travel as an argument before it reaches its write
        if source.room in ("shm", "engine", "worker_api") and source.path not in (DOOR, POINTS):
            used.update(re.findall(r"\bPoint::k(\w+)", source.code))
    for source in sources:
        if source.path == POINTS:
            for point in re.findall(r"\bX\((\w+)\)", source.code):
                if point not in used | {"None", "name"}:
                    yield POINTS, 0, f"no write names the crash point {point}"


def unexplained_relaxed(sources: list[Source]) -> Iterator[Found]:
    """A relaxed load says why within the few lines around it."""
    for source in sources:
        if source.room in ("shm", "engine", "worker_api") and source.is_cxx and source.path != DOOR:
            for line, code in source.code_lines():
                around = source.lines[max(0, line - 6):line + 1]
                if "load_relaxed(" in code and not any("//" in text for text in around):
                    yield source.path, line, "a relaxed access without a comment that says why"


def tally(sources: list[Source]) -> str:
    kinds = collections.Counter(write.kind for write in writes(sources))
    labels = {label for source in sources if source.room in ("shm", "engine", "worker_api") and source.is_cxx
              for label in labels_of(source.text)}
    return (f"shared writes: {kinds['point'] + kinds['passed on']} with a crash point, {kinds['exempt']} exempt with a "
            f"reason, {kinds['plain']} of plain words whose declaration has one; {len(labels)} pairs of memory orders")
