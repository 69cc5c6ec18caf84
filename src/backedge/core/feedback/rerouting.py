"""Feedback and skipped steps: what a skipped step would make nobody gets, so no rework is asked of it.

Findings and requests go past it to those who are left; if nobody is, a person decides. A judge of nothing but skipped
steps verifies nothing, nor does a step that is skipped itself: what they asked for is over. What a skipped judge found
and nobody answered for is a debt. All this waits until nothing upstream can change the condition any more.
"""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.escalation.opening import escalate_loop
from backedge.core.feedback.closing import close_loop, settle_findings
from backedge.core.feedback.judging import deliver_round, route_of
from backedge.core.feedback.loop import BY_OPTION, SETTLED_BY_CHOICE, Loop, LoopState, result_so_far
from backedge.core.model import HUMAN, Feedback, Status
from backedge.core.scheduling.skipping import is_skipped
from backedge.core.scheduling.staleness import upstream_settled
from backedge.core.state.run import RunState
from backedge.core.transaction import Transaction
from backedge.core.value import replace

BY_CONDITION = "when"
"""Who ends what a skipped step asked for."""


def permanently_skipped(state: RunState, name: str) -> bool:
    """Whether a step is skipped, and nothing is under way that could change that."""
    return (
        name != HUMAN
        and is_skipped(state, name)
        and state.steps[name].running is None
        and upstream_settled(state, name)
    )


def no_target_left(state: RunState, feedback: Feedback) -> str | None:
    """Why nobody could mend what feedback asks for; None if somebody can. A question is answered by anybody."""
    mends = feedback.kind not in SETTLED_BY_CHOICE and not feedback.options
    if not mends or not all(permanently_skipped(state, target) for target in feedback.to):
        return None
    return f"{_why(state, feedback.to)}: nobody would get what was mended; send it to a step that runs"


def reroute_around_skipped(tx: Transaction) -> bool:
    """Let loops go past steps that are skipped, and settle what those found; True if something changed."""
    for loop in tx.state.loops.values():
        gone = _skipped_targets(tx.state, loop)
        if (gone or loop.state is LoopState.VALIDATING) and _verifies_nothing(tx.state, loop):
            _end(tx, loop)
            return True
        if gone:
            _reroute(tx, loop, gone)
            return True
    return _settle_findings(tx)


def _settle_findings(tx: Transaction) -> bool:
    """Nobody answers for what a skipped judge found, unless its loop is open. It is a debt, if what was judged is there."""
    state = tx.state
    asking = {loop.source for loop in state.loops.values()}
    for name in state.graph.in_turn:
        if name not in state.graph.conditional or name in asking:
            continue
        standing = (*state.steps[name].open_findings, *state.steps[name].unmentioned)
        if standing and permanently_skipped(state, name):
            gone = all(is_skipped(state, subject) for subject in state.graph.steps[name].judges)
            tx.add(e.FindingsSettled(tx.now, standing, Status.WITHDRAWN if gone else Status.DEFERRED))
            return True
    return False


def _skipped_targets(state: RunState, loop: Loop) -> tuple[str, ...]:
    """The steps that owe a loop a rework and are skipped."""
    if loop.state not in (LoopState.WAITING_RESPONSE, LoopState.RESOLVING) or loop.answers_only or loop.choosing:
        return ()
    owing = (target for target, share in loop.shares.items() if not share.done)
    return tuple(target for target in owing if permanently_skipped(state, target))


def _verifies_nothing(state: RunState, loop: Loop) -> bool:
    if loop.source == HUMAN or not permanently_skipped(state, loop.source):
        return False
    # A judge that only its own condition skips still has to say whether what it found is mended.
    return all(is_skipped(state, subject) for subject in state.graph.steps[loop.source].judges)


def _end(tx: Transaction, loop: Loop) -> None:
    """Resolve a loop without its source. If that is not skipped any more one day, it is told, and looks again."""
    settle_findings(tx, loop, Status.WITHDRAWN)
    skipped = tx.state.graph.steps[loop.source].judges or (loop.source,)
    end = replace(result_so_far(loop, "resolved"), by=BY_CONDITION, text=_why(tx.state, skipped))
    close_loop(tx, loop, LoopState.RESOLVED, end)


def _reroute(tx: Transaction, loop: Loop, gone: tuple[str, ...]) -> None:
    """Leave a loop to its other targets; what only skipped ones had of a judge's findings is routed past them."""
    rest = {target: share for target, share in loop.shares.items() if target not in gone}
    shares = {target: list(share.findings) for target, share in rest.items() if not share.counted}
    known = {id for share in rest.values() for id in share.findings}
    rules: dict[str, list[int]] = {}
    if loop.by_verdict:
        findings = tx.state.findings
        blockers = sum(findings[id].finding.blocking for id in loop.finding_ids)
        for id in (id for id in loop.finding_ids if id not in known):
            route = route_of(tx.state, loop.source, findings[id], blockers)
            rules.setdefault(route.rule, []).append(id)
            for target in (each for each in route.targets if each not in gone):
                had = rest.get(target)
                shares.setdefault(target, list(had.findings) if had and not had.done else []).append(id)
    kept = tuple(target for target, share in rest.items() if share.counted and target not in shares)
    if not shares and not kept:
        escalate_loop(tx, loop, None, f"nobody is left to mend it: {_why(tx.state, gone)}")
        return
    if loop.choice is not None:
        rules[BY_OPTION] = []
    routed = {target: tuple(ids) for target, ids in shares.items()}
    deliver_round(tx, loop, routed, {rule: tuple(ids) for rule, ids in rules.items()}, kept=kept)


def _why(state: RunState, steps: tuple[str, ...]) -> str:
    """Which steps are skipped, and what they would need."""
    return ", ".join(f"{name!r} is skipped{_unmet(state, name)}" for name in steps)


def _unmet(state: RunState, name: str) -> str:
    texts = " and ".join(each.text for each in state.graph.conditions.get(name, ()))
    return f" ({texts!r} is not met)" if texts else ""
