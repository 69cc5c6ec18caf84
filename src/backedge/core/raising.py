"""Feedback that an agent or a person raises: joined to what was asked before, refused, or opened as a loop."""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.choosing import option_refusal
from backedge.core.draft import Draft, ask_person, close, escalate_loop
from backedge.core.limits import first_breach
from backedge.core.loops import Loop, LoopState
from backedge.core.model import HUMAN, ROOT, Feedback, Kind, Malformed
from backedge.core.planners import BY_PLANNER, finds_planner, planner_for
from backedge.core.plans import asks_for_steps
from backedge.core.positions import outcome_so_far
from backedge.core.requirements import BY_REQUIREMENT, Mentions, lacks_target, owner_of
from backedge.core.routing import refusal, who_adds_steps
from backedge.core.skipping import in_vain
from backedge.core.state import Running, RunState, asked_key
from backedge.core.value import replace


def raise_feedback(draft: Draft, source: str, feedback: Feedback | Malformed, running: Running | None) -> None:
    """Open a loop, go on with an open one, or record why not."""
    if isinstance(feedback, Malformed):
        draft.add(e.FeedbackRefused(draft.now, source, feedback.to, feedback.reason, feedback.message))
        return
    rule = _rule(feedback)
    feedback = addressed(draft.state, feedback, source, draft.mentions)
    if running is not None and _rejoined(draft, source, feedback, running):
        return
    unusable = option_refusal(draft.state, source, feedback)
    if unusable is not None:
        draft.add(e.FeedbackRefused(draft.now, source, feedback.to, unusable, feedback.message))
        return
    again = _verified_by(draft.state, source, feedback, running)
    if again is not None:
        draft.add(
            e.FeedbackRouted(draft.now, again.id, dict.fromkeys(again.targets, ()), {rule: ()}, feedback=feedback)
        )
        _hand_over(draft, again.id)
        return
    caused_by = _deepest(draft.state, running.loops) if running is not None else None
    reason = refusal(draft.state, source, feedback, caused_by) or in_vain(draft.state, feedback)
    if reason is not None:
        draft.add(e.FeedbackRefused(draft.now, source, feedback.to, reason, feedback.message))
        return
    loop = draft.next_loop()
    warning = ""
    if feedback.kind is Kind.FIX_REQUEST and not feedback.suggested_fix:
        warning = "a fix_request without suggested_fix: the target has to guess what would satisfy the source"
    draft.add(
        e.LoopOpened(
            draft.now,
            loop,
            feedback.kind,
            source,
            running.attempt if running is not None else 0,
            feedback,
            caused_by.id if caused_by else None,
            warning=warning,
        )
    )
    draft.add(e.FeedbackRouted(draft.now, loop, dict.fromkeys(feedback.to, ()), {rule: ()}))
    _hand_over(draft, loop)


def _rule(feedback: Feedback) -> str:
    """What says where raised feedback goes."""
    if lacks_target(feedback):
        return BY_REQUIREMENT
    return BY_PLANNER if finds_planner(feedback) else "explicit"


def addressed(state: RunState, feedback: Feedback, source: str, mentions: Mentions) -> Feedback:
    """The feedback with its targets by name: `root` is the workflow's first step, unless a step has that name itself.
    What asks for steps or for another design need not say whom, that is for a planner; nor what names a requirement, it
    goes to its owner."""
    if lacks_target(feedback) and feedback.requirement_id is not None:
        owner = owner_of(state, source, mentions.get(feedback.requirement_id, ()))
        return replace(feedback, to=(owner,)) if owner is not None else feedback
    if finds_planner(feedback):
        adds = asks_for_steps(feedback.kind)
        planner = who_adds_steps(state.graph, source) if adds else planner_for(state.graph, source)
        return replace(feedback, to=(planner,)) if planner is not None else feedback
    if ROOT not in feedback.to or ROOT in state.graph.steps:
        return feedback
    return replace(feedback, to=tuple(dict.fromkeys(state.graph.root if to == ROOT else to for to in feedback.to)))


def _hand_over(draft: Draft, id: str) -> None:
    loop = draft.state.loops[id]
    breach = first_breach(draft.state, draft.now, loop=loop)
    if breach is not None:
        escalate_loop(draft, loop, breach)
    elif HUMAN in loop.targets:
        ask_person(draft, loop)


def _rejoined(draft: Draft, source: str, feedback: Feedback, running: Running) -> bool:
    """Whether this was asked already by this attempt, or by one before it that was lost in mid-work."""
    known = draft.state.steps[source].asked.get(asked_key(feedback))
    if known is None:
        return False
    if known not in running.joined:
        draft.add(e.FeedbackRejoined(draft.now, known, source, running.attempt))
        return True
    loop = draft.state.loops.get(known)
    return loop is not None and not loop.told


def _verified_by(state: RunState, source: str, feedback: Feedback, running: Running | None) -> Loop | None:
    """The open loop that raising this again rejects: same source, kind and targets, its fix waiting for the verdict.

    Not for people: `human` may be several, and what each of them says is a loop of its own.
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
    """Whether raising feedback says that what came of a loop will not do. An attempt that was told what came of it and
    asks for something else, if only in other words, asks for that: whoever is executed again raises the old one."""
    told_it = running is not None and loop.id in running.joined
    return _is_about(loop, feedback) and (not told_it or _same_words(loop, feedback))


def _same_words(loop: Loop, feedback: Feedback) -> bool:
    assert loop.feedback is not None
    return asked_key(loop.feedback) == asked_key(replace(feedback, to=loop.feedback.to))


def _is_about(loop: Loop, feedback: Feedback) -> bool:
    """Whether feedback is what a loop was raised for: the same kind, to whom it was raised or where a person sent it."""
    if loop.feedback is None or loop.word != feedback.word:
        return False
    return set(feedback.to) in (set(loop.targets), set(loop.feedback.to))


def _deepest(state: RunState, loops: tuple[str, ...]) -> Loop | None:
    return max((state.loops[id] for id in loops if id in state.loops), key=lambda loop: loop.depth, default=None)


def verify_by_doing(draft: Draft, source: str, running: Running, feedback: tuple[Feedback | Malformed, ...]) -> None:
    """A step that raised feedback was executed again: what it raises again is the next round, the rest is resolved."""
    if not draft.state.loops:
        return
    told = [loop.id for loop in draft.state.loops.values() if loop.source == source and loop.told]
    for id in dict.fromkeys((*running.verifies, *told)):
        loop = draft.state.loops.get(id)
        if loop is None or loop.by_verdict or loop.feedback is None or loop.state is not LoopState.VALIDATING:
            continue
        raised_again = any(
            isinstance(item, Feedback)
            and _rejects(loop, addressed(draft.state, item, source, draft.mentions), running)
            and option_refusal(draft.state, source, item) is None
            for item in feedback
        )
        if not raised_again:
            close(draft, loop, LoopState.RESOLVED, outcome_so_far(loop, "resolved"))
