"""`on_breach: replan`: what a loop could not settle goes to the planner, once in a run and with the budgets as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backedge.core import events as e
from backedge.core.limits import OF_THE_RUN
from backedge.core.model import HUMAN, Feedback, Kind
from backedge.core.planners import planner_for

if TYPE_CHECKING:
    from backedge.core.draft import Draft
    from backedge.core.loops import Loop
    from backedge.core.state import Escalation, RunState

BY_REPLAN = "replan"
"""The rule that routes what a loop could not settle to the planner."""


def send_to_planner(draft: Draft, packet: Escalation) -> bool:
    """Ask the planner instead of a person; False where a person has to be asked."""
    state = draft.state
    loop = state.loops.get(packet.loop or "")
    if loop is None or state.replanned or not _can_be_planned(loop, packet):
        return False
    planner = planner_for(state.graph, loop.source)
    if planner is None:
        return False
    draft.add(e.EscalationDecided(draft.now, packet.id, "replan", by="on_breach"))
    opened = draft.next_loop()
    issue = Feedback(
        Kind.ARCHITECTURE_ISSUE,
        (planner,),
        f"{loop.id} ({loop.word} of {loop.source}) could not be settled, limit {packet.breach}: {_what(state, loop)}",
        loop.severity,
        loop.blocking,
        suggested_fix="plan it another way",
    )
    draft.add(e.LoopOpened(draft.now, opened, issue.kind, loop.source, feedback=issue, caused_by=loop.id))
    draft.add(e.FeedbackRouted(draft.now, opened, {planner: ()}, {BY_REPLAN: ()}))
    return True


def _can_be_planned(loop: Loop, packet: Escalation) -> bool:
    """A plan makes no rounds where the run has none left, and answers nobody's question to a person."""
    limit = packet.breach.limit if packet.breach is not None else ""
    return loop.source != HUMAN and limit not in (*OF_THE_RUN, "response_timeout")


def _what(state: RunState, loop: Loop) -> str:
    found = [state.findings[id].finding.description for id in loop.given]
    return "; ".join(found) or (loop.feedback.message if loop.feedback is not None else "")
