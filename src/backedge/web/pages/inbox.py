"""The inbox: every open escalation of all runs, the oldest that pauses its run first."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from backedge.analytics.inbox import InboxItem
from backedge.core.scheduling.pending import outcome_of
from backedge.web.access.caller import Caller
from backedge.web.desk import Desk
from backedge.web.pages.question import QuestionCard
from backedge.web.pages.rendering import rendered

MOST_SHOWN = 25
"""How many questions are shown in full. The others follow as soon as these are decided."""


def inbox_page(questions: Sequence[QuestionCard], run: str = "", caller: Caller | None = None) -> str:
    return rendered("inbox.html", questions=questions[:MOST_SHOWN], more=questions[MOST_SHOWN:], run=run, caller=caller)


def inbox_part(questions: Sequence[QuestionCard], run: str = "") -> str:
    """What changes while the page is open: the list and the cards."""
    return rendered("inbox_part.html", questions=questions[:MOST_SHOWN], more=questions[MOST_SHOWN:], run=run)


async def inbox(request: Request) -> Response:
    run = request.query_params.get("run", "")
    return HTMLResponse(inbox_page(await questions_for(request, run), run, request.state.caller))


async def part(request: Request) -> Response:
    run = request.query_params.get("run", "")
    return HTMLResponse(inbox_part(await questions_for(request, run), run))


async def questions_for(request: Request, run: str = "") -> list[QuestionCard]:
    """The open escalations, of all runs or of one, with what its person may do."""
    desk: Desk = request.app.state.desk
    caller, found = request.state.caller, []
    for item in await desk.items(run or None):
        state = (await desk.known(item.run)).state
        steps, phases = tuple(step.name for step in state.workflow.steps), tuple(state.workflow.phases)
        found.append(QuestionCard(item, steps, phases, _refused(caller, item)))
    return found


def _refused(caller: Caller, item: InboxItem) -> str:
    """Why a person may not decide it; empty if they may."""
    if caller.may_answer(item.for_roles):
        return ""
    if not caller.may("decide"):
        return f"You are signed in as {caller.name}, who may look and not decide."
    return f"This is for {', '.join(item.for_roles)}; you answer for {', '.join(caller.roles)}."


async def followed(request: Request) -> Response:
    """What a decision has led to so far."""
    from backedge.web.pages.consequence import consequence

    desk: Desk = request.app.state.desk
    known = await desk.known(request.path_params["run"])
    escalation = request.path_params["escalation"]
    holder = await desk.engine.journal.holder(known.run)
    lines = consequence(known.events, escalation)
    idle = known.state.ended is None and holder is None and not known.state.escalations
    more = {"run": known.run, "outcome": outcome_of(known.state), "idle": idle}
    return HTMLResponse(rendered("followed.html", lines=lines, **more))
