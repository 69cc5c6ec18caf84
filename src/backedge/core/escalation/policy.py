"""The workflow's `on_breach` policy: what happens to a breach before, or instead of, asking a person.

`replan` sends what a loop could not resolve to the planner, once per run and without raising any budget.
"""

from __future__ import annotations

from typing import assert_never

from backedge.core import events as e
from backedge.core.feedback.closing import end_run, skip_by_decision
from backedge.core.feedback.loop import Loop
from backedge.core.feedback.routing import planner_for
from backedge.core.model import HUMAN, Feedback, Kind
from backedge.core.state.run import Escalation, RunState
from backedge.core.transaction import Transaction
from backedge.core.workflow.limits import OF_THE_RUN

BY_REPLAN = "replan"
"""The routing rule that sends what a loop could not resolve to the planner."""


def send_to_planner(tx: Transaction, packet: Escalation) -> bool:
    """Ask the planner instead of a person; False if a person has to be asked."""
    state = tx.state
    loop = state.loops.get(packet.loop or "")
    if loop is None or state.replanned or not _can_be_planned(loop, packet):
        return False
    planner = planner_for(state.graph, loop.source)
    if planner is None:
        return False
    tx.add(e.EscalationDecided(tx.now, packet.id, "replan", by="on_breach"))
    opened = tx.next_loop()
    issue = Feedback(
        Kind.ARCHITECTURE_ISSUE,
        (planner,),
        f"{loop.id} ({loop.kind_name} of {loop.source}) could not be resolved, limit {packet.breach}: {_what(state, loop)}",
        loop.severity,
        loop.blocking,
        suggested_fix="plan a different approach",
    )
    tx.add(e.LoopOpened(tx.now, opened, issue.kind, loop.source, feedback=issue, caused_by=loop.id))
    tx.add(e.FeedbackRouted(tx.now, opened, {planner: ()}, {BY_REPLAN: ()}))
    return True


def _can_be_planned(loop: Loop, packet: Escalation) -> bool:
    """Whether a new plan could help. It cannot add rounds to a run that has used them up, or answer for a person."""
    limit = packet.breach.limit if packet.breach is not None else ""
    return loop.source != HUMAN and limit not in (*OF_THE_RUN, "response_timeout")


def _what(state: RunState, loop: Loop) -> str:
    descriptions = [state.findings[id].finding.description for id in loop.finding_ids]
    return "; ".join(descriptions) or (loop.feedback.message if loop.feedback is not None else "")


def apply_policy(tx: Transaction, escalation: str, reason: str) -> None:
    """Apply the workflow's `on_breach` to an escalation that a limit opened."""
    packet = tx.state.escalations[escalation]
    match tx.state.workflow.on_breach:
        case "manual":
            return
        case "error":
            tx.add(e.EscalationDecided(tx.now, escalation, "error", by="on_breach"))
            end_run(tx, "failed", reason, by="on_breach")
        case "skip":
            # A budget of the run has no source to skip: a person decides.
            if packet.loop or packet.step:
                tx.add(e.EscalationDecided(tx.now, escalation, "skip", by="on_breach"))
                skip_by_decision(tx, packet.loop, packet.step, "on_breach")
        case "replan":
            send_to_planner(tx, packet)
        case _:
            assert_never(tx.state.workflow.on_breach)
