#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./dev model [--short] [--only MODEL[/RUN]] [--trail]: searches the protocol models of tests/model with SPIN.

Each model must pass a full search without an error; each of its mutants, a deviation of a line, must fail by what
deaths.py says of it. --trail prints the steps that lead to an error. Works in a temporary directory.
"""

import argparse
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

from cases import MODELS, Run
from deaths import broke, death_of, strangers

HERE = pathlib.Path(__file__).resolve().parent
MEMORY_MB = 3800
DEPTH = 200_000
MUTANT = "MUTANT_"
SECONDS = 900  # for one search: long past anything that is well


def command(*words: str, cwd: pathlib.Path) -> str:
    done = subprocess.run(words, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", timeout=SECONDS)
    if done.returncode != 0:
        raise RuntimeError(f"{words[0]} ended with {done.returncode}: {done.stdout.strip()[-400:]}")
    return done.stdout


def defines(run: Run) -> list[str]:
    names = run.bounds.split()
    if run.must_fail:
        names.append(run.key.partition(".")[0])
    return [f"-D{name}" for name in names]


def search(model: str, run: Run, folder: pathlib.Path) -> str:
    """What pan printed."""
    source = folder / f"{model}.pml"
    source.write_text((HERE / source.name).read_text())
    command("spin", "-a", *defines(run), source.name, cwd=folder)
    mode = "-DNP" if run.liveness else "-DSAFETY"
    # A mutant fails early: there the compiler is the longer part.
    command("gcc", "-O0" if run.must_fail else "-O1", "-w", mode, "-DCOLLAPSE", f"-DMEMLIM={MEMORY_MB}", "-o", "pan",
            "pan.c", cwd=folder)
    return command("./pan", f"-m{DEPTH}", "-w22", *(["-l"] if run.liveness else []), cwd=folder)


def verdict(model: str, run: Run, printed: str) -> tuple[bool, str]:
    """Whether it is as it must be, and what was seen."""
    errors = re.search(r"errors: (\d+)", printed)
    stored = re.search(r"(\d+) states, stored", printed)
    said = re.search(r"^pan:\d*: (?!wrote|elapsed|rate|resizing|reached)(.*?)(?: \(at depth \d+\))?$", printed, re.M)
    if not errors or not stored:
        return False, "no result: " + printed.strip()[-200:]
    seen = f"{int(stored[1]):>10,} states"
    if run.must_fail:
        promise = death_of(model, run.key.removeprefix(MUTANT))
        if errors[1] == "0" or not said:
            return False, seen + ", found no error"
        if not broke(promise, said[1]):
            return False, seen + f", dies of something else: {said[1]}, not of {promise}"
        return True, seen + f", fails: {said[1]}"
    truncated = re.search(r"Search not completed|max search depth too small|MEMLIM|out of memory|truncated", printed)
    if errors[1] != "0" or truncated:
        return False, seen + ": " + (said[1] if said else truncated[0] if truncated else "error")
    return True, seen


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev model", description=__doc__.partition("\n\n")[2])
    parser.add_argument("--short", action="store_true", help="smaller bounds and fewer mutants; what ./dev test runs")
    parser.add_argument("--only", default="", metavar="MODEL[/RUN]")
    parser.add_argument("--trail", action="store_true", help="print the steps to each error")
    options = parser.parse_args()
    passed = 0
    failed = [f"{name}: deaths.py names it, and cases.py does not" for name in strangers(
        {model: {run.key.removeprefix(MUTANT) for run in runs if run.must_fail} for model, runs in MODELS.items()})]
    for model, runs in MODELS.items():
        for run in runs:
            name = f"{model}/{run.key}"
            if not (name + "/").startswith(options.only.rstrip("/") + "/" if options.only else ""):
                continue
            if options.short and not run.short:
                continue
            began = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="ojs-shm-model-") as path:
                folder = pathlib.Path(path)
                try:
                    printed = search(model, run, folder)
                    good, seen = verdict(model, run, printed)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    good, seen = False, str(error)
                if options.trail and (folder / f"{model}.pml.trail").exists():
                    print(command("spin", "-t", "-p", "-g", *defines(run), f"{model}.pml", cwd=folder))
            took = time.monotonic() - began
            print(f"{'ok' if good else 'not ok'} {name:<42} {took:5.1f} s {seen}\n     {run.words}", flush=True)
            if good:
                passed += 1
            else:
                failed.append(name)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"\n{used.ru_utime + used.ru_stime:.0f} s of processor time, at most {used.ru_maxrss // 1024} MiB")
    for name in failed:
        print(f"FAILED {name}")
    if passed == 0 and not failed:
        print("no case was found, which is a failure")
        failed.append("")
    print(f"MODEL: {passed} passed, {len(failed)} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
