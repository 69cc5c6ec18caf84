"""The board of stories, the statistics of all runs, and the figures that monitoring reads."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from backedge.analytics.stats import Stats
from backedge.config import load
from backedge.config.finding import find
from backedge.config.problems import WorkflowFileError
from backedge.core.errors import NotFound
from backedge.reading.statistics import statistics
from backedge.reading.story_card import story_card
from backedge.stories.backlog import read_backlog
from backedge.stories.files import has_stories
from backedge.stories.rules.assessor import STATUSES
from backedge.web.api.endpoint import ApiCall, Endpoint, Query
from backedge.web.desk import Desk

HEADS = 500
"""How many runs to read at once."""


class TeamReport(msgspec.Struct, frozen=True):
    """How all runs are doing."""

    runs: dict[str, int]
    """How many runs there are, by outcome."""
    open_escalations: int
    oldest_seconds: float | None
    """How long the oldest open escalation has waited; null if none is open."""
    stats: Stats


async def board(call: ApiCall) -> dict[str, list[dict[str, Any]]]:
    """List the stories by status, as `board --json` prints them."""
    try:
        source = load(find(call.desk.project.folder))
    except WorkflowFileError as error:
        raise NotFound(f"this project has no stories that can be read: {error}") from error
    if not has_stories(source):
        raise NotFound("this project has no stories: `backedge init --template stories` adds some")
    backlog = await read_backlog(source, call.desk.project, call.desk.engine)
    cards = [story_card(entry) for entry in backlog.entries]
    return {status: [each for each in cards if each["status"] == status] for status in STATUSES}


async def stats(call: ApiCall) -> Stats:
    """Count loops, findings and rework of all runs, as `stats --json` prints them."""
    return await _stats(call)


async def report(call: ApiCall) -> TeamReport:
    """Say how all runs are doing: how many there are, what waits for people, and the statistics."""
    outcomes, opened, oldest = await _figures(call.desk)
    return TeamReport(outcomes, opened, oldest, await _stats(call))


async def _stats(call: ApiCall) -> Stats:
    since = call.query["since"]
    return await statistics(
        call.desk.engine.journal, workflow=call.query["workflow"], since=float(since) if since is not None else None
    )


async def _figures(desk: Desk) -> tuple[dict[str, int], int, float | None]:
    """How many runs there are by outcome, how many escalations are open, and how long the oldest one has waited."""
    outcomes: Counter[str] = Counter()
    after = None
    while heads := await desk.engine.journal.runs(HEADS, after):
        outcomes.update(head.outcome for head in heads)
        after = heads[-1].run
    opened = await desk.engine.journal.open_escalations()
    since = [
        (await desk.known(run)).state.escalations[escalation].opened_at
        for run, escalation in ((each.run, each.escalation) for each in opened)
        if escalation in (await desk.known(run)).state.escalations
    ]
    return dict(outcomes), len(opened), round(max(0.0, time.time() - min(since)), 1) if since else None


async def metrics(call: ApiCall) -> Response:
    """Read figures for monitoring, in the text format of Prometheus. They never name a run."""
    return await metrics_of(call.request)


async def metrics_of(request: Request) -> Response:
    """GET /metrics: the same where monitoring looks for it."""
    outcomes, opened, oldest = await _figures(request.app.state.desk)
    lines = [
        "# HELP backedge_runs Runs by outcome.",
        "# TYPE backedge_runs gauge",
        *(f'backedge_runs{{outcome="{outcome}"}} {count}' for outcome, count in sorted(outcomes.items())),
        "# HELP backedge_inbox_open Escalations that wait for a person.",
        "# TYPE backedge_inbox_open gauge",
        f"backedge_inbox_open {opened}",
        "# HELP backedge_inbox_age_seconds How long the oldest of them has waited.",
        "# TYPE backedge_inbox_age_seconds gauge",
        f"backedge_inbox_age_seconds {oldest or 0}",
    ]
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


async def healthz(_: object) -> Response:
    """Say that the server answers. It needs no token at `/healthz`."""
    return PlainTextResponse("ok\n")


_COUNTED = (
    Query("workflow", "text", "Count only runs of this workflow."),
    Query("since", "number", "Count only runs that started since then, in seconds since the epoch."),
)
_UNKNOWN = {404: "There is no run of this workflow."}
ENDPOINTS = [
    Endpoint("GET", "/board", board, dict[str, list[dict[str, Any]]], other={404: "The project has no stories."}),
    Endpoint("GET", "/stats", stats, Stats, query=_COUNTED, other=_UNKNOWN),
    Endpoint("GET", "/report", report, TeamReport, query=_COUNTED, other=_UNKNOWN),
    Endpoint("GET", "/healthz", healthz, "text/plain"),
    Endpoint("GET", "/metrics", metrics, "text/plain"),
]
