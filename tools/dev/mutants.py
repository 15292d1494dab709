#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev mutants: puts each listed break into a copy of the source and sees that its test turns red.

usage: ./dev mutants [--only ID] [--rows | --core] [-j N]

Prints id, file:line, the break and its killer, separated by tabs. The table, tests/mutants/mutants.tsv, says what its
columns mean. A killer that hangs for a minute on the break has noticed it as well. A break that does not apply or does
not compile, and a killer that finds no case or is red without the break, count as survived: they prove nothing.
"""

import argparse
import concurrent.futures
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import NamedTuple

import results

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests" / "mutants" / "mutants.tsv"
HANG_SECONDS = 60


class Mutant(NamedTuple):
    id: str
    stands_for: list[str]
    file: str
    text: str
    replacement: str
    killer: str
    justified: str

    @property
    def rows(self) -> list[str]:
        return [name for name in self.stands_for if not name.startswith("core:")]


def read_table() -> list[Mutant]:
    mutants = []
    for number, line in enumerate(TABLE.read_text().splitlines() if TABLE.exists() else [], 1):
        if line.strip() and not line.startswith("#"):
            columns = line.split("\t")
            if len(columns) not in (6, 7):
                raise SystemExit(f"{TABLE.relative_to(ROOT)}:{number}: {len(columns)} columns instead of 6 or 7")
            id_, rows, file, text, replacement, killer, justified = (columns + [""])[:7]
            mutants.append(Mutant(id_, rows.split(","), file, text, replacement, killer, justified))
    ids = [mutant.id for mutant in mutants]
    if len(ids) != len(set(ids)):
        raise SystemExit(f"{TABLE.relative_to(ROOT)}: an id is used twice: {max(ids, key=ids.count)}")
    return mutants


class Broken(Exception):
    """The mutant proves nothing, and why."""


class Tree:
    """A copy of the project with a build of its own. One thread at a time."""

    def __init__(self, folder: pathlib.Path, jobs: int):
        self.root, self.build, self.jobs = folder, folder / "build", jobs
        self.environment = os.environ | {
            "CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1", "TMPDIR": str(folder / "tmp"),
            "OJS_SHM_BUILD": str(self.build), "OJS_SHM_BIN_DIR": str(self.build / "bin"),
        }
        self.green: dict[str, str] = {}  # killer -> why it proves nothing, or empty
        shutil.copytree(ROOT, folder, symlinks=True, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("build", ".git", "node_modules", "__pycache__"))
        (folder / "tmp").mkdir()
        launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        done = self.run(["cmake", "-G", "Ninja", "-S", str(folder), "-B", str(self.build), "-DOJS_SHM_WERROR=OFF",
                         "-DOJS_SHM_UNITY=OFF", "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1", *launcher], 120)
        if done.returncode != 0:
            raise SystemExit(f"mutants: the copy does not configure\n{done.stdout}")

    def run(self, command: list[str], seconds: int) -> subprocess.CompletedProcess:
        """Raises TimeoutExpired after killing the command with everything that it started."""
        process = subprocess.Popen(command, cwd=self.root, env=self.environment, stdin=subprocess.DEVNULL, text=True,
                                   errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   start_new_session=True)
        try:
            output, _ = process.communicate(timeout=seconds)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        return subprocess.CompletedProcess(command, process.returncode, output)

    def compile(self, killer: str) -> tuple[bool, str]:
        program = killer.partition(":")[0]
        target = "all" if program in ("run", "compile") else program
        done = self.run(["cmake", "--build", str(self.build), "--target", target, "-j", str(self.jobs)], 1200)
        return done.returncode == 0, done.stdout

    def is_green(self, killer: str, report: pathlib.Path | None = None) -> bool:
        program, _, rest = killer.partition(":")
        if program == "compile":
            return True
        if program == "run":
            return self.run(["bash", "-c", rest], HANG_SECONDS).returncode == 0
        command = [str(self.build / "bin" / program), f"--gtest_filter={rest}", "--gtest_fail_fast", "--gtest_brief=1"]
        if report:
            command.append(f"--gtest_output=xml:{report}")
        return self.run(command, HANG_SECONDS).returncode == 0

    def check_killer(self, killer: str) -> None:
        """Without any break the killer must find a case and be green."""
        if killer not in self.green:
            self.green[killer] = self.why_useless(killer)
        if self.green[killer]:
            raise Broken(self.green[killer])

    def why_useless(self, killer: str) -> str:
        compiled, log = self.compile(killer)
        if not compiled:
            return "the tree does not build without the break: " + first_error(log)
        report = self.root / "tmp" / "killer.xml"
        report.unlink(missing_ok=True)
        try:
            if not self.is_green(killer, report):
                return "the killer is red without the break"
        except subprocess.TimeoutExpired:
            return f"the killer takes longer than {HANG_SECONDS} s without the break"
        if killer.partition(":")[0] not in ("run", "compile"):
            if not any(case.outcome == "passed" for case in results.read(report)):
                return "the killer finds no case"
        return ""

    def try_mutant(self, mutant: Mutant) -> tuple[int, bool, str]:
        """Returns the line, whether it was killed, and how."""
        path = self.root / mutant.file
        source = path.read_text() if path.is_file() else ""
        if source.count(mutant.text) != 1 or not mutant.text:
            raise Broken(f"the text occurs {source.count(mutant.text)} times in the file, not once")
        line = source[:source.index(mutant.text)].count("\n") + 1
        self.check_killer(mutant.killer)
        path.write_text(source.replace(mutant.text, mutant.replacement))
        try:
            compiled, log = self.compile(mutant.killer)
            if mutant.killer == "compile":
                return line, not compiled, ""
            if not compiled:
                raise Broken("it does not compile: " + first_error(log))
            try:
                return line, not self.is_green(mutant.killer), ""
            except subprocess.TimeoutExpired:
                return line, True, " (hang)"
        finally:
            path.write_text(source)


def first_error(log: str) -> str:
    return next((line for line in log.splitlines() if "error" in line.lower()), log[-200:]).strip()[:200]


def judge(mutant: Mutant, tree: Tree) -> tuple[str, str]:
    """The tally it belongs to, and its line."""
    where, change = mutant.file, f"{mutant.text.strip()} -> {mutant.replacement.strip()}"
    try:
        line, killed, how = tree.try_mutant(mutant)
        where = f"{mutant.file}:{line}"
        if killed:
            tally, verdict = "killed", mutant.killer + how
        elif mutant.justified:
            tally, verdict = "justified", f"justified: {mutant.justified}"
        else:
            tally, verdict = "survived", f"SURVIVED {mutant.killer}"
    except Broken as why:
        tally, verdict = "survived", f"PROVES NOTHING {mutant.killer}: {why}"
    return tally, "\t".join([mutant.id, where, change, verdict])


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev mutants", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="ID", action="append", help="a mutant, or a row with all its mutants")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--rows", action="store_true", help="only those that stand for requirement rows")
    kind.add_argument("--core", action="store_true", help="only those that stand for the engine's own promises")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, metavar="N", help="copies to work on at once")
    options = parser.parse_args()

    chosen = [mutant for mutant in read_table()
              if not (options.only and mutant.id not in options.only and not set(mutant.stands_for) & set(options.only))
              and not (options.rows and not mutant.rows)
              and not (options.core and len(mutant.rows) == len(mutant.stands_for))]
    tally = {"killed": 0, "survived": 0, "justified": 0}
    with tempfile.TemporaryDirectory(prefix="ojs-shm-mutants.") as temporary:
        # Neighbours in the table share a killer and often a file; each copy takes the next one that is left.
        left: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
        for mutant in chosen:
            left.put(mutant)
        copies = min(max(options.j, 1), len(chosen))

        def work(number: int) -> None:
            tree = Tree(pathlib.Path(temporary) / str(number), max(1, (os.cpu_count() or 1) // copies))
            while not left.empty():
                try:
                    mutant = left.get_nowait()
                except queue.Empty:
                    return
                kind, line = judge(mutant, tree)
                tally[kind] += 1
                print(line, flush=True)

        if copies:
            with concurrent.futures.ThreadPoolExecutor(copies) as pool:
                for job in [pool.submit(work, number) for number in range(copies)]:
                    job.result()
    if not chosen:
        print("no mutant was found, which is a failure")
    print(f"{tally['killed']} killed, {tally['survived']} survived, {tally['justified']} justified")
    failed = tally["survived"] + int(not chosen)
    print(f"MUTANTS: {tally['killed']} passed, {failed} failed, {tally['justified']} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
