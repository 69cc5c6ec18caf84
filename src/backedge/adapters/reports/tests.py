"""The tests that a report lists: each with its identity, its result and its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Literal

from backedge.core.errors import AgentError
from backedge.core.text import clean, counted
from backedge.engine.protocol import Finding

Result = Literal["passed", "failed", "skipped"]
WHOLE_GROUPS = (WHOLE_PACKAGE, HOOKS) = ("(package)", "(hooks)")
"""How the id of a group of tests ends that could not run: a package that cannot be built, a suite whose hook failed."""
LONGEST_ID = 500
"""How many characters the id of a test can have."""


@dataclass(frozen=True)
class ReportedTests:
    """What a test runner ran. Empty for a tool that does not name its tests."""

    results: Mapping[str, Result] = field(default_factory=dict)
    """By the id of the test."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The file of a test, relative to the workspace, where it is known."""
    flaky: frozenset[str] = frozenset()
    """The tests that failed at first and passed when the runner itself tried again."""

    @cached_property
    def ran(self) -> frozenset[str]:
        """The tests that were not skipped."""
        return frozenset(id for id, result in self.results.items() if result != "skipped")

    @cached_property
    def failed(self) -> frozenset[str]:
        return frozenset(id for id, result in self.results.items() if result == "failed")

    @cached_property
    def passed(self) -> frozenset[str]:
        return frozenset(id for id, result in self.results.items() if result == "passed")

    @cached_property
    def files_run(self) -> frozenset[str]:
        """The files of tests that ran. A file that could not be loaded is listed as if it were a test: it does not count."""
        ran = ((id, self.files[id]) for id in self.ran if id in self.files)
        return frozenset(file for id, file in ran if not stands_for(id.rpartition("::")[2], file))


def stands_for(name: str, file: str) -> bool:
    """Whether the name of a test is that of a whole file: by path, with or without the ending, or as a module."""
    module = PurePosixPath(file).with_suffix("").as_posix()
    return name in (file, module) or name.replace(".", "/") == module or name.endswith(f"/{file}")


NO_TESTS = ReportedTests()


class TestList:
    """Collects the tests of a report, in its order."""

    __test__ = False  # pytest would take the class for tests

    def __init__(self) -> None:
        self._results: dict[str, Result] = {}
        self._files: dict[str, str] = {}
        self._flaky: set[str] = set()
        self._numbers: dict[str, int] = {}

    def add(self, id: str, result: Result, file: str | None = None, flaky: bool = False) -> str:
        """Add a test and return its id. If there is a test of that name already, the id gets a number."""
        number = self._numbers.get(id, 0) + 1
        name = id if number == 1 else f"{id} #{number}"
        while name in self._results:
            number += 1
            name = f"{id} #{number}"
        self._numbers[id] = number
        self._put(name, result, file, flaky)
        return name

    def merge(self, id: str, result: Result, file: str | None = None, flaky: bool = False) -> str:
        """Add one more result of a test that may be there already: the worst of them counts."""
        before = self._results.get(id)
        if before == "failed" or (before == "passed" and result == "skipped"):
            result = before
        self._put(id, result, file, flaky)
        return id

    def _put(self, id: str, result: Result, file: str | None, flaky: bool) -> None:
        self._results[id] = result
        if file:
            self._files[id] = file
        if flaky and result == "passed":
            self._flaky.add(id)
        else:
            self._flaky.discard(id)

    def result(self, id: str) -> Result | None:
        return self._results.get(id)

    def tests(self) -> ReportedTests:
        return ReportedTests(self._results, self._files, frozenset(self._flaky))


def id_of(*parts: str) -> str:
    """The id of a test from its parts: one line of text. A longer one keeps its beginning, and a digest tells it apart."""
    name = "::".join(line for part in parts if (line := " ".join(clean(part).split()))) or "a test"
    if len(name) <= LONGEST_ID:
        return name
    return f"{name[: LONGEST_ID - 13]}…{sha256(name.encode('utf-8', 'replace')).hexdigest()[:12]}"


def require_tests(tests: ReportedTests, findings: Sequence[Finding], report: str, allow_empty: bool) -> None:
    """Refuse a report in which nothing was tested, unless something else says what should have run."""
    if allow_empty or findings:
        return
    if not tests.results:
        raise AgentError(f"{report} has no tests: nothing was tested; correct the command")
    if not tests.ran:
        raise AgentError(
            f"{report} has {counted(len(tests.results), 'test')}, all skipped: nothing was tested; run at least one"
        )
