"""The list of runs: search, filters, and one page at a time. Only the runs that are shown are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from backedge.reading.run_status import RunStatus
from backedge.web.access.caller import Caller
from backedge.web.desk import Desk
from backedge.web.pages.rendering import query, rendered
from backedge.web.run_search import OUTCOMES, RunSearch, search_runs

PAGE = 50
"""How many runs a page shows."""
NAMED = 2_000
"""The workflows of how many of the newest runs can be chosen."""


@dataclass(frozen=True)
class RunList:
    """One page of runs, and what was searched for."""

    wanted: RunSearch
    statuses: Sequence[RunStatus]
    workflows: Sequence[str]
    next: str | None
    """The cursor of the next page."""

    @property
    def address(self) -> str:
        """The same search as an address."""
        return query(self._given)

    @property
    def next_address(self) -> str:
        return "/runs" + query({**self._given, "cursor": self.next or ""})

    @property
    def first_address(self) -> str:
        return "/runs" + query({**self._given, "cursor": ""})

    @property
    def _given(self) -> dict[str, str]:
        wanted = self.wanted
        named = {"q": wanted.word, "outcome": wanted.outcome, "workflow": wanted.workflow, "cursor": wanted.cursor}
        return {name: each or "" for name, each in named.items()}


def runs_page(found: RunList, caller: Caller | None = None) -> str:
    return rendered("runs.html", found=found, outcomes=OUTCOMES, caller=caller)


def runs_part(found: RunList) -> str:
    """The rows, which change while the page is open."""
    return rendered("runs_part.html", found=found)


async def runs(request: Request) -> Response:
    return HTMLResponse(runs_page(await run_list(request), request.state.caller))


async def part(request: Request) -> Response:
    return HTMLResponse(runs_part(await run_list(request)))


async def run_list(request: Request) -> RunList:
    desk: Desk = request.app.state.desk
    given = {
        name: request.query_params.get(name, "").strip()[:200] or None for name in ("outcome", "workflow", "cursor")
    }
    outcome = given["outcome"] if given["outcome"] in OUTCOMES else None
    word = request.query_params.get("q", "").strip()[:200]
    wanted = RunSearch(outcome, given["workflow"], word, given["cursor"])
    heads, following = await search_runs(desk.engine.journal, wanted, PAGE)
    named = {head.workflow for head in await desk.engine.journal.runs(NAMED)}
    return RunList(wanted, await desk.statuses(heads), sorted(named), following)
