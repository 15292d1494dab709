# SPDX-License-Identifier: Apache-2.0
"""The files of the demonstration, their priorities by size, and what sha256sum says of them."""

import json
import os
import pathlib
import subprocess

LEVELS = ((1 << 10, "below 1 KiB"), (4 << 10, "below 4 KiB"), (16 << 10, "below 16 KiB"), (64 << 10, "below 64 KiB"),
          (1 << 62, "the rest"))
LARGEST = 32 << 20  # a few huge files would make the run longer without showing more


def choose_files(root: pathlib.Path, wanted: int) -> list[str]:
    """Readable regular files, evenly spread over the tree, in a fixed order."""
    found = []
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            if plain(path) and not os.path.islink(path) and os.path.isfile(path) and os.access(path, os.R_OK) \
                    and os.path.getsize(path) <= LARGEST:
                found.append(path)
    if len(found) <= wanted:
        return found
    return [found[index * len(found) // wanted] for index in range(wanted)]


def plain(path: str) -> bool:
    """JSON writes it as it stands."""
    try:
        return json.dumps(path, ensure_ascii=False) == f'"{path}"' and path.encode() is not None
    except UnicodeEncodeError:
        return False


def level_of(path: str) -> int:
    size = os.path.getsize(path) if path else -1
    return next(level for level, (bound, _) in enumerate(LEVELS) if size < bound)


def envelopes(files: list[str]) -> str:
    return "".join(json.dumps({"type": "file.hash", "queue": "hash", "args": [path], "priority": level_of(path),
                               "retry": {"max_attempts": 50, "initial_interval": "PT0.1S"}}, ensure_ascii=False) + "\n"
                   for path in files)


def digests_of(files: list[str]) -> dict[str, str]:
    given = "".join(path + "\0" for path in files).encode()
    said = subprocess.run(["xargs", "-0", "sha256sum", "--zero", "--"], input=given, stdout=subprocess.PIPE, check=True)
    lines = (line.decode().split("  ", 1) for line in said.stdout.split(b"\0") if line)
    return {path: digest for digest, path in lines}
