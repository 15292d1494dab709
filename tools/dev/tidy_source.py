# SPDX-License-Identifier: Apache-2.0
"""The source files as tidy sees them: as text, and as code without comments and strings."""

import dataclasses
import functools
import pathlib
import re
from typing import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROOMS = ("shm", "engine", "worker_api", "tools", "tests", "bench")
SHIPPED = ("shm", "engine", "worker_api", "tools")
CXX = {".cpp", ".hpp", ".h", ".c"}
OTHER = {".py", ".sh", ".js", ".mjs", ".cmake", ".rs"}
TOKEN = re.compile(  # a comment, a raw string, a string, a character; not the ' between digits
    r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])*'""", re.S)


@dataclasses.dataclass(frozen=True)
class Source:
    path: str  # from the project's root
    text: str

    @functools.cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @functools.cached_property
    def code(self) -> str:
        """The text with comments blanked and strings emptied; every line stays where it is."""
        def blank(match: re.Match) -> str:
            found = match[0]
            lines = "\n" * found.count("\n")
            if found.startswith("/"):
                return lines or " "
            return found[0] + lines + found[-1] if not found.startswith("R") else '""' + lines

        if not self.is_cxx:
            return self.text
        text = re.sub(r'^(\s*#\s*include\s*)"([^"\n]*)"', r"\1<\2>", self.text, flags=re.M)
        return TOKEN.sub(blank, text)

    def code_lines(self) -> Iterator[tuple[int, str]]:
        return enumerate(self.code.split("\n"), 1)

    @functools.cached_property
    def includes(self) -> list[tuple[int, str]]:
        found = ((line, re.match(r"\s*#\s*include\s*[<\"]([^>\"]+)", text)) for line, text in enumerate(self.lines, 1))
        return [(line, match[1]) for line, match in found if match]

    @property
    def room(self) -> str:
        return self.path.partition("/")[0] if "/" in self.path else ""

    @property
    def is_cxx(self) -> bool:
        return pathlib.PurePath(self.path).suffix in CXX

    @property
    def is_header(self) -> bool:
        return self.path.endswith((".hpp", ".h"))

    def line_of(self, offset: int) -> int:
        return self.code.count("\n", 0, offset) + 1


def read_tree() -> list[Source]:
    paths = [path for room in ROOMS for path in (ROOT / room).rglob("*")
             if path.is_file() and (path.suffix in CXX | OTHER or path.name == "CMakeLists.txt")
             and not {"node_modules", "__pycache__", "build"} & set(path.relative_to(ROOT).parts)]
    paths += [path for path in (ROOT / "CMakeLists.txt", ROOT / "dev", ROOT / ".ci" / "run") if path.is_file()]
    return [Source(str(path.relative_to(ROOT)), path.read_text(errors="replace")) for path in sorted(paths)]
