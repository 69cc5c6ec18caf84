"""What a person is asked about a step, and when that is no longer the question.

A question holds for what it was asked about: the versions of the inputs, and the feedback to address. When these
change, it is withdrawn and asked anew; an answer to the old one is refused, and never taken for one to the new.
"""

from __future__ import annotations

from backedge.core.model import Question
from backedge.core.scheduling.scheduler import Start, start_wanted
from backedge.core.scheduling.skipping import condition_pending, input_versions
from backedge.core.state.run import Escalation, RunState


def question_for(state: RunState, start: Start) -> Question:
    """What a person who does this would be asked."""
    shares = (state.loops[id].shares[start.step] for id in start.loops)
    findings = tuple(dict.fromkeys(finding for share in shares for finding in share.findings))
    return Question(start.mode, input_versions(state, start.step), start.loops, findings)


def withdrawal_reason(state: RunState, packet: Escalation) -> str | None:
    """Why a question about a step is no longer one; None for one that stands, and for every other escalation."""
    if packet.about is None:
        return None
    assert packet.step is not None
    start = start_wanted(state, packet.step)
    if start is None or condition_pending(state, packet.step):
        return f"{packet.step!r} has nothing to do any more, or not yet"
    now, asked = question_for(state, start), packet.about
    if now == asked:
        return None
    for name, version in asked.inputs.items():
        if now.inputs.get(name) != version:
            return (
                f"the question is about an older version of {name!r} ({version}): it is asked anew when that is settled"
            )
    return f"what {packet.step!r} has to do has changed since: it is asked anew"
