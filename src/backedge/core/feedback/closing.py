"""Close loops, skip steps by decision, end the run."""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.findings.disputes import unanswered_findings
from backedge.core.model import HUMAN, Resolution, Status
from backedge.core.state.run import RunState
from backedge.core.transaction import Transaction


def skip_by_decision(tx: Transaction, loop: str | None, step: str | None, by: str) -> None:
    """Skip the source of a loop, or a step that cannot be done. Their open findings are deferred."""
    if loop is not None:
        skip_source(tx, tx.state.loops[loop], by)
        return
    assert step is not None
    for id in list(tx.state.loops):
        # Skipping one source can close other loops too.
        other = tx.state.loops.get(id)
        if other is not None and step in other.shares and not other.shares[step].done:
            skip_source(tx, other, by)
    skip_step(tx, step, by)


def skip_source(tx: Transaction, loop: Loop, by: str) -> None:
    _defer(tx, loop, by)
    if loop.source != HUMAN:
        skip_step(tx, loop.source, by)


def skip_step(tx: Transaction, step: str, by: str) -> None:
    """Continue the run without a step. Its loops are closed, because no one is left to verify them."""
    tx.add(e.StepSkipped(tx.now, step, f"skipped by {by}"))
    for loop in [each for each in tx.state.loops.values() if each.source == step]:
        _defer(tx, loop, by)
    unresolved = (*tx.state.steps[step].open_findings, *tx.state.steps[step].unmentioned)
    if unresolved:
        tx.add(e.FindingsSettled(tx.now, unresolved, Status.DEFERRED))
    for judge in tx.state.graph.judges_of[step]:
        if not tx.state.steps[judge].skipped_by_decision and _has_no_subject(tx.state, judge):
            skip_step(tx, judge, by)


def _has_no_subject(state: RunState, judge: str) -> bool:
    """Whether every step that a judge judges was skipped before it made anything. The judge is then skipped too: a
    failing verdict would undo the decision to skip."""
    return all(state.steps[each].skipped_without_output for each in state.graph.steps[judge].judges)


def _defer(tx: Transaction, loop: Loop, by: str) -> None:
    settle_findings(tx, loop, Status.DEFERRED)
    close_loop(tx, loop, LoopState.ACCEPTED, Resolution("accepted", by=by, text="skipped"))


def settle_findings(tx: Transaction, loop: Loop, status: Status) -> None:
    """Give every unresolved finding of a loop the status that a decision implies."""
    shared = {id for share in loop.shares.values() for id in share.findings}
    source = tx.state.steps.get(loop.source)
    own = (*source.open_findings, *source.unmentioned) if source and loop.by_verdict else ()
    ids = tuple(id for id in sorted(shared.union(own)) if tx.state.findings[id].needs_answer)
    if ids:
        tx.add(e.FindingsSettled(tx.now, ids, status))


def close_loop(tx: Transaction, loop: Loop, state: LoopState, resolution: Resolution) -> None:
    """Close a loop and the open escalations about it."""
    for packet in [each.id for each in tx.state.escalations.values() if each.loop == loop.id]:
        by, note = resolution.by or "verification", resolution.text
        tx.add(e.EscalationDecided(tx.now, packet, state.value, by=by, note=note))
    end_dispute(tx, loop.id)
    tx.add(e.LoopClosed(tx.now, loop.id, state, resolution))


def end_dispute(tx: Transaction, loop: str, now: tuple[int, ...] = ()) -> None:
    """Settle the findings that the last dispute of a loop left open, except those disputed `now`."""
    for status, ids in unanswered_findings(tx.state, loop, now).items():
        tx.add(e.FindingsSettled(tx.now, ids, status))


def end_run(tx: Transaction, outcome: str, reason: str, by: str) -> None:
    """End the run by decision or policy. Open loops and escalations are closed; the work is kept."""
    assert outcome in ("failed", "cancelled")
    state = LoopState.FAILED if outcome == "failed" else LoopState.CANCELLED
    # `by` is recorded beside the note, so the note does not repeat it.
    note = "" if reason in (outcome, f"{outcome} by {by}") else reason
    for loop in list(tx.state.loops.values()):
        close_loop(tx, loop, state, Resolution(state.value, by=by, text=note))
    for escalation in list(tx.state.escalations):
        tx.add(e.EscalationDecided(tx.now, escalation, state.value, by=by, note=note))
    tx.add(e.RunEnded(tx.now, "failed" if outcome == "failed" else "cancelled", reason))
