"""Feedback that an agent or a person raises: it joins an open loop, is refused, or opens a new loop."""

from __future__ import annotations

import json

from backedge.core import events as e
from backedge.core.breaches import first_breach
from backedge.core.escalation.opening import ask_person, escalate_loop, escalate_refused, withdraw_refused
from backedge.core.feedback.closing import close_loop
from backedge.core.feedback.loop import Loop, LoopState, result_so_far
from backedge.core.feedback.requirements import BY_REQUIREMENT, Mentions, goes_to_requirement_owner, owner_of
from backedge.core.feedback.rerouting import no_target_left
from backedge.core.feedback.routing import (
    BY_PLANNER,
    NO_MESSAGE,
    NO_TARGET,
    goes_to_planner,
    planner_for,
    refusal_reason,
    step_adder_for,
    target_problem,
)
from backedge.core.feedback.voting import option_refusal
from backedge.core.model import HUMAN, ROOTS, SERIOUS, Feedback, Kind, MalformedFeedback
from backedge.core.state.loops import question_key
from backedge.core.state.run import Running, RunState
from backedge.core.transaction import Transaction
from backedge.core.value import replace
from backedge.core.workflow.plan import requests_new_steps


def raise_feedback(
    tx: Transaction, source: str, feedback: Feedback | MalformedFeedback, running: Running | None
) -> None:
    """Open a loop, continue an open one, or record why the feedback is refused."""
    if isinstance(feedback, MalformedFeedback):
        _refuse(tx, source, feedback, feedback.reason, running)
        return
    rule = _rule(feedback)
    feedback = with_targets(tx.state, feedback, source, tx.mentions)
    if running is not None and _rejoined(tx, source, feedback, running):
        return
    problem = option_refusal(tx.state, source, feedback)
    if problem is not None:
        _refuse(tx, source, feedback, problem, running)
        return
    rejected = _rejected_loop(tx.state, source, feedback, running)
    if rejected is not None:
        shares: dict[str, tuple[int, ...]] = dict.fromkeys(rejected.targets, ())
        tx.add(e.FeedbackRouted(tx.now, rejected.id, shares, {rule: ()}, feedback=feedback))
        _escalate_or_ask(tx, rejected.id)
        return
    caused_by = _deepest(tx.state, running.loops) if running is not None else None
    reason = refusal_reason(tx.state, source, feedback, caused_by) or no_target_left(tx.state, source, feedback)
    if reason is not None:
        _refuse(tx, source, feedback, reason, running)
        return
    loop = tx.next_loop()
    warning = ""
    if feedback.kind is Kind.FIX_REQUEST and not feedback.suggested_fix:
        warning = "a fix_request without suggested_fix: the target has to guess what would satisfy the source"
    tx.add(
        e.LoopOpened(
            tx.now,
            loop,
            feedback.kind,
            source,
            running.attempt if running is not None else 0,
            feedback,
            caused_by.id if caused_by else None,
            warning=warning,
        )
    )
    tx.add(e.FeedbackRouted(tx.now, loop, dict.fromkeys(feedback.to, ()), {rule: ()}))
    withdraw_refused(tx, source, feedback.message)
    _escalate_or_ask(tx, loop)


def _refuse(
    tx: Transaction, source: str, feedback: Feedback | MalformedFeedback, reason: str, running: Running | None
) -> None:
    """Record feedback that cannot be delivered. What an attempt saw must not be lost: if it is serious, a person is asked.
    A person who raises feedback sees the refusal at once."""
    parsed = feedback if isinstance(feedback, Feedback) else None
    tx.add(e.RefusedFeedback(tx.now, source, feedback.to, reason, feedback.message, parsed))
    serious = isinstance(feedback, MalformedFeedback) or feedback.severity in SERIOUS
    if running is not None and serious:
        escalate_refused(tx, source, reason, feedback.message)


def feedback_problem(
    state: RunState, source: str, feedback: Feedback | MalformedFeedback, mentions: Mentions
) -> str | None:
    """Why feedback in an outcome can go nowhere; None if it can be delivered, or if only a limit forbids it."""
    if isinstance(feedback, MalformedFeedback):
        return feedback.reason
    aimed = with_targets(state, feedback, source, mentions)
    return option_refusal(state, source, aimed) or target_problem(state, source, aimed)


def said_words(feedback: Feedback | MalformedFeedback) -> str:
    """What feedback that can go nowhere said, for the error about it: its agent may never say it again."""
    said = [feedback.message] if feedback.message else []
    if isinstance(feedback, Feedback):
        options = (each.option for each in feedback.options)
        parts = (
            ("suggested fix", feedback.suggested_fix),
            ("requested", feedback.requested_info),
            ("artifacts", ", ".join(feedback.artifacts)),
            ("requirement", feedback.requirement_id),
            ("options", ", ".join(options)),
            ("details", "" if feedback.details is None else json.dumps(feedback.details, ensure_ascii=False)),
        )
        said += [f"{label}: {text}" for label, text in parts if text]
    return f"; it said: {'; '.join(said)}" if said else ""


def _rule(feedback: Feedback) -> str:
    """The name of the rule that routes raised feedback."""
    if goes_to_requirement_owner(feedback):
        return BY_REQUIREMENT
    return BY_PLANNER if goes_to_planner(feedback) else "explicit"


def missing_words(feedback: Feedback) -> str:
    """What feedback does not say, whatever the run; empty if it says enough."""
    if not feedback.message.strip():
        return NO_MESSAGE
    finds_its_way = goes_to_planner(feedback) or goes_to_requirement_owner(feedback)
    return "" if feedback.to or finds_its_way else NO_TARGET


def with_targets(state: RunState, feedback: Feedback, source: str, mentions: Mentions) -> Feedback:
    """The feedback with its targets filled in. `root` and `workflow-root` mean the first step, unless a step has that name.
    Feedback without targets goes to a planner if it asks for steps or another design, and to the owner of its
    requirement if it names one."""
    if goes_to_requirement_owner(feedback) and feedback.requirement_id is not None:
        owner = owner_of(state, source, mentions.get(feedback.requirement_id, ()))
        return replace(feedback, to=(owner,)) if owner is not None else feedback
    if goes_to_planner(feedback):
        adds = requests_new_steps(feedback.kind)
        planner = step_adder_for(state.graph, source) if adds else planner_for(state.graph, source)
        return replace(feedback, to=(planner,)) if planner is not None else feedback
    words = [word for word in ROOTS if word in feedback.to and word not in state.graph.steps]
    if not words:
        return feedback
    return replace(feedback, to=tuple(dict.fromkeys(state.graph.root if to in words else to for to in feedback.to)))


def _escalate_or_ask(tx: Transaction, id: str) -> None:
    loop = tx.state.loops[id]
    breach = first_breach(tx.state, tx.now, loop=loop)
    if breach is not None:
        escalate_loop(tx, loop, breach)
    elif HUMAN in loop.targets:
        ask_person(tx, loop)


def _rejoined(tx: Transaction, source: str, feedback: Feedback, running: Running) -> bool:
    """Whether this attempt, or an earlier one that was lost while it ran, has raised the same feedback already."""
    known = tx.state.steps[source].loop_by_question.get(question_key(feedback))
    if known is None:
        return False
    if known not in running.raised_loops:
        tx.add(e.FeedbackRejoined(tx.now, known, source, running.attempt))
        return True
    loop = tx.state.loops.get(known)
    return loop is not None and not loop.result_delivered


def _rejected_loop(state: RunState, source: str, feedback: Feedback, running: Running | None) -> Loop | None:
    """The open loop whose fix this feedback rejects: same source, kind and targets, and a fix that waits to be verified.

    Never for people: `human` may be several persons, so each of their items is a loop of its own.
    """
    if source == HUMAN:
        return None
    found = [
        loop
        for loop in state.loops.values()
        if loop.source == source and loop.state is LoopState.VALIDATING and _rejects(loop, feedback, running)
    ]
    return next((loop for loop in found if _same_words(loop, feedback)), found[0] if found else None)


def _rejects(loop: Loop, feedback: Feedback, running: Running | None) -> bool:
    """Whether feedback rejects the result of a loop. An attempt that raised the loop itself and then raises something
    else, even in other words, means something new. A later attempt that raises the same kind means the old loop."""
    raised_it = running is not None and loop.id in running.raised_loops
    return _is_about(loop, feedback) and (not raised_it or _same_words(loop, feedback))


def _same_words(loop: Loop, feedback: Feedback) -> bool:
    assert loop.feedback is not None
    return question_key(loop.feedback) == question_key(replace(feedback, to=loop.feedback.to))


def _is_about(loop: Loop, feedback: Feedback) -> bool:
    """Whether feedback has the kind of a loop, and the loop's original targets or those a person sent it to."""
    if loop.feedback is None or loop.kind_name != feedback.word:
        return False
    return set(feedback.to) in (set(loop.targets), set(loop.feedback.to))


def _deepest(state: RunState, loops: tuple[str, ...]) -> Loop | None:
    return max((state.loops[id] for id in loops if id in state.loops), key=lambda loop: loop.depth, default=None)


def resolve_by_rerun(
    tx: Transaction, source: str, running: Running, feedback: tuple[Feedback | MalformedFeedback, ...]
) -> None:
    """Resolve the loops of a step that was executed again, except those it raises again: these go into the next round."""
    delivered = [loop.id for loop in tx.state.loops.values() if loop.source == source and loop.result_delivered]
    for id in dict.fromkeys((*running.verifies, *delivered)):
        loop = tx.state.loops.get(id)
        if loop is None or loop.by_verdict or loop.feedback is None or loop.state is not LoopState.VALIDATING:
            continue
        raised_again = any(
            isinstance(item, Feedback)
            and _rejects(loop, with_targets(tx.state, item, source, tx.mentions), running)
            and option_refusal(tx.state, source, item) is None
            for item in feedback
        )
        if not raised_again:
            close_loop(tx, loop, LoopState.RESOLVED, result_so_far(loop, "resolved"))
