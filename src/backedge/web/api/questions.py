"""The inbox, decisions and feedback: what people answer and raise."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from starlette.responses import Response

from backedge.analytics.blast import Blast, blast_of
from backedge.analytics.inbox import InboxItem
from backedge.answers import Answer, require_words, send_feedback, submit
from backedge.core.commands import DEFAULT_ROUNDS
from backedge.core.errors import AlreadyClosed
from backedge.core.escalation.packet import unknown_escalation
from backedge.core.model import HUMAN, Option
from backedge.core.state.run import Escalation
from backedge.engine.protocol import Feedback
from backedge.reading.whole_json import whole_json
from backedge.web.access.problem import Problem, problem_of
from backedge.web.api.endpoint import Call, Endpoint
from backedge.web.api.runs import (
    AT,
    CHANGED,
    LAST,
    MATCH,
    etag_of,
    is_current,
    known_of,
    require_match,
    stream,
    unheard,
)


class InboxPage(msgspec.Struct, frozen=True):
    """Every open escalation, those that pause their run first, then the oldest."""

    items: list[InboxItem]
    next: str | None
    """Always null: the inbox has one page."""


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer to an escalation. Who gives it comes from the token."""

    choice: str
    """resolve, continue, revise, reassign, reclassify, rollback, accept, skip, cancel, approve, reject, or a verdict."""
    note: str = ""
    option: str | None = None
    target: str | None = None
    phase: str | None = None
    rounds: Annotated[int, msgspec.Meta(ge=1, le=1000)] = DEFAULT_ROUNDS
    amount: Annotated[float, msgspec.Meta(gt=0)] | None = None


class Decided(msgspec.Struct, frozen=True):
    """A decision that was recorded."""

    run: str
    escalation: str
    choice: str
    by: str
    seq: int
    """The newest event of the run."""
    idle: bool
    """Whether the run could continue and no process executes it: `backedge resume` continues it."""


class Raised(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Feedback to raise, as `feedback raise` takes it."""

    kind: str
    message: str
    to: list[str] = []
    severity: Literal["critical", "high", "medium", "low"] = "high"
    blocking: bool = False
    suggested_fix: str | None = None
    requested_info: str | None = None
    requirement_id: str | None = None
    options: list[str] = []


class RaisedLoop(msgspec.Struct, frozen=True):
    """The loop of the feedback."""

    run: str
    loop: str
    warnings: list[str]


class Phase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The phase that injected a finding."""

    phase: str


class Reclassified(msgspec.Struct, frozen=True):
    """A finding with the phases it now counts for."""

    run: str
    finding: str
    phases: list[str]


async def inbox(call: Call) -> InboxPage:
    """List the open escalations of all runs, each with everything needed to decide it."""
    return InboxPage(await call.desk.items(), None)


async def inbox_events(call: Call) -> Response:
    """Follow the inbox: a message whenever the open escalations change, with their runs and ids."""
    return stream(call, call.request.app.state.feed.inbox(call.query["Last-Event-ID"] or ""))


async def decide(call: Call) -> Decided:
    """Decide an escalation. The name in the journal is that of the token."""
    given: Decision = call.body
    known = await call.desk.known(call.part("run"))
    found = known.state.escalation(call.part("escalation"))
    if found is None:
        raise unknown_escalation(known.state, call.part("escalation"))
    for_ = tuple(getattr(found, "for_roles", ()))
    if not call.caller.may_answer(for_):
        raise Problem(
            403,
            "Forbidden",
            f"{found.id} is for {', '.join(for_)}, and you decide for {', '.join(call.caller.roles)}: ask one of them",
        )
    require_match(call, known)
    run = await call.desk.engine.find(known.run)
    words = {"note": given.note, "option": given.option, "target": given.target, "phase": given.phase}
    answer = Answer(
        given.choice.strip().casefold(),
        {key: each for key, each in words.items() if each},
        given.rounds,
        given.amount,
        call.caller.name,
    )
    try:
        idle = await submit(call.desk.engine, call.desk.project, run, found.id, answer, unheard)
    except AlreadyClosed as error:
        now = (await call.desk.known(known.run)).state.escalation(found.id)
        raise problem_of(error, decision=_decision_of(now)) from error
    executing = call.request.app.state.executing
    if idle and executing is not None:
        executing.look()
    return Decided(known.run, found.id, answer.choice, answer.by, (await call.desk.known(known.run)).seq, idle)


def _decision_of(found: Escalation | None) -> dict[str, Any] | None:
    """The first decision, for somebody who was too late."""
    if found is None or found.decided is None:
        return None
    whole: dict[str, Any] = whole_json(found.decided)
    return {key: whole.get(key) for key in ("choice", "by", "note", "option", "target", "phase", "rounds", "at")}


async def what_if(call: Call) -> Response:
    """Say which steps would run again if the next round of a loop changed its targets, and the cost."""
    known = await known_of(call)
    headers = {"ETag": etag_of(known)}
    if is_current(call, known):
        return Response(status_code=304, headers=headers)
    from backedge.web.api.endpoint import json_response

    return json_response(blast_of(known.events, call.part("loop")), headers=headers)


async def feedback(call: Call) -> RaisedLoop:
    """Raise feedback as a person."""
    given: Raised = call.body
    known = await call.desk.known(call.part("run"))
    require_match(call, known)
    item = Feedback(
        given.kind,
        tuple(given.to),
        given.message,
        given.severity,
        given.blocking,
        given.suggested_fix,
        given.requested_info,
        options=[Option(option) for option in given.options],
        requirement_id=given.requirement_id,
    )
    require_words(item, known.state.workflow)
    run = await call.desk.engine.find(known.run)
    loop, warnings = await send_feedback(call.desk.engine, call.desk.project, run, item, HUMAN, unheard)
    return RaisedLoop(known.run, loop, warnings)


async def phase(call: Call) -> Reclassified:
    """Record which phase injected a finding. This overrides the judge."""
    given: Phase = call.body
    known = await call.desk.known(call.part("run"))
    require_match(call, known)
    run = await call.desk.engine.find(known.run)
    await run.reclassify(call.part("finding"), given.phase, call.caller.name)
    now = (await call.desk.known(known.run)).state
    found = next(each for each in now.findings.values() if each.name == call.part("finding"))
    return Reclassified(known.run, found.name, list(found.phases))


ENDPOINTS = [
    Endpoint("GET", "/inbox", inbox, InboxPage),
    Endpoint("GET", "/inbox/events", inbox_events, "text/event-stream", query=(LAST,)),
    Endpoint(
        "POST",
        "/runs/{run}/escalations/{escalation}/decision",
        decide,
        Decided,
        need="decide",
        query=(MATCH,),
        body=Decision,
        other={
            404: "There is no such run or escalation.",
            409: "It was decided before: `decision` says by whom, and how.",
            412: "The run has gone on since.",
            422: "That is not one of its choices.",
        },
    ),
    Endpoint(
        "GET",
        "/runs/{run}/loops/{loop}/what-if",
        what_if,
        Blast,
        query=(AT,),
        other={304: "Nothing has changed.", 404: "There is no such run or loop.", 422: "The loop is closed."},
    ),
    Endpoint(
        "POST",
        "/runs/{run}/feedback",
        feedback,
        RaisedLoop,
        need="decide",
        query=(MATCH,),
        body=Raised,
        status=201,
        other=CHANGED,
    ),
    Endpoint(
        "POST",
        "/runs/{run}/findings/{finding}/phase",
        phase,
        Reclassified,
        need="decide",
        query=(MATCH,),
        body=Phase,
        other=CHANGED,
    ),
]
