"""Counts over loops: how many, of which kind, how they ended, how many rounds they took. Nothing divides by zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from backedge.core.loops import Loop, LoopState
from backedge.core.state import RunState


class Statistics(msgspec.Struct, frozen=True):
    total: int
    active: int
    resolved: int
    escalations: int
    by_kind: dict[str, int]
    by_severity: dict[str, int]
    by_state: dict[str, int]
    success_rate: float
    """Resolved loops in per cent of all."""
    average_rounds: float
    """Rounds of resolved loops, on average."""


def statistics(states: Iterable[RunState]) -> Statistics:
    """The statistics of some runs together."""
    loops: list[Loop] = []
    escalations = 0
    for state in states:
        loops += [*state.closed.values(), *state.loops.values()]
        escalations += state.opened_escalations
    resolved = [loop for loop in loops if loop.state is LoopState.RESOLVED]
    return Statistics(
        total=len(loops),
        active=sum(loop.open for loop in loops),
        resolved=len(resolved),
        escalations=escalations,
        by_kind=_counted(loop.word for loop in loops),
        by_severity=_counted(loop.severity for loop in loops),
        by_state=_counted(loop.state for loop in loops),
        success_rate=round(100 * len(resolved) / len(loops), 1) if loops else 0.0,
        average_rounds=round(sum(loop.round for loop in resolved) / len(resolved), 2) if resolved else 0.0,
    )


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(str(word) for word in words).items()))
