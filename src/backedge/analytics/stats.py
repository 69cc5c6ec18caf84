"""The statistics of many runs: how feedback ended, where defects were injected and detected, and what rework took.

The facts of runs are added one by one, so that only one run is in memory. Nothing divides by zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest

import msgspec

from backedge.analytics.facts import FindingFacts, RunFacts, Spent
from backedge.analytics.loop_stats import LoopStats, LoopTally, in_order, per_cent

LISTED = 10
"""How many of the most expensive runs and findings are listed."""


class Stat(msgspec.Struct, frozen=True):
    """Part of the statistics: every key is always there."""


class Origin(Stat, frozen=True):
    """Findings by the phase that caused them and the phase whose judge found them."""

    injected: str
    detected: str
    findings: int


class Yield(Stat, frozen=True):
    """How many defects a phase finds before the next phase starts."""

    phase: str
    present: int
    """Findings that were caused here or earlier and had not been found before."""
    caught: int
    """Those of them that judges of this phase found."""
    per_cent: float


class Rework(Stat, frozen=True):
    """What rework took, of one agent in one phase. Verifying it is not counted."""

    phase: str
    agent: str
    attempts: int
    cost_usd: float
    seconds: float


class Persistent(Stat, frozen=True):
    """A finding that was seen in two or more rounds."""

    run: str
    finding: str
    description: str
    severity: str
    status: str
    rounds_seen: int


class FindingStats(Stat, frozen=True):
    total: int
    by_severity: dict[str, int]
    by_status: dict[str, int]
    by_judge: dict[str, int]
    """Found by each judge, by its name."""
    by_means: dict[str, int]
    """Found by a review, a test, another tool such as a linter, a check or gate of the engine, or a check of inputs."""
    by_phase: tuple[Origin, ...]
    yields: tuple[Yield, ...]
    persistent: int
    most_persistent: tuple[Persistent, ...]


class Reworked(Stat, frozen=True):
    """One run, and how much of it was rework."""

    run: str
    workflow: str
    rounds: int
    attempts: int
    cost_usd: float
    seconds: float


class ReworkStats(Stat, frozen=True):
    attempts: int
    cost_usd: float
    seconds: float
    share: float
    """Attempts of rework in per cent of all attempts."""
    by_phase_and_agent: tuple[Rework, ...]
    most: tuple[Reworked, ...]
    """The runs that needed most of it."""


class Stats(Stat, frozen=True):
    runs: int
    attempts: int
    cost_usd: float
    seconds: float
    loops: LoopStats
    findings: FindingStats
    rework: ReworkStats


class Tally:
    """Counts runs as they are given to it."""

    def __init__(self) -> None:
        self._runs = 0
        self._spent = Spent()
        self._loops = LoopTally()
        self._findings = _Findings()
        self._rework: dict[tuple[str, str], Spent] = {}
        self._most: list[Reworked] = []

    def add(self, run: RunFacts) -> None:
        self._runs += 1
        self._spent.add(run.all)
        self._loops.escalations += run.escalations
        for loop in run.loops.values():
            self._loops.add(loop.kind, loop.severity, loop.state, loop.rounds)
        self._findings.add(run)
        for origin, spent in run.rework.items():
            self._rework.setdefault(origin, Spent()).add(spent)
        took, rounds = run.reworked, run.rounds
        if took.attempts or rounds:
            self._most.append(Reworked(run.run, run.workflow, rounds, took.attempts, *_money_and_time(took)))
            if len(self._most) > 20 * LISTED:
                self._most = nlargest(LISTED, self._most, key=_effort)

    def stats(self) -> Stats:
        return Stats(
            self._runs,
            self._spent.attempts,
            *_money_and_time(self._spent),
            self._loops.stats(),
            self._findings.stats(),
            self._rework_stats(),
        )

    def _rework_stats(self) -> ReworkStats:
        total = Spent()
        for spent in self._rework.values():
            total.add(spent)
        return ReworkStats(
            total.attempts,
            *_money_and_time(total),
            per_cent(total.attempts, self._spent.attempts),
            tuple(
                Rework(phase, agent, spent.attempts, *_money_and_time(spent))
                for (phase, agent), spent in sorted(self._rework.items())
            ),
            tuple(nlargest(LISTED, self._most, key=_effort)),
        )


class _Findings:
    def __init__(self) -> None:
        self._severities: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._judges: Counter[str] = Counter()
        self._means: Counter[str] = Counter()
        self._origins: Counter[tuple[str, str]] = Counter()
        self._phases: list[str] = []
        """In the order that each run has them in."""
        self._present: Counter[str] = Counter()
        self._caught: Counter[str] = Counter()
        self._persistent = 0
        self._most: list[Persistent] = []

    def add(self, run: RunFacts) -> None:
        rank = {phase: index for index, phase in enumerate(run.phases)}
        if run.findings:
            self._merge(run.phases)
        for finding in run.findings.values():
            self._severities[finding.severity] += 1
            self._statuses[finding.status] += 1
            self._judges[finding.found_by] += 1
            self._means[finding.means] += 1
            self._origins[finding.injected, finding.detected] += 1
            for phase in _passed_through(finding, run.phases, rank):
                self._present[phase] += 1
            if finding.detected in rank:
                self._caught[finding.detected] += 1
            if finding.persistent:
                self._keep(run, finding)

    def _merge(self, phases: Sequence[str]) -> None:
        """Add the phases of a run: each new one comes before the next one of that run that is known."""
        place = len(self._phases)
        for phase in reversed(phases):
            if phase in self._phases:
                place = self._phases.index(phase)
            else:
                self._phases.insert(place, phase)

    def _keep(self, run: RunFacts, finding: FindingFacts) -> None:
        self._persistent += 1
        self._most.append(
            Persistent(
                run.run, finding.name, finding.description, finding.severity, finding.status, finding.rounds_seen
            )
        )
        if len(self._most) > 20 * LISTED:
            self._most = nlargest(LISTED, self._most, key=_rounds_seen)

    def stats(self) -> FindingStats:
        origins = sorted(self._origins.items())
        return FindingStats(
            total=self._origins.total(),
            by_severity=in_order(self._severities),
            by_status=in_order(self._statuses),
            by_judge=in_order(self._judges),
            by_means=in_order(self._means),
            by_phase=tuple(Origin(injected, detected, count) for (injected, detected), count in origins),
            yields=tuple(
                Yield(phase, present, self._caught[phase], per_cent(self._caught[phase], present))
                for phase in self._phases
                if (present := self._present[phase])
            ),
            persistent=self._persistent,
            most_persistent=tuple(nlargest(LISTED, self._most, key=_rounds_seen)),
        )


def statistics_of(runs: Iterable[RunFacts]) -> Stats:
    """The statistics of some runs together."""
    tally = Tally()
    for run in runs:
        tally.add(run)
    return tally.stats()


def rows(stats: Stats) -> Iterator[tuple[str, str, str | int | float]]:
    """Every number as a row (measure, of what, value), for tables."""
    yield from _rows("", msgspec.to_builtins(stats))


def _rows(measure: str, value: Mapping[str, object]) -> Iterator[tuple[str, str, str | int | float]]:
    for key, each in value.items():
        name = f"{measure}.{key}" if measure else key
        if isinstance(each, Mapping):
            if key.startswith("by_") or key == "rounds_to_resolution":
                yield from ((name, str(of), count) for of, count in each.items())
            else:
                yield from _rows(name, each)
        elif isinstance(each, list | tuple):
            for item in each:
                # Two words name it; the rest is text of agents.
                of = "/".join([part for part in item.values() if isinstance(part, str)][:2])
                numbers = [(word, part) for word, part in item.items() if not isinstance(part, str)]
                yield from ((f"{name}.{word}", of, part) for word, part in numbers)
        else:
            assert isinstance(each, str | int | float)
            yield name, "", each


def _passed_through(finding: FindingFacts, phases: tuple[str, ...], rank: Mapping[str, int]) -> tuple[str, ...]:
    """The phases whose work contained a finding, up to the phase that found it."""
    if finding.detected not in rank:
        return ()
    last = rank[finding.detected]
    # A finding whose recorded cause is later than its discovery counts only for the phase that found it.
    first = min(rank.get(finding.injected, last), last)
    return phases[first : last + 1]


def _money_and_time(spent: Spent) -> tuple[float, float]:
    return round(spent.cost_usd, 6), round(spent.seconds, 3)


def _effort(run: Reworked) -> tuple[int, int, float]:
    return run.attempts, run.rounds, run.cost_usd


def _rounds_seen(finding: Persistent) -> int:
    return finding.rounds_seen
