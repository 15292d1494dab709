#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays the public conformance cases against a fresh `ojs-shm up`: conformance.py FOLDER CONVENTION LONGEST_WAIT REPORT

REPORT becomes a JSON array of the cases, with their suites and verdicts, for conformance_page.py. For `./dev conformance`.
"""

import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERDICT = re.compile(r"^(PASS|FAIL|XFAIL|XPASS|SKIP|ERROR) +(\S+) +(\S+)(.*)$")
# What contradicts the default convention does not contradict the other.
EXPECT_FAIL = {"ojs": ["contradicts-seeds.txt", "known-unsatisfiable.txt"], "ojs-core": ["known-unsatisfiable.txt"]}


def play(cases: pathlib.Path, convention: str, longest: str, folder: str) -> str:
    up = subprocess.Popen(
        [ROOT / "build/bin/ojs-shm", "up", "--name", "conformance", "--dir", folder, "--listen", "127.0.0.1:0",
         "--test-hooks", "--convention", convention, "--remove"],
        stdout=subprocess.PIPE, text=True)
    try:
        ready = up.stdout.readline().split()
        if ready[:1] != ["READY"]:
            raise SystemExit("ojs-shm up did not come up")
        command = [sys.executable, cases / "run_conformance.py", "--url", ready[1], "--max-wait", longest]
        for name in EXPECT_FAIL[convention]:
            command += ["--expect-fail", cases / name]
        return subprocess.run(command, capture_output=True, text=True).stdout
    finally:
        up.send_signal(signal.SIGTERM)
        if up.wait() != 0:
            print(f"not ok conformance {convention} end: ojs-shm up ended with {up.returncode}")


def blocks(text: str):
    """Each verdict with what follows it."""
    current, more = None, []
    for line in text.splitlines():
        if found := VERDICT.match(line):
            if current:
                yield current, "\n".join(more)
            current, more = found, []
        else:
            more.append(line)
    if current:
        yield current, "\n".join(more)


def suites_of(cases: pathlib.Path) -> dict[tuple[str, str], str]:
    """The suite of each case, by its id and name: an id alone may stand for two."""
    suites = {}
    for path in sorted((cases / "suites").rglob("*.json")):
        case = json.loads(path.read_text())
        if isinstance(case, dict) and "test_id" in case:
            suites[case["test_id"], case["name"]] = path.relative_to(cases / "suites").parts[0]
    return suites


def main() -> int:
    cases, convention, longest, report = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
    with tempfile.TemporaryDirectory(prefix="ojs-shm-conformance-") as folder:
        text = play(cases, convention, longest, folder)
    return judge(text, convention, suites_of(cases), report)


def judge(text: str, convention: str, suites: dict[tuple[str, str], str], report: pathlib.Path) -> int:
    """Prints each verdict and the tally, writes the report, and returns the status of the lane."""
    passed = failed = skipped = 0
    told = []
    for verdict, more in blocks(text):
        name = f"conformance.{convention} {verdict[2]} {verdict[3]}"
        told.append({"suite": suites.get((verdict[2], verdict[3]), "?"), "id": verdict[2], "name": verdict[3],
                     "verdict": verdict[1], "reason": "".join(re.findall(r"\[(.*)\]", verdict[4]))})
        if verdict[1] in ("PASS", "XPASS"):
            passed += 1
            print("ok", name)
        elif verdict[1] in ("XFAIL", "SKIP"):
            skipped += 1
            print(f"{verdict[1]} {name}{verdict[4]}")
        else:
            failed += 1
            print("not ok", name)
            print(more)
    report.write_text(json.dumps(told, indent=1))
    print(f"CONFORMANCE: {passed} passed, {failed or int(passed == 0)} failed, {skipped} skipped")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
