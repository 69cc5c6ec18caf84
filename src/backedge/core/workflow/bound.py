"""Termination as arithmetic: the largest number of attempts that any run of a workflow can make.

Every step is executed once, and once more for each execution that feedback asks for (that execution and everything
that its change makes stale or due for verification). A step with `repeat` may be executed as often as that says, each
time. Each execution is tried at most `errors_in_a_row` times. So E x S x (1 + R) attempts end every run, where S is the
number of steps, a repeated one counted by its bound (where a step plans, `max_steps` times the largest such bound: see
core/planning.py); decisions by people add what they grant, and an attempt that a crash or an interruption took away
may be made again.
"""

from __future__ import annotations

from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.graph import Graph


def max_attempts(workflow: Workflow) -> int | None:
    """The bound, or None if nothing bounds the workflow."""

    # A step with limits of its own loosens what it does not bound as tightly.
    every = [workflow.limits, *(step.limits for step in workflow.steps if step.limits)]
    tries = _loosest([limits.errors_in_a_row for limits in every])
    total = _loosest([limits.rounds_total for limits in every])
    per_step = _loosest([limits.rounds_per_step for limits in every])
    per_pair = _loosest([limits.rounds_per_pair for limits in every])
    rounds: int | None = None
    steps = workflow.max_steps if workflow.plans else len(workflow.steps)
    if total is not None:
        rounds = total
    elif per_step is not None:
        rounds = steps * per_step
    elif per_pair is not None:
        rounds = (steps * steps if workflow.plans else Graph(workflow).legal_pairs()) * per_pair
    bounds = [workflow.limits.attempts]
    if rounds is not None and tries is not None:
        repeats = [step.repeat.max if step.repeat else 1 for step in workflow.steps]
        executions = steps * max(repeats, default=1) if workflow.plans else sum(repeats)
        bounds.append(tries * executions * (1 + rounds))
    return min((bound for bound in bounds if bound is not None), default=None)


def bounded_by_pairs(workflow: Workflow) -> bool:
    """Whether nothing but the rounds of each legal pair bounds the rounds of a run."""
    every = [workflow.limits, *(step.limits for step in workflow.steps if step.limits)]
    total, per_step = ([getattr(limits, name) for limits in every] for name in ("rounds_total", "rounds_per_step"))
    return None in total and None in per_step


def _loosest(bounds: list[int | None]) -> int | None:
    """The largest of several bounds; None if one of them is off."""
    return None if None in bounds else max(bound for bound in bounds if bound is not None)
