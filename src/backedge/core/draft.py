"""The events of one decision as they are collected, with the state that they lead to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import assert_never

from backedge.core import events as e
from backedge.core.contest import left_over
from backedge.core.loops import Loop, LoopState
from backedge.core.model import HUMAN, Breach, Question, Resolution, Status
from backedge.core.on_breach import send_to_planner
from backedge.core.run_state import NO_APPROVER
from backedge.core.state import ASKED, RunState, evolve


class Draft:
    """Collects events; lives only as long as one decision. All of them are appended at once, or none: between two
    events of one decision the state is not a legal one."""

    def __init__(self, state: RunState, now: float, room: int) -> None:
        # A clock that jumps back must not make events older than those before them.
        self.now = max(now, state.last_at)
        self.state = state
        self.room = room
        self.mentions: Mapping[str, Collection[str]] = {}
        """The steps whose artifacts mention a requirement that the command is about."""
        self.events: list[e.Event] = []

    def add(self, event: e.Event) -> None:
        self.events.append(event)
        self.state = evolve(self.state, event)

    def next_loop(self) -> str:
        return f"L-{self.state.opened_loops + 1}"

    def next_escalation(self) -> str:
        return f"E-{self.state.opened_escalations + 1}"


WITHDRAWN = "withdrawn"
"""How a question ends that nobody has to answer any more; the note says why."""
LOOP_OPTIONS = ("continue", "revise", "reassign", "reclassify", "resolve", "accept", "skip", "cancel")
ASKED_OPTIONS = ("resolve", "accept", "skip", "cancel")
VERIFY_OPTIONS = ("resolve", "continue", "revise", "reassign", "accept", "cancel")
STEP_OPTIONS = ("continue", "skip", "cancel")
DO_OPTIONS = ("resolve", "skip", "cancel")
RUN_OPTIONS = ("continue", "cancel")


def escalate_loop(draft: Draft, loop: Loop, breach: Breach | None, reason: str = "") -> None:
    """Hand a loop to a person, or do with it what the workflow says of breaches."""
    options: tuple[str, ...] = LOOP_OPTIONS
    if not any(share.findings for share in loop.shares.values()):
        options = tuple(option for option in options if option != "reclassify")
    _escalate(draft, reason or _hit(breach), options, loop=loop.id, breach=breach)


def _hit(breach: Breach | None) -> str:
    """Which limit was hit, and by what; the two numbers of this one are of two kinds."""
    if breach is not None and breach.limit == "diverging":
        wrote, removed = f"{breach.count:g}", f"{breach.bound:g}"
        return f"limit {breach}: the last two fixes wrote {wrote} new findings and removed {removed}"
    return f"limit {breach}"


def ask_person(draft: Draft, loop: Loop) -> None:
    """Put feedback to a person into the inbox: a question, not a breach. What was asked of the same loop before and
    lies there still is part of it."""
    for packet in [each for each in draft.state.escalations.values() if each.loop == loop.id and each.reason == ASKED]:
        draft.add(e.EscalationDecided(draft.now, packet.id, WITHDRAWN, note="a newer question took its place"))
    draft.add(e.EscalationOpened(draft.now, draft.next_escalation(), ASKED, ASKED_OPTIONS, loop=loop.id))


def ask_to_do(draft: Draft, step: str, about: Question) -> None:
    """A person does this step: what they answer is its outcome."""
    draft.add(e.EscalationOpened(draft.now, draft.next_escalation(), ASKED, DO_OPTIONS, step=step, about=about))


def ask_to_verify(draft: Draft, loop: Loop) -> None:
    """A person's feedback to a step without judges: that person says whether the fix is one."""
    draft.add(
        e.EscalationOpened(
            draft.now, draft.next_escalation(), "the fix waits for your verification", VERIFY_OPTIONS, loop=loop.id
        )
    )


def ask_approval(draft: Draft, step: str, about: Question) -> None:
    """A step that runs only with approval could start: a person says whether it does."""
    reason = f"{NO_APPROVER}: {step!r} runs only if a person approves it; continue approves, cancel rejects"
    draft.add(e.EscalationOpened(draft.now, draft.next_escalation(), reason, STEP_OPTIONS, step=step, about=about))


def escalate_step(draft: Draft, step: str, breach: Breach | None, reason: str) -> None:
    _escalate(draft, reason, STEP_OPTIONS, step=step, breach=breach)


def escalate_run(draft: Draft, breach: Breach) -> None:
    _escalate(draft, f"budget {breach} is used up", RUN_OPTIONS, breach=breach)


def _escalate(
    draft: Draft,
    reason: str,
    options: tuple[str, ...],
    loop: str | None = None,
    step: str | None = None,
    breach: Breach | None = None,
) -> None:
    escalation = draft.next_escalation()
    draft.add(e.EscalationOpened(draft.now, escalation, reason, options, loop, step, breach))
    if breach is not None:
        apply_policy(draft, escalation, reason)


def apply_policy(draft: Draft, escalation: str, reason: str) -> None:
    """What the workflow's `on_breach` says about an escalation that a limit opened."""
    packet = draft.state.escalations[escalation]
    match draft.state.workflow.on_breach:
        case "manual":
            return
        case "error":
            draft.add(e.EscalationDecided(draft.now, escalation, "error", by="on_breach"))
            end_run(draft, "failed", reason, by="on_breach")
        case "skip":
            # A budget has no source that could be passed over: a person decides.
            if packet.loop or packet.step:
                draft.add(e.EscalationDecided(draft.now, escalation, "skip", by="on_breach"))
                skip(draft, packet.loop, packet.step, "on_breach")
        case "replan":
            send_to_planner(draft, packet)
        case _:
            assert_never(draft.state.workflow.on_breach)


def skip(draft: Draft, loop: str | None, step: str | None, by: str) -> None:
    """Defer the findings and pass over the source, or the step that cannot be done."""
    if loop is not None:
        give_up(draft, draft.state.loops[loop], by)
        return
    assert step is not None
    for waiting in list(draft.state.loops):
        other = draft.state.loops.get(waiting)
        if other is not None and step in other.shares and not other.shares[step].done:
            give_up(draft, other, by)
    pass_over(draft, step, by)


def give_up(draft: Draft, loop: Loop, by: str) -> None:
    _defer(draft, loop, by)
    if loop.source != HUMAN:
        pass_over(draft, loop.source, by)


def pass_over(draft: Draft, step: str, by: str) -> None:
    """Go on without a step; nobody is left to verify what it asked for."""
    draft.add(e.StepPassedOver(draft.now, step, f"skipped by {by}"))
    for loop in [each for each in draft.state.loops.values() if each.source == step]:
        _defer(draft, loop, by)
    standing = (*draft.state.steps[step].open_findings, *draft.state.steps[step].unmentioned)
    if standing:
        draft.add(e.FindingsSettled(draft.now, standing, Status.DEFERRED))
    for judge in draft.state.graph.judges_of[step]:
        if not draft.state.steps[judge].passed_over and _judges_nothing(draft.state, judge):
            pass_over(draft, judge, by)


def _judges_nothing(state: RunState, judge: str) -> bool:
    """Whether all that a judge is for was passed over before it was there: its fail would undo that decision."""
    return all(state.steps[each].left_out for each in state.graph.steps[judge].judges)


def _defer(draft: Draft, loop: Loop, by: str) -> None:
    settle_findings(draft, loop, Status.DEFERRED)
    close(draft, loop, LoopState.ACCEPTED, Resolution("accepted", by=by, text="skipped"))


def settle_findings(draft: Draft, loop: Loop, status: Status) -> None:
    """Say by decision what becomes of all findings of a loop that still stand."""
    shared = {id for share in loop.shares.values() for id in share.findings}
    source = draft.state.steps.get(loop.source)
    own = (*source.open_findings, *source.unmentioned) if source and loop.by_verdict else ()
    standing = sorted(shared.union(own))
    ids = tuple(id for id in standing if draft.state.findings[id].needs_answer)
    if ids:
        draft.add(e.FindingsSettled(draft.now, ids, status))


def close(draft: Draft, loop: Loop, state: LoopState, resolution: Resolution) -> None:
    """Close a loop, and whatever questions about it still lie in the inbox."""
    for packet in [each.id for each in draft.state.escalations.values() if each.loop == loop.id]:
        by, note = resolution.by or "verification", resolution.text
        draft.add(e.EscalationDecided(draft.now, packet, state.value, by=by, note=note))
    end_dispute(draft, loop.id)
    draft.add(e.LoopClosed(draft.now, loop.id, state, resolution))


def end_dispute(draft: Draft, loop: str, now: tuple[int, ...] = ()) -> None:
    """Settle what the last dispute of a loop left, but for what is disputed now."""
    for status, ids in left_over(draft.state, loop, now).items():
        draft.add(e.FindingsSettled(draft.now, ids, status))


def end_run(draft: Draft, outcome: str, reason: str, by: str) -> None:
    """End the run by decision or policy: what is open is closed with it, and the work stays."""
    assert outcome in ("failed", "cancelled")
    state = LoopState.FAILED if outcome == "failed" else LoopState.CANCELLED
    # Who did it stands beside it: only a reason is worth more words.
    said = "" if reason in (outcome, f"{outcome} by {by}") else reason
    for loop in list(draft.state.loops.values()):
        close(draft, loop, state, Resolution(state.value, by=by, text=said))
    for escalation in list(draft.state.escalations):
        draft.add(e.EscalationDecided(draft.now, escalation, state.value, by=by, note=said))
    draft.add(e.RunEnded(draft.now, "failed" if outcome == "failed" else "cancelled", reason))
