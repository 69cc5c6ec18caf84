"""Folds the events of rollbacks: earlier versions count again, and their files are restored."""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.feedback.loop import MAX_PAST_ROUNDS, Loop, LoopState, PastRound, Share
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.state.evidence import with_restored
from backedge.core.state.run import Fix, Restoring, RunState, StepState, with_step
from backedge.core.value import replace


def rolled_back(state: RunState, event: e.RolledBack) -> RunState:
    fix = state.fixes[event.loop]
    state = replace(state, findings=state.findings.merged(_findings(state, fix, event)))
    for name, before in fix.steps.items():
        state = with_step(state, name, _restored(state.steps[name], before))
    loops = {
        **state.loops,
        **{id: _undelivered(state, state.loops[id], fix.loops[id], shares) for id, shares in event.shares.items()},
    }
    # The last fix cannot be rolled back twice.
    asked = {
        id: replace(packet, options=tuple(option for option in packet.options if option != "rollback"))
        for id, packet in state.escalations.items()
        if packet.loop in event.shares
    }
    restoring = Restoring(tuple(sorted(fix.steps)), event.undo, fix.protected) if event.undo else state.restoring
    return replace(
        state,
        loops=loops,
        escalations={**state.escalations, **asked},
        fixes={id: other for id, other in state.fixes.items() if fix.steps.keys().isdisjoint(other.steps)},
        rollbacks=state.rollbacks.set(len(state.rollbacks), event),
        restoring=restoring,
    )


def _findings(state: RunState, fix: Fix, event: e.RolledBack) -> dict[int, TrackedFinding]:
    """The findings whose status changes. What the undone attempt said about a finding is forgotten."""
    return {
        id: replace(
            state.findings[id],
            status=status,
            resolution=fix.findings[id].resolution if id in fix.findings else state.findings[id].resolution,
        )
        for id, status in event.findings
    }


def _restored(now: StepState, before: StepState) -> StepState:
    """A step with what it had made and judged before. All that is counted stays counted."""
    return replace(
        now,
        artifact=before.artifact,
        last_version=max(now.last_version, now.artifact.version if now.artifact is not None else 0),
        session=before.session,
        replaced=before.replaced,
        condition_false=before.condition_false,
        condition=before.condition,
        repeats=before.repeats,
        repeats_granted=before.repeats_granted,
        verdict=before.verdict,
        open_findings=before.open_findings,
        evidence=before.evidence,
        files=before.files,
        overtaken=before.overtaken,
        rejudge=before.rejudge,
        unconfirmed=before.unconfirmed,
    )


def _undelivered(state: RunState, loop: Loop, before: Loop, shares: dict[str, tuple[int, ...]]) -> Loop:
    """A loop whose next round starts from the restored version. One that waits for a decision still does."""
    recent = loop.past_rounds
    if loop.delivered:
        recent = (*recent, PastRound(loop.round, loop.targets, loop.finding_ids))[-MAX_PAST_ROUNDS:]
    return replace(
        loop if loop.state is LoopState.ESCALATING else loop.resumed(),
        shares={target: Share(findings=ids) for target, ids in shares.items()},
        targets=tuple(shares),
        delivered=False,
        past_rounds=recent,
        severity=before.severity,
        blocking=before.blocking,
        reclassified=(),
        rollbacks=(*loop.rollbacks, len(state.rollbacks))[-MAX_PAST_ROUNDS:],
    )


def files_restored(state: RunState, event: e.FilesRestored) -> RunState:
    restoring = state.restoring
    assert restoring is not None
    for restored in event.workspaces.values():
        state = with_restored(state, restored.evidence, restoring.protected)
    files_kept = state.files_kept.set(len(state.rollbacks) - 1, True) if event.kept else state.files_kept
    return replace(state, restoring=None, files_kept=files_kept)
