"""A run as the story that it works on shows it: phases that are complete, its counts, why it is blocked."""

from __future__ import annotations

from backedge.analytics.refinement import Iteration, Refinement, Review, phase_of, short, summary_of
from backedge.core.assessor import PHASES, Decision, StoryPhase, StoryStatus, limit_reached
from backedge.core.assessor import Story as Assessed
from backedge.core.feedback.loop import Loop
from backedge.core.scheduling.pending import outcome_of
from backedge.core.scheduling.scheduler import passes, ready
from backedge.core.scheduling.staleness import is_fresh
from backedge.core.state.run import ASKED, Escalation, RunState
from backedge.core.value import Value

CREATE_PR = "create_pr"
"""The name of the step that ends a story."""
_REFINEMENTS = ("rounds_per_loop", "rounds_total")


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
    under_way = _under_way(state)
    named = {name for loop in under_way for name in _targets(state, loop, begun=True)}
    named = named or {name for loop in waiting_loops for name in _targets(state, loop, begun=False)}
    phases = {phase_of(told.graph, target) for target in named}
    running = tuple(name for name, step in state.steps.items() if step.running is not None)
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
        reworking=bool(under_way),
        target=next((phase for phase in PHASES if phase in phases), "implement"),
        feedback=summary_of(state, under_way or waiting_loops),
        waiting=waiting,
        escalations=tuple(state.escalations),
        last_error=block.error or told.error,
        blocked_reason=block.reason,
        blocked_at=block.at,
        diagnostic=block.diagnostic,
        outcome=outcome,
        next_step=(*running, *starts, "")[0],
        running=running,
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
        said = short(state.ended.reason) or outcome
        return _Block(said, state.ended.at, f"the run {state.run} is {outcome}: {said}", said)
    if outcome == "accepted":
        return _Block(diagnostic=_left(state))
    packet = next((each for each in state.escalations.values() if each.reason != ASKED), None)
    if packet is None or outcome != "waiting":
        return _Block()
    reason = _reason(packet)
    error = ""
    if reason.startswith("Max refinement attempts"):
        breaker = (
            "Circuit breaker" if state.workflow.limits.rounds_per_loop is not None else "No more rounds in this run"
        )
        error = f"{breaker}: maximum refinement attempts reached{reason.removeprefix('Max refinement attempts')}"
    diagnostic = f"{packet.id} in the inbox: {short(packet.reason)}"
    return _Block(reason, packet.opened_at, diagnostic, error)


def _left(state: RunState) -> str:
    """What a person has accepted or passed over, in one line."""
    known = [each.finding for each in state.findings.values() if each.status in ("accepted", "deferred")]
    issues = "; ".join(f"[{finding.word or finding.severity}] {short(finding.description)}" for finding in known)
    return short(f"done by decision, not by its reviews: {issues or 'something was passed over'}")


def _reason(packet: Escalation) -> str:
    breach = packet.breach
    if breach is not None and breach.limit in _REFINEMENTS:
        return limit_reached(Assessed("", refinement_count=int(breach.count), max_refinements=int(breach.bound)))
    if breach is not None and breach.limit == "recoveries_total":
        count, bound = int(breach.count), int(breach.bound)
        return limit_reached(Assessed("", recoveries=count, max_recoveries=bound))
    return short(packet.reason)


def _question(state: RunState, packet: Escalation) -> str:
    loop = state.loops.get(packet.loop or "")
    if loop is not None and loop.feedback is not None:
        return short(loop.feedback.message)
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
    if step.skipped_by_decision:
        return True
    under_way = any(
        name in loop.shares and loop.shares[name].counted and not loop.shares[name].done
        for loop in state.loops.values()
    )
    return step.running is None and not under_way and is_fresh(state, name)


def _passes(state: RunState, judge: str) -> bool:
    return state.steps[judge].skipped_by_decision or passes(state, judge)


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
        if not loop.answers_only and loop.escalation is None and _targets(state, loop, begun=False)
    ]


def _under_way(state: RunState) -> list[Loop]:
    """The loops whose feedback is being reworked, or was when that was interrupted."""
    return [
        loop
        for loop in state.loops.values()
        if not loop.answers_only and loop.escalation is None and _targets(state, loop, begun=True)
    ]


def _targets(state: RunState, loop: Loop, begun: bool) -> list[str]:
    """The steps that a loop waits for: those whose rework was begun, or those whose was not."""
    return [
        name for name, share in loop.shares.items() if name in state.steps and share.counted is begun and not share.done
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
