"""Why every run ends: the largest number of attempts that a run of a workflow can make.

- Every step is executed once. Each round of feedback executes every step at most once more: the step that reworks, and
  everything that its change makes stale or due for verification. Each judge may judge once more at the end of a round,
  because files changed after its verdict. So there are (S + J) x (1 + R) executions, where S is the number of steps, J
  the number of judges and R the number of rounds that the limits allow.
- A step with `repeat` counts in S as often as its `max` says. If a step plans, S is `max_steps` times the largest such
  `max` (see core/planning.py).
- Each execution is tried at most E times, where E is the limit `errors_in_a_row`.

A run therefore makes at most E x (S + J) x (1 + R) attempts. People can grant more, and an attempt that a crash or an
interruption cut short, or that met a limit of its provider, is made again.
"""

from __future__ import annotations

from typing import Literal

from backedge.core.value import Value
from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.graph import Graph


class Bound(Value, frozen=True):
    """The numbers that are multiplied: E x (S + J) x (1 + R)."""

    tries: int
    executions: int
    judges: int
    rounds: int
    rounds_by: Literal["rounds_total", "rounds_per_step", "rounds_per_pair"]
    """The limit that bounds the rounds."""

    @property
    def attempts(self) -> int:
        return self.tries * (self.executions + self.judges) * (1 + self.rounds)


def max_attempts(workflow: Workflow) -> int | None:
    """The bound, or None if nothing bounds the workflow."""
    product = bound_of(workflow)
    bounds = [workflow.limits.attempts, product.attempts if product is not None else None]
    return min((bound for bound in bounds if bound is not None), default=None)


def bound_of(workflow: Workflow) -> Bound | None:
    """What the rounds allow, whatever the limit `attempts` says; None if they are not bounded."""
    # A step may have looser limits than the workflow, so the loosest value of each limit counts.
    all_limits = [workflow.limits, *(step.limits for step in workflow.steps if step.limits)]
    tries = _loosest([limits.errors_in_a_row for limits in all_limits])
    total = _loosest([limits.rounds_total for limits in all_limits])
    per_step = _loosest([limits.rounds_per_step for limits in all_limits])
    per_pair = _loosest([limits.rounds_per_pair for limits in all_limits])
    steps = workflow.max_steps if workflow.plans else len(workflow.steps)
    rounds: int | None = None
    by: Literal["rounds_total", "rounds_per_step", "rounds_per_pair"] = "rounds_total"
    if total is not None:
        rounds = total
    elif per_step is not None:
        rounds, by = steps * per_step, "rounds_per_step"
    elif per_pair is not None:
        rounds, by = (steps * steps if workflow.plans else Graph(workflow).legal_pairs()) * per_pair, "rounds_per_pair"
    if rounds is None or tries is None:
        return None
    repeats = [step.repeat.max if step.repeat else 1 for step in workflow.steps]
    judges = steps if workflow.plans else sum(bool(step.judges) for step in workflow.steps)
    executions = steps * max(repeats, default=1) if workflow.plans else sum(repeats)
    return Bound(tries, executions, judges, rounds, by)


def bounded_by_pairs(workflow: Workflow) -> bool:
    """Whether `rounds_per_pair` is the only limit that bounds the rounds of a run."""
    all_limits = [workflow.limits, *(step.limits for step in workflow.steps if step.limits)]
    total, per_step = ([getattr(limits, name) for limits in all_limits] for name in ("rounds_total", "rounds_per_step"))
    return None in total and None in per_step


def _loosest(bounds: list[int | None]) -> int | None:
    """The largest of several bounds; None if one of them is off."""
    return None if None in bounds else max(bound for bound in bounds if bound is not None)
