# SPDX-License-Identifier: Apache-2.0
"""Compiles each header by itself, and remembers those that passed until they or anything they include changes."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
from typing import Iterator

from tidy_source import ROOT, Source

CACHE = ROOT / "build" / "tidy-headers.json"
PUBLIC = "worker_api/include/"
Found = tuple[str, int, str]


def compile_alone(sources: list[Source]) -> Iterator[Found]:
    headers = [source for source in sources if source.is_header]
    by_include = {source.path: source for source in headers} | {
        source.path.removeprefix(PUBLIC): source for source in headers if source.path.startswith(PUBLIC)}
    try:
        passed = set(json.loads(CACHE.read_text()))
    except (OSError, ValueError):
        passed = set()
    keys = {source.path: fingerprint(source, by_include) for source in headers}
    waiting = [source for source in headers if keys[source.path] not in passed]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        errors = dict(zip((source.path for source in waiting), pool.map(compile_one, waiting)))
    for path, error in errors.items():
        if error:
            yield path, 0, f"does not compile by itself: {error}"
    CACHE.parent.mkdir(exist_ok=True)
    CACHE.write_text(json.dumps(sorted(key for path, key in keys.items() if not errors.get(path))))


def fingerprint(source: Source, by_include: dict[str, Source]) -> str:
    """Over the header and everything of ours that it includes, however deep."""
    seen: dict[str, Source] = {}
    left = [source]
    while left:
        one = left.pop()
        if one.path not in seen:
            seen[one.path] = one
            folder = str(pathlib.PurePath(one.path).parent)
            for _, name in one.includes:
                left += [by_include[path] for path in (name, f"{folder}/{name}") if path in by_include]
    digest = hashlib.sha256(source.path.encode())
    for path in sorted(seen):
        digest.update(seen[path].text.encode())
    return digest.hexdigest()


def compile_one(source: Source) -> str:
    """The first error, or nothing. A public header sees what is installed and nothing else."""
    public = source.path.startswith(PUBLIC)
    include = ["-I", str(ROOT / PUBLIC)] + ([] if public else ["-I", str(ROOT)])
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-Wno-unused-variable"]
    ways = [["g++", "-std=c++20", "-x", "c++"]]
    if source.path.endswith(".h"):
        ways.append(["gcc", "-std=c11", "-pedantic", "-x", "c"])
    for way in ways:
        command = [*way, "-fsyntax-only", *warnings, *include, "-DSPDLOG_FMT_EXTERNAL",
                   "-include", str(ROOT / source.path), "/dev/null"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "error:" in line] or done.stderr.splitlines()
            return lines[0].replace(f"{ROOT}/", "") if lines else "the compiler failed"
    return ""


def clang_tidy(sources: list[Source]) -> Iterator[Found]:
    """Over the files that build/compile_commands.json knows."""
    if not shutil.which("clang-tidy") or not (ROOT / "build" / "compile_commands.json").exists():
        yield "build/compile_commands.json", 0, "clang-tidy needs itself and a build"
        return
    files = [source for source in sources
             if source.path.endswith(".cpp") and source.room in ("shm", "engine", "worker_api")]

    def check(source: Source) -> list[Found]:
        done = subprocess.run(["clang-tidy", "-quiet", "-p", str(ROOT / "build"), str(ROOT / source.path)],
                              capture_output=True, text=True)
        return [(source.path, 0, line.replace(f"{ROOT}/", "")) for line in done.stdout.splitlines()
                if ": warning: " in line or ": error: " in line]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for found in pool.map(check, files):
            yield from found
