#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev mutants: puts each listed break into a copy of the source and sees that its test turns red.

usage: ./dev mutants [--only ID] [--rows | --core] [--part N/M] [-j N]

Prints id, file:line, the break, its killer, and the seconds of compiling and of running, separated by tabs. The table,
tests/mutants/mutants.tsv, says what its columns mean. A killer that takes a minute and ten times as long as without the
break has noticed it as well. A break that does not apply or does not compile, and a killer that finds no case or is red
without the break, count as survived: they prove nothing.
"""

import argparse
import concurrent.futures
import contextlib
import fnmatch
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

import results

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests" / "mutants" / "mutants.tsv"
MOST_SECONDS = 1200  # of a killer without a break
BUILD_SECONDS = 3600
# Most programs are compiled without optimisation, since they run a few short cases; these run long ones.
OPTIMISED = ("crash_tests", "instructions_tests", "linearizability_tests", "relacy_tests", "schedules_tests")

HTTP_NEEDS = ["ojs-shm", "ojs-shm-broker", "ojs-shm-gateway"]  # what commands start: all of them are tests over HTTP


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


class Stopped(Exception):
    """The whole run was ended from outside."""


def end_session(session: int) -> None:
    """Kills what a command has left, also in process groups of its own: a broken program may never end by itself."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(ProcessLookupError):
                if os.getsid(int(entry.name)) == session:
                    os.kill(int(entry.name), signal.SIGKILL)


class Commands:
    """The commands that run now, so that none of them outlives the run."""

    def __init__(self):
        self.lock, self.running, self.stopped = threading.Lock(), set(), False

    def run(self, command: list[str], seconds: float, folder: pathlib.Path, environment) -> tuple[int, str]:
        """Status and output. Raises TimeoutExpired after killing the command with everything that it started."""
        with tempfile.TemporaryFile("w+", errors="replace") as output:  # a pipe ends with the last that it left
            with self.lock:
                if self.stopped:
                    raise Stopped
                process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                           stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
                self.running.add(process)
            try:
                status = process.wait(timeout=seconds)
            finally:
                end_session(process.pid)
                process.wait()
                with self.lock:
                    self.running.discard(process)
            if self.stopped:
                raise Stopped
            output.seek(0)
            return status, output.read()

    def stop(self) -> None:
        with self.lock:
            self.stopped = True
            for process in self.running:
                end_session(process.pid)


class Tree:
    """A copy of the project with a build of its own. One thread at a time."""

    def __init__(self, folder: pathlib.Path, commands: Commands):
        self.root, self.commands, self.jobs = folder, commands, os.cpu_count() or 1
        build = folder / "build"
        self.environment = os.environ | {
            "CCACHE_BASEDIR": str(folder), "CCACHE_NOHASHDIR": "1", "TMPDIR": str(folder / "tmp"),
            "OJS_SHM_BUILD": str(build), "OJS_SHM_BIN_DIR": str(build / "bin"),
        }
        self.green: dict[tuple[str, bool], str] = {}  # killer, few -> why it proves nothing, or empty
        self.few = False  # only the files that hold the killer's tests are built
        self.seconds = {"compile": 0.0, "run": 0.0}  # of the mutant at hand
        self.patience: dict[str, float] = {}  # killer -> seconds
        shutil.copytree(ROOT, folder, symlinks=True, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("build", ".git", "node_modules", "__pycache__"))
        (folder / "tmp").mkdir()
        options = ["-DOJS_SHM_WERROR=OFF"]
        if shutil.which("ccache"):
            options.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
        if shutil.which("ld.lld"):
            options += [f"-DCMAKE_{kind}_LINKER_FLAGS=-fuse-ld=lld" for kind in ("EXE", "SHARED")]
        # A break of a source file recompiles that alone; a break of a header nearly all of a build of a few files.
        for program in ("unit_tests", OPTIMISED[0]):
            for self.few in (True, False):
                level, unity = "-O1" if program in OPTIMISED else "-O0", "ON" if self.few else "OFF"
                status, log = self.run(["cmake", "-G", "Ninja", "-S", str(folder), "-B", str(self.build_of(program)),
                                        *options, f"-DOJS_SHM_UNITY={unity}",
                                        f"-DCMAKE_CXX_FLAGS_RELWITHDEBINFO={level}"], 120)
                if status != 0:
                    raise SystemExit(f"mutants: the copy does not configure\n{log}")

    def build_of(self, program: str) -> pathlib.Path:
        return self.root / (("build_optimised" if program in OPTIMISED else "build") + "_few" * self.few)

    def run(self, command: list[str], seconds: float) -> tuple[int, str]:
        return self.commands.run(command, seconds, self.root, self.environment)

    def compile(self, killer: str) -> tuple[bool, str]:
        program, _, tests = killer.partition(":")
        targets = {"run": HTTP_NEEDS, "compile": ["all"]}.get(program, [program])
        build = str(self.build_of(program))
        with timed(self.seconds, "compile"):
            if self.few:
                files = "|".join(files_with(tests, self.root / "tests" / program.removesuffix("_tests")))
                self.run(["cmake", f"-DOJS_SHM_TEST_FILES=/({files})$" if files else "-UOJS_SHM_TEST_FILES", build], 120)
            status, log = self.run(["cmake", "--build", build, "--target", *targets, "-j", str(self.jobs)], BUILD_SECONDS)
        return status == 0, log

    def is_green(self, killer: str, report: pathlib.Path | None = None) -> bool:
        patience = self.patience.get(killer, MOST_SECONDS)
        program, _, rest = killer.partition(":")
        if program == "compile":
            return True
        if program == "run":
            return self.run(["bash", "-c", rest], patience)[0] == 0
        command = [str(self.build_of(program) / "bin" / program), f"--gtest_filter={rest}", "--gtest_fail_fast",
                   "--gtest_brief=1"]
        if report:
            command.append(f"--gtest_output=xml:{report}")
        return self.run(command, patience)[0] == 0

    def check_killer(self, killer: str) -> None:
        """Without any break the killer must find a case and be green."""
        if (killer, self.few) not in self.green:
            self.green[killer, self.few] = self.why_useless(killer)
        if self.green[killer, self.few]:
            raise Broken(self.green[killer, self.few])

    def why_useless(self, killer: str) -> str:
        compiled, log = self.compile(killer)
        if not compiled:
            return "the tree does not build without the break: " + first_error(log)
        report = self.root / "tmp" / "killer.xml"
        report.unlink(missing_ok=True)
        begin = time.monotonic()
        try:
            if not self.is_green(killer, report):
                return "the killer is red without the break"
        except subprocess.TimeoutExpired:
            return f"the killer takes longer than {MOST_SECONDS} s without the break"
        self.patience[killer] = 60 + 10 * (time.monotonic() - begin)
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
        self.few = path.suffix == ".hpp" and mutant.killer.partition(":")[0] not in ("run", "compile", "contract_tests")
        self.check_killer(mutant.killer)
        self.seconds = {"compile": 0.0, "run": 0.0}
        path.write_text(source.replace(mutant.text, mutant.replacement))
        try:
            compiled, log = self.compile(mutant.killer)
            if mutant.killer == "compile":
                return line, not compiled, ""
            if not compiled:
                raise Broken("it does not compile: " + first_error(log))
            try:
                with timed(self.seconds, "run"):
                    return line, not self.is_green(mutant.killer), ""
            except subprocess.TimeoutExpired:
                return line, True, " (hang)"
        finally:
            path.write_text(source)


def files_with(tests: str, room: pathlib.Path) -> list[str]:
    """The names of the files of a room that hold tests which the filter chooses; none: it goes by parameters."""
    names = []
    for path in room.rglob("*_test.cpp"):
        cases = [".".join(case) for case in re.findall(r"^TEST(?:_[FP])?\((\w+),\s*(\w+)\)", path.read_text(), re.M)]
        if any(fnmatch.fnmatchcase(case, pattern) for case in cases for pattern in tests.split(":")):
            names.append(path.name)
    return names


@contextlib.contextmanager
def timed(seconds: dict[str, float], what: str):
    begin = time.monotonic()
    try:
        yield
    finally:
        seconds[what] += time.monotonic() - begin


def first_error(log: str) -> str:
    return next((line for line in log.splitlines() if re.search(r"\berror\b[: ]|undefined reference", line)), log[-200:]).strip()[:200]


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
    cost = f"{tree.seconds['compile']:.0f} + {tree.seconds['run']:.0f} s"
    return tally, "\t".join([mutant.id, where, change, verdict, cost])


def what_it_needs(mutant: Mutant) -> tuple[bool, str, str]:
    """Those that need the same files built stand together: a source file's break first, then a header's."""
    program, _, tests = mutant.killer.partition(":")
    return mutant.file.endswith(".hpp"), program, tests


def try_all(chosen: list[Mutant], folder: pathlib.Path, commands: Commands, copies: int, tally: dict[str, int]) -> None:
    left: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    for mutant in chosen:
        left.put(mutant)
    # The first copy is built by all processors; with ccache the others then cost little. Without it, one must do.
    copies = min(copies if shutil.which("ccache") else 1, len(chosen))
    trees = [Tree(folder / "0", commands)] if chosen else []
    if copies > 1:
        for killer in dict.fromkeys(mutant.killer.partition(":")[0] + ":" for mutant in chosen):
            trees[0].compile(killer)
    trees += [Tree(folder / str(number), commands) for number in range(1, copies)]

    def work(tree: Tree) -> None:
        tree.jobs = max(1, tree.jobs // copies)
        while True:
            try:
                kind, line = judge(left.get_nowait(), tree)
            except (queue.Empty, Stopped):
                return
            tally[kind] += 1
            print(line, flush=True)

    pool = concurrent.futures.ThreadPoolExecutor(max(copies, 1))
    try:
        for task in [pool.submit(work, tree) for tree in trees]:
            task.result()
    except BaseException:
        commands.stop()
        raise
    finally:
        pool.shutdown()


def part_of(text: str) -> tuple[int, int]:
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text} is not N/M, such as 2/3")
    return int(number), int(parts)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev mutants", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="ID", action="append", help="a mutant, or a row with all its mutants")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--rows", action="store_true", help="only those that stand for requirement rows")
    kind.add_argument("--core", action="store_true", help="only those that stand for the engine's own promises")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1, metavar="N", help="copies to work on at once")
    parser.add_argument("--part", metavar="N/M", default="1/1", type=part_of, help="the N-th of M parts of them")
    options = parser.parse_args()

    chosen = [mutant for mutant in read_table()
              if not (options.only and mutant.id not in options.only and not set(mutant.stands_for) & set(options.only))
              and not (options.rows and not mutant.rows)
              and not (options.core and len(mutant.rows) == len(mutant.stands_for))]
    number, parts = options.part
    chosen = sorted(chosen, key=what_it_needs)
    chosen = chosen[len(chosen) * (number - 1) // parts:len(chosen) * number // parts]
    tally = {"killed": 0, "survived": 0, "justified": 0}
    commands = Commands()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="ojs-shm-mutants.") as temporary:
        try:
            try_all(chosen, pathlib.Path(temporary), commands, options.j, tally)
        except KeyboardInterrupt:
            commands.stop()
            return 2
    if not chosen:
        print("no mutant was found, which is a failure")
    print(f"{tally['killed']} killed, {tally['survived']} survived, {tally['justified']} justified")
    failed = tally["survived"] + int(not chosen)
    print(f"MUTANTS: {tally['killed']} passed, {failed} failed, {tally['justified']} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
