"""Which changed protected files can explain that a test gives another result than with the files as they were."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from backedge.adapters.evidence.protected import CODE
from backedge.adapters.judges.runs import Difference

_TEST_MODULE = re.compile(r"test_.*|.*[._-](?:test|tests|spec|e2e|cy)\.\w+|tests?\.\w+", re.IGNORECASE)


def explains(changed: Mapping[str, Difference], file: str) -> list[str]:
    """The changed files that can explain it: the file of the test; else what tests share, such as data and helpers; else
    configuration. `file` is empty if it is not known where the test is. None if nothing can."""
    if file and file in changed:
        return [file]
    tests = [name for name, each in changed.items() if each.kind == "test"]
    shared = [name for name in tests if not (file and is_test_module(name))]
    near = [name for name in shared if file and _near(name, file)]
    if near or shared:
        return near or shared
    return [name for name, each in changed.items() if each.kind != "test" and _applies(name, file)]


def is_test_module(name: str) -> bool:
    """Whether a file has tests of its own and so says nothing about the tests of others."""
    last = PurePosixPath(name).name
    return CODE.fullmatch(last) is not None and _TEST_MODULE.fullmatch(last) is not None


def _near(name: str, file: str) -> bool:
    """Whether a shared file lies in a folder above that of a test, or below it."""
    folder, own = PurePosixPath(name).parent, PurePosixPath(file).parent
    return folder == own or folder in own.parents or own in folder.parents


def _applies(name: str, file: str) -> bool:
    """Whether configuration applies to a test. A conftest is for the tests in and below its folder."""
    path = PurePosixPath(name)
    return not file or path.name != "conftest.py" or path.parent in PurePosixPath(file).parents
