"""What a person's answer to an escalation does."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import assert_never, cast

from backedge.core import events as e
from backedge.core.commands import Choice, Decide, FinishAttempt, Reclassify
from backedge.core.errors import AlreadyClosed, IllegalCommand, NotFound
from backedge.core.escalation.opening import PROTECTED_OPTIONS, VERIFY_OPTIONS, WITHDRAWN, ask_person, escalate_loop
from backedge.core.escalation.options import HISTORY, asks_verdict, is_measured
from backedge.core.escalation.packet import unknown_escalation
from backedge.core.evidence.protected import rejections
from backedge.core.feedback.closing import close_loop, end_run, settle_findings, skip_by_decision
from backedge.core.feedback.judging import record_verdict, reroute_reclassified, send_round, verdict_loop
from backedge.core.feedback.loop import Loop, LoopState, positions_by_target
from backedge.core.feedback.offers import find_option, offered_options
from backedge.core.feedback.raising import raise_feedback
from backedge.core.feedback.rollback import refusal, roll_back
from backedge.core.feedback.routing import legal_targets, steps_of_phase
from backedge.core.feedback.voting import choice_problem, choose, skip_target, take_position
from backedge.core.findings.verdicts import phases_meant
from backedge.core.model import (
    HUMAN,
    SIDE_MODES,
    Decision,
    Feedback,
    Finding,
    Kind,
    Outcome,
    OutputDigest,
    Resolution,
    Status,
    VerdictWord,
)
from backedge.core.scheduling.scheduler import passes, start_wanted
from backedge.core.scheduling.settle import record_start
from backedge.core.scheduling.staleness import permanently_skipped
from backedge.core.state.escalations import GRANTING
from backedge.core.state.run import ASKED, Escalation, RunState, number
from backedge.core.suggestions import did_you_mean
from backedge.core.text import printable_line
from backedge.core.transaction import Transaction
from backedge.core.value import replace
from backedge.core.workflow.limits import BUDGETS

VERDICTS: tuple[VerdictWord, ...] = ("pass", "fail", "needs_improvement")


def with_plain_choice(command: Decide) -> Decide:
    """A decision with its choice in lower case: people may write Accept."""
    return replace(command, choice=command.choice.strip().casefold())


def decide_escalation(tx: Transaction, command: Decide) -> None:
    """Record a decision and carry it out."""
    packet = _open_packet(tx.state, command)
    command = replace(in_own_words(tx.state, command), by=printable_line(command.by))
    choice = cast("Choice", command.choice)
    loop = tx.state.loops[packet.loop] if packet.loop else None
    _require_arguments(tx.state, packet, loop, command)
    advises = choice == "resolve" and loop is not None and _is_advice(tx.state, loop, command)
    if advises and loop is not None:
        command = replace(command, rounds=int(loop.state is LoopState.ESCALATING))
    grants = choice in GRANTING or advises
    budget = packet.breach is not None and packet.breach.limit in BUDGETS
    bound = getattr(tx.state.workflow.limits, packet.breach.limit) if budget and packet.breach else 0
    tx.add(
        e.EscalationDecided(
            tx.now,
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
    by = command.by or "a person"
    match choice:
        case "cancel":
            end_run(tx, "cancelled", command.note or f"cancelled by {by}", by=by)
        case "skip" if packet.vote is not None and packet.step is not None:
            skip_target(tx, packet.vote, packet.step, f"skipped by {by}")
        case "skip":
            skip_by_decision(tx, packet.loop, packet.step, by)
        case "continue" | "revise":
            if loop is not None:
                _repeat_round(tx, loop)
        case "reassign":
            assert loop is not None and command.target is not None
            _reassign(tx, loop, command.target)
        case "reclassify":
            assert loop is not None and command.phase is not None
            _reclassify_all(tx, loop, command.phase, command.by)
        case "rollback":
            if loop is not None:
                roll_back(tx, loop, by)
        case "accept":
            assert loop is not None
            settle_findings(tx, loop, Status.ACCEPTED)
            close_loop(tx, loop, LoopState.ACCEPTED, Resolution("accepted", by=by, text=command.note))
        case "approve":
            tx.add(e.ProtectedAnswered(tx.now, packet.protected, "approved", by, command.note, person=True))
        case "reject":
            _reject_changes(tx, packet, command, by)
        case "resolve" if packet.vote is not None and packet.step is not None:
            decision = _decision_by_hand(tx.state, tx.state.loops[packet.vote], command)
            take_position(tx, packet.vote, packet.step, decision)
        case "resolve" if loop is None:
            return  # a person did the step: `outcome_by_hand` reads the outcome
        case "resolve" if advises:
            _advise(tx, packet, tx.state.loops[loop.id], command)
        case "resolve":
            assert loop is not None
            _resolve(tx, tx.state.loops[loop.id], command, by)
        case _:
            assert_never(choice)


def _reject_changes(tx: Transaction, packet: Escalation, command: Decide, by: str) -> None:
    """Send changes of protected files back to the steps that made them, as findings of the judges that asked."""
    found = rejections(tx.state, packet.protected, command.note)
    tx.add(e.ProtectedAnswered(tx.now, packet.protected, "rejected", by, command.note, person=True))
    for judge, findings in found.items():
        if not judge:
            _send_back(tx, findings)
        elif verdict_loop(tx.state, judge) is None and passes(tx.state, judge):
            outcome = Outcome(OutputDigest(""), findings=findings)
            record_verdict(tx, judge, tx.state.steps[judge].attempts, outcome, "fail")
        # Otherwise the judge is due anyway, and then reports what was rejected.


def _send_back(tx: Transaction, findings: tuple[Finding, ...]) -> None:
    """Send rejected changes that no judge can report any more to the steps that made them."""
    for finding in findings:
        if finding.blames in tx.state.steps:
            message = f"{finding.description}; {finding.suggested_fix}"
            raise_feedback(tx, HUMAN, Feedback(Kind.FIX_REQUEST, (finding.blames,), message), None)


def _is_advice(state: RunState, loop: Loop, command: Decide) -> bool:
    """Whether an answer is for the steps that have to change something: a check, a gate or a test cannot use it."""
    option = find_option(state, loop, command.option) if command.option else None
    return is_measured(state, loop) and not (option is not None and option.accept)


def _advise(tx: Transaction, packet: Escalation, loop: Loop, command: Decide) -> None:
    """Send a person's answer to the steps that have to change something, for one more round. The judge verifies then."""
    option = find_option(tx.state, loop, command.option) if command.option else None
    if packet.reason == ASKED:
        answer = f"{option.option}: {command.note}" if option and command.note else command.note or command.option
        if loop.state is LoopState.WAITING_RESPONSE:
            tx.add(e.FeedbackAcknowledged(tx.now, loop.id, HUMAN))
        tx.add(e.AnswerGiven(tx.now, loop.id, HUMAN, answer))
    elif option is not None and option.rework:
        ids = loop.finding_ids
        tx.add(e.FeedbackRouted(tx.now, loop.id, dict.fromkeys(option.rework, ids), {"decision": ids}))
    else:
        _repeat_round(tx, loop)


def _resolve(tx: Transaction, loop: Loop, command: Decide, by: str) -> None:
    """Close a loop with a person's answer, or carry out the option that they chose."""
    option = find_option(tx.state, loop, command.option) if command.option else None
    if option is not None and option.accept:
        settle_findings(tx, loop, Status.ACCEPTED)
    if option is not None and (option.rework or option.accept):
        choose(tx, loop, option, by, command.note)
        return
    answers = loop.answers or positions_by_target(loop)
    if option is not None and loop.choosing:
        tx.add(e.ChoiceMade(tx.now, loop.id, option.option, by, command.note))
    resolution = Resolution("resolved", by, command.note, option.option if option else command.option, answers)
    close_loop(tx, loop, LoopState.RESOLVED, resolution)


def outcome_by_hand(tx: Transaction, command: Decide) -> FinishAttempt | None:
    """The outcome of a step that a person did, read from their decision. Its attempt starts and ends here."""
    packet = tx.state.escalation(command.escalation)
    assert packet is not None
    command = in_own_words(tx.state, command)
    if packet.step is None or packet.reason != ASKED or command.choice != "resolve":
        return None
    # The step is still wanted: a question about work that is no longer wanted is withdrawn before it can be answered.
    start = start_wanted(tx.state, packet.step)
    assert start is not None
    answer = command.note.strip() or (command.option or "").strip()
    attempt = record_start(tx, start, HUMAN)
    digest = sha256(json.dumps(answer).encode()).hexdigest()
    outcome = Outcome(OutputDigest(digest, answer, size=len(answer)), summary=command.note)
    if start.mode == "answer":
        outcome = replace(outcome, answer=answer)
    if start.mode == "decide":
        outcome = replace(outcome, decision=_decision_by_hand(tx.state, tx.state.loops[start.loops[0]], command))
    if packet.step in tx.state.graph.judges and start.mode not in SIDE_MODES:
        outcome = replace(outcome, verdict=_verdict(command))
    return FinishAttempt(packet.step, attempt, outcome)


def _decision_by_hand(state: RunState, loop: Loop, command: Decide) -> Decision:
    decision = Decision(command.option or command.note, command.note if command.option else "")
    problem = choice_problem(state, loop, decision)
    if problem is not None:
        raise IllegalCommand(f"{problem} (--option)")
    return decision


def _open_packet(state: RunState, command: Decide) -> Escalation:
    packet = state.escalation(command.escalation)
    if packet is None:
        raise unknown_escalation(state, command.escalation)
    if packet.decided is not None:
        first = packet.decided
        if first.choice == WITHDRAWN:
            raise AlreadyClosed(f"{packet.id} was withdrawn: {first.note}")
        by = f" by {first.by}" if first.by else ""
        raise AlreadyClosed(f"{packet.id} was already decided: {first.choice}{by}; the first decision stands")
    if in_own_words(state, command).choice not in packet.options:
        # Showing the history decides nothing, but a typo of it is as likely as of any other word.
        loop = state.loop(packet.loop) if packet.loop is not None else None
        offered = [each.option for each in offered_options(state, loop)] if loop is not None else []
        words = (*packet.options, *_words_for(state, packet), *offered, HISTORY.choice)
        hint = did_you_mean(command.choice, (word for word in words if word != command.choice))
        raise IllegalCommand(f"{command.choice!r} is not a valid choice for {packet.id}: {hint}")
    return packet


def in_own_words(state: RunState, command: Decide) -> Decide:
    """A decision in the words of its escalation: an approval may be answered with approve or reject, a judgement with
    pass or fail too, and a choice with one of the options itself."""
    packet = state.escalation(command.escalation)
    if packet is None or command.choice in packet.options:
        return command
    loop = state.loop(packet.loop) if packet.loop is not None else None
    offered = loop is not None and command.option is None and offered_options(state, loop)
    if loop is not None and offered and "resolve" in packet.options:
        meant = find_option(state, loop, command.choice)
        if meant is not None:
            return replace(command, choice="resolve", option=meant.option)
    choice, option = _words_for(state, packet).get(command.choice, (command.choice, command.option))
    return replace(command, choice=choice, option=option if option is not None else command.option)


def _words_for(state: RunState, packet: Escalation) -> dict[str, tuple[str, str | None]]:
    """The other words that an escalation understands, with the choice and the option that each means."""
    if asks_verdict(state, packet):
        verdicts: dict[str, tuple[str, str | None]] = {word: ("resolve", word) for word in VERDICTS}
        return {**verdicts, "approve": ("resolve", "pass"), "reject": ("resolve", "fail")}
    yes, no = "", ""
    if packet.asks_approval:
        yes, no = "continue", "cancel"
    elif packet.options == VERIFY_OPTIONS:
        yes, no = "resolve", "continue"
    elif packet.options == PROTECTED_OPTIONS:
        yes, no = "approve", "reject"
    if packet.restores:
        return {"keep": ("continue", None), "restore": ("rollback", None)}
    if not yes:
        return {}
    return {"approve": (yes, None), "pass": (yes, None), "reject": (no, None), "fail": (no, None)}


def _require_arguments(state: RunState, packet: Escalation, loop: Loop | None, command: Decide) -> None:
    if command.rounds < 1:
        raise IllegalCommand(f"rounds is {command.rounds}: expected 1 or more")
    if command.amount is not None and not 0 < command.amount < float("inf"):
        raise IllegalCommand(f"amount is {command.amount}: expected more than 0")
    match command.choice:
        case "rollback" if loop is not None and (problem := refusal(state, loop)) is not None:
            raise IllegalCommand(problem)
        case "revise" if not command.note.strip():
            raise IllegalCommand("revise needs a note: describe the new approach")
        case "resolve" if not _has_answer(command) and (packet.reason == ASKED or packet.vote or loop is not None):
            if packet.options == VERIFY_OPTIONS:
                return  # the person who raised it confirms the fix: no answer is needed
            raise IllegalCommand("resolve needs an answer: give an option or a note")
        case "resolve" if command.option and loop and (options := offered_options(state, loop)):
            offered = [option.option for option in options]
            if find_option(state, loop, command.option) is None:
                hint = did_you_mean(command.option, offered)
                raise IllegalCommand(f"option {command.option!r} was not offered: {hint}; use a note for free text")
        case "resolve" if packet.step and packet.step in state.graph.judges:
            if _verdict(command) is None:
                got = repr(command.option) if command.option else "no option"
                raise IllegalCommand(
                    f"{packet.step!r} needs a verdict as the option, got {got}: use one of {', '.join(VERDICTS)}"
                )
            if _verdict(command) == "fail" and not command.note.strip():
                raise IllegalCommand("a fail needs a note: describe what is wrong")
        case "reassign":
            _require_target(state, loop, command.target)
        case "reclassify" if not phases_meant(state, command.phase or ""):
            raise IllegalCommand(
                f"unknown phase {command.phase!r}: {did_you_mean(command.phase, state.graph.phases)}"
                if command.phase
                else f"reclassify needs a phase: use --phase with one of {', '.join(state.graph.phases)}"
            )


def _verdict(command: Decide) -> VerdictWord | None:
    """The verdict that a person gives as the option; case does not matter."""
    option = (command.option or "").strip().lower()
    return next((word for word in VERDICTS if word == option), None)


def _has_answer(command: Decide) -> bool:
    return bool(command.note.strip() or (command.option or "").strip())


def _require_target(state: RunState, loop: Loop | None, target: str | None) -> None:
    assert loop is not None
    reachable = (*_reassignable(state, loop.source), HUMAN)
    legal = tuple(to for to in reachable if not permanently_skipped(state, to))
    if target in legal:
        return
    if target in reachable:
        problem = f"{target!r} is skipped: use one of {', '.join(legal)}"
    elif target and target in state.steps and target != loop.source and target not in state.graph.judges:
        problem = f"{target!r} runs after the step that {loop.source!r} complains about: use one of {', '.join(legal)}"
    else:
        problem = f"got {target!r}: {did_you_mean(target, legal)}" if target else "use --target STEP"
    raise IllegalCommand(f"reassign needs a target: {problem}")


def _reassignable(state: RunState, source: str) -> tuple[str, ...]:
    """The steps that a person can send a loop to. Peers are allowed; later steps are not, they cannot be the cause."""
    graph = state.graph
    if graph.workflow.scope == "any" or source == HUMAN:
        return legal_targets(graph, source)
    after = graph.downstream[source].union(*(graph.downstream[subject] for subject in graph.steps[source].judges))
    return tuple(name for name in graph.steps if name != source and name not in graph.judges and name not in after)


def _repeat_round(tx: Transaction, loop: Loop) -> None:
    """Continue a loop where it stopped. An undelivered round is delivered, after findings that a person has reclassified
    are routed again. A finished round is verified, or requested again."""
    reroute_reclassified(tx, tx.state.loops[loop.id])
    loop = tx.state.loops[loop.id]
    if loop.state is LoopState.VALIDATING:
        return
    if all(share.done for share in loop.shares.values()):
        shares = {target: share.findings for target, share in loop.shares.items()}
        tx.add(e.FeedbackRouted(tx.now, loop.id, shares))
    elif HUMAN in loop.shares and not any(packet.loop == loop.id for packet in tx.state.escalations.values()):
        ask_person(tx, loop)


def _reassign(tx: Transaction, loop: Loop, target: str) -> None:
    ids = loop.finding_ids
    tx.add(e.FeedbackRouted(tx.now, loop.id, {target: ids}, {"decision": ids}))
    if target == HUMAN:
        escalate_loop(tx, tx.state.loops[loop.id], None, "reassigned to a person")


def _reclassify_all(tx: Transaction, loop: Loop, phase: str, by: str) -> None:
    ids = loop.finding_ids
    for id in ids:
        _record_phase(tx, id, phase, by)
    send_round(tx, tx.state.loops[loop.id], ids)


def _record_phase(tx: Transaction, finding: int, phase: str, by: str) -> None:
    """Record the phase and the steps that injected a finding. A person's answer overrides what was recorded before."""
    graph, judge = tx.state.graph, tx.state.findings[finding].found_by
    phases = phases_meant(tx.state, phase)
    found = (steps_of_phase(graph, judge, each) for each in phases) if judge in graph.steps else ()
    steps = tuple(dict.fromkeys(step for steps in found for step in steps))
    several = phases if len(phases) > 1 else ()
    tx.add(e.FindingReclassified(tx.now, finding, phase if several else phases[0], by, steps, several))


def reclassify(tx: Transaction, command: Reclassify) -> None:
    """Record the phase that injected a finding. If it is not delivered yet, it goes to that phase."""
    tracked = tx.state.findings.get(number(command.finding))
    if tracked is None or tracked.name != command.finding:
        raise NotFound(
            f"unknown finding {command.finding!r} in run {tx.state.run!r}: use an id that `backedge show` lists"
        )
    if not phases_meant(tx.state, command.phase):
        raise IllegalCommand(f"unknown phase {command.phase!r}: {did_you_mean(command.phase, tx.state.graph.phases)}")
    _record_phase(tx, tracked.id, command.phase, printable_line(command.by))
    loop = tx.state.loops.get(tracked.loop or "")
    # An escalated loop does not change until the decision.
    if loop is not None and loop.state is not LoopState.ESCALATING:
        reroute_reclassified(tx, loop)
