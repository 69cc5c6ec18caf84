"""Runs: list them, read one, follow its events, start, pause, resume and cancel."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from backedge.analytics.report import Report
from backedge.answers import cancel_run
from backedge.core.errors import NotExecuted
from backedge.core.scheduling.pending import outcome_of
from backedge.core.text import counted
from backedge.engine.store import sound_records
from backedge.ports import RunHead
from backedge.reading.event_line import stored_line
from backedge.reading.run_status import RunStatus
from backedge.web.access.problem import HttpProblem
from backedge.web.api.endpoint import ApiCall, Endpoint, Query, json_response
from backedge.web.api.event_stream import EventStream
from backedge.web.desk import Known
from backedge.web.run_search import OUTCOMES, RunSearch, search_runs

PAGE, MOST = 50, 200
"""How many items a page has, and how many it may have."""

AT = Query("at", "number", "Show it as it was at this event.", least=1)
LIMIT = Query("limit", "number", "How many items to give.", PAGE, 1, MOST)
CURSOR = Query("cursor", "text", "Where the next page begins: `next` of the last one.")
MATCH = Query("If-Match", "text", "Refuse the change if the run has gone on since: the ETag of the run.", header=True)
KEY = Query("Idempotency-Key", "text", "The id of the new run: sent twice, it starts one run.", header=True)
LAST = Query("Last-Event-ID", "text", "Continue a stream after this event.", header=True)


class RunPage(msgspec.Struct, frozen=True):
    """Some of the runs, newest first."""

    items: list[RunStatus]
    next: str | None
    """The cursor of the next page; null if there is none."""


class EventLine(msgspec.Struct, frozen=True):
    """One event, as `watch --json` prints it, with its own keys. Large values stay in the journal."""

    seq: int
    run: str
    link: str
    type: str
    at: float
    large: dict[str, str] = {}
    """The digests of the large values, by JSON pointer."""


class EventList(msgspec.Struct, frozen=True):
    """Some events of a run, oldest first."""

    items: list[EventLine]
    next: int | None
    """The number to continue after; null at the end."""


class StartBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run to start."""

    input: Any = None
    """What the run works on: any JSON value."""


class CancelBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why."""

    reason: str = ""


class RunNow(msgspec.Struct, frozen=True):
    """A run after a change."""

    run: str
    outcome: str
    seq: int
    paused: bool
    held_by: str | None
    """The process that executes it; null if it needs `backedge resume`."""


def etag_of(known: Known) -> str:
    return f'"{quote(known.mark, safe=":")}"'


def is_current(call: ApiCall, known: Known) -> bool:
    """Whether the reader has this already, by its If-None-Match."""
    given = call.request.headers.get("if-none-match", "")
    return any(each.strip().removeprefix("W/") in (etag_of(known), "*") for each in given.split(",") if each.strip())


async def known_of(call: ApiCall) -> Known:
    """The run of a path, now or at an event."""
    known = await call.desk.known(call.part("run"))
    at = call.query.get("at")
    if at is not None and at > known.seq:
        raise HttpProblem(400, "BadRequest", f"at is {at}: the run has {counted(known.seq, 'event')}")
    return await call.desk.known(known.run, at) if at is not None else known


def require_match(call: ApiCall, known: Known) -> None:
    """Raises HttpProblem if the run has gone on since what the sender has seen."""
    given = call.query.get("If-Match")
    if given is not None and not any(each.strip() in (etag_of(known), "*") for each in given.split(",")):
        raise HttpProblem(
            412,
            "Stale",
            f"the run is at {etag_of(known)}, not {given[:100]}: read it again, then decide",
            etag=etag_of(known),
        )


async def runs(call: ApiCall) -> RunPage:
    """List runs, newest first, with their state and the command to type next."""
    outcome, workflow, word, cursor = (call.query[name] for name in ("outcome", "workflow", "q", "cursor"))
    wanted = RunSearch(outcome, workflow, word or "", cursor)
    found, following = await search_runs(call.desk.engine.journal, wanted, call.query["limit"])
    return RunPage(await call.desk.statuses(found), following)


async def run(call: ApiCall) -> Response:
    """Read a run, as `show --json` prints it."""
    known = await known_of(call)
    headers = {"ETag": etag_of(known)}
    if is_current(call, known):
        return Response(status_code=304, headers=headers)
    return json_response(await call.desk.report(known), headers=headers)


async def events(call: ApiCall) -> Response:
    """Read the events of a run page by page, or follow them with `Accept: text/event-stream`."""
    name, after = call.part("run"), call.query["after"]
    if "text/event-stream" in call.request.headers.get("accept", ""):
        last = call.query["Last-Event-ID"]
        after = int(last) if last is not None and last.isascii() and last.isdecimal() and len(last) < 12 else after
        known = await call.desk.known(name)
        return stream(call, call.request.app.state.feed.events(name, min(after, known.seq)))
    known = await call.desk.known(name)
    limit = call.query["limit"]
    records = (await sound_records(call.desk.engine.journal, name, after))[:limit] if after < known.seq else []
    last_seq = records[-1].seq if records else known.seq
    body = b'{"items":[%s],"next":%s}' % (
        b",".join(stored_line(name, record) for record in records),
        b"%d" % last_seq if last_seq < known.seq else b"null",
    )
    return Response(body, media_type="application/json", headers={"ETag": etag_of(known)})


def stream(call: ApiCall, messages: Any) -> EventStream:
    """Messages for the sender of a request, for as long as they may read."""
    state, request, caller = call.request.app.state, call.request, call.caller

    def allowed() -> bool:
        headers = {name.casefold(): value for name, value in request.headers.items()}
        try:
            now = state.gate.sender(headers)
        except HttpProblem:
            return False
        return now is not None and now.caller == caller

    return EventStream(messages, state.closing, allowed)


async def start(call: ApiCall) -> Response:
    """Start a run of the project's workflow. Sent again with the same key and body, it says what became of the first."""
    executing = call.request.app.state.executing
    if executing is None:
        raise NotExecuted("this server does not execute runs: start it with `backedge serve --execute`")
    key = call.query["Idempotency-Key"]
    if key is not None and (not key.strip() or not key.isprintable() or "/" in key or len(key) > 100):
        raise HttpProblem(400, "BadRequest", "Idempotency-Key is the id of a run: up to 100 characters, no slash")
    name, begun = await executing.start(key, call.body.input)
    status = 201 if begun else 200
    return json_response(await _now(call, name), status, {"Location": f"/api/v1/runs/{quote(name, safe='')}"})


async def pause(call: ApiCall) -> RunNow:
    """Pause a run: running attempts finish, and none starts."""
    found = await _changed(call)
    await found.pause(call.caller.name)
    return await _now(call, found.id)


async def resume(call: ApiCall) -> RunNow:
    """Continue a paused or stopped run. A server that does not execute runs only lifts the pause."""
    found = await _changed(call)
    executing = call.request.app.state.executing
    if executing is not None:
        await executing.resume(found.id)
    else:
        await found.resume(call.caller.name)
    return await _now(call, found.id)


async def cancel(call: ApiCall) -> RunNow:
    """End a run and stop its running attempts. The work so far is kept."""
    found = await _changed(call)
    await cancel_run(call.desk.project, found, call.caller.name, call.body.reason, unheard)
    return await _now(call, found.id)


async def _changed(call: ApiCall) -> Any:
    known = await call.desk.known(call.part("run"))
    require_match(call, known)
    return await call.desk.engine.find(known.run)


async def _now(call: ApiCall, name: str) -> RunNow:
    known = await call.desk.known(name)
    (head,) = await call.desk.statuses([_head(known)])
    return RunNow(name, head.outcome, known.seq, known.state.paused_by is not None, head.held_by)


def _head(known: Known) -> RunHead:

    return RunHead(known.run, known.state.workflow.name, outcome_of(known.state), known.seq, "")


def unheard(_: str) -> None:
    """The remarks of views go to the log of the process that executes the run."""


CHANGED = {
    404: "There is no such run.",
    409: "It has ended, or another process executes it.",
    412: "The run has gone on since.",
    422: "That cannot be done now.",
}
ENDPOINTS = [
    Endpoint(
        "GET",
        "/runs",
        runs,
        RunPage,
        query=(
            Query("outcome", "text", "Only runs with this outcome.", words=OUTCOMES),
            Query("workflow", "text", "Only runs of this workflow."),
            Query("q", "text", "Only runs with this text in their id or workflow."),
            CURSOR,
            LIMIT,
        ),
    ),
    Endpoint(
        "POST",
        "/runs",
        start,
        RunNow,
        need="admin",
        query=(KEY,),
        body=StartBody,
        status=201,
        other={
            200: "The run was started before, with the same body.",
            409: "This server does not execute runs.",
            422: "The run was started before, with another body; or the workflow or its input is wrong.",
        },
    ),
    Endpoint(
        "GET",
        "/runs/{run}",
        run,
        Report,
        query=(AT,),
        other={304: "Nothing has changed.", 404: "There is no such run."},
    ),
    Endpoint(
        "GET",
        "/runs/{run}/events",
        events,
        EventList,
        query=(Query("after", "number", "Only events after this number.", 0), LIMIT, LAST),
        other={404: "There is no such run."},
        streams=True,
    ),
    Endpoint("POST", "/runs/{run}/pause", pause, RunNow, need="admin", query=(MATCH,), other=CHANGED),
    Endpoint(
        "POST",
        "/runs/{run}/resume",
        resume,
        RunNow,
        need="admin",
        query=(MATCH,),
        other=CHANGED,
    ),
    Endpoint(
        "POST", "/runs/{run}/cancel", cancel, RunNow, need="admin", query=(MATCH,), body=CancelBody, other=CHANGED
    ),
]
