"""Counts over loops: how many, of which kind, how they ended, how many rounds they took. Nothing divides by zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from backedge.core.loops import FINAL, Loop, LoopState
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
    return counted([(loop.word, loop.severity, loop.state, loop.round) for loop in loops], escalations)


def counted(loops: Sequence[tuple[str, str, LoopState, int]], escalations: int) -> Statistics:
    """The statistics of loops, each given by kind, severity, state and rounds."""
    resolved = [rounds for _, _, state, rounds in loops if state is LoopState.RESOLVED]
    return Statistics(
        total=len(loops),
        active=sum(state not in FINAL for _, _, state, _ in loops),
        resolved=len(resolved),
        escalations=escalations,
        by_kind=_counted(kind for kind, _, _, _ in loops),
        by_severity=_counted(severity for _, severity, _, _ in loops),
        by_state=_counted(state for _, _, state, _ in loops),
        success_rate=round(100 * len(resolved) / len(loops), 1) if loops else 0.0,
        average_rounds=round(sum(resolved) / len(resolved), 2) if resolved else 0.0,
    )


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(str(word) for word in words).items()))
