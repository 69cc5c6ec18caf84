"""Folds the events of escalations: they are opened, become overdue, are reminded of, expire, and are decided."""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.evidence.values import RestoreRule
from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.model import HUMAN
from backedge.core.state.loops import reports_made
from backedge.core.state.run import ASKED, PROVIDER_WAIT, REPEAT, Escalation, RunState, number, with_loop, with_step
from backedge.core.state.waits import without_waiter
from backedge.core.value import replace
from backedge.core.workflow.limits import BUDGETS, OF_THE_RUN

GRANTING = ("continue", "revise", "reassign", "reclassify", "rollback")
"""The decisions after which a loop goes on, with more rounds."""


def escalation_opened(state: RunState, event: e.EscalationOpened) -> RunState:
    packet = Escalation(
        event.escalation,
        event.reason,
        event.options,
        event.at,
        event.loop,
        event.step,
        event.breach,
        event.about,
        event.protected,
        event.refused,
        event.vote,
        event.restores,
        event.for_roles,
    )
    state = replace(
        state,
        escalations={**state.escalations, packet.id: packet},
        opened_escalations=number(packet.id),
    )
    if event.loop is not None:
        state = _person_asked(state, event.loop) if event.breach is None else state
        loop = replace(state.loops[event.loop], escalation=packet.id, breach=event.breach)
        if event.reason != ASKED:
            # A loop whose fix failed waits for a person already.
            loop = loop if loop.state is LoopState.ESCALATING else loop.on("escalated")
            state = without_waiter(state, loop)
        return with_loop(state, loop)
    if event.step is not None and (event.breach is not None or event.failed):
        # The fix failed, so the loops that wait for this step now wait for the decision about it.
        waiting = [each for each in state.loops.values() if _fixing(each, event.step)]
        for loop in [each for each in waiting if event.failed is None or each.id in event.failed]:
            failed = replace(loop.on("fix failed"), escalation=packet.id)
            state = without_waiter(with_loop(state, failed), failed)
    return state


def _person_asked(state: RunState, id: str) -> RunState:
    """Asking a person is a round of the loop. It is counted when the question is asked."""
    loop = state.loops[id]
    share = loop.shares.get(HUMAN)
    if share is None or share.counted:
        return state
    pair = (loop.source, HUMAN)
    updated = replace(
        loop,
        round=loop.round + (not loop.delivered),
        delivered=True,
        shares={**loop.shares, HUMAN: replace(share, counted=True)},
    )
    # What a person does is not rolled back.
    fixes = {other: fix for other, fix in state.fixes.items() if other != id}
    state = replace(with_loop(state, updated), rounds=state.rounds + 1, fixes=fixes)
    return replace(state, pairs={**state.pairs, pair: state.pairs.get(pair, 0) + 1})


def loop_overdue(state: RunState, event: e.LoopOverdue) -> RunState:
    loop = state.loops[event.loop]
    state = with_loop(state, replace(loop.on("timed out"), breach=event.breach))
    questions = (each for each in state.escalations.values() if each.loop == loop.id and each.reason == ASKED)
    packet = replace(next(each for each in questions if each.breach is None), breach=event.breach)
    return without_waiter(replace(state, escalations={**state.escalations, packet.id: packet}), loop)


def escalation_reminded(state: RunState, event: e.EscalationReminded) -> RunState:
    packet = state.escalations[event.escalation]
    return _with_packet(state, replace(packet, reminded=(*packet.reminded, *event.after)))


def escalation_expired(state: RunState, event: e.EscalationExpired) -> RunState:
    return _with_packet(state, replace(state.escalations[event.escalation], expired=True))


def _with_packet(state: RunState, packet: Escalation) -> RunState:
    return replace(state, escalations={**state.escalations, packet.id: packet})


def _fixing(loop: Loop, step: str) -> bool:
    share = loop.shares.get(step)
    return loop.state is LoopState.RESOLVING and share is not None and share.counted and not share.done


def escalation_decided(state: RunState, event: e.EscalationDecided) -> RunState:
    packet = state.escalations[event.escalation]
    open_ones = {id: other for id, other in state.escalations.items() if id != packet.id}
    state = replace(
        state,
        escalations=open_ones,
        decided_escalations=state.decided_escalations.set(number(packet.id), replace(packet, decided=event)),
    )
    # An answer that grants a round is advice for it: the loop goes on.
    continues = event.choice in GRANTING or _is_advice(event)
    limit = packet.breach.limit if packet.breach else ""
    if continues and limit in OF_THE_RUN:
        more = event.amount if limit in BUDGETS else event.rounds
        state = replace(state, grants={**state.grants, limit: state.grants.get(limit, 0) + more})
    if packet.step is not None and event.choice == "continue":
        step = state.steps[packet.step]
        step = replace(step, approved=step.approved or packet.asks_approval, rejudged_at=0)
        if limit == REPEAT:
            step = replace(step, repeats_granted=step.repeats_granted + event.rounds)
        else:
            granted = 0 if limit == PROVIDER_WAIT else event.rounds
            step = replace(step, errors_granted=step.errors_granted + granted, retry_at=event.at, limits_in_a_row=0)
        state = with_step(state, packet.step, step)
    if packet.restores and state.restoring is not None:
        rule: RestoreRule = "anyway" if event.choice == "rollback" else "never"
        state = replace(state, restoring=replace(state.restoring, rule=rule))
    loops = dict(state.loops)
    if packet.vote in loops and event.choice in ("continue", "resolve", "skip"):
        loops[packet.vote] = _choosing_again(loops[packet.vote], open_ones)
    for id, loop in loops.items():
        if loop.escalation == packet.id:
            loop = replace(loop, escalation=next((other for other in open_ones if open_ones[other].loop == id), None))
            if continues and loop.state is LoopState.ESCALATING:
                loop = loop.on("continued")
                if event.choice == "continue" and loop.unverified:
                    loop = loop.on("fix done")
            if event.choice == "replan":
                loop = _back_to_source(loop)
            loops[id] = _granted(state, loop, event) if packet.loop else loop
    return replace(state, loops=loops, replanned=state.replanned or event.choice == "replan")


def _choosing_again(loop: Loop, escalations: dict[str, Escalation]) -> Loop:
    """A choice that goes on, unless a person decides about it: one of its targets tries again, has an answer, or is
    skipped."""
    asked = any(each.loop == loop.id and each.reason != ASKED for each in escalations.values())
    return loop.on("continued") if loop.state is LoopState.ESCALATING and not asked else loop


def _back_to_source(loop: Loop) -> Loop:
    """No step works on the loop any more. Its source verifies it again after the new plan was carried out."""
    done = {target: replace(share, done=True) for target, share in loop.shares.items()}
    return replace(loop.resumed().on("fix done"), shares=done)


def _is_advice(event: e.EscalationDecided) -> bool:
    return event.choice == "resolve" and event.rounds > 0


def _advice(event: e.EscalationDecided) -> str:
    """What the steps that rework are told about a decision. For advice, that includes the option that was chosen."""
    chosen = event.option if _is_advice(event) and event.option else ""
    return ": ".join(part for part in (chosen, event.note) if part)


def _granted(state: RunState, loop: Loop, event: e.EscalationDecided) -> Loop:
    if event.choice == "revise":
        return replace(
            loop,
            waived={
                "loop": loop.round,
                **{f"pair:{target}": state.pairs.get((loop.source, target), 0) for target in loop.shares},
                **{f"step:{target}": state.rounds_of(target) for target in loop.shares},
            },
            granted=0,
            longest_streak=0,
            failures=0,
            revised_at=reports_made(state.steps.get(loop.source), loop),
            unchanged_reworks=0,
            oscillations=0,
            balance=(),
            advice=event.note,
        )
    return replace(
        loop,
        granted=loop.granted + event.rounds,
        granted_until=loop.round + event.rounds,
        advice=_advice(event) or loop.advice,
    )
