"""The report that a step writes, and the verdict that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, assert_never

from backedge.adapters.reports.cargo_test import read_cargo_test
from backedge.adapters.reports.findings_json import read_json
from backedge.adapters.reports.go_test import read_go_test
from backedge.adapters.reports.jest_json import read_jest
from backedge.adapters.reports.junit import read_junit
from backedge.adapters.reports.places import FileNames
from backedge.adapters.reports.sarif import read_sarif
from backedge.adapters.reports.tap import read_tap
from backedge.adapters.reports.tests import NO_TESTS, ReportedTests
from backedge.catalog import PRINTED, REPORTS, WITHOUT_FILE, ReportKind
from backedge.core.errors import AgentError
from backedge.core.model import Severity, severity_of
from backedge.engine.protocol import Finding, Outcome

_SUFFIX: dict[ReportKind, str] = {"junit": ".xml", "unittest": ".xml", "node": ".xml", "sarif": ".sarif", "tap": ".tap"}
_WITH_TESTS: tuple[ReportKind, ...] = ("junit", "unittest", "node", "jest", "gotest", "cargo", "tap")
_REPORTERS: dict[ReportKind, str] = {"unittest": "unittest_junit.py", "node": "node_junit.mjs"}


@dataclass(frozen=True, slots=True)
class ReportSpec:
    """The kind of a report and, if the tool chooses it, its file in the workspace."""

    kind: ReportKind
    path: str = ""
    """Relative to the workspace; empty for a fresh file of the attempt."""
    allow_empty: bool = False
    """Whether a report of no tests at all is a pass."""

    def __post_init__(self) -> None:
        if self.kind not in REPORTS:
            raise ValueError(f"the report is {self.kind!r}: expected one of {', '.join(REPORTS)}")
        if PurePosixPath(self.path).is_absolute() or ".." in PurePosixPath(self.path).parts:
            raise ValueError(f"the report {self.path!r} leaves the workspace: use a path inside it")

    @property
    def suffix(self) -> str:
        return _SUFFIX.get(self.kind, ".json")

    @property
    def is_file(self) -> bool:
        """Whether the report can be a file."""
        return self.kind not in WITHOUT_FILE

    @property
    def is_printed(self) -> bool:
        """Whether stdout is the report if the command is not told to write a file."""
        return self.kind in PRINTED and not self.path

    @property
    def reporter(self) -> Path | None:
        """The reporter that backedge brings for it. It is a file for the test runner of a project, which may have another
        Python than backedge, and no backedge."""
        name = _REPORTERS.get(self.kind)
        return Path(__file__).with_name("reporters") / name if name else None

    def outcome(self, text: bytes, code: int | None, last_output: str, folder: Path) -> Outcome:
        """What a tool found, from its report and its exit code; `last_output` is the end of what it printed, for people. Raises
        AgentError if the two contradict each other: a tool that failed is not a tool that found nothing."""
        return self.read(text, code, last_output, FileNames(folder))[0]

    def read(
        self,
        text: bytes,
        code: int | None,
        last_output: str,
        names: FileNames,
        allow_empty: bool = False,
        log: bytes = b"",
    ) -> tuple[Outcome, ReportedTests]:
        """The same, with the tests that the report lists. With `allow_empty`, a report without tests is not an error.
        `log` is what the tool printed on stderr."""
        outcome, tests = self._read(text, code, last_output, names, allow_empty or self.allow_empty, log)
        # Without tests a runner fails too, and what should have run is known to the caller.
        empty = allow_empty and self.kind in _WITH_TESTS and not tests.ran
        if code and not outcome.findings and outcome.verdict != "fail" and not empty:
            raise AgentError(
                f"the tool failed (exit {code}) but its report lists nothing: {last_output or 'it printed nothing'}"
            )
        return outcome, tests

    def _read(
        self, text: bytes, code: int | None, last_output: str, names: FileNames, allow_empty: bool, log: bytes
    ) -> tuple[Outcome, ReportedTests]:
        match self.kind:
            case "junit" | "unittest" | "node":
                return _tested(*read_junit(text, names, allow_empty))
            case "jest":
                return _tested(*read_jest(text, names, allow_empty))
            case "gotest":
                return _tested(*read_go_test(text, names, allow_empty))
            case "cargo":
                return _tested(*read_cargo_test(text, log, names, allow_empty))
            case "tap":
                return _tested(*read_tap(text, names, allow_empty))
            case "sarif":
                findings = read_sarif(text, names)
                return judged(findings, _counted(len(findings), "result")), NO_TESTS
            case "json":
                read = read_json(text)
                return (read if isinstance(read, Outcome) else judged(read, _counted(len(read), "finding"))), NO_TESTS
            case "exitcode":
                return _by_exit(code, last_output), NO_TESTS
        assert_never(self.kind)


def _tested(tests: ReportedTests, findings: Sequence[Finding]) -> tuple[Outcome, ReportedTests]:
    return judged(findings, f"{_counted(len(tests.results), 'test')}, {len(findings)} failed"), tests


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def judged(findings: Sequence[Finding], summary: str) -> Outcome:
    """The verdict that follows from findings alone."""
    if not findings:
        return Outcome(verdict="pass", summary=summary)
    try:
        worst = min(severity_of(finding.severity)[0].rank for finding in findings)
    except ValueError as error:
        raise AgentError(f"the report cannot be read: {error}; correct the command") from error
    verdict: Literal["fail", "needs_improvement"] = "fail" if worst <= Severity.HIGH.rank else "needs_improvement"
    return Outcome(verdict=verdict, findings=tuple(findings), summary=summary)


def _by_exit(code: int | None, last_output: str) -> Outcome:
    if code is None:
        raise AgentError("the exit code of the tool is unknown: run it again")
    if code == 0:
        return Outcome(verdict="pass", summary="exit code 0")
    # The last line distinguishes two failures; with the code alone they would be one defect.
    lines = last_output.splitlines()
    last = lines[-1][:200] if lines else "it printed nothing"
    return judged([Finding(f"exit code {code}: {last}", category="check", evidence=last_output)], f"exit code {code}")
