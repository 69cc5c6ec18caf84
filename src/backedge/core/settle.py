"""The correction plan at work: after every command, what is ready to happen happens, in the same append."""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.draft import (
    WITHDRAWN,
    Draft,
    apply_policy,
    ask_approval,
    ask_to_do,
    ask_to_verify,
    close,
    end_run,
    escalate_loop,
    escalate_run,
    escalate_step,
)
from backedge.core.limits import BUDGETS, first_breach
from backedge.core.loops import Loop, LoopState
from backedge.core.model import ASIDE, HUMAN, Breach, Resolution
from backedge.core.pending import checked_first, overdue, settled, stuck
from backedge.core.positions import outcome_so_far
from backedge.core.questions import outdated, question_of
from backedge.core.reminders import unverified
from backedge.core.run_state import under_way
from backedge.core.shapes import input_versions, skips, undecided, unmet, upstream_settled
from backedge.core.skipping import go_past_skipped
from backedge.core.staleness import consumed_by
from backedge.core.state import RunState
from backedge.core.survey import Start, passes, ready


def settle(draft: Draft) -> None:
    """Tell waiters, close what is verified, escalate what is late, start what there is room for, end what is done."""
    while draft.state.ended is None:
        if draft.state.escalations and _withdraw_questions(draft):
            continue
        if draft.state.loops and (_escalate_overdue(draft) or _tell_waiters(draft) or _close_verified(draft)):
            continue
        if go_past_skipped(draft):
            continue
        if draft.room > 0 and _start_ready(draft):
            continue
        if draft.state.busy and _part_waiters(draft):
            continue
        break
    if draft.state.ended is None and not draft.state.busy:
        if settled(draft.state):
            _finish(draft)
        elif stuck(draft.state):
            draft.add(
                e.EscalationOpened(
                    draft.now, draft.next_escalation(), "nothing can start, and nothing says why", ("cancel",)
                )
            )


def _finish(draft: Draft) -> None:
    if draft.state.compromised:
        draft.add(e.RunEnded(draft.now, "accepted"))
    else:
        draft.add(e.RunEnded(draft.now, "verified" if draft.state.graph.has_judges else "done"))


def _withdraw_questions(draft: Draft) -> bool:
    """Take back what a person was asked to do, or to approve, when that is no longer what the step would do."""
    for packet in draft.state.escalations.values():
        reason = outdated(draft.state, packet)
        if reason is not None:
            draft.add(e.EscalationDecided(draft.now, packet.id, WITHDRAWN, note=reason))
            return True
    return False


def _escalate_overdue(draft: Draft) -> bool:
    for packet, bound in overdue(draft.state, draft.now):
        assert packet.loop is not None
        breach = Breach("response_timeout", draft.now - packet.opened_at, bound)
        draft.add(e.LoopOverdue(draft.now, packet.loop, breach))
        apply_policy(draft, packet.id, f"limit {breach}")
        return True
    return False


def _tell_waiters(draft: Draft) -> bool:
    """Give attempts that wait in mid-work what they wait for, with their inputs as they are now."""
    state = draft.state
    for loop in state.loops.values():
        if loop.state is not LoopState.VALIDATING or loop.source == HUMAN:
            continue
        running = state.steps[loop.source].running
        if running is None or loop.id not in running.awaits or loop.told:
            continue
        if upstream_settled(state, loop.source):
            _tell_waiter(draft, loop)
            return True
    return False


def _tell_waiter(draft: Draft, loop: Loop) -> None:
    running = draft.state.steps[loop.source].running
    assert running is not None
    versions = input_versions(draft.state, loop.source)
    draft.add(e.WaiterTold(draft.now, loop.id, loop.source, running.attempt, versions))


def _part_waiters(draft: Draft) -> bool:
    """Attempts that wait in mid-work for each other would do so for ever: one of them is told what there is."""
    state = draft.state
    if not state.loops:
        return False
    running = [attempt for _, attempt in under_way(state)]
    if not all(attempt.awaits for attempt in running) or state.escalations or state.paused_by is not None:
        return False
    if ready(state, now=float("inf"), most=1):
        return False
    loops = [state.loops[id] for attempt in running for id in attempt.awaits]
    for loop in loops:
        if loop.state is LoopState.VALIDATING and not loop.told:
            _tell_waiter(draft, loop)
            return True
    names = ", ".join(dict.fromkeys(loop.source for loop in loops))
    escalate_loop(draft, loops[0], None, f"attempts wait for each other: {names}")
    return True


def _close_verified(draft: Draft) -> bool:
    """A person's feedback is verified by the judges of its targets; without any, by that person."""
    state = draft.state
    for loop in state.loops.values():
        if loop.source != HUMAN or loop.state is not LoopState.VALIDATING:
            continue
        judges = [
            judge
            for target in loop.shares
            if target != HUMAN
            for judge in state.graph.judges_of[target]
            if not state.steps[judge].passed_over and not skips(state, judge)
        ]
        if loop.answers_only:
            close(draft, loop, LoopState.RESOLVED, outcome_so_far(loop, "resolved"))
            return True
        if not judges or not any(share.changed for share in loop.shares.values()):
            # Judges that passed this very version before were not asked about what this person sees in it.
            ask_to_verify(draft, loop)
            return True
        if all(state.steps[judge].running is None and passes(state, judge) for judge in judges):
            names = ", ".join(dict.fromkeys(judges))
            close(draft, loop, LoopState.RESOLVED, Resolution("resolved", text=f"passed by {names}"))
            return True
    return False


def _start_ready(draft: Draft) -> bool:
    """Start steps while there is room; True if something else changed and the rest has to be looked at again."""
    starts = ready(draft.state, draft.now, draft.room)
    for start in starts:
        if draft.room <= 0:
            return False
        if checked_first(draft.state, start):
            continue
        if not start_attempt(draft, start) or (draft.state.loops and start is not starts[-1]):
            # What a loop waits for may start before what it needs is settled, but not beside it.
            return True
    return False


def start_attempt(draft: Draft, start: Start) -> bool:
    """Start one attempt, unless its condition has to be looked at first, or a limit forbids it: then that is
    escalated instead."""
    if start.mode not in ASIDE and undecided(draft.state, start.step):
        missed = unmet(draft.state, draft.state.graph.conditions[start.step])
        draft.add(e.ConditionSeen(draft.now, start.step, missed is None, missed.text if missed else ""))
        return False
    breach = first_breach(draft.state, draft.now, step=start.step)
    if breach is not None:
        if breach.limit in BUDGETS:
            escalate_run(draft, breach)
        else:
            error = draft.state.steps[start.step].last_error
            escalate_step(draft, start.step, breach, f"agent of {start.step!r} keeps breaking: {error}")
        return False
    for id in start.loops:
        loop = draft.state.loops[id]
        if not loop.shares[start.step].charged:
            breach = first_breach(draft.state, draft.now, loop=loop)
            if breach is not None:
                escalate_loop(draft, loop, breach)
                return False
    if _lacks_approval(draft.state, start):
        ask_approval(draft, start.step, question_of(draft.state, start))
        return False
    agent = _agent(draft.state, start)
    if agent == HUMAN:
        ask_to_do(draft, start.step, question_of(draft.state, start))
        return False
    record_start(draft, start, agent)
    draft.room -= 1
    return True


def _lacks_approval(state: RunState, start: Start) -> bool:
    """Whether a person has to approve first. A retry after an error was approved with the first try."""
    asks = state.graph.steps[start.step].approval is not None and start.mode in ("work", "rework")
    return asks and not state.steps[start.step].approved


def record_start(draft: Draft, start: Start, agent: str) -> int:
    """Record that an attempt has started; returns its number."""
    attempt = draft.state.steps[start.step].attempts + 1
    inputs, cause = input_versions(draft.state, start.step), _cause(draft.state, start)
    draft.add(e.AttemptStarted(draft.now, start.step, attempt, start.mode, agent, inputs, start.loops, cause))
    return attempt


def _agent(state: RunState, start: Start) -> str:
    """Who does it: from round 2 on the next one up the ladder."""
    ladder = state.graph.steps[start.step].agents
    if len(ladder) < 2:
        return ladder[0] if ladder else ""
    loops = [*(state.loops[id] for id in start.loops), *unverified(state, start.step)]
    rung = max((loop.round - loop.delivered for loop in loops), default=0)
    return ladder[min(rung, len(ladder) - 1)]


def _cause(state: RunState, start: Start) -> tuple[str, ...]:
    """The loops but for which this attempt would not be made."""
    artifact = state.steps[start.step].artifact
    if artifact is None:
        return start.loops
    cause = dict.fromkeys(start.loops)
    for need, digest in consumed_by(state, start.step).items():
        made = state.steps[need].artifact
        if made is not None and artifact.consumed.get(need) != digest:
            cause.update(dict.fromkeys(made.cause))
    return tuple(cause)


__all__ = ["end_run", "input_versions", "settle", "start_attempt"]
