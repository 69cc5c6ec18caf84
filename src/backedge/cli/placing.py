"""`run --worktree`: the workflow file in a worktree of its own, which is removed again if the run never begins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from backedge.adapters.evidence.caches import ENVIRONMENTS, PACKAGES
from backedge.adapters.journals.opening import open_journal
from backedge.config import WorkflowFile
from backedge.config.workflow_file import workflow_file
from backedge.core.errors import WorkflowError
from backedge.core.text import counted
from backedge.project import Project
from backedge.project.delivery import listed, record_start
from backedge.project.git import git, names
from backedge.project.worktrees import Worktree, remove, start

_INSTALLED = {PACKAGES, *ENVIRONMENTS}


@contextmanager
def placed(source: WorkflowFile, spot: Project, run: str, remark: Callable[[str], None]) -> Iterator[WorkflowFile]:
    """The workflow file in a new worktree, as it is in the last commit. Raises WorkflowError if that is another one.

    If nothing of the run is recorded at the end, the worktree and its branch are removed."""
    tree, inside, commit = start(spot, source.folder, run)
    try:
        left_behind = _uncommitted(source)
        there = workflow_file(source.data, inside / source.path.name)
        _require_inside(there, tree)
        record_start(spot, run, commit)
        remark(f"worktree {tree.path}, branch {tree.branch}, from {git(source.folder, 'log', '-1', '--format=%h %s')}")
        if left_behind:
            few = len(left_behind) == 1
            remark(
                f"the run does not see {counted(len(left_behind), 'change')} of yours that {'is' if few else 'are'} not "
                f"committed: {listed(left_behind)}"
            )
        yield there
    finally:
        if not asyncio.run(_began(spot, run)):
            remove(source.folder, tree)


async def _began(spot: Project, run: str) -> bool:
    if not spot.journal.exists():
        return False
    journal = open_journal(spot.journal)
    try:
        return bool(await journal.read(run))
    finally:
        await journal.close()


def _uncommitted(source: WorkflowFile) -> list[str]:
    """What is not committed, by path from the top of the repository. Raises WorkflowError if the run needs some of it."""
    top = Path(git(source.folder, "rev-parse", "--show-toplevel")).resolve()
    changed = names(top, "diff", "--name-only", "--no-renames", "-z", "HEAD")
    committed = {*names(top, "ls-tree", "-r", "--name-only", "-z", "HEAD")} - {*changed}
    needed = sorted(str(path.relative_to(top)) for path in _needed(source) if path.is_relative_to(top))
    missing = [path for path in dict.fromkeys(needed) if path not in committed]
    if missing:
        raise WorkflowError(
            f"--worktree starts from the last commit, which does not have {listed(missing)} as it is now: commit it first, or "
            "run without --worktree"
        )
    return sorted({*changed, *names(top, "ls-files", "-o", "--exclude-standard", "-z")})


def _needed(source: WorkflowFile) -> Iterator[Path]:
    """The workflow file, the files it names, and the scripts in its command lines."""
    yield source.path.resolve()
    yield from ((source.folder / name).resolve() for name in source.files)
    for step in source.definition.steps:
        extras = source.steps.get(step.name)
        for agent in step.agents if extras is not None else ():
            for word in source.agents[agent].run if agent in source.agents else ():
                assert extras is not None
                path = extras.workspace / word
                if not Path(word).is_absolute() and not _INSTALLED & set(Path(word).parts) and path.is_file():
                    yield path.resolve()


def _require_inside(source: WorkflowFile, tree: Worktree) -> None:
    top = tree.path.resolve()
    outside = {name: each.workspace for name, each in source.steps.items() if not each.workspace.is_relative_to(top)}
    if outside:
        step, workspace = next(iter(outside.items()))
        raise WorkflowError(
            f"--worktree: step {step!r} works in {workspace}, which is not in the repository: nothing there would be separate; "
            "run without --worktree, or correct `workspace`"
        )
