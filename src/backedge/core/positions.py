"""What the targets of a choice have said, and how it came out so far, as those are told whom it concerns."""

from __future__ import annotations

from backedge.core.loops import Loop
from backedge.core.model import Resolution
from backedge.core.value import Json, replace

BY_OPTION = "option"
"""The rule that routes the rework that a chosen option asks for."""
BY_DISAGREEMENT = "disagreement"
"""The rule that asks the targets of a choice once more, each with the positions of all."""


def positions_of(loop: Loop) -> dict[str, Json]:
    """What each target of a choice said in this round, as a resolution tells it."""
    return {each.who: {"option": each.option, "reason": each.reason} for each in loop.stated}


def outcome_so_far(loop: Loop, state: str) -> Resolution:
    """How a loop that is still open came out in this round, for whoever raised it."""
    if loop.choice is None:
        return Resolution(state, answers=loop.answers)
    return Resolution(state, text=loop.choice.reason, option=loop.choice.option, answers=positions_of(loop))


def signed(loop: Loop, end: Resolution) -> Resolution:
    """How a loop came out, with the names of those who chose that, where nobody else ended it."""
    return replace(end, by=loop.choice.by) if loop.choice is not None and not end.by else end
