"""The report: what the statistics of all runs say, with small bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from backedge.analytics.stats import Stats
from backedge.core.errors import NotFound
from backedge.core.workflow.definition import DEFAULT_PHASES
from backedge.reading.statistics import statistics
from backedge.web.access.caller import Caller
from backedge.web.desk import Desk
from backedge.web.pages.rendering import rendered
from backedge.web.pages.runs import NAMED

MOST = 12
"""How many bars one picture has."""

Bar = tuple[str, float, float]
"""A name, its number, and its length in per cent."""


def bars(counts: Mapping[str, float], most: int = MOST) -> Sequence[Bar]:
    """The largest numbers first, as long as their share of the largest."""
    ordered = sorted(counts.items(), key=lambda each: -each[1])[:most]
    top = max((count for _, count in ordered), default=0)
    return [(name, count, round(100 * count / top, 1) if top else 0.0) for name, count in ordered]


def report_page(stats: Stats, workflows: Sequence[str] = (), workflow: str = "", caller: Caller | None = None) -> str:
    detected = sorted({each.detected for each in stats.findings.by_phase}, key=_place)
    injected = sorted({each.injected for each in stats.findings.by_phase}, key=_place)
    heat = {(each.injected, each.detected): each.findings for each in stats.findings.by_phase}
    return rendered(
        "report.html",
        stats=stats,
        bars=bars,
        workflows=workflows,
        workflow=workflow,
        injected=injected,
        detected=detected,
        heat=heat,
        caller=caller,
    )


def _place(phase: str) -> tuple[int, str]:
    """Where a phase stands: in the usual order, then other names, then what has no phase."""
    usual = DEFAULT_PHASES.index(phase) if phase in DEFAULT_PHASES else len(DEFAULT_PHASES) + (not phase)
    return usual, phase


async def report(request: Request) -> Response:
    desk: Desk = request.app.state.desk
    workflow = request.query_params.get("workflow", "")
    named = sorted({head.workflow for head in await desk.engine.journal.runs(NAMED)})
    try:
        found = await statistics(desk.engine.journal, workflow=workflow or None)
    except NotFound:
        workflow, found = "", await statistics(desk.engine.journal)
    return HTMLResponse(report_page(found, named, workflow, request.state.caller))
