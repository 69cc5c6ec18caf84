"""The reviews and refinements of a run, as the story that it works on tells them.

The fold takes each event once; how much it keeps does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from backedge.core import events as e
from backedge.core.assessor import Decision, StoryPhase, severity_of_review
from backedge.core.feedback.loop import Loop
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.model import Finding, Severity
from backedge.core.state.evolve import evolve
from backedge.core.state.run import RunState
from backedge.core.text import one_line
from backedge.core.value import Value, replace
from backedge.core.workflow.graph import Graph

KEPT_REVIEWS = 10
KEPT_ITERATIONS = 50
LONGEST = 400
"""Characters of one text of an agent."""

_PHASES: dict[str, StoryPhase] = {"research": "research", "planning": "plan", "design": "plan"}

Result = Literal["in_progress", "failed", "success"]


class Review(Value, frozen=True):
    """One review as the story keeps it."""

    at: float
    decision: Decision
    judge: str
    severity: str = ""
    feedback: str = ""


class Iteration(Value, frozen=True):
    """One rework, and what its reviews made of it."""

    iteration: int
    phase: StoryPhase
    at: float
    feedback: str = ""
    result: Result = "in_progress"
    details: tuple[str, ...] = ()
    """The findings that it had to address, a line each."""


class Refinement(Value, frozen=True):
    """Where the story of a run stands after some events."""

    state: RunState
    reviews: tuple[Review, ...] = ()
    """The last ones, oldest first."""
    iterations: tuple[Iteration, ...] = ()
    count: int = 0
    """Reworks since the last approval, or since a person began anew."""
    total: int = 0
    """Reworks ever: how many notes the story has."""
    turns: dict[str, int] = {}
    """The round of each open loop that an iteration was told of."""
    recoveries: int = 0
    broke: str = ""
    """The step whose agent broke last, and has not worked since."""
    error: str = ""

    @property
    def graph(self) -> Graph:
        return self.state.graph


def phase_of(graph: Graph, step: str) -> StoryPhase:
    """The phase of a story that a step belongs to; a judge belongs to what it judges."""
    return _PHASES.get(graph.phase_of[step], "implement")


def refinement(before: Refinement | None, event: e.Event) -> Refinement:
    """The story after one more event."""
    if before is None:
        return Refinement(evolve(None, event))
    after = replace(before, state=evolve(before.state, event))
    match event:
        case e.AttemptStarted(mode="rework"):
            return _rework_started(after, event)
        case e.AttemptSucceeded():
            return _succeeded(after, before, event)
        case e.AttemptFailed():
            return _broke(after, event)
        case e.VerdictGiven() if event.attempt:
            return _judged(after, event)
        case e.LoopClosed():
            turns = {loop: turn for loop, turn in after.turns.items() if loop in after.state.loops}
            return replace(after, turns=turns, count=after.count if turns else 0)
        case e.EscalationDecided(choice="revise"):
            return replace(after, count=0, recoveries=0)
        case e.RunEnded(outcome="verified" | "done"):
            return replace(after, broke="", error="")
        case _:
            return after


def _rework_started(after: Refinement, event: e.AttemptStarted) -> Refinement:
    turns = {loop: after.state.loops[loop].round for loop in event.loops}
    if all(after.turns.get(loop) == turn for loop, turn in turns.items()):
        return after  # the second target of the same round, or a try again after an error
    loops = [after.state.loops[loop] for loop in event.loops]
    begun = Iteration(
        after.count + 1,
        phase_of(after.graph, event.step),
        event.at,
        summary_of(after.state, loops),
        details=tuple(_details(after.state, loops)),
    )
    return replace(
        after,
        turns={**after.turns, **turns},
        count=after.count + 1,
        total=after.total + 1,
        iterations=(*after.iterations, begun)[-KEPT_ITERATIONS:],
    )


def _succeeded(after: Refinement, before: Refinement, event: e.AttemptSucceeded) -> Refinement:
    if after.broke == event.step:
        after = replace(after, broke="", error="")
    if after.state.recoveries > before.state.recoveries:
        said = f"{event.step} changed nothing"
        return _reviewed(
            replace(after, recoveries=after.recoveries + 1), Review(event.at, "RECOVERY", event.step, feedback=said)
        )
    return after


def _broke(after: Refinement, event: e.AttemptFailed) -> Refinement:
    error = short(event.error)
    after = replace(after, broke=event.step, error=error)
    if not after.graph.is_judge(event.step):
        return after
    return _reviewed(after, Review(event.at, "FAILED", event.step, feedback=error))


def _judged(after: Refinement, event: e.VerdictGiven) -> Refinement:
    failed = event.word == "fail"
    found = [after.state.findings[sighting.id].finding for sighting in event.findings] if failed else []
    severity = severity_of_review(*_counts(found)[:3]) if failed else ""
    feedback = counts_in_words(*_counts(found)) if failed else ""
    decision: Decision = "REJECTED" if failed else "APPROVED"
    after = _reviewed(after, Review(event.at, decision, event.judge, severity, feedback))
    if not after.iterations or after.iterations[-1].result == "failed":
        return after
    last = after.iterations[-1]
    if failed or last.result == "in_progress":
        last = replace(last, result="failed" if failed else "success")
    return replace(after, iterations=(*after.iterations[:-1], last))


def _reviewed(after: Refinement, review: Review) -> Refinement:
    return replace(after, reviews=(*after.reviews, review)[-KEPT_REVIEWS:])


def _counts(found: Sequence[Finding]) -> tuple[int, int, int, int]:
    """How many findings are blockers, critical, major and less."""
    blockers = sum(finding.blocking for finding in found)
    critical = sum(finding.severity is Severity.CRITICAL and not finding.blocking for finding in found)
    major = sum(finding.severity is Severity.HIGH and not finding.blocking for finding in found)
    return blockers, critical, major, len(found) - blockers - critical - major


def counts_in_words(blockers: int, critical: int, major: int, minor: int) -> str:
    """The findings of a review in one line: "Review failed: 1 blocker(s), 2 critical"."""
    counts = {"blocker(s)": blockers, "critical": critical, "major": major, "minor": minor}
    return "Review failed: " + ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def summary_of(state: RunState, loops: list[Loop]) -> str:
    """What loops ask for, in one line."""
    ids = dict.fromkeys(id for loop in loops for id in loop.finding_ids)
    found = [state.findings[id].finding for id in ids]
    counted = [counts_in_words(*_counts(found))] if found else []
    return "; ".join([*counted, *(short(loop.feedback.message) for loop in loops if loop.feedback)])


def _details(state: RunState, loops: list[Loop]) -> list[str]:
    ids = dict.fromkeys(id for loop in loops for id in loop.finding_ids)
    lines = []
    for tracked in sorted((state.findings[id] for id in ids), key=_worst_first):
        finding = tracked.finding
        word = finding.word or ("blocker" if finding.blocking else str(finding.severity))
        place = (
            f"{finding.file}:{finding.line}" if finding.file and finding.line else finding.file or finding.path or ""
        )
        lines.append(f"[{one_line(word)}] {f'`{one_line(place)}` ' if place else ''}{short(finding.description)}")
        if finding.suggested_fix:
            lines.append(f"  Suggested fix: {short(finding.suggested_fix)}")
    lines += [short(loop.feedback.message) for loop in loops if loop.feedback]
    return lines


def _worst_first(tracked: TrackedFinding) -> tuple[bool, int]:
    return not tracked.finding.blocking, tracked.finding.severity.rank


def short(text: str) -> str:
    """A text of an agent on one line, and not too long."""
    line = one_line(text)
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
