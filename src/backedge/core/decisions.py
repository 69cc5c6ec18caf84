"""What a person's answer to an escalation does."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, assert_never, cast

from backedge.core import events as e
from backedge.core.accidents import one_line
from backedge.core.choosing import choice_problem, choose, option_called
from backedge.core.commands import Choice, Decide, FinishAttempt, Reclassify
from backedge.core.draft import (
    VERIFY_OPTIONS,
    WITHDRAWN,
    Draft,
    ask_person,
    close,
    end_run,
    escalate_loop,
    settle_findings,
    skip,
)
from backedge.core.errors import AlreadyClosed, IllegalCommand, NotFound
from backedge.core.judging import reroute, send_round
from backedge.core.limits import BUDGETS
from backedge.core.loops import Loop, LoopState
from backedge.core.model import ASIDE, HUMAN, Decision, Made, Outcome, Resolution, Status, Word
from backedge.core.near import nearest
from backedge.core.positions import positions_of
from backedge.core.routing import legal_targets, steps_of_phase
from backedge.core.settle import record_start
from backedge.core.skipping import skipped_for_good
from backedge.core.state import ASKED, number
from backedge.core.survey import wanted
from backedge.core.value import replace

if TYPE_CHECKING:
    from backedge.core.state import Escalation, RunState


VERDICTS: tuple[Word, ...] = ("pass", "fail", "needs_improvement")


def spelled(command: Decide) -> Decide:
    """A decision with its choice as it is spelled here: people may write Accept."""
    return replace(command, choice=command.choice.strip().casefold())


def decide_escalation(draft: Draft, command: Decide) -> None:
    """Record a decision and do what it says."""
    packet = _open_packet(draft.state, command)
    command = replace(command, choice=_meant(packet, command.choice), by=one_line(command.by))
    choice = cast("Choice", command.choice)
    loop = draft.state.loops[packet.loop] if packet.loop else None
    _require_arguments(draft.state, packet, loop, command)
    grants = choice in ("continue", "revise", "reassign", "reclassify")
    budget = packet.breach is not None and packet.breach.limit in BUDGETS
    bound = getattr(draft.state.workflow.limits, packet.breach.limit) if budget and packet.breach else 0
    draft.add(
        e.EscalationDecided(
            draft.now,
            packet.id,
            choice,
            command.by,
            command.note,
            rounds=command.rounds if grants and not budget and (loop or packet.breach) else 0,
            amount=(bound if command.amount is None else command.amount) if grants and budget else 0.0,
            option=command.option,
            target=command.target,
            phase=command.phase,
        )
    )
    who = command.by or "a person"
    match choice:
        case "cancel":
            end_run(draft, "cancelled", command.note or f"cancelled by {who}", by=who)
        case "skip":
            skip(draft, packet.loop, packet.step, who)
        case "continue" | "revise":
            if loop is not None:
                _repeat_round(draft, loop)
        case "reassign":
            assert loop is not None and command.target is not None
            _reassign(draft, loop, command.target)
        case "reclassify":
            assert loop is not None and command.phase is not None
            _reclassify_all(draft, loop, command.phase, command.by)
        case "accept":
            assert loop is not None
            settle_findings(draft, loop, Status.ACCEPTED)
            close(draft, loop, LoopState.ACCEPTED, Resolution("accepted", by=who, text=command.note))
        case "resolve" if loop is None:
            return  # a person did the step itself: `done_by_hand` says what
        case "resolve":
            assert loop is not None
            _resolve(draft, draft.state.loops[loop.id], command, who)
        case _:
            assert_never(choice)


def _resolve(draft: Draft, loop: Loop, command: Decide, who: str) -> None:
    """Close a loop with a person's answer, or do what the option says that they chose."""
    option = option_called(loop, command.option) if command.option else None
    if option is not None and (option.rework or option.accept):
        choose(draft, loop, option, who, command.note)
        return
    said = loop.answers or positions_of(loop)
    if option is not None and loop.choosing:
        draft.add(e.ChoiceMade(draft.now, loop.id, option.option, who, command.note))
    resolution = Resolution("resolved", who, command.note, option.option if option else command.option, said)
    close(draft, loop, LoopState.RESOLVED, resolution)


def done_by_hand(draft: Draft, command: Decide) -> FinishAttempt | None:
    """The outcome of a step that a person did, as their decision says it; its attempt begins and ends here."""
    packet = draft.state.escalation(command.escalation)
    assert packet is not None
    if packet.step is None or packet.reason != ASKED or command.choice != "resolve":
        return None
    # Nothing keeps a person's work from being used: what is no longer wanted of them is withdrawn before they answer.
    start = wanted(draft.state, packet.step)
    assert start is not None
    said = command.note.strip() or (command.option or "").strip()
    attempt = record_start(draft, start, HUMAN)
    digest = sha256(json.dumps(said).encode()).hexdigest()
    outcome = Outcome(Made(digest, said, size=len(said)), summary=command.note)
    if start.mode == "answer":
        outcome = replace(outcome, answer=said)
    if start.mode == "decide":
        outcome = replace(outcome, decision=_decision_by_hand(draft.state.loops[start.loops[0]], command))
    if draft.state.graph.is_judge(packet.step) and start.mode not in ASIDE:
        outcome = replace(outcome, verdict=_verdict(command))
    return FinishAttempt(packet.step, attempt, outcome)


def _decision_by_hand(loop: Loop, command: Decide) -> Decision:
    decision = Decision(command.option or command.note, command.note if command.option else "")
    problem = choice_problem(loop, decision)
    if problem is not None:
        raise IllegalCommand(f"{problem} (--option)")
    return decision


def _open_packet(state: RunState, command: Decide) -> Escalation:
    packet = state.escalation(command.escalation)
    if packet is None:
        opened = ", ".join(state.escalations) or "none"
        raise NotFound(f"escalation {command.escalation!r} is unknown in run {state.run!r}: open are {opened}")
    if packet.decided is not None:
        first = packet.decided
        if first.choice == WITHDRAWN:
            raise AlreadyClosed(f"{packet.id} was withdrawn: {first.note}")
        who = f" by {first.by}" if first.by else ""
        raise AlreadyClosed(f"{packet.id} was decided before: {first.choice}{who}; the first decision stands")
    if _meant(packet, command.choice) not in packet.options:
        raise IllegalCommand(
            f"{command.choice!r} is no choice for {packet.id}: {nearest(command.choice, packet.options)}"
        )
    return packet


def _meant(packet: Escalation, word: str) -> str:
    """The choice that a word stands for: an approval may be called one."""
    return {"approve": "continue", "reject": "cancel"}.get(word, word) if packet.asks_approval else word


def _require_arguments(state: RunState, packet: Escalation, loop: Loop | None, command: Decide) -> None:
    if command.rounds < 1:
        raise IllegalCommand(f"rounds is {command.rounds}: expected 1 or more")
    if command.amount is not None and not 0 < command.amount < float("inf"):
        raise IllegalCommand(f"amount is {command.amount}: expected more than 0")
    match command.choice:
        case "revise" if not command.note.strip():
            raise IllegalCommand("revise needs a note: say the new approach in words")
        case "resolve" if not _says_something(command) and (packet.reason == ASKED or loop is not None):
            if packet.options == VERIFY_OPTIONS:
                return  # whoever raised it says that it is fixed
            raise IllegalCommand("resolve needs an answer: give an option or a note")
        case "resolve" if command.option and loop and loop.feedback and loop.feedback.options:
            offered = [option.option for option in loop.feedback.options]
            if option_called(loop, command.option) is None:
                hint = nearest(command.option, offered)
                raise IllegalCommand(f"option {command.option!r} was not offered: {hint}; a note takes free text")
        case "resolve" if packet.step and state.graph.is_judge(packet.step):
            if _verdict(command) is None:
                got = repr(command.option) if command.option else "no option"
                raise IllegalCommand(f"{packet.step!r} needs a verdict as the option, got {got}: {', '.join(VERDICTS)}")
            if _verdict(command) == "fail" and not command.note.strip():
                raise IllegalCommand("a fail needs a note: say what is wrong")
        case "reassign":
            _require_target(state, loop, command.target)
        case "reclassify" if command.phase not in state.graph.phases:
            raise IllegalCommand(
                f"phase {command.phase!r} is unknown: {nearest(command.phase, state.graph.phases)}"
                if command.phase
                else f"reclassify needs a phase: say which with --phase ({', '.join(state.graph.phases)})"
            )


def _verdict(command: Decide) -> Word | None:
    """The verdict that a person gives as the option; capitals do not matter."""
    said = (command.option or "").strip().lower()
    return next((word for word in VERDICTS if word == said), None)


def _says_something(command: Decide) -> bool:
    return bool(command.note.strip() or (command.option or "").strip())


def _require_target(state: RunState, loop: Loop | None, target: str | None) -> None:
    assert loop is not None
    able = (*_able(state, loop.source), HUMAN)
    legal = tuple(to for to in able if not skipped_for_good(state, to))
    if target in legal:
        return
    if target in able:
        known = f"{target!r} is skipped: use one of {', '.join(legal)}"
    elif target and target in state.steps and target != loop.source and not state.graph.is_judge(target):
        known = f"{target!r} comes after what {loop.source!r} complains about: use one of {', '.join(legal)}"
    else:
        known = f"got {target!r}: {nearest(target, legal)}" if target else "say which with --target STEP"
    raise IllegalCommand(f"reassign needs a target, {known}")


def _able(state: RunState, source: str) -> tuple[str, ...]:
    """The steps that a person can send a loop to: peers too, but what comes after a step did not spoil it."""
    graph = state.graph
    if graph.workflow.scope == "any" or source == HUMAN:
        return legal_targets(graph, source)
    after = graph.downstream[source].union(*(graph.downstream[subject] for subject in graph.steps[source].judges))
    return tuple(name for name in graph.steps if name != source and not graph.is_judge(name) and name not in after)


def _repeat_round(draft: Draft, loop: Loop) -> None:
    """Go on where the loop stopped: what was routed and not delivered is delivered, to whom a person has named since;
    a finished round is verified, or asked again."""
    reroute(draft, draft.state.loops[loop.id])
    loop = draft.state.loops[loop.id]
    if loop.state is LoopState.VALIDATING:
        return
    if all(share.done for share in loop.shares.values()):
        shares = {target: share.findings for target, share in loop.shares.items()}
        draft.add(e.FeedbackRouted(draft.now, loop.id, shares))
    elif HUMAN in loop.shares and not any(packet.loop == loop.id for packet in draft.state.escalations.values()):
        ask_person(draft, loop)


def _reassign(draft: Draft, loop: Loop, target: str) -> None:
    ids = loop.given
    draft.add(e.FeedbackRouted(draft.now, loop.id, {target: ids}, {"decision": ids}))
    if target == HUMAN:
        escalate_loop(draft, draft.state.loops[loop.id], None, "reassigned to a person")


def _reclassify_all(draft: Draft, loop: Loop, phase: str, by: str) -> None:
    ids = loop.given
    for id in ids:
        _record_phase(draft, id, phase, by)
    send_round(draft, draft.state.loops[loop.id], ids)


def _record_phase(draft: Draft, finding: int, phase: str, by: str) -> None:
    """Record the phase that injected a finding, and its steps: what a person says is the truth."""
    graph, judge = draft.state.graph, draft.state.findings[finding].found_by
    steps = steps_of_phase(graph, judge, phase) if judge in graph.steps else ()
    draft.add(e.FindingReclassified(draft.now, finding, phase, by, steps))


def reclassify(draft: Draft, command: Reclassify) -> None:
    """Record the phase that injected a finding; what is not delivered yet goes there."""
    tracked = draft.state.findings.get(number(command.finding))
    if tracked is None or tracked.name != command.finding:
        raise NotFound(f"finding {command.finding!r} is unknown in run {draft.state.run!r}")
    if command.phase not in draft.state.graph.phases:
        raise IllegalCommand(f"phase {command.phase!r} is unknown: {nearest(command.phase, draft.state.graph.phases)}")
    _record_phase(draft, tracked.id, command.phase, one_line(command.by))
    loop = draft.state.loops.get(tracked.loop or "")
    # What is escalated stays as it is until the decision.
    if loop is not None and loop.state is not LoopState.ESCALATING:
        reroute(draft, loop)
