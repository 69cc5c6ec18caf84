"""The report of a run that was imported from a file of another system."""

from __future__ import annotations

from backedge.analytics.report import FindingReport, LoopReport, Report, UsageReport
from backedge.compat import Defect, LoopRecord, read
from backedge.core import events as e
from backedge.core.model import Resolution
from backedge.core.scheduling.pending import outcome_of
from backedge.core.state.run import RunState
from backedge.core.text import one_line

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
        loops=tuple(_loop(loop, by_loop.get(loop.id, [])) for loop in contents.loops),
        findings=tuple(_finding(defect) for defect in contents.defects),
        escalations=(),
        refused=(),
        usage=UsageReport(0.0, 0, 0, 0, 0.0),
    )


def _loop(loop: LoopRecord, findings: list[str]) -> LoopReport:
    text = loop.resolution if isinstance(loop.resolution, str) else ""
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
        resolution=None if loop.open else Resolution(loop.state, text=one_line(text)),
        message=loop.message,
        severity=loop.severity,
        blocking=loop.blocking,
    )


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
