"""One run: its graph, timeline, loops and steps, as it is now or as it was at an event."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from backedge.analytics.evidence_report import EvidenceReport, evidence_report, protected_report
from backedge.analytics.rounds import Histories
from backedge.core.errors import NotFound
from backedge.core.model import Kind
from backedge.core.state.run import RunState
from backedge.core.text import shown
from backedge.reading.evidence_words import baseline_line
from backedge.web.access.caller import Caller
from backedge.web.desk import Known
from backedge.web.graph.draw import graph_svg
from backedge.web.graph.picture import loop_word, model_of
from backedge.web.pages.rendering import rendered
from backedge.web.pages.run_events import ShownEvents, Stop, event_page, first_of, moment_words, stops_of
from backedge.web.pages.run_head import head_of
from backedge.web.pages.run_loops import Cost, costs_by_loop, loop_tables
from backedge.web.pages.run_step import StepView, step_view, with_files
from backedge.web.timeline.bars import Bars, bars_of, window_of
from backedge.web.timeline.draw import timeline_svg

PARTS = ("head", "scrubber", "graph", "timeline", "loops", "evidence", "events")
MOST_REMEMBERED = 16
"""How many moments of runs are kept as they were shown."""
MOST_PARTS = 24
"""How many parts of each moment are kept."""
MOST_CHOICES = 100
"""How many findings to offer for reclassifying."""


@dataclass(frozen=True)
class RunFrame:
    """What every part of a run page knows about the page."""

    run: str
    seq: int
    newest: int
    past: bool
    live: bool
    acts: bool
    """Whether who looks may send something back."""
    administers: bool = False
    """Whether who looks may also pause, resume and cancel it."""
    links: bool = True
    """Whether there is a server behind it: not in an exported file."""

    @property
    def address(self) -> str:
        """Where the page is; empty for a file."""
        return "" if not self.links else f"/runs/{quote(self.run, safe='')}"

    @property
    def api(self) -> str:
        return f"/api/v1/runs/{quote(self.run, safe='')}"

    @property
    def query(self) -> str:
        """What a part has to be asked for the same moment."""
        return f"?at={self.seq}" if self.past else ""

    def step(self, name: str, attempt: int | None = None) -> str:
        """The address of a step's drawer."""
        if not self.links:
            return f"#step-{quote(name, safe='')}"
        wanted = {"step": name, **({"attempt": attempt} if attempt else {}), **({"at": self.seq} if self.past else {})}
        return f"{self.address}?{urlencode(wanted)}"


@dataclass(frozen=True)
class Folded:
    """A run at one sequence number, with everything that its page folds from the events: each when it is first needed."""

    known: Known
    histories: Histories
    rendered: dict[object, str] = field(default_factory=dict)
    """The parts that somebody was shown: all who watch a run share them."""

    @property
    def state(self) -> RunState:
        return self.known.state

    @cached_property
    def bars(self) -> Bars:
        return bars_of(self.known.events, frozenset(self.state.graph.judges))

    @cached_property
    def costs(self) -> Mapping[str, Cost]:
        return costs_by_loop(self.known.events)

    @cached_property
    def stops(self) -> tuple[Stop, ...]:
        return stops_of(self.known.events)


def head_part(page: RunFrame, run: Folded) -> str:
    head = head_of(run.state, run.histories)
    moment = moment_words(run.state.last_at)
    return rendered("run_head.html", page=page, head=head, past=page.past, moment=moment, clock=moment_words)


def scrubber_part(page: RunFrame, run: Folded, stops: tuple[Stop, ...]) -> str:
    """The slider over all events; `stops` are those of the newest state."""
    del run
    before = next((each for each in reversed(stops) if each.seq < page.seq), None)
    after = next((each for each in stops if each.seq > page.seq), None)
    ticks = [
        (kind, "".join(_tick(each.seq, page.newest) for each in stops if each.kind == kind))
        for kind in dict.fromkeys(each.kind for each in stops)
    ]
    return rendered("run_scrubber.html", page=page, stops=stops, before=before, after=after, ticks=ticks)


def _tick(seq: int, newest: int) -> str:
    # The middle of a slider's thumb does not reach the ends of its track.
    return f"M{8 + 984 * (seq - 1) / max(1, newest - 1):.1f} 0v12"


def graph_part(page: RunFrame, run: Folded, opened: tuple[str, ...] = ()) -> str:
    def group_at(name: str) -> str:
        return f"{page.address}?{urlencode([('open', each) for each in (*opened, name)])}" if page.links else ""

    model = model_of(run.state, opened, page.step, lambda loop: f"#{loop}", group_at)
    groups = any(node.members for node in model.nodes) and page.links
    svg = graph_svg(model)
    return rendered(
        "run_graph.html", page=page, svg=svg, left_out=model.left_out, groups=groups, opened=bool(opened) and page.links
    )


def timeline_part(page: RunFrame, run: Folded, now: float, before: int | None = None) -> str:
    state = run.state
    loops = {loop.id: loop_word(state, loop) for loop in (*state.loops.values(), *state.closed_loops.values())}
    head = head_of(state, {})
    waiting = [(name, until) for name, until, _ in head.waits]
    rows = list(state.graph.by_urgency)
    svg = timeline_svg(run.bars, rows, now, page.step, loops, before, waiting)
    first, last = window_of(run.bars.bars, before)
    return rendered("run_timeline.html", page=page, svg=svg, first=first, last=last, count=len(run.bars.bars))


def loops_part(page: RunFrame, run: Folded, before: int | None = None) -> str:
    tables, more = loop_tables(run.state, run.histories, run.costs, before)
    return rendered("run_loops.html", page=page, tables=tables, more=more, paged=before is not None)


def evidence_part(page: RunFrame, run: Folded) -> str:
    state = run.state
    found = evidence_report(state)
    return rendered(
        "run_evidence.html",
        page=page,
        evidence=found,
        in_force=_in_force(found) if found is not None else (),
        protected=[protected_report(each) for each in state.protected.values()],
        baselines=[shown(baseline_line(each), 300) for each in state.baselines.values()],
    )


def _in_force(found: EvidenceReport) -> tuple[tuple[str, str, str], ...]:
    if not any(judge.tool for judge in found.judges.values()):
        return (("tools", "none judged; the verdicts are what agents or people said", "warn"),)
    return (
        ("room", found.room, "warn" if found.room == "none" else "ok"),
        ("sandbox", found.sandbox, "warn" if found.sandbox == "none" else "ok"),
        ("baseline", "yes" if found.baseline else "no", "ok" if found.baseline else "warn"),
        ("protected files held", found.held, "warn" if found.held == "no" else "ok"),
        ("environment", found.environment, "ok" if found.environment == "same" else "warn"),
    )


def events_part(page: RunFrame, events: ShownEvents) -> str:
    return rendered("run_events.html", page=page, events=events)


def step_part(page: RunFrame, step: StepView) -> str:
    return rendered("run_step.html", page=page, step=step, past=page.past, at=page.step)


def run_page(
    page: RunFrame, run: Folded, parts: Mapping[str, str], step: str = "", caller: Caller | None = None
) -> str:
    """The whole page."""
    state = run.state
    findings = [(each.name, shown(each.finding.description, 60)) for each in state.findings.values()][-MOST_CHOICES:]
    return rendered(
        "run.html",
        page=page,
        parts={name: Markup(text) for name, text in parts.items()},
        step=Markup(step),
        paused=state.paused_by is not None,
        kinds=[kind.value for kind in Kind],
        makers=[name for name in state.graph.steps if name not in state.graph.judges],
        findings=findings[::-1],
        phases=list(dict.fromkeys(phase for phase in state.graph.phase_of.values() if phase)),
        caller=caller,
    )


class _Asked:
    """One request for a run, now or at a moment."""

    def __init__(self, request: Request) -> None:
        self.request, self.desk = request, request.app.state.desk
        self.run = request.path_params["run"]

    def number(self, name: str) -> int | None:
        text = self.request.query_params.get(name, "")
        return int(text) if text.isdecimal() and len(text) < 10 else None

    async def read(self) -> tuple[RunFrame, Folded]:
        newest: Known = await self.desk.known(self.run)
        at = self.number("at")
        known = newest if at is None or at >= newest.seq else await self.desk.known(self.run, at)
        past = known is not newest
        live = not past and newest.state.ended is None
        self.newest = newest
        may = self.request.state.caller.may
        page = RunFrame(
            self.run, known.seq, newest.seq, past, live, live and may("decide"), administers=live and may("admin")
        )
        return page, await self.folded(known)

    async def folded(self, known: Known) -> Folded:
        remembered: dict[tuple[str, int], Folded] = _remembered(self.request)
        key = known.run, known.seq
        if key not in remembered:
            remembered[key] = Folded(known, (await self.desk.history(known)).histories)
            while len(remembered) > MOST_REMEMBERED:
                del remembered[next(iter(remembered))]
        return remembered[key]

    async def part(self, name: str, page: RunFrame, run: Folded) -> str:
        now = int(time.time()) if page.live and run.state.busy else 0
        key = name, page, self.request.url.query, now if name == "timeline" else 0
        if key not in run.rendered:
            if len(run.rendered) >= MOST_PARTS:
                run.rendered.clear()
            run.rendered[key] = await self._rendered(name, page, run)
        return run.rendered[key]

    async def _rendered(self, name: str, page: RunFrame, run: Folded) -> str:
        match name:
            case "head":
                return head_part(page, run)
            case "scrubber":
                return scrubber_part(page, run, (await self.folded(self.newest)).stops)
            case "graph":
                return graph_part(page, run, tuple(self.request.query_params.getlist("open"))[:50])
            case "timeline":
                now = time.time() if page.live and run.state.busy else run.state.last_at
                return timeline_part(page, run, now, self.number("attempts"))
            case "loops":
                return loops_part(page, run, self.number("loops"))
            case "evidence":
                return evidence_part(page, run)
            case _:
                return await self.events(page, run)

    async def events(self, page: RunFrame, run: Folded) -> str:
        first, last = first_of(page.seq, self.number("before"))
        earlier = (await self.desk.known(self.run, first)).state if first else None
        return events_part(page, event_page(earlier, run.known.events[first:last], first, page.seq))

    async def step(self, name: str, page: RunFrame, run: Folded) -> str:
        if name not in run.state.steps:
            raise NotFound(f"step {name!r} is unknown in run {self.run!r}")
        events, state = run.known.events, run.state
        view, versions = step_view(state, events, name, self.number("attempt"))
        old, new = self.number("from"), self.number("to")
        compares = (old, new) if old is not None and new is not None else None
        journal, project = self.desk.engine.journal, self.desk.project
        return step_part(page, await with_files(view, journal, project, state, events, versions, compares))


def _remembered(request: Request) -> dict[tuple[str, int], Folded]:
    found: Any = getattr(request.app.state, "run_pages", None)
    if found is None:
        found = request.app.state.run_pages = {}
    known: dict[tuple[str, int], Folded] = found
    return known


async def run(request: Request) -> Response:
    """The page of a run."""
    asked = _Asked(request)
    page, found = await asked.read()
    parts = {name: await asked.part(name, page, found) for name in PARTS}
    wanted = request.query_params.get("step", "")
    step = await asked.step(wanted, page, found) if wanted in found.state.steps else ""
    return HTMLResponse(run_page(page, found, parts, step, request.state.caller))


async def run_part(request: Request) -> Response:
    """One part of the page of a run."""
    if request.path_params["part"] not in PARTS:
        raise NotFound(f"a run page has no part {request.path_params['part']!r}: it has {', '.join(PARTS)}, step")
    asked = _Asked(request)
    page, found = await asked.read()
    html = await asked.part(request.path_params["part"], page, found)
    # A browser fetches all parts after each event, and most of them look the same as before.
    mark = {"ETag": f'"{sha256(html.encode()).hexdigest()[:16]}"'}
    if request.headers.get("if-none-match") == mark["ETag"]:
        return Response(status_code=304, headers=mark)
    return HTMLResponse(html, headers=mark)


async def run_step_part(request: Request) -> Response:
    """The drawer of one step."""
    asked = _Asked(request)
    page, found = await asked.read()
    return HTMLResponse(await asked.step(request.path_params["step"], page, found))


RUN_ROUTES: list[BaseRoute] = [
    Route("/runs/{run}", run),
    Route("/runs/{run}/part/step/{step}", run_step_part),
    Route("/runs/{run}/part/{part}", run_part),
]
"""The page of a run and its parts."""
