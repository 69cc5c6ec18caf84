"""What one run tells the statistics, taken from its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from backedge.compat import Contents, read
from backedge.core import events as e
from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.state.evolve import evolve
from backedge.core.state.run import RunState
from backedge.core.workflow.definition import phase_order

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
    """`review`, `test` or `check`."""
    rounds_seen: int = 1

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


def run_facts(events: Sequence[e.Event]) -> RunFacts | None:
    """The facts of one run; None for no events."""
    if not events:
        return None
    started = events[0]
    if not isinstance(started, e.RunStarted):
        raise ValueError(f"the first event of a run is run_started, got {type(started).__name__}")
    facts = RunFacts(started.run, started.workflow.name, started.at, phase_order(started.workflow))
    if any(map(_tells, events)):
        _replayed(facts, events)
    else:
        # Most runs: nothing was found and nothing raised, so that there is nothing to replay for.
        for event in events:
            if isinstance(event, _ENDS):
                facts.all.add(Spent(1, event.usage.cost_usd, event.seconds))
    return facts


_ENDS = (e.AttemptSucceeded, e.AttemptFailed, e.AttemptDropped)


def _tells(event: e.Event) -> bool:
    """Whether a run has more to tell than what its attempts took."""
    match event:
        case e.VerdictGiven():
            return bool(event.findings)
        case e.LoopOpened() | e.EscalationOpened() | e.FileImported():
            return True
        case _:
            return False


def _replayed(facts: RunFacts, events: Iterable[e.Event]) -> None:
    state: RunState | None = None
    rework: dict[tuple[str, int], tuple[str, str]] = {}
    """Attempts under way that a loop has caused, with the phase and the agent they count for."""
    checked: set[int] = set()
    """Findings that a check of inputs made."""
    for event in events:
        state = evolve(state, event)
        match event:
            case e.AttemptStarted() if event.cause and event.mode != "verify" and not state.graph.is_judge(event.step):
                place = (
                    state.graph.phase_of[event.step],
                    state.graph.steps[event.step].called_agent(event.agent) or event.step,
                )
                rework[event.step, event.attempt] = place
            case e.AttemptSucceeded() | e.AttemptFailed() | e.AttemptDropped():
                spent = Spent(1, event.usage.cost_usd, event.seconds)
                facts.all.add(spent)
                if (event.step, event.attempt) in rework:
                    facts.rework.setdefault(rework.pop((event.step, event.attempt)), Spent()).add(spent)
            case e.VerdictGiven(attempt=0):
                checked.update(sighting.id for sighting in event.findings)
            case _:
                pass
    assert state is not None
    if state.imported is not None:
        imported_facts(facts, read(state.imported.form, state.imported.text))
        return
    asked = {packet.loop for packet in state.escalations.values()}
    for loop in (*state.closed_loops.values(), *state.loops.values()):
        facts.loops[loop.id] = LoopFacts(loop.kind_name, loop.severity, loop.round, _state(loop, asked))
    facts.findings = {each.id: _finding(state, each, each.id in checked) for each in state.findings.values()}
    facts.escalations = state.opened_escalations


def _state(loop: Loop, asked: set[str | None]) -> str:
    if not loop.open:
        return loop.state
    return LoopState.ESCALATING if loop.id in asked or loop.state is LoopState.ESCALATING else OPEN


def _finding(state: RunState, tracked: TrackedFinding, checked: bool) -> FindingFacts:
    phase_of, judge = state.graph.phase_of, state.graph.steps.get(tracked.found_by)
    injected = next(iter(tracked.phases), "")
    if not injected and tracked.introduced_by:
        injected = phase_of.get(tracked.introduced_by[0], "")
    return FindingFacts(
        name=tracked.name,
        description=tracked.finding.description,
        severity=tracked.finding.severity,
        status=tracked.status,
        found_by=tracked.found_by,
        detected=phase_of.get(tracked.found_by, ""),
        injected=injected,
        means="check" if checked else "test" if judge is not None and judge.tests else "review",
        rounds_seen=tracked.rounds_seen,
    )


def imported_facts(facts: RunFacts, contents: Contents) -> None:
    """What a file of another system adds to the statistics."""
    for loop in contents.loops:
        state = OPEN if loop.open and loop.state is not LoopState.ESCALATING else loop.state
        facts.loops[loop.id] = LoopFacts(loop.kind, loop.severity, loop.rounds, state)
        facts.escalations += bool(loop.reason) or state == LoopState.ESCALATING
    told = contents.progress.feedback_loop.iterations if contents.progress else ()
    seen = Counter(issue for each in told for issue in {*each.review_issues, *each.test_failures})
    corrected: set[str] = set()
    for place, defect in enumerate(contents.defects):
        facts.findings[place] = FindingFacts(
            name=defect.finding,
            description=defect.description,
            severity=defect.severity,
            status=defect.status,
            found_by=defect.detected_by,
            detected=defect.detected_phase,
            injected=defect.injected_phase,
            means="test" if "test" in defect.detected_by.lower() else "review",
            rounds_seen=seen[defect.description] or 1,
        )
        phases = (each for each in (defect.injected_phase, defect.detected_phase) if each not in facts.phases)
        facts.phases = (*facts.phases, *dict.fromkeys(phases))
        # All findings of a loop were corrected by the same attempts.
        if defect.loop is None or defect.loop not in corrected:
            corrected.add(defect.loop or "")
            spent = Spent(defect.correction_attempts, defect.cost_usd, defect.seconds)
            if spent != Spent():
                place_of = (defect.injected_phase, ", ".join(defect.injected_by) or "imported")
                facts.rework.setdefault(place_of, Spent()).add(spent)
                facts.all.add(spent)
