"""Every bound on a loop, and the one function that says which of them is hit.

Nothing else stops a loop. A breach is count >= bound before the next try; the first in the order of `LIMITS` is
reported. `None` switches a limit off.
"""

from __future__ import annotations

from backedge.core.suggestions import did_you_mean
from backedge.core.value import Value, replace


class Limits(Value, frozen=True, omit_defaults=False):
    """The bounds of a run and its loops; see the table in docs/reference/rules.md.

    All of them are written into the journal, so that a run keeps its limits when a default changes.
    """

    cost_usd: float | None = None
    tokens: int | None = None
    attempts: int | None = None
    wall_clock: float | None = None
    """Seconds in which the run was at work; time spent waiting for people does not count."""
    errors_in_a_row: int | None = 3
    rounds_total: int | None = 10
    recoveries_total: int | None = None
    rounds_per_loop: int | None = 3
    rounds_per_pair: int | None = None
    rounds_per_step: int | None = None
    same_finding: int | None = 3
    failures_in_a_row: int | None = None
    no_change: int | None = 2
    oscillation: int | None = 2
    diverging: bool = False
    chain_depth: int | None = 3
    response_timeout: float | None = 600.0


NAMES = Limits.__struct_fields__
_SECONDS_OR_DOLLARS = ("cost_usd", "wall_clock", "response_timeout")
BUDGETS = ("cost_usd", "tokens", "attempts", "wall_clock")
"""Limits of the whole run: what they stop is everything."""
OF_THE_RUN = (*BUDGETS, "rounds_total", "recoveries_total")
"""Limits that count over the whole run: no single step can have its own."""
LARGEST = 1_000_000_000_000
"""No bound is larger: a mistyped one should not look like one, and every bound can be written and read back."""
_NOT_ZERO = (*BUDGETS, "errors_in_a_row", "same_finding")


def limit_problems(overrides: dict[str, object]) -> list[str]:
    """What is wrong with limits as a user wrote them, all of it."""
    problems = []
    for name, bound in overrides.items():
        if name not in NAMES:
            problems.append(f"limit {name!r} is unknown: {did_you_mean(name, NAMES)}")
        elif name == "diverging":
            if not isinstance(bound, bool):
                problems.append(f"limit 'diverging' is {bound!r}: expected true or false")
        elif bound is None or bound is False:
            continue
        elif isinstance(bound, bool) or not isinstance(bound, int | float):
            problems.append(f"limit {name!r} is {bound!r}: expected a number, or false to switch it off")
        elif name not in _SECONDS_OR_DOLLARS and not isinstance(bound, int):
            problems.append(f"limit {name!r} is {bound!r}: expected a whole number, or false to switch it off")
        elif not bound > 0 and not (bound == 0 and name not in _NOT_ZERO):
            problems.append(f"limit {name!r} is {bound!r}: expected more than 0, or false to switch it off")
        elif bound == float("inf"):
            problems.append(f"limit {name!r} is {bound!r}: expected a finite number, or false to switch it off")
        elif bound > LARGEST:
            problems.append(f"limit {name!r} is too large: expected at most {LARGEST}, or false to switch it off")
    return problems


def with_overrides(limits: Limits, overrides: dict[str, object]) -> Limits:
    """The limits with a user's overrides, key by key; `limit_problems` must have found none."""
    changes = {name: None if bound is False and name != "diverging" else bound for name, bound in overrides.items()}
    return replace(limits, **changes)
