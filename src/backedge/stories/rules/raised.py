"""Whether a person has raised the limit that blocks a story: in its front matter, or in the settings of the project.

A run keeps the limits it started with. If one of them blocks the story and is higher now, the difference is granted, as
a decision that the journal records. A limit that was lowered applies to new work only.
"""

from __future__ import annotations

import math

from backedge.core.commands import DEFAULT_ROUNDS
from backedge.core.value import Value
from backedge.core.workflow.limits import BUDGETS, LIMITS, Limits
from backedge.stories.rules.story_view import StoryView


class Raised(Value, frozen=True):
    """A limit that a person has raised, and what that grants."""

    why: str
    rounds: int = DEFAULT_ROUNDS
    amount: float | None = None
    """For a budget."""
    reset: bool = False
    """Start counting at 0 again."""

    @property
    def called(self) -> str:
        """What was changed."""
        return self.why.partition(" ")[0]


def raised_limit(view: StoryView, now: Limits, name: str, count: int | None) -> Raised | None:
    """What a person has changed to let a blocked story continue; None if nothing does. `now` are the limits that would
    apply today, `name` is how the project calls the limit on refinements, and `count` is the count in the file."""
    breach = view.breach
    if breach is None or "continue" not in view.choices or breach.limit not in LIMITS:
        return None
    spec = LIMITS[breach.limit]
    about_rounds = spec.scope == "loop" or breach.limit == "rounds_total"
    if about_rounds and count is not None and 0 <= count < view.refinement_count:
        reset = count == 0 and "revise" in view.choices
        return Raised(f"refinement_count was set to {count}", view.refinement_count - count, reset=reset)
    called = name if breach.limit == "rounds_per_loop" else breach.limit
    bound = getattr(now, breach.limit)
    if bound is None or bound is False:
        return Raised(f"{called} is off now")
    if bound <= breach.bound or isinstance(bound, bool):
        return None
    more = bound - breach.bound
    why = f"{called} is {bound:g} now"
    if breach.limit in BUDGETS:
        return Raised(why, amount=more)
    return Raised(why, math.ceil(more)) if spec.unit == "count" else Raised(why)


def limit_not_reached(view: StoryView, now: Limits, name: str, story: str) -> str:
    """Why a higher limit on refinements does not let a story continue that another limit blocks; empty if that is not so."""
    breach, most = view.breach, view.max_refinements
    if breach is None or breach.limit not in LIMITS or breach.limit == "rounds_per_loop" or most is None:
        return ""
    bound = now.rounds_per_loop
    if bound is not None and bound <= most:
        return ""
    is_now = "off" if bound is None else bound
    return f"{name} is {is_now} now, but {breach.limit} blocks the story: `backedge unblock {story}` lets it continue"


def lowered_limit(view: StoryView, now: Limits, name: str) -> str:
    """Why a lower limit on refinements does not apply to a story that is under way; empty if there is none."""
    first, bound = view.first_max_refinements, now.rounds_per_loop
    if first is None or bound is None or bound >= first or view.status == "done":
        return ""
    return f"{name} is {bound} now: work that has begun keeps its limit of {view.max_refinements}"
