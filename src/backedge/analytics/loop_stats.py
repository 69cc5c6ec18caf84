"""Statistics of loops: how many, of which kind, how they ended, how many rounds they took. Nothing divides by zero."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from backedge.core.feedback.loop import FINAL, Loop, LoopState
from backedge.core.state.run import RunState


class LoopStats(msgspec.Struct, frozen=True):
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
    rounds_to_resolution: dict[str, int]
    """How many loops were resolved after so many rounds."""


class LoopTally:
    """Counts loops as they are given to it."""

    def __init__(self) -> None:
        self._kinds: Counter[str] = Counter()
        self._severities: Counter[str] = Counter()
        self._states: Counter[str] = Counter()
        self._rounds: Counter[int] = Counter()
        self.escalations = 0

    def add(self, kind: str, severity: str, state: str, rounds: int) -> None:
        self._kinds[kind] += 1
        self._severities[severity] += 1
        self._states[state] += 1
        if state == LoopState.RESOLVED:
            self._rounds[rounds] += 1

    def stats(self) -> LoopStats:
        total, resolved = self._states.total(), self._rounds.total()
        rounds = sum(number * count for number, count in self._rounds.items())
        return LoopStats(
            total=total,
            active=sum(count for state, count in self._states.items() if state not in FINAL),
            resolved=resolved,
            escalations=self.escalations,
            by_kind=in_order(self._kinds),
            by_severity=in_order(self._severities),
            by_state=in_order(self._states),
            success_rate=per_cent(resolved, total),
            average_rounds=round(rounds / resolved, 2) if resolved else 0.0,
            rounds_to_resolution={str(number): count for number, count in sorted(self._rounds.items())},
        )


def loop_stats(states: Iterable[RunState]) -> LoopStats:
    """The statistics of the loops of some runs together."""
    tally = LoopTally()
    for state in states:
        for loop in counted_loops(state):
            tally.add(loop.kind_name, loop.severity, loop.state, loop.round)
        tally.escalations += state.opened_escalations
    return tally.stats()


def counted_loops(state: RunState) -> list[Loop]:
    """The loops of a run that say something about it. One that another continues after a rollback is left out, and so is
    one about a version that was rolled back."""
    every = [*state.closed_loops.values(), *state.loops.values()]
    left_out = {loop.follows for loop in every if loop.carries}
    left_out.update(id for event in state.rollbacks.values() for id in event.closed)
    return [loop for loop in every if loop.id not in left_out]


def per_cent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0


def in_order(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts by word, sorted by word, without zeros."""
    return {str(word): count for word, count in sorted(counts.items()) if count}
