"""Termination as arithmetic: the largest number of attempts that any run of a workflow can make.

Every step is executed once, and once more for each execution that feedback asks for (that execution and everything
that its change makes stale or due for verification). Each execution is tried at most `errors_in_a_row` times. So
E x S x (1 + R) attempts end every run; decisions by people add what they grant, and an attempt that a crash or an
interruption took away may be made again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backedge.core.workflow import Workflow


def max_attempts(workflow: Workflow) -> int | None:
    """The bound, or None if nothing bounds the workflow."""
    from backedge.core.graph import Graph

    limits = workflow.limits
    tries = [limits.errors_in_a_row]
    tries += [step.limits.errors_in_a_row for step in workflow.steps if step.limits]
    rounds: int | None = None
    steps = len(workflow.steps)
    if limits.rounds_total is not None:
        rounds = limits.rounds_total
    elif limits.rounds_per_step is not None:
        rounds = steps * limits.rounds_per_step
    elif limits.rounds_per_pair is not None:
        rounds = Graph(workflow).legal_pairs() * limits.rounds_per_pair
    bound: int | None = None
    if rounds is not None and None not in tries:
        bound = max(each for each in tries if each is not None) * steps * (1 + rounds)
    if limits.attempts is not None:
        return limits.attempts if bound is None else min(bound, limits.attempts)
    return bound
