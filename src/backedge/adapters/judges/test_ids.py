"""What the id of a test says: whether it stands for a whole file, and which results are about the same test."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from pathlib import PurePosixPath

from backedge.adapters.reports.tests import WHOLE_GROUPS, ReportedTests

_NUMBERED = re.compile(r"(?P<id>.+) #\d+", re.DOTALL)
_PATH = re.compile(r".*[\w-]\.[cm]?[jt]sx?$|.*/.*\.\w+$")


def name_of_test(id: str) -> str:
    """The name of a test without that of its module or class."""
    return id.rpartition("::")[2]


def stands_for_many(id: str) -> bool:
    """Whether an id stands for a file or a group of tests that could not run: it has no name of its own."""
    return "::" not in id or name_of_test(id) in WHOLE_GROUPS


def problem_of(test: str, tests: ReportedTests, known: Collection[str] = ()) -> str:
    """Why a report does not show that a test passes; empty if it does. A test counts only if it ran."""
    result = tests.results.get(test)
    if result == "failed":
        return "the test fails"
    if result == "skipped":
        return "the test is skipped"
    if result == "passed" or is_loaded(test, tests, known) or is_repetition(test, tests):
        return ""
    return "the test did not run"


def is_loaded(test: str, tests: ReportedTests, known: Collection[str] = ()) -> bool:
    """Whether an id stands for a file or a group of tests that could not be loaded, and tests of it run now."""
    if test in tests.results:
        return False
    group, _, name = test.rpartition("::")
    if name in WHOLE_GROUPS:
        return any(each.startswith(f"{group}::") for each in tests.ran)
    if tests.files_run:
        return not _names_of_files(tests.files_run).isdisjoint(_ends(name))
    # The report does not say where its tests are. New ones run, so the file may be the one that could not be loaded.
    return _PATH.fullmatch(name) is not None and bool(tests.ran - frozenset(known))


def is_repetition(test: str, tests: ReportedTests) -> bool:
    """Whether an id was that of an error beside a test, such as one of its tear-down, and only the test is left: it passes.
    If the report does not say where the test is, the other one may have been a test of another file."""
    numbered = _NUMBERED.fullmatch(test)
    if numbered is None or test in tests.results or not tests.files.get(numbered["id"]):
        return False
    return tests.results.get(numbered["id"]) == "passed"


@lru_cache(maxsize=8)
def _names_of_files(files: frozenset[str]) -> frozenset[str]:
    """What runners call files that they cannot load: by path, with and without the ending, and as modules."""
    modules = {PurePosixPath(file).with_suffix("").as_posix() for file in files}
    return frozenset({*files, *modules, *(module.replace("/", ".") for module in modules)})


def _ends(path: str) -> list[str]:
    """A path, and what is left of it without its first folders: a runner may name a file from another folder."""
    parts = path.split("/")
    return ["/".join(parts[at:]) for at in range(len(parts))]
