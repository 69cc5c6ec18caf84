"""The report of a run that was imported from a file of another system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from backedge.analytics.report import FindingReport, ImportedRound, LoopReport, Report, UsageReport
from backedge.analytics.rounds import RoundReport
from backedge.compat import Defect, LoopRecord, read
from backedge.compat.progress import Progress
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
    notes = (f"iteration {number}: {note}" for number, notes in contents.notes.items() for note in notes)
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
        decisions=(*(_reasons(contents.loops) if file.reading > 2 else ()), *notes),
        iterations=tuple(_imported_rounds(contents.progress)) if contents.progress is not None else (),
    )


def _imported_rounds(progress: Progress) -> Iterator[ImportedRound]:
    for each in progress.feedback_loop.iterations:
        yield ImportedRound(
            each.number,
            each.implementation,
            each.review_result,
            each.review_issues,
            each.test_result,
            each.test_failures,
        )


def _loop(loop: LoopRecord, findings: list[str], reading: int) -> LoopReport:
    found = _decided(loop, findings, reading)
    return (
        found
        if reading < 3
        else msgspec.structs.replace(
            found,
            suggested_fix=loop.suggested_fix,
            requested_info=loop.requested_info,
            artifacts=loop.artifacts,
            requirement_id=loop.requirement_id,
            details=_other_details(loop),
            history=tuple(
                _round(each, number, loop) for number, each in enumerate(loop.earlier, 1) if isinstance(each, dict)
            ),
        )
    )


def _other_details(loop: LoopRecord) -> Json:
    """The details without what has a place of its own."""
    if not isinstance(loop.details, dict):
        return loop.details
    shown = {"requirement_id": loop.requirement_id, "options": loop.options}
    return {name: value for name, value in loop.details.items() if not shown.get(name)} or None


def _round(said: dict[str, Json], number: int, loop: LoopRecord) -> RoundReport:
    """What was asked in an earlier round."""
    stated = said.get("round")
    return RoundReport(
        stated if isinstance(stated, int) else number,
        "done",
        loop.targets,
        {},
        message=_word(said, "message"),
        suggested_fix=_word(said, "suggested_fix") or None,
        requested_info=_word(said, "requested_info") or None,
    )


def _reasons(loops: Iterable[LoopRecord]) -> Iterator[str]:
    """Why people were asked. These are no open questions: nobody can answer them here."""
    return (f"{loop.id} was escalated: {one_line(loop.reason)}" for loop in loops if loop.reason)


def _decided(loop: LoopRecord, findings: list[str], reading: int) -> LoopReport:
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
