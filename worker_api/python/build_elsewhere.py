# SPDX-License-Identifier: Apache-2.0
"""setuptools builds in the source tree and leaves build/ and *.egg-info there; this backend hands it a copy (PEP 517)."""

import contextlib
import os
import pathlib
import shutil
import tempfile

from setuptools import build_meta

HERE = pathlib.Path(__file__).resolve().parent


@contextlib.contextmanager
def _copy():
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="ojs-shm-build-") as folder:
        copy = pathlib.Path(folder) / "source"
        shutil.copytree(HERE, copy, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
        os.chdir(copy)
        try:
            yield
        finally:
            os.chdir(before)
            shutil.rmtree(HERE / "__pycache__", ignore_errors=True)


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    target = os.path.abspath(wheel_directory)
    with _copy():
        return build_meta.build_wheel(target, config_settings, None)


def build_sdist(sdist_directory, config_settings=None):
    target = os.path.abspath(sdist_directory)
    with _copy():
        return build_meta.build_sdist(target, config_settings)
