"""The report of a run, also of one whose large outputs were pruned."""

from __future__ import annotations

import time
from collections.abc import Mapping

from backedge.analytics.attempt_errors import AttemptError
from backedge.analytics.report import Report, report
from backedge.analytics.rounds import Histories
from backedge.core.errors import JournalDamaged
from backedge.core.state.run import RunState
from backedge.engine.store import outputs
from backedge.ports import Journal
from backedge.project import Project

PRUNED = "pruned.json"
"""A file in the folder of a pruned run. It says when the run was pruned."""


async def report_of(
    journal: Journal,
    state: RunState,
    spot: Project,
    histories: Histories,
    errors: Mapping[str, tuple[AttemptError, ...]],
) -> tuple[Report, str]:
    """The report of a run, and a remark if its large outputs were pruned."""
    large = [name for name, step in state.steps.items() if step.artifact and step.artifact.payload]
    try:
        return report(state, await outputs(journal, state, large), histories, errors), ""
    except JournalDamaged:
        mark = spot.kept_file(state.run).parent / PRUNED
        if not mark.exists():
            raise
        at = time.strftime("%Y-%m-%d", time.localtime(mark.stat().st_mtime))
        return report(state, histories=histories, errors=errors), f"its large outputs were pruned on {at}"
