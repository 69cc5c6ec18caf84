"""What people raised and cannot look at themselves: the judges of what was mended look at it for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backedge.core.loops import Loop, LoopState
from backedge.core.model import HUMAN

if TYPE_CHECKING:
    from backedge.core.run_state import RunState

_WITH_THE_STEPS = (LoopState.RESOLVING, LoopState.VALIDATING)


def judged_for_people(state: RunState, judge: str) -> tuple[Loop, ...]:
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
