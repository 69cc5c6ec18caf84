"""Feedback that a step has addressed and nobody has verified yet: whatever it is executed for next, it is reminded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backedge.core.loops import Loop, LoopState

if TYPE_CHECKING:
    from backedge.core.run_state import RunState


def unverified(state: RunState, name: str) -> tuple[Loop, ...]:
    """The loops whose fix by a step still waits for a verdict; what was only answered is no fix."""
    loops = state.loops.values()
    return tuple(
        loop for loop in loops if loop.state is LoopState.VALIDATING and name in loop.shares and not loop.answers_only
    )


def is_new(loop: Loop, name: str) -> bool:
    """Whether no execution of a step was for this round of a loop so far: a new plan took it from the step."""
    share = loop.shares.get(name)
    return share is not None and not share.charged
