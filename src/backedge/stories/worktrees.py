"""A git worktree for each story, so that parallel stories do not see each other's files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from backedge.adapters.journals.private_files import private_folder
from backedge.core.errors import WorkflowError
from backedge.project import Project

FOLDER = "worktrees"


def worktree_of(project: Project, folder: Path, id: str, first: bool = False) -> Path:
    """The folder of the project in the worktree of a story; created on the branch story/ID if it does not exist.

    Raises WorkflowError, also if this is the `first` run of the story and its branch already has commits of its own: the
    agent of another story can make any branch, and a run trusts what it begins with."""
    top = Path(_git(folder, "rev-parse", "--show-toplevel"))
    tree = project.state / FOLDER / id
    inside = tree / os.path.relpath(folder.resolve(), top.resolve())
    branch = f"story/{id}"
    known = _git(folder, "branch", "--list", branch)
    if known and first and (commits := _git(folder, "rev-list", "--count", branch, "^HEAD")) != "0":
        raise WorkflowError(
            f"the branch {branch} has {commits} commits that HEAD does not have, and no run of story {id} has made them: "
            f"look at them (`git log HEAD..{branch}`), then merge them, or rename or delete the branch"
        )
    if not (tree / ".git").exists():
        _ignored(project.state)
        _git(folder, "worktree", "prune")
        more = [str(tree), branch] if known else ["-b", branch, str(tree)]
        _git(folder, "worktree", "add", "--quiet", *more)
    return inside


def restored(project: Project, folder: Path, file: Path) -> None:
    """Create the worktree of a workflow file again if it is missing. Raises WorkflowError."""
    trees = project.state.resolve() / FOLDER
    if file.is_relative_to(trees) and not file.parent.is_dir():
        worktree_of(project, folder, file.relative_to(trees).parts[0])


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise WorkflowError(
            "stories.worktree needs git, which is not installed: install it, or set it to false"
        ) from None
    if done.returncode:
        why = " ".join(done.stderr.split())
        raise WorkflowError(
            f"stories.worktree: git {words[0]} failed: {why}: it needs a repository with a commit; create one "
            "with `git init` and `git commit`, or set `worktree: false`"
        )
    return done.stdout.strip()


def _ignored(state: Path) -> None:
    """Keep the worktrees out of their repository."""
    private_folder(state)
    if not (state / ".gitignore").exists():
        (state / ".gitignore").write_text("*\n", encoding="utf-8")
