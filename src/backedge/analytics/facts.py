"""The facts of one run that the statistics count: its loops, its findings, and what its attempts took."""

from __future__ import annotations

from dataclasses import dataclass, field

OPEN = "open"
"""The state of a loop that is neither closed nor waiting for a person's decision."""


@dataclass(slots=True)
class LoopFacts:
    kind: str
    severity: str
    rounds: int = 0
    state: str = OPEN


@dataclass(slots=True)
class FindingFacts:
    name: str
    description: str
    severity: str
    status: str
    found_by: str
    detected: str = ""
    """The phase of the judge."""
    injected: str = ""
    """The phase that caused it; empty where nothing says so."""
    means: str = "review"
    """`review`, `test`, `tool` or `check`."""
    rounds_seen: int = 1

    @property
    def persistent(self) -> bool:
        return self.rounds_seen >= 2


@dataclass(slots=True)
class Spent:
    """A number of attempts, and what they took."""

    attempts: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0

    def add_attempt(self, cost_usd: float, seconds: float) -> None:
        self.attempts += 1
        self.cost_usd += cost_usd
        self.seconds += seconds

    def add(self, other: Spent) -> None:
        self.attempts += other.attempts
        self.cost_usd += other.cost_usd
        self.seconds += other.seconds


@dataclass(slots=True)
class RunFacts:
    """The facts of one run."""

    run: str
    workflow: str
    started_at: float
    phases: tuple[str, ...] = ()
    """In their order."""
    loops: dict[str, LoopFacts] = field(default_factory=dict)
    findings: dict[int, FindingFacts] = field(default_factory=dict)
    escalations: int = 0
    all: Spent = field(default_factory=Spent)
    rework: dict[tuple[str, str], Spent] = field(default_factory=dict)
    """By phase and agent: the attempts that a loop caused, without verifications."""

    @property
    def rounds(self) -> int:
        return sum(loop.rounds for loop in self.loops.values())

    @property
    def reworked(self) -> Spent:
        total = Spent()
        for spent in self.rework.values():
            total.add(spent)
        return total
