"""Everything that was run and measured for one verdict of a tool judge, and what follows from it: values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from backedge.adapters.evidence.store import NOTHING_PRINTED, FoundBefore, Printed
from backedge.adapters.reports.tests import NO_TESTS, ReportedTests
from backedge.core.briefing import BriefedFinding
from backedge.core.evidence.values import FileChange, ProtectedQuestion, TestCounts
from backedge.engine.protocol import Outcome

AS_THEY_WERE = "with the tests as they were"
PASS = Outcome(verdict="pass")


@dataclass(frozen=True)
class Reading:
    """What one run of the tool showed."""

    outcome: Outcome = PASS
    tests: ReportedTests = NO_TESTS
    problem: str = ""
    """Why the tool could not even begin; empty if it did."""
    printed: Printed = NOTHING_PRINTED
    """What the tool printed about its tests, if there is nothing but an exit code."""

    @property
    def began(self) -> bool:
        return not self.problem


@dataclass(frozen=True)
class Difference:
    """A protected file that is not as the reference has it."""

    kind: Literal["test", "config", "judge"]
    change: FileChange
    digest: str = ""


@dataclass(frozen=True)
class Runs:
    """Everything that was run and measured for one verdict."""

    delivered: Reading
    """The files as they are."""
    held: Reading | None = None
    """The same product with the protected files as the reference has them; None if none of them differ."""
    as_failed: Reading | None = None
    """The same with the test files of open findings as they were when they failed; None if held shows that already."""
    required: frozenset[str] = frozenset()
    """The tests that have to run, see `known.required`."""
    known: frozenset[str] = frozenset()
    """All tests that ran before."""
    baseline: frozenset[str] = frozenset()
    """The tests that ran at the start of the run."""
    failed_before: frozenset[str] = frozenset()
    """Those of them that failed."""
    found_before: Sequence[FoundBefore] = ()
    """What a tool that does not name tests found at the start of the run."""
    approved: frozenset[str] = frozenset()
    """Changed files that somebody approved or owns, in some version."""
    excused: frozenset[str] = frozenset()
    """Tests that need not run any more because somebody has answered for it, see `known.excused`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The files of known tests, where they are known."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """The digests that the files of known tests had when they last ran."""
    before: int | None = None
    """How many tests there were at the start of the run."""
    printed_before: Printed = NOTHING_PRINTED
    """What a tool with nothing but an exit code printed about its tests at the start of the run."""
    changed: Mapping[str, Difference] = field(default_factory=dict)
    """The protected files that differ from the reference."""
    open: Sequence[BriefedFinding] = ()
    """The findings that the judge has to answer for."""
    silenced: Mapping[str, str] = field(default_factory=dict)
    """Open findings at whose place a warning was silenced since, by id, and how."""
    gone: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Files with findings that are gone without being fixed, with the digest of each and why; nobody has answered for it."""
    environment: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """What the judge runs with and that changed: its new fingerprint, and what changed in it."""
    flaky: Sequence[str] = ()

    def file_of(self, test: str) -> str:
        """The file of a test; empty if it is not known."""
        readings = (each for each in (self.delivered, self.held) if each is not None)
        found = (each.tests.files.get(test, "") for each in readings)
        return self.files.get(test) or next(filter(None, found), "")


@dataclass(frozen=True)
class Judgement:
    """The verdict, and what somebody has to answer for."""

    outcome: Outcome
    questions: tuple[ProtectedQuestion, ...] = ()
    counts: TestCounts | None = None
    asked: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """The tests that no longer run, with the file and digest of each change that somebody is asked about because of it."""
