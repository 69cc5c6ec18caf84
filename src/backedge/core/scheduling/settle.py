"""The correction plan at work: after every command, what is ready to happen happens, in the same append."""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.breaches import first_breach
from backedge.core.escalation.opening import (
    WITHDRAWN,
    ask_approval,
    ask_to_do,
    ask_to_verify,
    escalate_loop,
    escalate_run,
    escalate_step,
)
from backedge.core.escalation.policy import apply_policy
from backedge.core.escalation.questions import question_for, withdrawal_reason
from backedge.core.feedback.closing import close_loop, end_run
from backedge.core.feedback.loop import Loop, LoopState, result_so_far
from backedge.core.feedback.rerouting import reroute_around_skipped
from backedge.core.model import HUMAN, SIDE_MODES, Breach, Resolution
from backedge.core.scheduling.index import running_attempts
from backedge.core.scheduling.pending import is_complete, is_stuck, needs_input_check, overdue
from backedge.core.scheduling.scheduler import Start, passes, ready
from backedge.core.scheduling.skipping import condition_basis, condition_pending, input_versions, is_skipped, unmet
from backedge.core.scheduling.staleness import consumed_by, upstream_settled
from backedge.core.scheduling.verification import not_delivered_yet, unverified_fixes
from backedge.core.state.run import RunState
from backedge.core.transaction import Transaction
from backedge.core.value import replace
from backedge.core.workflow.limits import BUDGETS


def settle(tx: Transaction) -> None:
    """Tell waiters, close what is verified, escalate what is late, start what there is room for, end what is done."""
    while tx.state.ended is None:
        if tx.state.escalations and _withdraw_questions(tx):
            continue
        if tx.state.loops and (_escalate_overdue(tx) or _deliver_results(tx) or _close_verified(tx)):
            continue
        if tx.state.graph.conditions and reroute_around_skipped(tx):
            continue
        if tx.room > 0 and _start_ready(tx):
            continue
        if tx.state.busy and _break_wait_deadlock(tx):
            continue
        break
    if tx.state.ended is None and not tx.state.busy:
        if is_complete(tx.state):
            _finish(tx)
        elif is_stuck(tx.state):
            tx.add(
                e.EscalationOpened(tx.now, tx.next_escalation(), "nothing can start, and nothing says why", ("cancel",))
            )


def _finish(tx: Transaction) -> None:
    if tx.state.has_accepted:
        tx.add(e.RunEnded(tx.now, "accepted"))
    else:
        tx.add(e.RunEnded(tx.now, "verified" if tx.state.graph.has_judges else "done"))


def _withdraw_questions(tx: Transaction) -> bool:
    """Take back what a person was asked to do, or to approve, when that is no longer what the step would do."""
    for packet in tx.state.escalations.values():
        reason = withdrawal_reason(tx.state, packet)
        if reason is not None:
            tx.add(e.EscalationDecided(tx.now, packet.id, WITHDRAWN, note=reason))
            return True
    return False


def _escalate_overdue(tx: Transaction) -> bool:
    for packet, bound in overdue(tx.state, tx.now):
        assert packet.loop is not None
        breach = Breach("response_timeout", tx.now - packet.opened_at, bound)
        tx.add(e.LoopOverdue(tx.now, packet.loop, breach))
        apply_policy(tx, packet.id, f"limit {breach}")
        return True
    return False


def _deliver_results(tx: Transaction) -> bool:
    """Give attempts that wait in mid-work what they wait for, with their inputs as they are now."""
    state = tx.state
    for loop in state.loops.values():
        if loop.state is not LoopState.VALIDATING or loop.source == HUMAN:
            continue
        running = state.steps[loop.source].running
        if running is None or loop.id not in running.awaits or loop.result_delivered:
            continue
        if upstream_settled(state, loop.source):
            _deliver_result(tx, loop)
            return True
    return False


def _deliver_result(tx: Transaction, loop: Loop) -> None:
    running = tx.state.steps[loop.source].running
    assert running is not None
    versions = input_versions(tx.state, loop.source)
    consumed = consumed_by(tx.state, loop.source)
    tx.add(e.ResultDelivered(tx.now, loop.id, loop.source, running.attempt, versions, consumed))


def _break_wait_deadlock(tx: Transaction) -> bool:
    """Attempts that wait in mid-work for each other would do so for ever: one of them is told what there is."""
    state = tx.state
    if not state.loops:
        return False
    running = [attempt for _, attempt in running_attempts(state)]
    if not all(attempt.awaits for attempt in running) or state.escalations or state.paused_by is not None:
        return False
    if ready(state, now=float("inf"), most=1):
        return False
    loops = [state.loops[id] for attempt in running for id in attempt.awaits]
    for loop in loops:
        if loop.state is LoopState.VALIDATING and not loop.result_delivered:
            _deliver_result(tx, loop)
            return True
    names = ", ".join(dict.fromkeys(loop.source for loop in loops))
    escalate_loop(tx, loops[0], None, f"attempts wait for each other: {names}")
    return True


def _close_verified(tx: Transaction) -> bool:
    """A person's feedback is verified by the judges of its targets; without any, by that person."""
    state = tx.state
    for loop in state.loops.values():
        if loop.source != HUMAN or loop.state is not LoopState.VALIDATING:
            continue
        judges = [
            judge
            for target in loop.shares
            if target != HUMAN
            for judge in state.graph.judges_of[target]
            if not state.steps[judge].skipped_by_decision and not is_skipped(state, judge)
        ]
        if loop.answers_only:
            close_loop(tx, loop, LoopState.RESOLVED, result_so_far(loop, "resolved"))
            return True
        if not judges or not any(share.changed for share in loop.shares.values()):
            # Judges that passed this very version before were not asked about what this person sees in it.
            ask_to_verify(tx, loop)
            return True
        if all(state.steps[judge].running is None and passes(state, judge) for judge in judges):
            names = ", ".join(dict.fromkeys(judges))
            close_loop(tx, loop, LoopState.RESOLVED, Resolution("resolved", text=f"passed by {names}"))
            return True
    return False


def _start_ready(tx: Transaction) -> bool:
    """Start steps while there is room; True if something else changed and the rest has to be looked at again."""
    starts = ready(tx.state, tx.now, tx.room)
    for start in starts:
        if tx.room <= 0:
            return False
        if needs_input_check(tx.state, start):
            continue
        if not start_attempt(tx, start) or (tx.state.loops and start is not starts[-1]):
            # What a loop waits for may start before what it needs is settled, but not beside it.
            return True
    return False


def start_attempt(tx: Transaction, start: Start) -> bool:
    """Start one attempt, unless its condition has to be looked at first, or a limit forbids it: then that is
    escalated instead."""
    if start.mode not in SIDE_MODES and condition_pending(tx.state, start.step):
        missed = unmet(tx.state, tx.state.graph.conditions[start.step])
        basis = condition_basis(tx.state, start.step)
        tx.add(e.ConditionEvaluated(tx.now, start.step, missed is None, missed.text if missed else "", basis))
        return False
    breach = first_breach(tx.state, tx.now, step=start.step)
    if breach is not None:
        if breach.limit in BUDGETS:
            escalate_run(tx, breach)
        else:
            error = tx.state.steps[start.step].last_error
            escalate_step(tx, start.step, breach, f"agent of {start.step!r} keeps breaking: {error}")
        return False
    for id in start.loops:
        loop = tx.state.loops[id]
        if not loop.shares[start.step].counted:
            breach = first_breach(tx.state, tx.now, loop=loop)
            if breach is not None:
                escalate_loop(tx, loop, breach)
                return False
    if _lacks_approval(tx.state, start):
        ask_approval(tx, start.step, question_for(tx.state, start))
        return False
    agent = _agent(tx.state, start)
    if agent == HUMAN:
        ask_to_do(tx, start.step, question_for(tx.state, start))
        return False
    record_start(tx, start, agent)
    tx.room -= 1
    return True


def _lacks_approval(state: RunState, start: Start) -> bool:
    """Whether a person has to approve first. A retry after an error was approved with the first try."""
    asks = state.graph.steps[start.step].approval is not None and start.mode in ("work", "rework")
    return asks and not state.steps[start.step].approved


def record_start(tx: Transaction, start: Start, agent: str) -> int:
    """Record that an attempt has started, with all that it is given; returns its number."""
    state, name = tx.state, start.step
    step, consumed = state.steps[name], consumed_by(state, name)
    event = e.AttemptStarted(
        tx.now,
        name,
        step.attempts + 1,
        start.mode,
        agent,
        input_versions(state, name),
        start.loops,
        _cause(state, start, consumed),
        consumed,
        results=step.results_due if start.mode not in SIDE_MODES else (),
    )
    tx.add(_with_feedback(state, event) if state.loops else event)
    return event.attempt


def _with_feedback(state: RunState, event: e.AttemptStarted) -> e.AttemptStarted:
    """The start of an attempt with what the open loops have for it."""
    name = event.step
    given = [state.loops[id] for id in event.loops]
    counted = tuple(loop.id for loop in given if not loop.shares[name].counted)
    if event.mode in SIDE_MODES:
        return replace(event, counted=counted, to_address=_share_of(name, given))
    unverified = unverified_fixes(state, name)
    new = [loop for loop in unverified if not_delivered_yet(loop, name)]
    verified = (loop for loop in state.loops.values() if loop.source == name and loop.state is LoopState.VALIDATING)
    return replace(
        event,
        counted=counted,
        to_address=_share_of(name, [*given, *new]),
        must_keep_fixed=_share_of(name, [loop for loop in unverified if not not_delivered_yet(loop, name)]),
        unverified=tuple(loop.id for loop in unverified),
        verifies=tuple(loop.id for loop in verified),
    )


def _share_of(name: str, loops: list[Loop]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(finding for loop in loops for finding in loop.shares[name].findings))


def _agent(state: RunState, start: Start) -> str:
    """Who does it: from round 2 on the next one up the ladder."""
    ladder = state.graph.steps[start.step].agents
    if len(ladder) < 2:
        return ladder[0] if ladder else ""
    loops = [*(state.loops[id] for id in start.loops), *unverified_fixes(state, start.step)]
    rung = max((loop.round - loop.delivered for loop in loops), default=0)
    return ladder[min(rung, len(ladder) - 1)]


def _cause(state: RunState, start: Start, consumed: dict[str, str]) -> tuple[str, ...]:
    """The loops that caused this attempt."""
    artifact = state.steps[start.step].artifact
    if artifact is None:
        return start.loops
    cause = dict.fromkeys(start.loops)
    for need, digest in consumed.items():
        made = state.steps[need].artifact
        if made is not None and artifact.consumed.get(need) != digest:
            cause.update(dict.fromkeys(made.cause))
    return tuple(cause)


__all__ = ["end_run", "input_versions", "settle", "start_attempt"]
