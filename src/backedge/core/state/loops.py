"""Folds the events of loops: they are opened, routed round by round, and closed."""

from __future__ import annotations

import json

from backedge.core import events as e
from backedge.core.feedback.loop import (
    BY_DISAGREEMENT,
    BY_OPTION,
    MAX_PAST_ROUNDS,
    Loop,
    LoopState,
    PastRound,
    Share,
    with_chooser,
)
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.model import HUMAN, ChosenOption, Feedback, Position, Severity
from backedge.core.state.fixes import fixes_after_close
from backedge.core.state.run import RunState, StepState, number, with_loop, with_step
from backedge.core.state.waits import is_awaited, without_waiter
from backedge.core.value import replace


def loop_opened(state: RunState, event: e.LoopOpened) -> RunState:
    cause = state.loop(event.caused_by) if event.caused_by else None
    source = event.source
    raised = event.feedback
    loop = Loop(
        id=event.loop,
        kind=event.kind,
        source=source,
        state=LoopState.NOTIFYING,
        feedback=raised,
        severity=raised.severity if raised else Severity.LOW,
        blocking=raised.blocking if raised else False,
        limits=state.graph.limits_of(source) if source != HUMAN else state.workflow.limits,
        opened_at=event.at,
        caused_by=event.caused_by,
        depth=1 + (cause.depth if cause else 0),
        follows=event.follows,
    )
    if event.carries and event.follows is not None:
        loop = _carried_on(loop, state.loop(event.follows), len(state.rollbacks) - 1)
    state = replace(with_loop(state, loop), opened_loops=number(event.loop), ended=None)
    if raised is not None and event.attempt and state.steps[source].running is not None:
        return _with_question(state, source, raised, loop.id)
    if loop.by_verdict:
        return with_step(state, source, replace(state.steps[source], last_loop=loop.id))
    return state


def _carried_on(loop: Loop, before: Loop | None, rollback: int) -> Loop:
    """A loop that continues an earlier one after a rollback: its rounds and counters are those of the earlier one."""
    assert before is not None
    past = PastRound(before.round, before.targets, before.finding_ids)
    return replace(
        loop,
        carries=True,
        limits=before.limits,
        caused_by=before.caused_by,
        depth=before.depth,
        round=before.round,
        past_rounds=(*before.past_rounds, past)[-MAX_PAST_ROUNDS:],
        rollbacks=(*before.rollbacks, rollback)[-MAX_PAST_ROUNDS:],
        granted=before.granted,
        waived=before.waived,
        revised_at=before.revised_at,
        unchanged_reworks=before.unchanged_reworks,
        oscillations=before.oscillations,
        rejected=before.rejected,
        balance=before.balance,
        granted_until=before.granted_until,
        advice=before.advice,
        routed_by=before.routed_by,
    )


def question_key(feedback: Feedback) -> str:
    """The identity of feedback raised during an attempt: an attempt that runs again asks with the same key."""
    more = (feedback.severity, feedback.requested_info, feedback.requirement_id, feedback.details)
    more_text = json.dumps(more, sort_keys=True, default=str)
    return "\n".join((feedback.word, ",".join(sorted(feedback.to)), feedback.message, more_text))


def feedback_acknowledged(state: RunState, event: e.FeedbackAcknowledged) -> RunState:
    response = {"message": event.message, "action": event.action, "eta": event.eta}
    loop = state.loops[event.loop]
    moved = loop.on("started") if loop.state is LoopState.WAITING_RESPONSE else loop
    return with_loop(state, replace(moved, acknowledged={**loop.acknowledged, event.target: response}))


def feedback_routed(state: RunState, event: e.FeedbackRouted) -> RunState:
    loop = state.loops[event.loop]
    recent = loop.past_rounds
    if loop.delivered and not event.kept:
        message = loop.feedback.message if loop.feedback else ""
        recent = (*recent, PastRound(loop.round, loop.targets, loop.finding_ids, message))[-MAX_PAST_ROUNDS:]
    findings = state.findings
    routed: dict[int, list[str]] = {}
    for target, ids in event.shares.items():
        for id in ids:
            routed.setdefault(id, []).append(target)
    severity, blocking, streak = loop.severity, loop.blocking, 0
    changed: dict[int, TrackedFinding] = {}
    gaps = dict(event.gaps)
    routed_by_rule = {id for ids in event.rules.values() for id in ids}
    to_subject = event.rules.get("subject", ())
    for id, targets in routed.items():
        before = findings[id]
        steps = tuple(targets) if HUMAN not in targets else tuple(target for target in targets if target != HUMAN)
        changed[id] = tracked = replace(
            before,
            loop=loop.id,
            # A person may fix the defect, but a step injected it.
            introduced_by=steps if steps and id in routed_by_rule else before.introduced_by,
            gap=gaps.get(id, "") if id in gaps or id in to_subject else before.gap,
        )
        if tracked.finding.severity.rank < severity.rank:
            severity = tracked.finding.severity
        blocking = blocking or tracked.finding.blocking
        streak = max(streak, tracked.streak)
    findings = findings.merged(changed)
    source = state.steps.get(loop.source)
    since_revision = reports_made(source, loop) - loop.revised_at
    shares = {target: loop.shares[target] for target in event.kept}
    shares |= {target: Share(findings=ids) for target, ids in event.shares.items()}
    rejected = loop.rejected
    judged = state.graph.steps[loop.source].judges if source and not event.kept else ()
    for name in {*event.shares, *judged} - {HUMAN}:
        artifact = state.steps[name].artifact
        if artifact is not None:
            rejected = rejected.set(f"{name}:{artifact.digest}", True)
    loop = replace(
        _routed(loop),
        feedback=_latest_feedback(loop, event.feedback),
        shares=shares,
        targets=tuple(shares),
        routed_by=next(iter(event.rules), loop.routed_by),
        delivered=bool(event.kept),
        reclassified=(),
        past_rounds=recent,
        severity=severity,
        blocking=blocking,
        longest_streak=min(streak, since_revision),
        failures=min(source.failures, since_revision) if source and loop.by_verdict else 0,
        rejected=rejected,
        balance=(*loop.balance, event.balance)[-2:] if event.balance else loop.balance,
        result_delivered=False,
        answers={},
        acknowledged={},
    )
    loop = with_choice_routed(state.loops[loop.id], loop, event)
    if loop.state is LoopState.RESOLVING and all(share.done for share in shares.values()):
        # The remaining targets had finished their shares before this routing.
        loop = loop.on("fix done")
    state = replace(state, loops={**state.loops, loop.id: loop}, findings=findings)
    if event.feedback is not None and source is not None and source.running is not None:
        return _with_question(state, loop.source, event.feedback, loop.id)
    return state


def _routed(loop: Loop) -> Loop:
    """A loop whose feedback was sent, for the first time or for the next round. A loop that waits for a response stays
    in that state."""
    if loop.state is LoopState.NOTIFYING:
        return loop.on("delivered")
    return loop if loop.state is LoopState.WAITING_RESPONSE else loop.resumed()


def _latest_feedback(loop: Loop, raised: Feedback | None) -> Feedback | None:
    """The feedback as it was raised last, with the targets of the first time: a person may have sent it elsewhere."""
    if raised is None or loop.feedback is None:
        return loop.feedback
    return replace(raised, to=loop.feedback.to)


def _with_question(state: RunState, name: str, feedback: Feedback, loop: str) -> RunState:
    """Remember the feedback that a running attempt raised: if the attempt is lost and runs again, it raises the same
    feedback and gets the same loop."""
    step = state.steps[name]
    assert step.running is not None
    raised = step.running.raised_loops if loop in step.running.raised_loops else (*step.running.raised_loops, loop)
    questions = {**step.loop_by_question, question_key(feedback): loop}
    running = replace(step.running, raised_loops=raised)
    return with_step(state, name, replace(step, loop_by_question=questions, running=running))


def reports_made(source: StepState | None, loop: Loop) -> int:
    """How many reports of the kind that started a loop its source has made: verdicts, or checks of inputs."""
    if source is None:
        return 0
    return source.checks if loop.by_check else source.verdicts


def loop_closed(state: RunState, event: e.LoopClosed) -> RunState:
    loop = replace(
        state.loops[event.loop].closed(event.state), resolution=with_chooser(state.loops[event.loop], event.resolution)
    )
    loops = {id: other for id, other in state.loops.items() if id != loop.id}
    state = replace(
        state,
        loops=loops,
        fixes=fixes_after_close(state, event),
        closed_loops=state.closed_loops.set(number(loop.id), loop),
        has_accepted=state.has_accepted or event.state is LoopState.ACCEPTED,
    )
    if loop.source == HUMAN:
        return state
    source = state.steps[loop.source]
    if event.state is LoopState.ACCEPTED and loop.by_verdict and source.verdict is not None:
        source = replace(source, verdict=replace(source.verdict, accepted=True))
    if loop.feedback is not None or _source_reruns(event):
        source = replace(source, answered=(*source.answered, loop.id)[-MAX_ANSWERED:])
    asker_lost = source.running is None and loop.id in source.loop_by_question.values()
    if (asker_lost or _source_reruns(event)) and not is_awaited(state, loop):
        source = replace(source, results_due=(*source.results_due, loop.id))
    return without_waiter(with_step(state, loop.source, source), loop)


def _source_reruns(event: e.LoopClosed) -> bool:
    """Whether the source has to run again with the result of its loop: an option was chosen, a person decided, or a
    planner cancelled the loop."""
    chosen = event.state is LoopState.ACCEPTED and event.resolution.option is not None
    by_hand = event.state in (LoopState.RESOLVED, LoopState.CANCELLED) and bool(event.resolution.by)
    return chosen or by_hand


MAX_ANSWERED = 10
"""How many answers to its own feedback a step remembers."""
MAX_POSITIONS = 40
"""How many positions a loop remembers: enough to decide on, and the cost per event stays flat."""


def position_taken(state: RunState, event: e.PositionTaken) -> RunState:
    loop = state.loops[event.loop]
    position = Position(loop.round, event.target, event.option, event.reason)
    shares = {**loop.shares, event.target: replace(loop.shares[event.target], done=True)}
    return with_loop(state, replace(loop, shares=shares, positions=(*loop.positions, position)[-MAX_POSITIONS:]))


def target_skipped(state: RunState, event: e.TargetSkipped) -> RunState:
    loop = state.loops[event.loop]
    others = {target: share for target, share in loop.shares.items() if target != event.target}
    return with_loop(state, replace(loop, shares=others))


def choice_made(state: RunState, event: e.ChoiceMade) -> RunState:
    """The choice is over. The loop waits for its source, unless the chosen option asks steps for rework."""
    loop = state.loops[event.loop]
    chosen = replace(
        loop.resumed().on("fix done"),
        choice=ChosenOption(event.option, event.by, event.reason),
        shares={target: replace(share, done=True) for target, share in loop.shares.items()},
    )
    return with_loop(state, chosen)


def with_choice_routed(before: Loop, after: Loop, event: e.FeedbackRouted) -> Loop:
    """A loop after a routing, with its choice brought up to date."""
    if BY_OPTION in event.rules:
        # The chosen rework belongs to the round of the choice. The steps that chose stay recorded as its targets.
        return replace(
            after,
            targets=before.targets,
            routed_by=before.routed_by,
            past_rounds=before.past_rounds,
            round=before.round + (not before.delivered),
            delivered=True,
        )
    if event.feedback is not None:
        after = replace(after, choice=None, disputed=False)
    if BY_DISAGREEMENT in event.rules:
        after = replace(after, routed_by=before.routed_by, disputed=True)
    return replace(after, rejected=before.rejected) if after.choosing else after
