"""Profiles: the limits and other defaults of the systems that users come from. A workflow overrides limits key by key."""

from __future__ import annotations

from backedge.core.value import Value, replace
from backedge.core.workflow.limits import Limits
from backedge.core.workflow.routes import RouteRule


class Profile(Value, frozen=True):
    limits: Limits = Limits()
    scope: str = "upstream"
    routes: tuple[RouteRule, ...] = ()
    review_passes_if: str = ""
    """The pass rule of reviews without one: a rule's name, or `asp`, which chooses by the phase under review."""
    test_limits: Limits | None = None
    """The limits of `tests:` judges, if they differ."""
    judges_in_order: bool = False
    """Judges of one step run in the order of the file, and a failing one skips the rest."""
    nearest_phase: bool = False
    """A phase that the workflow does not have means the nearest earlier one it has, otherwise its first."""
    phase_words: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Words for several phases that judges may use in `affected_phase`, in lower case, and the phases they stand for."""
    streaks_first: bool = False
    """Limits on what repeats in a row are reported before limits on the number of rounds."""


_AI_SDLC_ROUTES = (
    RouteRule(
        "research",
        category=("research", "requirement", "requirements", "understanding", "missing information"),
    ),
    RouteRule(
        "planning",
        category=("plan", "planning", "architecture", "design", "approach", "scope", "story type", "content type"),
    ),
    RouteRule("planning", blockers=2),
    RouteRule("code", category=("",)),
)

_ORIGINAL = Limits(rounds_total=10, same_finding=3)
"""What the systems that users come from have in common. The limits of `default` are higher: they were measured."""

PROFILES: dict[str, Profile] = {
    "default": Profile(),
    "bmad": Profile(limits=replace(_ORIGINAL, rounds_per_loop=1), scope="any"),
    "ai-sdlc": Profile(
        limits=replace(_ORIGINAL, rounds_per_loop=3, recoveries_total=10),
        routes=_AI_SDLC_ROUTES,
        review_passes_if="ai-sdlc",
        nearest_phase=True,
    ),
    "tight-loop": Profile(
        limits=replace(_ORIGINAL, rounds_per_loop=None, rounds_per_step=4),
        judges_in_order=True,
        streaks_first=True,
    ),
    "asp": Profile(
        limits=replace(_ORIGINAL, rounds_per_loop=None, rounds_per_step=2),
        review_passes_if="asp",
        test_limits=replace(_ORIGINAL, rounds_per_loop=1, rounds_per_step=2),
        phase_words=(("both", ("planning", "design")),),
    ),
    "reactree": Profile(limits=replace(_ORIGINAL, rounds_per_loop=None, rounds_per_pair=2)),
}
