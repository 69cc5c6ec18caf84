"""What one run tells the statistics, taken from its events in one pass.

The fold does not replay the run: it keeps only what is counted, so that the statistics of ten thousand runs are a matter
of seconds. That it agrees with the replayed state is what its tests say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from backedge.core import events as e
from backedge.core.graph import Graph
from backedge.core.ledger import UNSETTLED
from backedge.core.loops import LoopState
from backedge.core.model import HUMAN, Severity, Status
from backedge.core.workflow import graph_of, phase_order

OPEN = "open"
"""The state of a loop that is neither closed nor waiting for a person's decision."""


@dataclass(slots=True)
class LoopFacts:
    kind: str
    source: str
    severity: Severity
    rounds: int = 0
    state: str = OPEN
    delivered: bool = False
    asks: bool = False
    """A person is to get a share of the current round, and was not asked yet."""

    def deliver(self) -> None:
        """A round counts once, with the first target that gets it."""
        self.rounds += not self.delivered
        self.delivered = True


@dataclass(slots=True)
class FindingFacts:
    name: str
    description: str
    severity: str
    status: str
    found_by: str
    detected: str = ""
    """The phase of the judge."""
    stated: str = ""
    """The phase that caused it, as its judge says."""
    reclassified: str = ""
    """The phase that caused it, as a person says."""
    introduced: str = ""
    """The phase that it was routed to."""
    means: str = "review"
    """`review`, `test` or `check`."""
    rounds_seen: int = 1

    @property
    def injected(self) -> str:
        """The phase that caused it; empty where nothing says so."""
        return self.reclassified or self.stated or self.introduced

    @property
    def persistent(self) -> bool:
        return self.rounds_seen >= 2


@dataclass(slots=True)
class Spent:
    """Attempts, and what they took."""

    attempts: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0

    def add(self, other: Spent) -> None:
        self.attempts += other.attempts
        self.cost_usd += other.cost_usd
        self.seconds += other.seconds


@dataclass(slots=True)
class RunFacts:
    """One run, as far as it is counted."""

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
    """By phase and agent: attempts that would not have been made but for a loop; verifying is not among them."""

    @property
    def rounds(self) -> int:
        return sum(loop.rounds for loop in self.loops.values())

    @property
    def reworked(self) -> Spent:
        total = Spent()
        for spent in self.rework.values():
            total.add(spent)
        return total


def run_facts(events: Iterable[e.Event]) -> RunFacts | None:
    """The facts of one run; None for no events."""
    fold: _Fold | None = None
    for event in events:
        if fold is None:
            if not isinstance(event, e.RunStarted):
                raise ValueError(f"the first event of a run is run_started, got {type(event).__name__}")
            fold = _Fold(event)
        else:
            fold.add(event)
    return fold.facts if fold else None


class _Fold:
    """The facts so far, and what is needed to understand the next event."""

    def __init__(self, event: e.RunStarted) -> None:
        self.graph: Graph = graph_of(event.workflow)
        self.facts = RunFacts(event.run, event.workflow.name, event.at, phase_order(event.workflow))
        self._asked: dict[str, str] = {}
        """The loops that open escalations are about."""
        self._rework: dict[tuple[str, int], tuple[str, str]] = {}
        """Attempts under way that a loop has caused, with the phase and the agent they count for."""

    def add(self, event: e.Event) -> None:
        match event:
            case e.AttemptStarted():
                self._started(event)
            case e.AttemptSucceeded() | e.AttemptFailed() | e.AttemptDropped():
                self._ended(event)
            case e.VerdictGiven():
                self._judged(event)
            case e.LoopOpened():
                severity = event.feedback.severity if event.feedback else Severity.LOW
                self.facts.loops[event.loop] = LoopFacts(event.kind, event.source, severity)
            case e.FeedbackRouted():
                self._routed(event)
            case e.LoopClosed():
                self.facts.loops[event.loop].state = event.state
            case e.EscalationOpened():
                self.facts.escalations += 1
                if event.loop is not None:
                    self._person_asked(event, event.loop)
            case e.EscalationDecided():
                self._decided(event)
            case e.FindingsSettled():
                for id in event.findings:
                    self.facts.findings[id].status = event.status
            case e.FindingReclassified():
                self.facts.findings[event.finding].reclassified = event.phase
            case _:
                pass

    def _started(self, event: e.AttemptStarted) -> None:
        for id in event.loops:
            self.facts.loops[id].deliver()
        if event.cause and event.mode != "verify" and not self.graph.is_judge(event.step):
            phase = self.graph.phase_of.get(event.step, "")
            self._rework[event.step, event.attempt] = phase, event.agent or event.step

    def _ended(self, event: e.AttemptSucceeded | e.AttemptFailed | e.AttemptDropped) -> None:
        spent = Spent(1, event.usage.cost_usd, event.seconds)
        self.facts.all.add(spent)
        place = self._rework.pop((event.step, event.attempt), None)
        if place is not None:
            self.facts.rework.setdefault(place, Spent()).add(spent)
        if isinstance(event, e.AttemptSucceeded) and event.claims and not self.graph.is_judge(event.step):
            for claim in event.claims:
                finding = self.facts.findings[int(claim.finding[2:])]
                if claim.status == "contested" and finding.status in UNSETTLED:
                    finding.status = Status.CONTESTED

    def _judged(self, event: e.VerdictGiven) -> None:
        for sighting in event.findings:
            known = self.facts.findings.get(sighting.id)
            if known is None:
                assert sighting.finding is not None
                self.facts.findings[sighting.id] = known = FindingFacts(
                    name=f"F-{sighting.id}",
                    description=sighting.finding.description,
                    severity=sighting.finding.severity,
                    status=sighting.status,
                    found_by=event.judge,
                    detected=self.graph.phase_of.get(event.judge, ""),
                    stated=next(iter(sighting.finding.affected_phase), ""),
                    means=self._means(event),
                )
                continue
            known.rounds_seen += 1
            known.status = sighting.status
            if sighting.finding is not None:
                known.description, known.severity = sighting.finding.description, sighting.finding.severity
                known.stated = next(iter(sighting.finding.affected_phase), "")
        for id, status in event.settled:
            self.facts.findings[id].status = status

    def _means(self, event: e.VerdictGiven) -> str:
        if not event.attempt:
            return "check"
        return "test" if self.graph.steps[event.judge].tests else "review"

    def _routed(self, event: e.FeedbackRouted) -> None:
        loop = self.facts.loops[event.loop]
        loop.delivered = bool(event.kept)
        loop.asks = HUMAN in event.shares or (loop.asks and HUMAN in event.kept)
        loop.state = OPEN
        chosen = {id for ids in event.rules.values() for id in ids}
        # Backwards, so that of several steps the first one counts.
        for target, ids in reversed(event.shares.items()):
            for id in ids:
                finding = self.facts.findings[id]
                severity = Severity(finding.severity)
                if severity.rank < loop.severity.rank:
                    loop.severity = severity
                if id in chosen and target != HUMAN:
                    finding.introduced = self.graph.phase_of.get(target, "")

    def _person_asked(self, event: e.EscalationOpened, id: str) -> None:
        loop = self.facts.loops[id]
        if event.breach is None and loop.asks:
            loop.deliver()
            loop.asks = False
        loop.state = LoopState.ESCALATING
        self._asked[event.escalation] = id

    def _decided(self, event: e.EscalationDecided) -> None:
        loop = self.facts.loops.get(self._asked.pop(event.escalation, ""))
        if loop is not None and loop.state == LoopState.ESCALATING:
            loop.state = OPEN
