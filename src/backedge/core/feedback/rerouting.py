"""Feedback to and from steps whose condition skips them.

No step receives what a skipped step makes, so it is not asked for rework. Its findings and requests go to the remaining
targets; if there are none, a person decides. A skipped step verifies nothing, and neither does a judge whose subjects
are all skipped: their loops are closed. Unresolved findings of a skipped judge are deferred. All of this waits until
nothing upstream can change the condition any more.
"""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.escalation.opening import escalate_loop
from backedge.core.feedback.closing import close_loop, settle_findings
from backedge.core.feedback.judging import deliver_round, route_of
from backedge.core.feedback.loop import BY_OPTION, SETTLED_BY_CHOICE, Loop, LoopState, result_so_far
from backedge.core.model import HUMAN, Feedback, Status
from backedge.core.scheduling.skipping import is_skipped, starts_with
from backedge.core.scheduling.staleness import permanently_skipped
from backedge.core.state.run import RunState
from backedge.core.transaction import Transaction
from backedge.core.value import replace

BY_CONDITION = "when"
"""What `by` says when a condition closes the loop of a skipped step."""


def no_target_left(state: RunState, source: str, feedback: Feedback) -> str | None:
    """Why no target can do the rework that feedback asks for; None if one can. A skipped step can still answer, and
    feedback may be what its condition waits for."""
    needs_rework = feedback.kind not in SETTLED_BY_CHOICE and not feedback.options
    if not needs_rework or not all(permanently_skipped(state, target) for target in feedback.to):
        return None
    if any(starts_with(state, target, source, feedback.to) for target in feedback.to):
        return None
    return f"{_why(state, feedback.to)}: no step would receive the fix; send the feedback to a step that runs"


def reroute_around_skipped(tx: Transaction) -> bool:
    """Route loops around skipped steps and settle the findings of skipped judges; True if something changed."""
    for loop in tx.state.loops.values():
        skipped = _skipped_targets(tx.state, loop)
        if (skipped or loop.state is LoopState.VALIDATING) and _verifies_nothing(tx.state, loop):
            _end(tx, loop)
            return True
        if skipped:
            _reroute(tx, loop, skipped)
            return True
    return _settle_findings(tx)


def _settle_findings(tx: Transaction) -> bool:
    """Settle the findings of skipped judges without an open loop: deferred if a subject still runs, else withdrawn."""
    state = tx.state
    sources = {loop.source for loop in state.loops.values()}
    for name in state.graph.by_urgency:
        if name not in state.graph.conditional or name in sources:
            continue
        unresolved = (*state.steps[name].open_findings, *state.steps[name].unmentioned)
        if unresolved and permanently_skipped(state, name):
            no_subject = all(is_skipped(state, subject) for subject in state.graph.steps[name].judges)
            tx.add(e.FindingsSettled(tx.now, unresolved, Status.WITHDRAWN if no_subject else Status.DEFERRED))
            return True
    return False


def _skipped_targets(state: RunState, loop: Loop) -> tuple[str, ...]:
    """The skipped steps that a loop still waits for."""
    if loop.state not in (LoopState.WAITING_RESPONSE, LoopState.RESOLVING) or loop.answers_only or loop.choosing:
        return ()
    unfinished = (target for target, share in loop.shares.items() if not share.done)
    return tuple(target for target in unfinished if permanently_skipped(state, target))


def _verifies_nothing(state: RunState, loop: Loop) -> bool:
    if loop.source == HUMAN or not permanently_skipped(state, loop.source):
        return False
    # A judge that only its own condition skips still has to verify the fixes of its findings.
    return all(is_skipped(state, subject) for subject in state.graph.steps[loop.source].judges)


def _end(tx: Transaction, loop: Loop) -> None:
    """Resolve a loop without its source. If the source runs again later, it gets the result and verifies then."""
    settle_findings(tx, loop, Status.WITHDRAWN)
    skipped = tx.state.graph.steps[loop.source].judges or (loop.source,)
    end = replace(result_so_far(loop, "resolved"), by=BY_CONDITION, text=_why(tx.state, skipped))
    close_loop(tx, loop, LoopState.RESOLVED, end)


def _reroute(tx: Transaction, loop: Loop, skipped: tuple[str, ...]) -> None:
    """Continue a loop with its other targets. Findings that only skipped targets had are routed again."""
    others = {target: share for target, share in loop.shares.items() if target not in skipped}
    shares = {target: list(share.findings) for target, share in others.items() if not share.counted}
    known = {id for share in others.values() for id in share.findings}
    rules: dict[str, list[int]] = {}
    if loop.by_verdict:
        findings = tx.state.findings
        blockers = sum(findings[id].finding.blocking for id in loop.finding_ids)
        for id in (id for id in loop.finding_ids if id not in known):
            route = route_of(tx.state, loop.source, findings[id], blockers)
            rules.setdefault(route.rule, []).append(id)
            for target in (each for each in route.targets if each not in skipped):
                had = others.get(target)
                shares.setdefault(target, list(had.findings) if had and not had.done else []).append(id)
    unchanged = tuple(target for target, share in others.items() if share.counted and target not in shares)
    if not shares and not unchanged:
        reason = f"no step is left to fix it: {_why(tx.state, skipped)}"
        escalate_loop(tx, loop, None, reason, without=("continue", "revise"))
        return
    if loop.choice is not None:
        rules[BY_OPTION] = []
    routed = {target: tuple(ids) for target, ids in shares.items()}
    deliver_round(tx, loop, routed, {rule: tuple(ids) for rule, ids in rules.items()}, unchanged=unchanged)


def _why(state: RunState, steps: tuple[str, ...]) -> str:
    """Which steps are skipped, and by which unmet condition."""
    return ", ".join(f"{name!r} is skipped{_unmet(state, name)}" for name in steps)


def _unmet(state: RunState, name: str) -> str:
    texts = " and ".join(each.text for each in state.graph.conditions.get(name, ()))
    return f" ({texts!r} is not met)" if texts else ""
