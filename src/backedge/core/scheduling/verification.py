"""What people raised and cannot look at themselves: the judges of what was mended look at it for them."""

from __future__ import annotations

from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.model import HUMAN
from backedge.core.state.run import RunState

_WITH_THE_STEPS = (LoopState.RESOLVING, LoopState.VALIDATING)


def human_feedback_to_verify(state: RunState, judge: str) -> tuple[Loop, ...]:
    """The feedback of people whose fix is in what a judge judges, and not verified yet."""
    if not state.loops:
        return ()
    subjects = state.graph.steps[judge].judges
    return tuple(
        loop
        for loop in state.loops.values()
        if loop.source == HUMAN
        and loop.state in _WITH_THE_STEPS
        and not loop.answers_only
        and any(loop.shares[name].done for name in subjects if name in loop.shares)
    )


def unverified_fixes(state: RunState, name: str) -> tuple[Loop, ...]:
    """The loops whose fix by a step still waits for a verdict; what was only answered is no fix."""
    loops = state.loops.values()
    return tuple(
        loop for loop in loops if loop.state is LoopState.VALIDATING and name in loop.shares and not loop.answers_only
    )


def not_delivered_yet(loop: Loop, name: str) -> bool:
    """Whether no execution of a step was for this round of a loop so far: a new plan took it from the step."""
    share = loop.shares.get(name)
    return share is not None and not share.counted
