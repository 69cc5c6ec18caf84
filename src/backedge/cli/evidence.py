"""Evidence in words: what was in force, what the judges ran at the start, and who answered for changed tests."""

from __future__ import annotations

from collections.abc import Iterator

from backedge.analytics.evidence_report import EvidenceReport, ProtectedReport
from backedge.analytics.report import Report
from backedge.cli.common import shown
from backedge.core.text import counted
from backedge.reading.evidence_words import left_process

MOST_NAMED = 5
"""How many changed or flaky tests the summary of a run names."""


def evidence_line(report: Report) -> str:
    """What was in force when the tools of a run judged; empty if no tool did."""
    found = report.evidence
    if found is None or not any(judge.tool for judge in found.judges.values()):
        return ""
    parts = [
        "no room" if found.room == "none" else f"{found.room} room",
        _sandbox(found),
        _baseline_words(report, found),
        f"held {found.held}",
        f"environment {found.environment}",
    ]
    return f"evidence: {', '.join(parts)}"


def _sandbox(found: EvidenceReport) -> str:
    return "no sandbox" if found.sandbox == "none" else f"sandbox {found.sandbox}"


def _baseline_words(report: Report, found: EvidenceReport) -> str:
    if not found.baseline:
        missing = [name for name, judge in found.judges.items() if judge.tool and not judge.baseline]
        return f"no baseline of {', '.join(missing)}" if report.baselines else "no baseline"
    counts = [each.tests.tests for each in report.baselines if each.tests is not None]
    return f"baseline {counted(sum(counts), 'test')}" if counts else "baseline"


def closing_changes(report: Report) -> Iterator[str]:
    """The changed tests in the summary of a run."""
    for changed in report.protected[:MOST_NAMED]:
        yield f"  {_changed(changed)}"
    if len(report.protected) > MOST_NAMED:
        yield f"  … and {len(report.protected) - MOST_NAMED} more changed tests: backedge show {report.run}"


def flaky_tests(report: Report) -> Iterator[str]:
    """The tests that passed only when they ran again, by judge."""
    for name, step in report.steps.items():
        flaky = step.tests.flaky if step.tests is not None else ()
        if flaky:
            named = ", ".join(shown(test, 100) for test in flaky[:MOST_NAMED])
            more = f" and {len(flaky) - MOST_NAMED} more" if len(flaky) > MOST_NAMED else ""
            yield f"  {name} passed flaky tests when they ran again: {named}{more}"


def evidence_lines(report: Report) -> Iterator[str]:
    """What `show` adds: all changed tests with their questions, and what was noticed."""
    found = report.evidence
    if report.protected:
        yield from ("", "changed tests and configuration of judges")
    for changed in report.protected:
        yield f"  {changed.id} {_changed(changed)}"
        if changed.question:
            yield f"    {shown(changed.question, 200)}"
    noticed = [
        f"  {name}: {shown(text, 200)}"
        for name, step in report.steps.items()
        for text in (*step.notes, *map(left_process, step.ended))
    ]
    if noticed:
        yield from ("", "noticed", *noticed)
    if found is not None and found.judges and not any(judge.tool for judge in found.judges.values()):
        yield from ("", "evidence: no tool judged; the verdicts are what agents or people said")
    if found is not None and found.unwatched:
        yield f"not watched: {', '.join(found.unwatched)}; only what they returned is known, not which files they changed"


def _changed(changed: ProtectedReport) -> str:
    by = f" by {changed.step}" if changed.step else ""
    lines = f" ({shown(changed.lines, 80)})" if changed.lines else ""
    return f"{shown(changed.file, 80)} {changed.change}{by}{lines}, {_answer(changed)}"


def _answer(changed: ProtectedReport) -> str:
    if changed.approved:
        owned = changed.approved == changed.step
        return f"which {shown(changed.step, 40)} owns" if owned else f"approved by {shown(changed.approved, 40)}"
    if changed.rejected:
        return f"rejected by {shown(changed.rejected, 40)}"
    return "in question" if changed.question else "not in question"
