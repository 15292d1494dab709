# SPDX-License-Identifier: Apache-2.0
"""How the lane of the public conformance cases judges what their player prints."""

import contextlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools/dev"))
import conformance  # noqa: E402


class Judge(unittest.TestCase):
    def judge(self, text):
        """The status, what is printed, and the report."""
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
            report = pathlib.Path(folder) / "report.json"
            status = conformance.judge(text, "ojs", {("L0-1", "first"): "level-0-core"}, report)
            return status, printed.getvalue(), json.loads(report.read_text())

    def test_a_case_that_fails_is_named_with_its_reason_and_counted(self):
        status, printed, report = self.judge("PASS L0-1 first\nFAIL L0-2 second\n    expected 201, got 500\n"
                                             "SKIP L0-3 third [waits 70 s]\nERROR L0-4 fourth\nXFAIL L0-5 fifth [not so]\n")
        self.assertEqual(status, 1)
        self.assertIn("ok conformance.ojs L0-1 first\n", printed)
        self.assertIn("not ok conformance.ojs L0-2 second\n    expected 201, got 500\n", printed)
        self.assertIn("not ok conformance.ojs L0-4 fourth\n", printed)
        self.assertTrue(printed.endswith("CONFORMANCE: 1 passed, 2 failed, 2 skipped\n"), printed)
        self.assertEqual([(case["suite"], case["id"], case["verdict"], case["reason"]) for case in report],
                         [("level-0-core", "L0-1", "PASS", ""), ("?", "L0-2", "FAIL", ""), ("?", "L0-3", "SKIP", "waits 70 s"),
                          ("?", "L0-4", "ERROR", ""), ("?", "L0-5", "XFAIL", "not so")])

    def test_no_case_at_all_is_a_failure(self):
        status, printed, _ = self.judge("the server did not answer\n")
        self.assertEqual((status, printed), (1, "CONFORMANCE: 0 passed, 1 failed, 0 skipped\n"))

    def test_all_that_pass_are_a_success(self):
        self.assertEqual(self.judge("PASS L0-1 first\nXPASS L0-2 second\n")[0], 0)


class Lane(unittest.TestCase):
    def longest(self, *flags):
        """For how many seconds the lane lets a case wait. Its shell library is one that only tells what it is asked for."""
        root = pathlib.Path(__file__).resolve().parents[3]
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder) / "tree"
            (tree / "tools/dev/lanes").mkdir(parents=True)
            (tree.parent / "shared/conformance").mkdir(parents=True)
            (tree.parent / "shared/conformance/run_conformance.py").touch()
            shutil.copy(root / "tools/dev/lanes/conformance.sh", tree / "tools/dev/lanes")
            (tree / "tools/dev/lane.sh").write_text(
                "set -u\nPYTHON=python3 RESULTS=results\nlane() { :; }\nbuild_tree() { :; }\ngather() { :; }\nfinish() { :; }\n"
                "usage() { exit 2; }\nrun_tallied() { :; }\nbeside() { echo \"$@\"; }\n")
            done = subprocess.run(["bash", "tools/dev/lanes/conformance.sh", *flags], cwd=tree, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return {int(line.split()[-2]) for line in done.stdout.splitlines()}

    def test_short_leaves_the_long_cases_out_whatever_else_is_asked_for(self):
        self.assertEqual([self.longest(), self.longest("--slow", "--write")], [{300}, {300}])
        self.assertEqual([self.longest("--short"), self.longest("--short", "--write"), self.longest("--write", "--short")],
                         [{20}] * 3)


if __name__ == "__main__":
    unittest.main()
