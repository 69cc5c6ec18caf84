"""The limits: every bound that can stop a loop or a run, what it means, and what a user may set it to.

A limit is one field of `Limits`. Its `LimitSpec` is the source for the checks here, for the published schema of the
workflow file and for the docs; `core/breaches.py` counts what is compared with it. A breach is count >= bound before the
next try, and the first in the order of the fields is reported. `None` switches a limit off.

A person can grant more, so every limit has to let a granted round through. A counter, such as `same_finding`, adds what
was granted to its bound; `revise` sets it back to 0. A level, such as `diverging`, is not counted up: it applies only if
`next_round_granted` (`core/breaches.py`) says that no person has granted the round.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_type_hints

from backedge.core.errors import Place, WorkflowProblem
from backedge.core.suggestions import did_you_mean
from backedge.core.value import Value, replace

Unit = Literal["count", "seconds", "dollars", "flag"]
Scope = Literal["loop", "run", "budget"]


class LimitSpec(Value, frozen=True):
    """What a limit means and how it is written."""

    meaning: str
    """One sentence, for people who write or read a workflow file."""
    unit: Unit = "count"
    scope: Scope = "loop"
    """`loop`: a judge may have its own. `run`: counted over the whole run. `budget`: the same, and a breach stops
    everything."""
    zero: bool = True
    """Whether the bound may be 0, which allows none at all."""
    breaker: bool = True
    """Whether `circuit_breaker: false` of stories switches it off, if its scope is a loop. Limits that can bound a run on
    their own stay on (`core/workflow/bound.py`), and so do those that are not about repeated rework."""


class Limits(Value, frozen=True, omit_defaults=False):
    """The bounds of a run and its loops.

    All of them are written into the journal, so that a run keeps its limits when a default changes.
    """

    cost_usd: Annotated[
        float | None,
        LimitSpec("The most that the attempts of a run may cost together, in US dollars.", "dollars", "budget", False),
    ] = None
    tokens: Annotated[
        int | None,
        LimitSpec(
            "The most tokens, in and out, that the attempts of a run may use together.", "count", "budget", False
        ),
    ] = None
    attempts: Annotated[
        int | None,
        LimitSpec("The most attempts that a run may make, whatever their outcome.", "count", "budget", False),
    ] = None
    wall_clock: Annotated[
        float | None,
        LimitSpec(
            "The longest that a run may be at work; time spent waiting for people or for a provider does not count.",
            "seconds",
            "budget",
            False,
        ),
    ] = None
    errors_in_a_row: Annotated[
        int | None,
        LimitSpec(
            "How often in a row the agent of one step may break; failing work does not count.",
            zero=False,
            breaker=False,
        ),
    ] = 3
    provider_wait: Annotated[
        float | None,
        LimitSpec(
            "How long in a row one step may wait for a limit of its provider, such as a quota that resets later.",
            "seconds",
            breaker=False,
        ),
    ] = 86_400.0
    rounds_total: Annotated[
        int | None,
        LimitSpec(
            "The most executions in a run that feedback asked for; cascades and verifications do not count.",
            scope="run",
        ),
    ] = 20
    recoveries_total: Annotated[
        int | None,
        LimitSpec("The most reworks in a run that may give back the identical artifact.", scope="run"),
    ] = None
    rounds_per_loop: Annotated[
        int | None, LimitSpec("The most rounds of one loop: with 5, the 6th rejection escalates.")
    ] = 5
    rounds_per_pair: Annotated[
        int | None, LimitSpec("The most rounds between the same source and target.", breaker=False)
    ] = None
    rounds_per_step: Annotated[
        int | None, LimitSpec("The most executions of one step that feedback asked for.", breaker=False)
    ] = None
    same_finding: Annotated[
        int | None, LimitSpec("How often in a row one judge may report the same finding.", zero=False)
    ] = 6
    failures_in_a_row: Annotated[
        int | None, LimitSpec("How often in a row one judge may fail the work, whatever it finds.")
    ] = None
    no_change: Annotated[
        int | None, LimitSpec("The most rounds of one loop whose reworks give back the identical artifact.")
    ] = 2
    oscillation: Annotated[
        int | None, LimitSpec("The most returns to an artifact version that the loop rejected before.")
    ] = 2
    diverging: Annotated[
        bool,
        LimitSpec("Stops a loop whose last two reworks added at least as many findings as they removed.", "flag"),
    ] = False
    chain_depth: Annotated[
        int | None,
        LimitSpec("The longest chain of feedback that is raised while reworking for other feedback.", breaker=False),
    ] = 3
    response_timeout: Annotated[
        float | None,
        LimitSpec(
            "How long a person or an outside party may take to respond before the loop escalates.",
            "seconds",
            breaker=False,
        ),
    ] = 600.0


LIMITS: dict[str, LimitSpec] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(Limits, include_extras=True).items()
}
"""Every limit with what it means, in the order of their reports."""
NAMES = tuple(LIMITS)
BUDGETS = tuple(name for name, spec in LIMITS.items() if spec.scope == "budget")
"""Limits of the whole run: a breach stops everything."""
OF_THE_RUN = tuple(name for name, spec in LIMITS.items() if spec.scope != "loop")
"""Limits that count over the whole run: no single step can have its own."""
CIRCUIT_BREAKER = tuple(name for name, spec in LIMITS.items() if spec.scope == "loop" and spec.breaker)
"""Limits that `circuit_breaker: false` of stories switches off."""
LARGEST = 1_000_000_000_000
"""The largest bound that is accepted. It catches typing mistakes, and every smaller number survives writing and
reading."""


def limit_problems(overrides: dict[str, object], of: str = "", at: Place = ()) -> list[WorkflowProblem]:
    """All problems with limits as a user wrote them: those of the workflow, or of the step at this place."""
    found = (
        _problem(LIMITS[name], bound) if name in LIMITS else f"is unknown: {did_you_mean(name, NAMES)}"
        for name, bound in overrides.items()
    )
    return [
        WorkflowProblem(f"{of}limit {name!r} {problem}", (*at, "limits", name))
        for name, problem in zip(overrides, found, strict=True)
        if problem
    ]


def _problem(spec: LimitSpec, bound: object) -> str:
    if spec.unit == "flag":
        return "" if isinstance(bound, bool) else f"is {bound!r}: expected true or false"
    if bound is None or bound is False:
        return ""
    if isinstance(bound, bool) or not isinstance(bound, int | float):
        expected = "a number"
    elif spec.unit == "count" and not isinstance(bound, int):
        expected = "a whole number"
    elif not (bound > 0 or (bound == 0 and spec.zero)):
        expected = "0 or more" if spec.zero else "more than 0"
    elif bound == float("inf"):
        expected = "a finite number"
    elif bound > LARGEST:
        return f"is too large: expected at most {LARGEST}, or false to switch it off"
    else:
        return ""
    return f"is {bound!r}: expected {expected}, or false to switch it off"


def with_overrides(limits: Limits, overrides: dict[str, object]) -> Limits:
    """The limits with a user's overrides, key by key; `limit_problems` must have found none."""
    changes = {
        name: None if bound is False and LIMITS[name].unit != "flag" else bound for name, bound in overrides.items()
    }
    return replace(limits, **changes)
