# SPDX-License-Identifier: Apache-2.0
"""Runs the test_*.py of the current folder: "ok NAME" or "not ok NAME" for each, then a closing line. For run.sh."""

import pathlib
import sys
import unittest


class Lines(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.passed = 0

    def addSuccess(self, test):
        self.passed += 1
        print("ok", test.id(), flush=True)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print("ok", test.id(), "# NOT RUN", reason, flush=True)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.say_not_ok(test, error)

    def addError(self, test, error):
        super().addError(test, error)
        self.say_not_ok(test, error)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.say_not_ok(subtest, error)

    def say_not_ok(self, test, error):
        print("not ok", test.id(), flush=True)
        print(self._exc_info_to_string(error, test), file=sys.stderr, flush=True)


def chosen(suite, part):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield unittest.TestSuite(chosen(test, part))
        elif part in test.id():
            yield test


def main() -> int:
    found = unittest.defaultTestLoader.discover(str(pathlib.Path.cwd()), pattern="test_*.py")
    result = Lines()
    unittest.TestSuite(chosen(found, sys.argv[1] if len(sys.argv) > 1 else "")).run(result)
    failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    if result.passed + failed + skipped == 0:
        print("no test was found, which is a failure")
        failed = 1
    title = sys.argv[2].upper() if len(sys.argv) > 2 else "PYTHON"
    print(f"{title}: {result.passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
