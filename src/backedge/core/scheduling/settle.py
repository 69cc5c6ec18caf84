"""What follows from a command without another one: loops close, questions time out, steps start, the run ends.

All of it is appended together with the events of the command.
"""

from __future__ import annotations

from hashlib import sha256

from backedge.core import events as e
from backedge.core.breaches import first_breach
from backedge.core.escalation.opening import (
    ask_about_changes,
    ask_approval,
    ask_to_do,
    ask_to_verify,
    escalate_loop,
    escalate_run,
    escalate_step,
    escalate_stuck,
    withdraw,
)
from backedge.core.escalation.policy import apply_policy
from backedge.core.escalation.questions import question_for, withdrawal_reason
from backedge.core.evidence.delivered import judge_again
from backedge.core.evidence.protected import changes_to_review, question_text, unanswered_changes
from backedge.core.feedback.closing import close_loop, end_run
from backedge.core.feedback.judging import record_verdict
from backedge.core.feedback.loop import Loop, LoopState, result_so_far
from backedge.core.feedback.rerouting import reroute_around_skipped
from backedge.core.feedback.rollback import roll_back_worse
from backedge.core.feedback.voting import cannot_choose, lose_target, skip_target
from backedge.core.model import HUMAN, SERIOUS, SIDE_MODES, Breach, Outcome, OutputDigest, Resolution, Status
from backedge.core.scheduling.approval import approval_reasons
from backedge.core.scheduling.index import running_attempts
from backedge.core.scheduling.pending import is_complete, is_stuck, needs_input_check, overdue
from backedge.core.scheduling.scheduler import Start, passes, ready
from backedge.core.scheduling.skipping import (
    condition_basis,
    condition_pending,
    counts_loops,
    input_versions,
    is_skipped,
    unmet_when,
)
from backedge.core.scheduling.staleness import artifact_digest, consumed_by, upstream_settled
from backedge.core.scheduling.verification import not_delivered_yet, only_verifies, unverified_fixes
from backedge.core.state.run import RunState
from backedge.core.transaction import Transaction
from backedge.core.value import replace
from backedge.core.workflow.limits import BUDGETS


def settle(tx: Transaction) -> None:
    """Withdraw outdated questions, escalate overdue ones, deliver results, close verified loops, start steps while slots
    are free, and end a run that is complete."""
    while tx.state.ended is None:
        if tx.state.escalations and _withdraw_questions(tx):
            continue
        if tx.state.loops and (_escalate_overdue(tx) or _deliver_results(tx) or _close_verified(tx)):
            continue
        if tx.state.graph.conditions and reroute_around_skipped(tx):
            continue
        if tx.state.fixes and roll_back_worse(tx):
            continue
        if tx.free_slots > 0 and _start_ready(tx):
            continue
        if tx.state.busy and _break_wait_deadlock(tx):
            continue
        break
    if tx.state.ended is None and not tx.state.busy:
        if is_complete(tx.state):
            if judge_again(tx):
                settle(tx)
            elif changes := unanswered_changes(tx.state):
                ask_about_changes(tx, changes, question_text(changes))
            else:
                _finish(tx)
        elif is_stuck(tx.state):
            escalate_stuck(tx)


def _finish(tx: Transaction) -> None:
    if tx.state.has_accepted:
        tx.add(e.RunEnded(tx.now, "accepted"))
    elif left := _serious_left(tx.state):
        names = ", ".join(left)
        tx.add(e.RunEnded(tx.now, "accepted", f"critical or high findings are deferred: {names}"))
    else:
        tx.add(e.RunEnded(tx.now, "verified" if tx.state.graph.has_judges else "done"))


def _serious_left(state: RunState) -> tuple[str, ...]:
    """The critical and high findings that nobody fixed, except those that the `passes_if` of their judge tolerates."""
    return tuple(
        tracked.name
        for tracked in state.findings.values()
        if tracked.finding.severity in SERIOUS
        and tracked.status in (Status.DEFERRED, Status.UNCONFIRMED)
        and not _tolerates(state, tracked.found_by)
    )


def _tolerates(state: RunState, judge: str) -> bool:
    """Whether the last verdict of a judge is a pass by its own `passes_if`."""
    step = state.graph.steps.get(judge)
    verdict = state.steps[judge].verdict if step is not None and step.passes_if is not None else None
    return verdict is not None and verdict.word in ("pass", "conditional")


def _withdraw_questions(tx: Transaction) -> bool:
    """Withdraw a question about a step when it no longer matches what the step would do."""
    for packet in tx.state.escalations.values():
        reason = withdrawal_reason(tx.state, packet)
        if reason is not None:
            withdraw(tx, packet, reason)
            return True
    return False


def _escalate_overdue(tx: Transaction) -> bool:
    for packet, bound in overdue(tx.state, tx.now):
        assert packet.loop is not None
        loop = tx.state.loops[packet.loop]
        if loop.choosing and any(not cannot_choose(tx.state, loop, each) for each in loop.shares if each != HUMAN):
            skip_target(tx, loop.id, HUMAN, f"no answer within {bound:g} s")
            return True
        breach = Breach("response_timeout", tx.now - packet.opened_at, bound)
        tx.add(e.LoopOverdue(tx.now, packet.loop, breach))
        apply_policy(tx, packet.id, f"limit {breach}")
        return True
    return False


def _deliver_results(tx: Transaction) -> bool:
    """Deliver results to running attempts that wait for them, with the current versions of their inputs."""
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
    """If all running attempts wait for each other, give one of them the result so far, or escalate a loop. They would
    wait for ever otherwise."""
    state = tx.state
    if not state.loops or state.restoring is not None:
        return False
    running = [attempt for _, attempt in running_attempts(state)]
    if not all(attempt.awaits for attempt in running) or state.escalations or state.paused_by is not None:
        return False
    if ready(state, now=float("inf"), enough=1):
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
    """Human feedback is verified by the judges of its targets, or by that person if there are none."""
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
            # The judges may have passed this version before, without knowing what this person found wrong with it.
            ask_to_verify(tx, loop)
            return True
        if all(state.steps[judge].running is None and passes(state, judge) for judge in judges):
            names = ", ".join(dict.fromkeys(judges))
            close_loop(tx, loop, LoopState.RESOLVED, Resolution("resolved", text=f"passed by {names}"))
            return True
    return False


def _start_ready(tx: Transaction) -> bool:
    """Start steps while slots are free; True if something changed that the other starts depend on."""
    starts = ready(tx.state, tx.now, tx.free_slots)
    for start in starts:
        if tx.free_slots <= 0:
            return False
        if needs_input_check(tx.state, start):
            continue
        if not start_attempt(tx, start) or (tx.state.loops and start is not starts[-1]):
            # A step that a loop waits for may start before its needs are settled, but not at the same time as they do.
            return True
    return False


def start_attempt(tx: Transaction, start: Start) -> bool:
    """Start one attempt; False if it was not started. Its condition is evaluated first, a limit that forbids it is
    escalated, and a person is asked for approval or to do the step."""
    if start.mode not in SIDE_MODES and condition_pending(tx.state, start.step):
        unmet_condition = unmet_when(tx.state, start.step)
        loops = counts_loops(tx.state, start.step)
        basis = condition_basis(tx.state, start.step, loops)
        text = unmet_condition.text if unmet_condition else ""
        tx.add(e.ConditionEvaluated(tx.now, start.step, unmet_condition is None, text, basis, loops))
        return False
    breach = first_breach(tx.state, tx.now, step=start.step)
    if breach is not None:
        if breach.limit in BUDGETS:
            escalate_run(tx, breach)
        else:
            error = tx.state.steps[start.step].last_error
            reason = f"the agent of {start.step!r} keeps ending with an error: {error}"
            if start.mode == "decide":
                lose_target(tx, start.loops[0], start.step, breach, reason)
            else:
                escalate_step(tx, start.step, breach, reason)
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
    if tx.state.graph.steps[start.step].approver and not start.loops and not approval_reasons(tx.state, start.step):
        _pass_unasked(tx, start)
        return False
    agent = _agent(tx.state, start)
    if agent == HUMAN:
        ask_to_do(tx, start.step, question_for(tx.state, start))
        return False
    record_start(tx, start, agent)
    tx.free_slots -= 1
    return True


def _lacks_approval(state: RunState, start: Start) -> bool:
    """Whether a person has to approve first. A retry after an error needs no new approval."""
    needs_approval = state.graph.steps[start.step].approval is not None and start.mode in ("work", "rework")
    return needs_approval and not state.steps[start.step].approved


def _pass_unasked(tx: Transaction, start: Start) -> None:
    """Pass work that is below every threshold: no person has to approve it."""
    attempt, summary = record_start(tx, start, ""), "no approval was needed"
    running = tx.state.steps[start.step].running
    assert running is not None
    made = OutputDigest(sha256(summary.encode()).hexdigest(), summary, size=len(summary))
    artifact = artifact_digest(tx.state, start.step, made, running)
    tx.add(e.AttemptSucceeded(tx.now, start.step, attempt, made, summary, artifact=artifact))
    record_verdict(tx, start.step, attempt, Outcome(made, summary, "pass"), "pass", unasked=True)


def record_start(tx: Transaction, start: Start, agent: str) -> int:
    """Record the start of an attempt with everything it is given; returns its number."""
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
        told=changes_to_review(state, name) if start.mode not in SIDE_MODES else (),
    )
    tx.add(_with_feedback(state, event) if state.loops else event)
    return event.attempt


def _with_feedback(state: RunState, event: e.AttemptStarted) -> e.AttemptStarted:
    """The start of an attempt, with the feedback that open loops have for it."""
    name = event.step
    loops = [state.loops[id] for id in event.loops]
    counted = tuple(loop.id for loop in loops if not loop.shares[name].counted)
    if event.mode in SIDE_MODES:
        return replace(event, counted=counted, to_address=_share_of(name, loops))
    unverified = unverified_fixes(state, name)
    new = [loop for loop in unverified if not_delivered_yet(loop, name)]
    to_verify = (loop for loop in state.loops.values() if loop.source == name and loop.state is LoopState.VALIDATING)
    return replace(
        event,
        counted=counted,
        to_address=_share_of(name, [*loops, *new]),
        must_keep_fixed=_share_of(name, [loop for loop in unverified if not not_delivered_yet(loop, name)]),
        unverified=tuple(loop.id for loop in unverified),
        verifies=tuple(loop.id for loop in to_verify),
    )


def _share_of(name: str, loops: list[Loop]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(finding for loop in loops for finding in loop.shares[name].findings))


def _agent(state: RunState, start: Start) -> str:
    """The agent for this attempt. From round 2 on, each round uses the next agent of the ladder. A judge with an agent to
    verify uses that one where it only has to verify a fix."""
    ladder = state.graph.steps[start.step].agents
    if len(ladder) < 2:
        return ladder[0] if ladder else ""
    if state.graph.steps[start.step].verifier:
        return ladder[only_verifies(state, start.step)]
    loops = [*(state.loops[id] for id in start.loops), *unverified_fixes(state, start.step)]
    rounds_before = max((loop.round - loop.delivered for loop in loops), default=0)
    return ladder[min(rounds_before, len(ladder) - 1)]


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
