# SPDX-License-Identifier: Apache-2.0
"""What the documents say of the code: names of members, tables of files, the list of decisions."""

import re
from typing import Iterator

import requirements
from tidy_source import ROOT, SHIPPED, Source

Found = tuple[str, int, str]


def all_documents(sources: list[Source]) -> Iterator[Found]:
    yield from members(sources)
    yield from names(sources)
    yield from file_tables()
    yield from decisions()
    yield from glossary(sources)
    yield from anchors()


def anchors() -> Iterator[Found]:
    """What docs/requirements.tsv quotes stands in the documents."""
    for row in requirements.read_rows():
        if wrong := requirements.wrong_anchor(row):
            yield "docs/requirements.tsv", 0, f"{row.id}: {wrong}"


def members(sources: list[Source]) -> Iterator[Found]:
    """`Class::member` in a document, or at the head of a model, is a name in the code, and both halves stand in one file."""
    code = [source.code for source in sources if source.is_cxx and source.room in SHIPPED]
    words = {word for part in code for word in re.findall(r"\w+", part)}
    known: dict[str, bool] = {}

    def stands(name: str) -> bool:
        owner, _, member = name.partition("::")
        both = re.compile(rf"\b{owner}\b(?s:.*)\b{member}\b|\b{member}\b(?s:.*)\b{owner}\b")
        if name not in known:
            known[name] = any(owner in part and member in part and both.search(part) for part in code)
        return known[name]

    readmes = [ROOT / room / "README.md" for room in (*SHIPPED, "tests", "bench")]
    for path in [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs/adr").glob("*.md")), *readmes]:
        for line, text in enumerate(path.read_text().splitlines(), 1):
            for name in re.findall(r"`(?:ojs_shm::)?([A-Z]\w+::~?\w+)[^`]*`", text):
                if not stands(name):
                    yield str(path.relative_to(ROOT)), line, f"the code has no {name}"
    for path in sorted((ROOT / "tests/model").glob("*.pml")):
        for line, text in enumerate(path.read_text().splitlines(), 1):
            if not text.startswith("//"):
                break
            for name in re.findall(r"\b[A-Z]\w+::\w+|\b[a-z]\w*_\w+", text):
                if not (stands(name) if "::" in name else name in words):
                    yield str(path.relative_to(ROOT)), line, f"the code has no {name}"


def names(sources: list[Source]) -> Iterator[Found]:
    """What is to be found in the code by the name that stands in the page of crash points is there under it."""
    where = "docs/crash_recovery.md"
    words = {word for source in sources if source.is_cxx and source.room in SHIPPED for word in re.findall(r"\w+", source.text)}
    for line, text in enumerate((ROOT / where).read_text().splitlines(), 1):
        for name in re.findall(r"`([a-z]\w*_\w+|[A-Z]\w+)(?:\(\))?`", text):
            if name not in words:
                yield where, line, f"the code has no {name}"


# Where the files of a room stand: in itself, or in folders that its table names with them ("roles/admin.cpp").
FOLDERS = {"shm": ("",),
           "engine": ("", "audit", "bounds", "crons", "enqueue", "fetch", "limits", "moves", "observing", "pools", "rules", "straight", "supervision",
                      "tables", "tenants", "unique", "workers", "workflows"),
           "worker_api": ("c_api", "cron", "include/ojs_shm", "json", "python/ojs_shm", "roles", "runtime", "simulation"),
           "tools": ("broker", "cli", "exporter", "gateway", "gateway/description", "gateway/intake", "gateway/page", "gateway/replies",
                     "gateway/routes", "gateway/serving", "gateway/stats", "gateway/streams", "metrics", "shell", "top")}
# These have no table of files: what is in them is said in one row.
UNLISTED = {"worker_api": ("include", "packaging", "python"), "tools": ("dev",)}


def file_tables() -> Iterator[Found]:
    """The tables of a room's README name each of its files, itself or as the other half of a header, and no other."""
    for room, folders in FOLDERS.items():
        readme = f"{room}/README.md"
        rows = [row for row in (ROOT / readme).read_text().splitlines() if row.startswith("| `")]
        named = {name for row in rows for name in re.findall(r"`([\w/]+\.(?:[ch]pp|h|py))`", row.split("|")[1])}
        present = {str(path.relative_to(ROOT / room)) for folder in folders for ending in ("[ch]pp", "h", "py")
                   for path in (ROOT / room / folder).glob(f"*.{ending}")}
        stems = {name.rpartition(".")[0] for name in named}
        for name in sorted(named - present):
            yield readme, 0, f"there is no {name}"
        for name in sorted(name for name in present if name.rpartition(".")[0] not in stems):
            yield readme, 0, f"its table lacks {name}"
        known = {folder.split("/")[0] for folder in folders} | set(UNLISTED.get(room, ()))
        for path in sorted((ROOT / room).iterdir()):
            if path.is_dir() and path.name not in known | {"__pycache__"}:
                yield readme, 0, f"its folder {path.name}/ is not held against a table: tools/dev/tidy_documents.py"


def decisions() -> Iterator[Found]:
    """docs/README.md lists every page and every decision; a decision has a number of its own."""
    index = (ROOT / "docs/README.md").read_text()
    for path in sorted((ROOT / "docs").glob("*.md")):
        if path.name != "README.md" and f"({path.name})" not in index:
            yield "docs/README.md", 0, f"it does not list {path.name}"
    numbers: dict[str, str] = {}
    for path in sorted((ROOT / "docs/adr").glob("*.md")):
        number, where = path.name[:4], f"docs/adr/{path.name}"
        if f"[{number}](adr/{path.name})" not in index:
            yield "docs/README.md", 0, f"its decisions lack {path.name}"
        if number in numbers:
            yield where, 0, f"{numbers[number]} has the same number"
        if not path.read_text().startswith(f"# {int(number)}. "):
            yield where, 1, f"its title does not begin with {int(number)}"
        numbers[number] = path.name
    for name in re.findall(r"\(adr/([\w-]+\.md)\)", index):
        if not (ROOT / "docs/adr" / name).is_file():
            yield "docs/README.md", 0, f"there is no decision {name}"


def glossary(sources: list[Source]) -> Iterator[Found]:
    """Each term stands once, in order, and the shipped code uses it: a word that it has dropped is not explained."""
    where = "docs/glossary.md"
    code = "\n".join(source.text for source in sources if source.is_cxx and source.room in SHIPPED).lower()
    before = ""
    for line, text in enumerate((ROOT / where).read_text().splitlines(), 1):
        found = re.match(r"\| ([^|]+) \| .* \|$", text)
        if not found or found[1] in ("word", "---"):
            continue
        term = found[1].lower()
        if term <= before:
            yield where, line, f"'{term}' stands after '{before}': once each, in order"
        before = term
        words = re.findall(r"[a-z][a-z-]+", re.sub(r"\(.*?\)", "", term))
        for word in words:
            if word.rstrip("s") not in code:
                yield where, line, f"the code does not say '{word}'"
