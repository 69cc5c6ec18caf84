"""The state of a story, derived from its run: complete phases, counts, and why it is blocked."""

from __future__ import annotations

from collections.abc import Iterable

from backedge.core.events import Event
from backedge.core.feedback.loop import Loop
from backedge.core.model import Breach
from backedge.core.scheduling.pending import outcome_of
from backedge.core.scheduling.scheduler import ready
from backedge.core.state.run import ASKED, Escalation, RunState
from backedge.core.text import shortened
from backedge.core.value import Value
from backedge.core.workflow.limits import Limits
from backedge.stories.rules.assessor import PHASES, Decision, StoryPhase, StoryStatus
from backedge.stories.rules.assessor import Story as Assessed
from backedge.stories.rules.block import block_of
from backedge.stories.rules.completion import (
    all_reviews_pass,
    complete_phases,
    loops_under_way,
    targets_of,
    undelivered_loops,
)
from backedge.stories.rules.refinement import Refinement, RefinementIteration, Review, phase_of, refinement, summary_of


class StoryView(Value, frozen=True):
    """The state of a story. It is stored in a file next to the journal, so the field names must not change."""

    run: str
    seq: int
    status: StoryStatus
    research_complete: bool = False
    plan_complete: bool = False
    implementation_complete: bool = False
    reviews_complete: bool = False
    reviews: tuple[Review, ...] = ()
    iterations: tuple[RefinementIteration, ...] = ()
    refinement_count: int = 0
    max_refinements: int | None = None
    recoveries: int = 0
    max_recoveries: int | None = None
    notes: int = 0
    rejected: bool = False
    """Feedback waits for rework."""
    reworking: bool = False
    """Feedback is being reworked."""
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
    findings: tuple[str, ...] = ()
    """What the last rejection found, if the story is blocked."""
    blocked_by: str = ""
    """The escalation that blocks it."""
    choices: tuple[str, ...] = ()
    """The answers to that escalation."""
    breach: Breach | None = None
    """The limit that it has reached."""
    breach_step: str = ""
    """The step whose limits apply to it."""
    first_max_refinements: int | None = None
    """The limit that the run started with, without what people granted."""


def view_of(story: Refinement) -> StoryView:
    """The state of a story, for its file and the board."""
    state = story.state
    outcome = outcome_of(state)
    complete = complete_phases(state)
    waiting_loops = undelivered_loops(state)
    block = block_of(story, outcome)
    status = _status(story, outcome, bool(block.reason), complete["implement"])
    starts = [start.step for start in ready(state, float("inf"))]
    loops = [loop for loop in state.loops.values() if loop.by_verdict] or list(state.loops.values())
    rounds, recoveries = _bounds(state, loops)
    asked = next((each for each in state.escalations.values() if each.reason == ASKED), None)
    waiting = ""
    if outcome == "waiting" and not block.reason:
        waiting = f"{asked.id} asks: {_question(state, asked)}" if asked else "paused: continue with `backedge resume`"
    under_way = loops_under_way(state)
    named = {name for loop in under_way for name in targets_of(state, loop, begun=True)}
    named = named or {name for loop in waiting_loops for name in targets_of(state, loop, begun=False)}
    phases = {phase_of(story.graph, target) for target in named}
    running = tuple(name for name, step in state.steps.items() if step.running is not None)
    return StoryView(
        run=state.run,
        seq=state.seq,
        status=status,
        research_complete=complete["research"],
        plan_complete=complete["plan"],
        implementation_complete=complete["implement"],
        reviews_complete=complete["implement"] and not waiting_loops and all_reviews_pass(state),
        reviews=story.reviews,
        iterations=story.iterations,
        # Once it is done, what it took in all: an approval resets the count.
        refinement_count=story.total if status == "done" else story.count,
        max_refinements=rounds,
        recoveries=story.recoveries,
        max_recoveries=recoveries,
        notes=story.total,
        rejected=bool(waiting_loops),
        reworking=bool(under_way),
        target=next((phase for phase in PHASES if phase in phases), "implement"),
        feedback=summary_of(state, under_way or waiting_loops),
        waiting=waiting,
        escalations=tuple(state.escalations),
        last_error=block.error or story.error,
        blocked_reason=block.reason,
        blocked_at=block.at,
        diagnostic=block.diagnostic,
        outcome=outcome,
        next_step=(*running, *starts, "")[0],
        running=running,
        attempts=state.attempts,
        cost_usd=state.usage.cost_usd,
        findings=block.findings,
        blocked_by=block.escalation,
        choices=block.choices,
        breach=block.breach,
        breach_step=block.step,
        first_max_refinements=_limits(state, loops).rounds_per_loop,
    )


def view_of_events(events: Iterable[Event]) -> StoryView:
    """The state of a story after all events of its run."""
    story: Refinement | None = None
    for event in events:
        story = refinement(story, event)
    assert story is not None
    return view_of(story)


def as_story(view: StoryView, id: str, title: str, priority: int) -> Assessed:
    """The story for the assessor, without limits: the run has them, and a breach blocks the story."""
    judged: tuple[Decision, ...] = tuple(review.decision for review in view.reviews)
    if view.rejected:
        judged = (*judged, "REJECTED")
    elif "REJECTED" in judged:
        # The rejection was delivered, so what is left counts as work, not as rework.
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
        view.reworking,
        view.refinement_count,
        max_refinements=None,
        recoveries=view.recoveries,
        max_recoveries=None,
        blocked_reason=view.blocked_reason,
        waiting=view.waiting,
    )


def _after_last(judged: tuple[Decision, ...], word: Decision) -> int:
    return len(judged) - judged[::-1].index(word)


def _status(story: Refinement, outcome: str, blocked: bool, implemented: bool) -> StoryStatus:
    if blocked:
        return "blocked"
    if outcome in ("verified", "done", "accepted"):
        return "done"
    if story.unblocked:
        return "in-progress" if implemented else "ready"
    graph = story.graph
    begun = any(
        step.attempts and phase_of(graph, name) == "implement" and not graph.is_judge(name)
        for name, step in story.state.steps.items()
    )
    return "in-progress" if begun else "ready"


def _question(state: RunState, packet: Escalation) -> str:
    loop = state.loops.get(packet.loop or "")
    if loop is not None and loop.feedback is not None:
        return shortened(loop.feedback.message)
    return f"step {packet.step} needs a person" if packet.step else "a person has to decide"


def _bounds(state: RunState, loops: list[Loop]) -> tuple[int | None, int | None]:
    limits = _limits(state, loops)
    rounds = limits.rounds_per_loop
    if rounds is not None and loops:
        rounds += loops[0].granted
    recoveries = limits.recoveries_total
    if recoveries is not None:
        recoveries += int(state.grants.get("recoveries_total", 0))
    return rounds, recoveries


def _limits(state: RunState, loops: list[Loop]) -> Limits:
    return loops[0].limits if loops else state.workflow.limits
