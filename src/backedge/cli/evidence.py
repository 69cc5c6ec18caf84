"""Evidence in words: what was in force, what the judges ran at the start, and who answered for changed tests."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from backedge.analytics.evidence_report import EvidenceReport, ProtectedReport
from backedge.analytics.report import Report
from backedge.cli.common import shown
from backedge.core import events as e
from backedge.core.evidence.values import NOT_ENDED, Baseline
from backedge.core.state.run import RunState
from backedge.core.text import counted
from backedge.core.wording import tests_text

MOST_NAMED = 5
"""How many changed tests the summary of a run names."""
BEFORE = "failed before the run began"


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
        for text in (*step.notes, *map(_left, step.ended))
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


def baseline_line(baseline: Baseline) -> str:
    """What a tool judge reported about the files of the start."""
    line = f"baseline: {baseline.judge} … {', '.join(_baseline(baseline))}"
    if not baseline.changes:
        return line
    return (
        f"{line}; it changes {', '.join(map(shown, baseline.changes))}: its verdict will not count if it still does so after the "
        "work; take `fix` out of its command and its configuration, or name what it may write in `keeps`"
    )


def _baseline(baseline: Baseline) -> Iterator[str]:
    if baseline.error:
        yield f"no report yet: {shown(baseline.error)}"
    elif baseline.tests is not None:
        yield counted(baseline.tests.tests, "test")
        yield from [f"{baseline.tests.failed} failed"] if baseline.tests.failed else []
        yield from [f"{baseline.tests.skipped} skipped"] if baseline.tests.skipped else []
    else:
        yield counted(len(baseline.failing), "finding") if baseline.failing else "passes"
    yield "from an earlier run" if baseline.cached else f"{baseline.seconds:.1f} s"


def verdict_tests(state: RunState, judge: str) -> str:
    """The tests behind a verdict, in parentheses: " (8 tests, was 8)"; empty if there are none."""
    counts = state.steps[judge].evidence.tests
    return f" ({tests_text(counts)})" if counts is not None else ""


def noticed(event: e.EvidenceRecorded, known: Collection[str]) -> Iterator[str]:
    """What is new in the evidence of an attempt, one line each; `known` are the notes about earlier attempts."""
    yield from (f"  ! {event.step}: {shown(note, 160)}" for note in event.evidence.notes if note not in known)
    yield from (f"  ! {event.step} {_left(each)}" for each in event.evidence.ended)
    if event.evidence.environment == "changed":
        yield f"  ! {event.step} ran with other programs or libraries than at the start of the run"


def _left(process: str) -> str:
    """What became of a process that an attempt left."""
    name = process.removesuffix(NOT_ENDED)
    if name != process:
        return f"left a process that could not be ended: {shown(name, 120)}"
    return f"left a process, which was ended: {shown(name, 120)}"


def answered(event: e.ProtectedAnswered, state: RunState) -> str:
    files = [each.file for each in state.protected.values() if each.id in event.changes]
    who = shown(event.by or "a person", 40)
    listed = shown(", ".join(files), 120)
    return f"  {'✓' if event.status == 'approved' else '✗'} {who} {event.status} the change of {listed}"
