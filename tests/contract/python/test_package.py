# SPDX-License-Identifier: Apache-2.0
"""The package as people get it: installed by pip into a virtual environment of its own, without a network, and used from
there. All other tests here run its source."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from segments import ROOT, OnSegment

SOURCE = ROOT / "worker_api" / "python"
#: The system's own, to which the packages of tools/dev/setup.sh belong.
PYTHON = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable


def run(*words, **environment):
    """The output of a command that knows nothing of this tree but what is said here."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_", "OJS_SHM_"))}
    done = subprocess.run(words, env={**clean, "PIP_CONFIG_FILE": os.devnull, **environment}, cwd="/",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{words}: status {done.returncode}\n{done.stdout}")
    return done.stdout.strip()


class Package(OnSegment, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        try:
            run(PYTHON, "-c", "import ensurepip, setuptools, wheel")
        except AssertionError:
            raise unittest.SkipTest("python3-venv, python3-setuptools or python3-wheel is missing") from None
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="ojs-shm-package-")))
        cls.source = shutil.copytree(SOURCE, cls.folder / "source",
                                     ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
        cls.python = str(cls.folder / "jobs" / "bin" / "python")
        # The builder comes from Debian, for there is no network to take it from.
        run(PYTHON, "-m", "venv", "--system-site-packages", str(cls.folder / "jobs"))
        cls.install()

    @classmethod
    def install(cls):
        run(cls.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir",
            "--no-build-isolation", "--no-deps", "--no-index", "--force-reinstall", str(cls.source))

    def example(self, **environment):
        """The asyncio example of the package's README, by the installed package; what it prints, and where that is."""
        text = (SOURCE / "README.md").read_text().split("```python\n")[1].split("```")[0]
        self.assertIn('connect("my-segment")', text)
        program = self.folder / "example.py"
        program.write_text(text.replace('"my-segment"', f"{self.broker.name!r}, dir={self.broker.dir!r}"))
        out = run(self.python, "-c", f"import ojs_shm; print(ojs_shm.__file__); exec(open({str(program)!r}).read())",
                  **environment)
        where, printed = out.split("\n", 1)
        self.assertTrue(pathlib.Path(where).is_relative_to(self.folder / "jobs"), where)
        self.assertEqual(printed, "{'sent_to': 'user@example.com'}")
        return pathlib.Path(where).parent

    def test_the_installed_package_runs_the_example_and_is_complete(self):
        installed = self.example(OJS_SHM_LIBRARY=os.environ["OJS_SHM_LIBRARY"])
        there = {path.name for path in installed.iterdir() if path.is_file()}
        self.assertEqual(there, {path.name for path in (SOURCE / "ojs_shm").iterdir() if path.is_file()})
        self.assertIn("py.typed", there)
        version = run(self.python, "-c", "import importlib.metadata as m; print(m.version('ojs-shm'))")
        self.assertIn(f'\nversion = "{version}"\n', (SOURCE / "pyproject.toml").read_text())

    def test_a_package_that_was_built_with_the_library_needs_nothing_else(self):
        shutil.copy(os.environ["OJS_SHM_LIBRARY"], self.source / "ojs_shm" / "libojs_shm.so")
        try:
            self.install()
            self.assertTrue((self.example() / "libojs_shm.so").is_file())
        finally:
            (self.source / "ojs_shm" / "libojs_shm.so").unlink()
            self.install()

    def test_an_installation_leaves_nothing_in_the_tree(self):
        self.assertEqual(sorted(path.name for path in self.source.iterdir()),
                         sorted(path.name for path in SOURCE.iterdir() if path.name != "__pycache__"))

    def test_the_readme_s_commands_are_those_of_this_test(self):
        text = (SOURCE / "README.md").read_text()
        commands = [line.split("#")[0].split() for line in text.splitlines() if line.startswith("    ")]
        self.assertIn(["python3", "-m", "venv", "jobs"], commands)
        self.assertIn(["jobs/bin/pip", "install", "worker_api/python"], commands)
        self.assertTrue((self.folder / "jobs" / "bin" / "pip").exists())
        self.assertFalse([words for words in commands if words[:2] == ["pip", "install"]],
                         "Debian's own pip refuses that")


if __name__ == "__main__":
    unittest.main()
