"""Rolls back a rework that made things worse: the versions before it count again, with the verdicts about them.

No judge runs again for a restored version: what it consumed is what it consumed before. The round stays counted, so a run
with rollbacks ends as soon as one without. The files of the workspace are restored by the shell, which reports it.
"""

from __future__ import annotations

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import IllegalCommand
from backedge.core.escalation.opening import ask_about_files
from backedge.core.feedback.closing import close_loop
from backedge.core.feedback.judging import deliver_round, shares_of
from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.feedback.undoable import counts_of, obstacle
from backedge.core.model import Resolution, Status
from backedge.core.scheduling.pending import files_to_restore
from backedge.core.scheduling.scheduler import all_reported
from backedge.core.state.fixes import is_judged
from backedge.core.state.run import Fix, RunState
from backedge.core.transaction import Transaction


def roll_back_worse(tx: Transaction) -> bool:
    """Roll back a fix that left more or graver findings, once all judges have reported; False if there is none."""
    state = tx.state
    if not state.graph.rolls_back:
        return False
    for id, fix in state.fixes.items():
        loop = state.loop(id)
        if loop is None or loop.source not in state.graph.rolls_back or not is_judged(state, id):
            continue
        before, after = counts_of(state, fix)
        if after <= before or _person_is_asked(state, fix) or obstacle(state, id) is not None:
            continue
        if all_reported(state, fix.steps):
            _roll_back(tx, id, fix)
            return True
    return False


def _person_is_asked(state: RunState, fix: Fix) -> bool:
    """Whether a person decides about one of the loops for another reason than a limit. They may choose to roll back."""
    loops = (loop for loop in state.loops.values() if loop.by_verdict and loop.source in fix.steps)
    return any(loop.state is LoopState.ESCALATING and loop.breach is None for loop in loops)


def refusal(state: RunState, loop: Loop) -> str | None:
    """Why a person cannot have the last fix of a loop rolled back now; None if they can."""
    problem = obstacle(state, loop.id)
    if problem is not None:
        return f"the last fix of {loop.id} cannot be rolled back: {problem}"
    running = [name for name in state.fixes[loop.id].steps if state.steps[name].running is not None]
    if running:
        return f"{running[0]} is running, and works on the version that would be given up: decide when it has ended"
    return None


def roll_back(tx: Transaction, loop: Loop, by: str) -> None:
    """Roll back the last fix of a loop, because a person decided so."""
    _roll_back(tx, loop.id, tx.state.fixes[loop.id], by)


def _roll_back(tx: Transaction, id: str, fix: Fix, by: str = "") -> None:
    state = tx.state
    before, after = counts_of(state, fix)
    caused, findings = _caused(state, fix), _findings(state, fix)
    changed = {
        name: (old.artifact.version, now.version)
        for name, old in fix.steps.items()
        if old.artifact is not None and (now := state.steps[name].artifact) is not None and now != old.artifact
    }
    closed = _close_new_loops(tx, fix)
    resolved = [loop for loop in fix.loops.values() if loop.id not in tx.state.loops]
    tx.add(
        e.RolledBack(
            tx.now,
            id,
            fix.round,
            fix.targets,
            {name: old for name, (old, _) in changed.items()},
            {name: now for name, (_, now) in changed.items()},
            fix.attempts,
            findings,
            caused,
            {loop.id: _shares(tx, loop, fix) for loop in fix.loops.values() if loop.id in tx.state.loops},
            before,
            after,
            closed,
            _files_to_undo(state, fix),
            by,
        )
    )
    for loop in resolved:
        _continue(tx, loop, fix)


def _caused(state: RunState, fix: Fix) -> tuple[int, ...]:
    """The findings that are open after the fix and were not before it."""
    return tuple(
        id for name, old in fix.steps.items() for id in state.steps[name].open_findings if id not in old.open_findings
    )


def _findings(state: RunState, fix: Fix) -> tuple[tuple[int, Status], ...]:
    """The findings whose status changes: as before the fix, or rolled back if only the later versions had them. What a
    person has accepted stays accepted."""
    ids = set(range(len(fix.findings) + 1, len(state.findings) + 1))
    for name, old in fix.steps.items():
        for step in (old, state.steps[name]):
            ids |= {*step.open_findings, *(id for id, _ in step.unconfirmed.items())}
    found: list[tuple[int, Status]] = []
    for id in sorted(ids):
        now = state.findings[id]
        status = fix.findings[id].status if id in fix.findings else Status.ROLLED_BACK
        if now.found_by in fix.steps and now.status not in (status, Status.ACCEPTED):
            found.append((id, status))
    return tuple(found)


def _close_new_loops(tx: Transaction, fix: Fix) -> tuple[str, ...]:
    """Close the loops that judges opened about the versions that are given up. Returns which."""
    loops = tx.state.loops.values()
    new = [loop for loop in loops if loop.by_verdict and loop.source in fix.steps and loop.id not in fix.loops]
    for loop in new:
        gone = f"it was about version {_versions(tx.state, fix)}, which was rolled back"
        close_loop(tx, loop, LoopState.CANCELLED, Resolution(LoopState.CANCELLED, text=gone))
    return tuple(loop.id for loop in new)


def _versions(state: RunState, fix: Fix) -> str:
    made = ((name, state.steps[name].artifact) for name in fix.targets)
    return ", ".join(f"{artifact.version} of {name}" for name, artifact in made if artifact is not None)


def _shares(tx: Transaction, old: Loop, fix: Fix) -> dict[str, tuple[int, ...]]:
    """What each target has to fix again. A finding that a person has reclassified since goes to its new phase."""
    ids = old.finding_ids
    if any(tx.state.findings[id].reclassified != fix.findings[id].reclassified for id in ids):
        return shares_of(tx, old, ids)[0]
    return {target: share.findings for target, share in old.shares.items()}


def _continue(tx: Transaction, old: Loop, fix: Fix) -> None:
    """Continue a loop whose judge had passed the fix. A closed loop stays closed, so another one takes over its rounds."""
    tx.add(e.LoopOpened(tx.now, tx.next_loop(), old.kind, old.source, follows=old.id, carries=True))
    loop = list(tx.state.loops.values())[-1]
    deliver_round(tx, loop, _shares(tx, old, fix), {})


def _files_to_undo(state: RunState, fix: Fix) -> dict[str, tuple[tuple[str, int], ...]]:
    """The attempts whose changes of files backedge saw, by workspace, the last one first."""
    undo: dict[str, tuple[tuple[str, int], ...]] = {}
    for step, attempt in reversed(fix.attempts):
        seen = state.steps[step].evidence
        if seen.tree:
            undo[seen.workspace] = (*undo.get(seen.workspace, ()), (step, attempt))
    return undo


def report_restored(tx: Transaction, command: c.ReportRestored) -> None:
    """Record that files are restored, or ask a person about those that were edited since."""
    state = tx.state
    if files_to_restore(state) is None or state.restoring is None:
        raise IllegalCommand("no rollback waits for its files: report them only when the engine requests it")
    rule, found = state.restoring.rule, command.workspaces.values()
    problem = any(each.problem for each in found)
    if (problem and rule != "never") or (rule == "unless_edited" and any(each.edited or each.lost for each in found)):
        ask_about_files(tx, command.workspaces)
    else:
        tx.add(e.FilesRestored(tx.now, command.workspaces, rule == "never"))
