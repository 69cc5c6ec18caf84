"""Feedback and skipped steps: what a skipped step would make nobody gets, so no rework is asked of it.

Findings and requests go past it to those who are left; if nobody is, a person decides. A judge of nothing but skipped
steps verifies nothing, nor does a step that is skipped itself: what they asked for is over. What a skipped judge found
and nobody answered for is a debt. All this waits until nothing upstream can change the condition any more.
"""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.draft import Draft, close, escalate_loop, settle_findings
from backedge.core.judging import deliver, route_of
from backedge.core.loops import SETTLED_BY_CHOICE, Loop, LoopState
from backedge.core.model import HUMAN, Feedback, Status
from backedge.core.positions import BY_OPTION, outcome_so_far
from backedge.core.shapes import skips, upstream_settled
from backedge.core.state import RunState
from backedge.core.value import replace

BY_CONDITION = "when"
"""Who ends what a skipped step asked for."""


def skipped_for_good(state: RunState, name: str) -> bool:
    """Whether a step is skipped, and nothing is under way that could change that."""
    return name != HUMAN and skips(state, name) and state.steps[name].running is None and upstream_settled(state, name)


def in_vain(state: RunState, feedback: Feedback) -> str | None:
    """Why nobody could mend what feedback asks for; None if somebody can. A question is answered by anybody."""
    mends = feedback.kind not in SETTLED_BY_CHOICE and not feedback.options
    if not mends or not all(skipped_for_good(state, target) for target in feedback.to):
        return None
    return f"{_why(state, feedback.to)}: nobody would get what was mended; send it to a step that runs"


def go_past_skipped(draft: Draft) -> bool:
    """Let loops go past steps that are skipped, and settle what those found; True if something changed."""
    if not draft.state.graph.conditions:
        return False
    for loop in draft.state.loops.values():
        gone = _skipped_targets(draft.state, loop)
        if (gone or loop.state is LoopState.VALIDATING) and _verifies_nothing(draft.state, loop):
            _end(draft, loop)
            return True
        if gone:
            _go_past(draft, loop, gone)
            return True
    return _settle_findings(draft)


def _settle_findings(draft: Draft) -> bool:
    """Nobody answers for what a skipped judge found, unless its loop is open. It is a debt, if what was judged is there."""
    state = draft.state
    asking = {loop.source for loop in state.loops.values()}
    for name in state.graph.in_turn:
        if name not in state.graph.conditional or name in asking:
            continue
        standing = (*state.steps[name].open_findings, *state.steps[name].unmentioned)
        if standing and skipped_for_good(state, name):
            gone = all(skips(state, subject) for subject in state.graph.steps[name].judges)
            draft.add(e.FindingsSettled(draft.now, standing, Status.WITHDRAWN if gone else Status.DEFERRED))
            return True
    return False


def _skipped_targets(state: RunState, loop: Loop) -> tuple[str, ...]:
    """The steps that owe a loop a rework and are skipped."""
    if loop.state not in (LoopState.WAITING_RESPONSE, LoopState.RESOLVING) or loop.answers_only or loop.choosing:
        return ()
    owing = (target for target, share in loop.shares.items() if not share.done)
    return tuple(target for target in owing if skipped_for_good(state, target))


def _verifies_nothing(state: RunState, loop: Loop) -> bool:
    if loop.source == HUMAN or not skipped_for_good(state, loop.source):
        return False
    # A judge that only its own condition skips still has to say whether what it found is mended.
    return all(skips(state, subject) for subject in state.graph.steps[loop.source].judges)


def _end(draft: Draft, loop: Loop) -> None:
    """Resolve a loop without its source. If that is not skipped any more one day, it is told, and looks again."""
    settle_findings(draft, loop, Status.WITHDRAWN)
    skipped = draft.state.graph.steps[loop.source].judges or (loop.source,)
    end = replace(outcome_so_far(loop, "resolved"), by=BY_CONDITION, text=_why(draft.state, skipped))
    close(draft, loop, LoopState.RESOLVED, end)


def _go_past(draft: Draft, loop: Loop, gone: tuple[str, ...]) -> None:
    """Leave a loop to its other targets; what only skipped ones had of a judge's findings is routed past them."""
    rest = {target: share for target, share in loop.shares.items() if target not in gone}
    shares = {target: list(share.findings) for target, share in rest.items() if not share.charged}
    known = {id for share in rest.values() for id in share.findings}
    rules: dict[str, list[int]] = {}
    if loop.by_verdict:
        findings = draft.state.findings
        blockers = sum(findings[id].finding.blocking for id in loop.given)
        for id in (id for id in loop.given if id not in known):
            route = route_of(draft.state, loop.source, findings[id], blockers)
            rules.setdefault(route.rule, []).append(id)
            for target in (each for each in route.targets if each not in gone):
                had = rest.get(target)
                shares.setdefault(target, list(had.findings) if had and not had.done else []).append(id)
    kept = tuple(target for target, share in rest.items() if share.charged and target not in shares)
    if not shares and not kept:
        escalate_loop(draft, loop, None, f"nobody is left to mend it: {_why(draft.state, gone)}")
        return
    if loop.choice is not None:
        rules[BY_OPTION] = []
    routed = {target: tuple(ids) for target, ids in shares.items()}
    deliver(draft, loop, routed, {rule: tuple(ids) for rule, ids in rules.items()}, kept=kept)


def _why(state: RunState, steps: tuple[str, ...]) -> str:
    """Which steps are skipped, and what they would need."""
    return ", ".join(f"{name!r} is skipped{_unmet(state, name)}" for name in steps)


def _unmet(state: RunState, name: str) -> str:
    texts = " and ".join(each.text for each in state.graph.conditions.get(name, ()))
    return f" ({texts!r} is not met)" if texts else ""
