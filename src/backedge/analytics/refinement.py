"""A run as the story that it works on tells it: phases that are complete, reviews, refinements, why it is blocked.

The fold takes each event once; how much it keeps does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from backedge.core import events as e
from backedge.core.assessor import (
    PHASES,
    Decision,
    StoryPhase,
    StoryStatus,
    limit_reached,
    reset_by,
    severity_of_review,
)
from backedge.core.assessor import Story as Assessed
from backedge.core.graph import Graph
from backedge.core.ledger import Tracked
from backedge.core.loops import Loop
from backedge.core.model import Finding, Severity
from backedge.core.pending import outcome_of, passes, ready
from backedge.core.staleness import fresh
from backedge.core.state import ASKED, Escalation, RunState, evolve
from backedge.core.value import Value, replace
from backedge.core.wording import one_line

CREATE_PR = "create_pr"
"""The name of the step that ends a story."""
KEPT_REVIEWS = 10
KEPT_ITERATIONS = 50
LONGEST = 400
"""Characters of one text of an agent."""

_PHASES: dict[str, StoryPhase] = {"research": "research", "planning": "plan", "design": "plan"}
_REFINEMENTS = ("rounds_per_loop", "rounds_total")

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
    error = _short(event.error)
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
    ids = dict.fromkeys(id for loop in loops for id in loop.given)
    found = [state.findings[id].finding for id in ids]
    counted = [counts_in_words(*_counts(found))] if found else []
    return "; ".join([*counted, *(_short(loop.feedback.message) for loop in loops if loop.feedback)])


def _details(state: RunState, loops: list[Loop]) -> list[str]:
    ids = dict.fromkeys(id for loop in loops for id in loop.given)
    lines = []
    for tracked in sorted((state.findings[id] for id in ids), key=_worst_first):
        finding = tracked.finding
        word = finding.word or ("blocker" if finding.blocking else str(finding.severity))
        place = (
            f"{finding.file}:{finding.line}" if finding.file and finding.line else finding.file or finding.path or ""
        )
        lines.append(f"[{one_line(word)}] {f'`{one_line(place)}` ' if place else ''}{_short(finding.description)}")
        if finding.suggested_fix:
            lines.append(f"  Suggested fix: {_short(finding.suggested_fix)}")
    lines += [_short(loop.feedback.message) for loop in loops if loop.feedback]
    return lines


def _worst_first(tracked: Tracked) -> tuple[bool, int]:
    return not tracked.finding.blocking, tracked.finding.severity.rank


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


# What it comes to


class StoryView(Value, frozen=True):
    """A story as its run has it."""

    run: str
    seq: int
    status: StoryStatus
    research_complete: bool = False
    plan_complete: bool = False
    implementation_complete: bool = False
    reviews_complete: bool = False
    reviews: tuple[Review, ...] = ()
    iterations: tuple[Iteration, ...] = ()
    refinement_count: int = 0
    max_refinements: int | None = None
    recoveries: int = 0
    max_recoveries: int | None = None
    notes: int = 0
    rejected: bool = False
    """Feedback waits to be reworked."""
    target: StoryPhase = "implement"
    feedback: str = ""
    waiting: str = ""
    escalations: tuple[str, ...] = ()
    last_error: str = ""
    blocked_reason: str = ""
    blocked_at: float | None = None
    diagnostic: str = ""
    outcome: str = "running"
    next_step: str = ""
    running: tuple[str, ...] = ()
    attempts: int = 0
    cost_usd: float = 0.0


def view_of(told: Refinement) -> StoryView:
    """What a story's file and the board say of its run."""
    state = told.state
    outcome = outcome_of(state)
    complete = _completions(state)
    waiting_loops = _undelivered(state)
    block = _block(told, outcome)
    starts = [start.step for start in ready(state, float("inf"))]
    loops = [loop for loop in state.loops.values() if loop.by_verdict] or list(state.loops.values())
    rounds, recoveries = _bounds(state, loops)
    asked = next((each for each in state.escalations.values() if each.reason == ASKED), None)
    waiting = ""
    if outcome == "waiting" and not block.reason:
        waiting = f"{asked.id} asks: {_question(state, asked)}" if asked else "paused: `backedge resume` goes on"
    targets = [
        name
        for loop in waiting_loops
        for name, share in loop.shares.items()
        if name in state.steps and not share.charged
    ]
    phases = {phase_of(told.graph, target) for target in targets}
    return StoryView(
        run=state.run,
        seq=state.seq,
        status=_status(told, outcome, bool(block.reason)),
        research_complete=complete["research"],
        plan_complete=complete["plan"],
        implementation_complete=complete["implement"],
        reviews_complete=complete["implement"] and not waiting_loops and _reviewed_all(state),
        reviews=told.reviews,
        iterations=told.iterations,
        refinement_count=told.count,
        max_refinements=rounds,
        recoveries=told.recoveries,
        max_recoveries=recoveries,
        notes=told.total,
        rejected=bool(waiting_loops),
        target=next((phase for phase in PHASES if phase in phases), "implement"),
        feedback=summary_of(state, waiting_loops) if waiting_loops else "",
        waiting=waiting,
        escalations=tuple(state.escalations),
        last_error=block.error or told.error,
        blocked_reason=block.reason,
        blocked_at=block.at,
        diagnostic=block.diagnostic,
        outcome=outcome,
        next_step=starts[0] if starts else "",
        running=tuple(name for name, step in state.steps.items() if step.running is not None),
        attempts=state.attempts,
        cost_usd=state.usage.cost_usd,
    )


def assessed(view: StoryView, id: str, title: str, priority: int) -> Assessed:
    """A story for the assessor, as its run has it. The limits are the run's: it escalates, and is blocked then."""
    judged: tuple[Decision, ...] = tuple(review.decision for review in view.reviews)
    if view.rejected:
        judged = (*judged, "REJECTED")
    elif "REJECTED" in judged:
        # It was delivered: what is left of it is work, not rework.
        judged = tuple(each for each in judged[_after_last(judged, "REJECTED") :] if each != "REJECTED")
    return Assessed(
        id,
        title,
        priority,
        view.status,
        view.research_complete,
        view.plan_complete,
        view.implementation_complete,
        view.reviews_complete,
        judged,
        view.target,
        view.feedback,
        view.refinement_count,
        max_refinements=None,
        recoveries=view.recoveries,
        max_recoveries=None,
        blocked_reason=view.blocked_reason,
        waiting=view.waiting,
    )


def _after_last(judged: tuple[Decision, ...], word: Decision) -> int:
    return len(judged) - judged[::-1].index(word)


def _status(told: Refinement, outcome: str, blocked: bool) -> StoryStatus:
    if blocked:
        return "blocked"
    if outcome in ("verified", "done", "accepted"):
        return "done"
    graph = told.graph
    begun = any(
        step.attempts and phase_of(graph, name) == "implement" and not graph.is_judge(name)
        for name, step in told.state.steps.items()
    )
    return "in-progress" if begun else "ready"


class _Block(Value, frozen=True):
    reason: str = ""
    at: float | None = None
    diagnostic: str = ""
    error: str = ""


def _block(told: Refinement, outcome: str) -> _Block:
    state = told.state
    if state.ended is not None and outcome in ("failed", "cancelled"):
        said = _short(state.ended.reason) or outcome
        return _Block(said, state.ended.at, f"the run {state.run} is {outcome}: {said}", said)
    packet = next((each for each in state.escalations.values() if each.reason != ASKED), None)
    if packet is None or outcome != "waiting":
        return _Block()
    reason = _reason(packet)
    error = ""
    if reason.startswith("Max refinement attempts"):
        error = f"Circuit breaker: maximum refinement attempts reached{reason.removeprefix('Max refinement attempts')}"
    diagnostic = f"{packet.id} in the inbox: {_short(packet.reason)}"
    return _Block(reason, packet.opened_at, diagnostic, error)


def _reason(packet: Escalation) -> str:
    breach = packet.breach
    if breach is not None and breach.limit in _REFINEMENTS:
        return limit_reached(Assessed("", refinement_count=int(breach.count), max_refinements=int(breach.bound)))
    if breach is not None and breach.limit == "recoveries_total":
        count, bound = int(breach.count), int(breach.bound)
        return limit_reached(Assessed("", recoveries=count, max_recoveries=bound))
    return _short(packet.reason)


def _question(state: RunState, packet: Escalation) -> str:
    loop = state.loops.get(packet.loop or "")
    if loop is not None and loop.feedback is not None:
        return _short(loop.feedback.message)
    return f"step {packet.step} is for a person" if packet.step else "a person decides"


def _completions(state: RunState) -> dict[StoryPhase, bool]:
    """Whether each phase is complete; none is while an earlier one is not."""
    graph = state.graph
    complete: dict[StoryPhase, bool] = {}
    for phase in PHASES:
        steps = [name for name in state.steps if phase_of(graph, name) == phase and name != CREATE_PR]
        done = all(_stands(state, name) for name in steps if not graph.is_judge(name))
        if phase != "implement":
            done = done and all(_passes(state, name) or _rejects(state, name) for name in steps if graph.is_judge(name))
        complete[phase] = done and all(complete.values())
    return complete


def _stands(state: RunState, name: str) -> bool:
    """Whether a step is done, and is not being done again."""
    step = state.steps[name]
    if step.passed_over:
        return True
    under_way = any(
        name in loop.shares and loop.shares[name].charged and not loop.shares[name].done
        for loop in state.loops.values()
    )
    return step.running is None and not under_way and fresh(state, name)


def _passes(state: RunState, judge: str) -> bool:
    return state.steps[judge].passed_over or passes(state, judge)


def _rejects(state: RunState, judge: str) -> bool:
    """Whether a judge has rejected what there is now: its subject was complete, and is to be done again."""
    return any(loop.source == judge and not loop.delivered for loop in state.loops.values() if loop.by_verdict)


def _reviewed_all(state: RunState) -> bool:
    return all(_passes(state, name) for name in state.steps if state.graph.is_judge(name))


def _undelivered(state: RunState) -> list[Loop]:
    """The loops whose feedback waits to be reworked, where nobody has to be asked first."""
    return [
        loop
        for loop in state.loops.values()
        if not loop.answers_only
        and loop.escalation is None
        and any(not share.charged and name in state.steps for name, share in loop.shares.items())
    ]


def _bounds(state: RunState, loops: list[Loop]) -> tuple[int | None, int | None]:
    limits = loops[0].limits if loops else state.workflow.limits
    rounds = limits.rounds_per_loop
    if rounds is not None and loops:
        rounds += loops[0].granted
    recoveries = limits.recoveries_total
    if recoveries is not None:
        recoveries += int(state.grants.get("recoveries_total", 0))
    return rounds, recoveries


__all__ = [
    "CREATE_PR",
    "Iteration",
    "Refinement",
    "Review",
    "StoryView",
    "assessed",
    "phase_of",
    "refinement",
    "reset_by",
    "view_of",
]
