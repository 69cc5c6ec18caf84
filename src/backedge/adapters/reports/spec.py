"""The report that a step writes, and the verdict that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, assert_never

from backedge.adapters.reports.findings_json import read_json
from backedge.adapters.reports.junit import read_junit
from backedge.adapters.reports.sarif import read_sarif
from backedge.catalog import ReportKind
from backedge.core.errors import AgentError
from backedge.core.model import Severity, severity_of
from backedge.engine.protocol import Finding, Outcome

_SUFFIX: dict[ReportKind, str] = {"junit": ".xml", "sarif": ".sarif", "json": ".json", "exitcode": ".txt"}


@dataclass(frozen=True, slots=True)
class ReportSpec:
    """The kind of a report and, if the tool chooses it, its file in the workspace."""

    kind: ReportKind
    path: str = ""
    """Relative to the workspace; empty for a fresh file of the attempt."""
    allow_empty: bool = False
    """Whether a report of no tests at all is a pass."""

    def __post_init__(self) -> None:
        if self.kind not in _SUFFIX:
            raise ValueError(f"the report is {self.kind!r}: expected one of {', '.join(_SUFFIX)}")
        if PurePosixPath(self.path).is_absolute() or ".." in PurePosixPath(self.path).parts:
            raise ValueError(f"the report {self.path!r} leaves the workspace: use a path inside it")

    @property
    def suffix(self) -> str:
        return _SUFFIX[self.kind]

    @property
    def is_file(self) -> bool:
        return self.kind != "exitcode"

    def outcome(self, text: bytes, code: int | None, last_output: str, folder: Path) -> Outcome:
        """What a tool found, from its report and its exit code; `last_output` is the end of what it printed, for
        people. Raises AgentError if these contradict each other: a tool that failed is not a tool that found
        nothing."""
        outcome = self._read(text, code, last_output, folder)
        if code and not outcome.findings and outcome.verdict != "fail":
            raise AgentError(
                f"the tool failed (exit {code}) but its report lists nothing: {last_output or 'it printed nothing'}"
            )
        return outcome

    def _read(self, text: bytes, code: int | None, last_output: str, folder: Path) -> Outcome:
        match self.kind:
            case "junit":
                tests, findings = read_junit(text, folder, self.allow_empty)
                return judged(findings, f"{tests} tests, {len(findings)} failed")
            case "sarif":
                findings = read_sarif(text, folder)
                return judged(findings, f"{len(findings)} results")
            case "json":
                read = read_json(text)
                return read if isinstance(read, Outcome) else judged(read, f"{len(read)} findings")
            case "exitcode":
                return _by_exit(code, last_output)
        assert_never(self.kind)


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
