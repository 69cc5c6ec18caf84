"""The report of a run that was imported from a file of another system."""

from __future__ import annotations

from backedge.analytics.report import FindingReport, LoopReport, Report, UsageReport
from backedge.compat import Defect, LoopRecord, read
from backedge.core import events as e
from backedge.core.model import Resolution
from backedge.core.scheduling.pending import outcome_of
from backedge.core.state.run import RunState
from backedge.core.text import one_line
from backedge.core.value import Json

ROUTED_BY = "imported"


def imported_report(state: RunState, file: e.FileImported) -> Report:
    """The contents of the file as a report. It has no steps, because nothing was executed here."""
    contents = read(file.form, file.text)
    by_loop: dict[str, list[str]] = {}
    for defect in contents.defects:
        by_loop.setdefault(defect.loop or "", []).append(defect.finding)
    return Report(
        run=state.run,
        workflow=state.workflow.name,
        outcome=outcome_of(state),
        paused=False,
        steps={},
        loops=tuple(_loop(loop, by_loop.get(loop.id, []), file.reading) for loop in contents.loops),
        findings=tuple(_finding(defect) for defect in contents.defects),
        escalations=(),
        refused=(),
        usage=UsageReport(0.0, 0, 0, 0, 0.0),
        decisions=tuple(f"iteration {number}: {note}" for number, notes in contents.notes.items() for note in notes),
    )


def _loop(loop: LoopRecord, findings: list[str], reading: int) -> LoopReport:
    return LoopReport(
        id=loop.id,
        kind=loop.kind,
        source=loop.source,
        targets=loop.targets,
        state=loop.state,
        rounds=loop.rounds,
        routed_by=ROUTED_BY,
        caused_by=None,
        follows=None,
        findings=tuple(findings),
        breach=None,
        resolution=None if loop.open else _resolution(loop, reading),
        message=loop.message,
        severity=loop.severity,
        blocking=loop.blocking,
        options=loop.options if reading > 1 else (),
    )


def _resolution(loop: LoopRecord, reading: int) -> Resolution:
    """How the loop ended, in the words that systems use for a decision."""
    said = loop.resolution
    if not isinstance(said, dict) or reading == 1:
        return Resolution(loop.state, text=one_line(said) if isinstance(said, str) else "")
    option = _word(said, "decision", "option") or None
    answers = said.get("answers")
    return Resolution(
        loop.state,
        by=_word(said, "by", "decided_by"),
        text=_word(said, "text", "reason", "rationale", "note"),
        option=option,
        answers=answers if isinstance(answers, dict) else {},
    )


def _word(said: dict[str, Json], *names: str) -> str:
    """The first of these fields that has a text."""
    return next((one_line(each) for name in names if isinstance(each := said.get(name), str) and each.strip()), "")


def _finding(defect: Defect) -> FindingReport:
    return FindingReport(
        id=defect.finding,
        description=defect.description,
        severity=defect.severity,
        status=defect.status,
        found_by=defect.detected_by,
        affected_phase=(defect.injected_phase,),
        introduced_by=", ".join(defect.injected_by) or None,
        rounds_seen=1,
        fix_authored=False,
        loop=defect.loop,
    )
