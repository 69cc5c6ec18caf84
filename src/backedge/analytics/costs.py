"""What attempts have cost so far, and what the largest number of them could cost at these prices."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from backedge.core import events as e


class StepCosts(msgspec.Struct, frozen=True):
    """The attempts of one step that were seen, however they ended."""

    attempts: int
    mean_usd: float
    max_usd: float


class Costs(msgspec.Struct, frozen=True):
    """The attempts of some runs. Where nothing was seen everything is 0."""

    runs: int
    attempts: int
    total_usd: float
    mean_usd: float
    """Of all attempts together."""
    max_usd: float
    """The most expensive attempt."""
    steps: dict[str, StepCosts]
    at_mean_usd: float
    """The largest number of attempts at the mean price."""
    at_most_usd: float
    """The largest number of attempts at the price of the most expensive one."""
    limit_usd: float | None
    """Where the budget stops a run, if it has one."""


def costs(runs: Iterable[Iterable[e.Event]], bound: int, limit: float | None) -> Costs:
    """What runs have cost, and what `bound` attempts could cost by that experience."""
    seen: dict[str, list[float]] = {}
    count = 0
    for events in runs:
        count += 1
        for event in events:
            # An attempt that a limit of the provider ended costs little, and no bound counts it.
            if isinstance(event, e.AttemptSucceeded | e.AttemptFailed | e.AttemptDropped):
                seen.setdefault(event.step, []).append(event.usage.cost_usd)
    spent = [cost for each in seen.values() for cost in each]
    mean, most = _mean(spent), max(spent, default=0.0)
    return Costs(
        runs=count,
        attempts=len(spent),
        total_usd=round(sum(spent), 6),
        mean_usd=round(mean, 6),
        max_usd=round(most, 6),
        steps={
            name: StepCosts(len(each), round(_mean(each), 6), round(max(each), 6))
            for name, each in sorted(seen.items())
        },
        at_mean_usd=round(mean * bound, 6),
        at_most_usd=round(most * bound, 6),
        limit_usd=limit,
    )


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
