"""What a person is asked about a step, and when that question is withdrawn.

A question is valid for the input versions and the feedback that it was asked about. When these change, it is withdrawn
and asked again. An answer to a withdrawn question is refused, so that it is never taken as an answer to the new one.
"""

from __future__ import annotations

from backedge.core.evidence.protected import unanswered_changes
from backedge.core.model import Question
from backedge.core.scheduling.scheduler import Start, start_wanted
from backedge.core.scheduling.skipping import condition_pending, input_versions
from backedge.core.state.run import Escalation, RunState


def question_for(state: RunState, start: Start) -> Question:
    """The question for a person who does, judges or approves this."""
    shares = (state.loops[id].shares[start.step] for id in start.loops)
    findings = tuple(dict.fromkeys(finding for share in shares for finding in share.findings))
    return Question(start.mode, input_versions(state, start.step), start.loops, findings)


def withdrawal_reason(state: RunState, packet: Escalation) -> str | None:
    """Why a question about a step is withdrawn; None if it is still valid, and for every other escalation."""
    if packet.protected:
        asked = tuple(each.id for each in unanswered_changes(state))
        return None if asked == packet.protected else "the files have changed since"
    if packet.vote is not None:
        return _choice_over(state, packet.vote, packet.step)
    if packet.about is None:
        return None
    assert packet.step is not None
    start = start_wanted(state, packet.step)
    if start is None or condition_pending(state, packet.step):
        return f"{packet.step!r} has nothing to do now"
    new, old = question_for(state, start), packet.about
    if new == old:
        return None
    for name, version in old.inputs.items():
        if new.inputs.get(name) != version:
            return f"the question was about an older version of {name!r} ({version}); it is asked again when that is settled"
    return f"the work for {packet.step!r} has changed since; the question is asked again"


def _choice_over(state: RunState, id: str, target: str | None) -> str | None:
    """Why a target of a choice need not take a position any more; None if it still should."""
    loop = state.loops.get(id)
    share = loop.shares.get(target or "") if loop is not None and loop.choosing else None
    return None if share is not None and not share.done else f"the choice in {id} is made without it"
