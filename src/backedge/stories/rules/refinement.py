"""The reviews and refinements of a story, folded from the events of its run.

The fold takes each event once, and its size does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from backedge.core import events as e
from backedge.core.feedback.loop import Loop
from backedge.core.findings.held_out import HELD_OUT, for_producers, is_hidden
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.model import Finding, Severity
from backedge.core.state.evolve import evolve
from backedge.core.state.run import RunState
from backedge.core.text import one_line, shortened
from backedge.core.value import Value, replace
from backedge.core.workflow.graph import Graph
from backedge.stories.rules.assessor import Decision, StoryPhase, severity_of_review

MOST_REVIEWS = 10
MOST_ITERATIONS = 50

_PHASES: dict[str, StoryPhase] = {"research": "research", "planning": "plan", "design": "plan"}

Result = Literal["in_progress", "failed", "success"]


class Review(Value, frozen=True):
    """One review, as the story lists it."""

    at: float
    decision: Decision
    judge: str
    severity: str = ""
    feedback: str = ""


class RefinementIteration(Value, frozen=True):
    """One rework, and the result of its reviews."""

    iteration: int
    phase: StoryPhase
    at: float
    feedback: str = ""
    result: Result = "in_progress"
    details: tuple[str, ...] = ()
    """The findings to address, one per line."""


class Refinement(Value, frozen=True):
    """The state of the story after some events."""

    state: RunState
    reviews: tuple[Review, ...] = ()
    """The newest ones, oldest first."""
    iterations: tuple[RefinementIteration, ...] = ()
    count: int = 0
    """Reworks since the last approval, or since a person reset the count."""
    total: int = 0
    """The number of all reworks, and of the notes in the story."""
    rounds: dict[str, int] = {}
    """The round of each open loop that the latest iteration addresses."""
    recoveries: int = 0
    failing_step: str = ""
    """The last step whose agent broke, until it succeeds."""
    error: str = ""
    unblocked: bool = False
    """A person has decided, and nothing has started since."""

    @property
    def graph(self) -> Graph:
        return self.state.graph


def phase_of(graph: Graph, step: str) -> StoryPhase:
    """The phase of a story that a step belongs to; a judge belongs to the phase of its subject."""
    return _PHASES.get(graph.phase_of[step], "implement")


def refinement(before: Refinement | None, event: e.Event) -> Refinement:
    """The story after one more event."""
    if before is None:
        return Refinement(evolve(None, event))
    after = replace(before, state=evolve(before.state, event))
    match event:
        case e.AttemptStarted(mode="rework"):
            return _rework_started(replace(after, unblocked=False), event)
        case e.AttemptStarted():
            return replace(after, unblocked=False)
        case e.AttemptSucceeded():
            return _succeeded(after, before, event)
        case e.AttemptFailed():
            return _broke(after, event)
        case e.VerdictGiven() if event.attempt:
            return _judged(after, event)
        case e.LoopClosed():
            rounds = {loop: round for loop, round in after.rounds.items() if loop in after.state.loops}
            return replace(after, rounds=rounds, count=after.count if rounds else 0)
        case e.EscalationDecided(choice="revise"):
            return replace(after, count=0, recoveries=0, unblocked=True)
        case e.EscalationDecided(choice="continue"):
            return replace(after, unblocked=True)
        case e.RunEnded(outcome="verified" | "done"):
            return replace(after, failing_step="", error="")
        case _:
            return after


def _rework_started(after: Refinement, event: e.AttemptStarted) -> Refinement:
    rounds = {loop: after.state.loops[loop].round for loop in event.loops}
    if all(after.rounds.get(loop) == round for loop, round in rounds.items()):
        return after  # the second target of the same round, or a retry after an error
    loops = [after.state.loops[loop] for loop in event.loops]
    begun = RefinementIteration(
        after.count + 1,
        phase_of(after.graph, event.step),
        event.at,
        summary_of(after.state, loops),
        details=(*finding_lines(after.state, loops), *judge_lines(after.state, loops)),
    )
    return replace(
        after,
        rounds={**after.rounds, **rounds},
        count=after.count + 1,
        total=after.total + 1,
        iterations=(*after.iterations, begun)[-MOST_ITERATIONS:],
    )


def _succeeded(after: Refinement, before: Refinement, event: e.AttemptSucceeded) -> Refinement:
    if after.failing_step == event.step:
        after = replace(after, failing_step="", error="")
    if after.state.recoveries > before.state.recoveries:
        review = Review(event.at, "RECOVERY", event.step, feedback=f"{event.step} changed nothing")
        return _reviewed(replace(after, recoveries=after.recoveries + 1), review)
    return after


def _broke(after: Refinement, event: e.AttemptFailed) -> Refinement:
    error = HELD_OUT if is_hidden(after.graph, event.step) else shortened(event.error)
    after = replace(after, failing_step=event.step, error=error)
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
    return replace(after, reviews=(*after.reviews, review)[-MOST_REVIEWS:])


def _counts(found: Sequence[Finding]) -> tuple[int, int, int, int]:
    """How many findings are blockers, critical, major and minor."""
    blockers = sum(finding.blocking for finding in found)
    critical = sum(finding.severity is Severity.CRITICAL and not finding.blocking for finding in found)
    major = sum(finding.severity is Severity.HIGH and not finding.blocking for finding in found)
    return blockers, critical, major, len(found) - blockers - critical - major


def counts_in_words(blockers: int, critical: int, major: int, minor: int) -> str:
    """The findings of a review in one line: "Review failed: 1 blocker(s), 2 critical"."""
    counts = {"blocker(s)": blockers, "critical": critical, "major": major, "minor": minor}
    return "Review failed: " + ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def summary_of(state: RunState, loops: list[Loop]) -> str:
    """The feedback of some loops in one line."""
    ids = dict.fromkeys(id for loop in loops for id in loop.finding_ids)
    found = [state.findings[id].finding for id in ids]
    counted = [counts_in_words(*_counts(found))] if found else []
    return "; ".join([*counted, *(shortened(loop.feedback.message) for loop in loops if loop.feedback)])


def finding_lines(state: RunState, loops: list[Loop]) -> list[str]:
    """The findings of some loops, worst first, each on a line with its place; its suggested fix is on the line below."""
    ids = dict.fromkeys(id for loop in loops for id in loop.finding_ids)
    lines = []
    # Agents can read the file of a story, so it says no more about a held-out check than they are told.
    found = (for_producers(state.graph, state.findings[id]) for id in ids)
    for tracked in sorted(found, key=_worst_first):
        finding = tracked.finding
        word = finding.word or ("blocker" if finding.blocking else str(finding.severity))
        place = (
            f"{finding.file}:{finding.line}" if finding.file and finding.line else finding.file or finding.path or ""
        )
        lines.append(f"[{one_line(word)}] {f'`{one_line(place)}` ' if place else ''}{shortened(finding.description)}")
        if finding.evidence.strip():
            # The last line of an error says what it is.
            lines.append(f"  Evidence: {shortened(finding.evidence.strip().splitlines()[-1])}")
        if finding.suggested_fix:
            lines.append(f"  Suggested fix: {shortened(finding.suggested_fix)}")
    lines += [shortened(loop.feedback.message) for loop in loops if loop.feedback]
    return lines


def judge_lines(state: RunState, loops: list[Loop]) -> list[str]:
    """What the judges of some loops concluded, in their own words."""
    judges = dict.fromkeys(loop.source for loop in loops if loop.by_verdict and not is_hidden(state.graph, loop.source))
    said = ((judge, state.steps[judge].artifact) for judge in judges if judge in state.steps)
    return [f"{judge} says: {shortened(made.summary)}" for judge, made in said if made is not None and made.summary]


def _worst_first(tracked: TrackedFinding) -> tuple[bool, int]:
    return not tracked.finding.blocking, tracked.finding.severity.rank
