"""What attempts changed in a workspace: noted when they end, and undone when they do not count any more."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.adapters.evidence.names import path_of
from backedge.adapters.evidence.store import Before, ChangedFile
from backedge.adapters.evidence.tree import Tree, differing
from backedge.adapters.evidence.undo import undo_plan
from backedge.adapters.evidence.writes import Undone, outside, restore
from backedge.adapters.judges.run_evidence import RunEvidence
from backedge.adapters.judges.workspace_evidence import WorkspaceEvidence
from backedge.core.evidence.values import RestoredFiles, RestoreRule


def note_changes(
    run: RunEvidence, step: str, attempt: int, before: Before, tree: Tree, others: Sequence[Sequence[str]]
) -> None:
    """Keep what is needed to undo the changes of an attempt later. `others` may have changed files meanwhile."""
    names = differing(before.tree, tree)
    own, sources = set(outside(before.tree, tree, (), others)), run.contents.with_sources(before, names)
    changed = {
        name: ChangedFile(
            before.tree.files.get(name),
            tree.files.get(name),
            sources.modes.get(name, 0),
            sources.blobs.get(name, ""),
            name not in own,
        )
        for name in names
    }
    run.store.save_changed(step, attempt, changed)


def undo_attempts(
    evidence: WorkspaceEvidence,
    run_id: str,
    attempts: Sequence[tuple[str, int]],
    judges: Sequence[str],
    rule: RestoreRule,
) -> RestoredFiles:
    """Undo what attempts changed, the last one first, and let judges remember what they did before. All files are restored,
    or none. May be called again after a crash."""
    run = evidence.of(run_id)
    tree = run.tree()
    if rule == "never":
        return RestoredFiles()
    plan = undo_plan([run.store.changed(*attempt) for attempt in attempts], tree)
    names = [*plan.restore, *plan.edited] if rule == "anyway" else plan.restore
    before = plan.kept(tree, run.store)
    lost = [name for name in names if name in before.tree.files and not _is_kept(before, tree, name)]
    if rule == "unless_edited" and (plan.edited or lost):
        return RestoredFiles(edited=tuple(plan.edited), lost=tuple(lost))
    undone = Undone(())
    if names:
        folder = AttemptFolder(evidence.settings.state, run_id, *attempts[0]).path
        with evidence.under_way.met(run_id, f"rollback of {attempts[0][0]}", list(map(path_of, names))):
            undone = undone_in(evidence, run, names, before, tree, folder)
    run.store.restore_memory(*attempts[-1], judges)
    return RestoredFiles(undone.files, lost=undone.left, patch=os.fspath(undone.patch or ""))


def undone_in(
    evidence: WorkspaceEvidence, run: RunEvidence, names: Sequence[str], before: Before, tree: Tree, folder: Path
) -> Undone:
    """Make files what they were. The change goes into the folder of the attempt, as a patch."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return restore(evidence.settings.folder, names, before, tree, run.store, folder)


def _is_kept(before: Before, tree: Tree, name: str) -> bool:
    """Whether the earlier content of a file can be found: in the store, in git, or in another file."""
    return name in before.kept or name in before.blobs or before.tree.files[name] in tree.files.values()
