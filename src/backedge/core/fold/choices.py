"""What the events of a choice make of its loop: who said what, what was chosen, who is asked next."""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.loops import Loop, LoopState
from backedge.core.model import Chosen, Position
from backedge.core.positions import BY_DISAGREEMENT, BY_OPTION
from backedge.core.run_state import RunState, with_loop
from backedge.core.value import replace

KEPT_POSITIONS = 40
"""How many positions a loop remembers: enough to decide on, flat in cost."""


def position_taken(state: RunState, event: e.PositionTaken) -> RunState:
    loop = state.loops[event.loop]
    said = Position(loop.round, event.target, event.option, event.reason)
    shares = {**loop.shares, event.target: replace(loop.shares[event.target], done=True)}
    return with_loop(state, replace(loop, shares=shares, positions=(*loop.positions, said)[-KEPT_POSITIONS:]))


def choice_made(state: RunState, event: e.ChoiceMade) -> RunState:
    """Nobody is asked any more: the loop waits for its source, unless the option sends somebody to rework."""
    loop = state.loops[event.loop]
    if loop.state is not LoopState.RESOLVING:
        loop = loop.moved(LoopState.RESOLVING)
    chosen = replace(
        loop.moved(LoopState.VALIDATING),
        choice=Chosen(event.option, event.by, event.reason),
        shares={target: replace(share, done=True) for target, share in loop.shares.items()},
    )
    return with_loop(state, chosen)


def rerouted(before: Loop, after: Loop, event: e.FeedbackRouted) -> Loop:
    """A loop after a routing, with what that means for its choice."""
    if BY_OPTION in event.rules:
        # The rework that was chosen belongs to the round of the choice; who chose stays on record as its target.
        return replace(
            after,
            targets=before.targets,
            routed_by=before.routed_by,
            recent=before.recent,
            round=before.round + (not before.delivered),
            delivered=True,
        )
    if event.feedback is not None:
        after = replace(after, choice=None, disputed=False)
    if BY_DISAGREEMENT in event.rules:
        after = replace(after, routed_by=before.routed_by, disputed=True)
    return replace(after, rejected=before.rejected) if after.choosing else after
