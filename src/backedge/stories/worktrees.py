"""A git worktree per story, so that stories that are worked on side by side do not see each other's files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from backedge.core.errors import WorkflowError
from backedge.project import Project

FOLDER = "worktrees"


def worktree_of(spot: Project, folder: Path, id: str) -> Path:
    """The folder of the project in the worktree of a story, made on the branch story/ID if it is not there.

    Raises WorkflowError."""
    top = Path(_git(folder, "rev-parse", "--show-toplevel"))
    place = spot.state / FOLDER / id
    inside = place / os.path.relpath(folder.resolve(), top.resolve())
    if not (place / ".git").exists():
        _ignored(spot.state)
        branch = f"story/{id}"
        _git(folder, "worktree", "prune")
        known = _git(folder, "branch", "--list", branch)
        more = [str(place), branch] if known else ["-b", branch, str(place)]
        _git(folder, "worktree", "add", "--quiet", *more)
    return inside


def restored(spot: Project, folder: Path, file: Path) -> None:
    """Make the worktree again that a workflow file stands in, if it is gone. Raises WorkflowError."""
    trees = spot.state.resolve() / FOLDER
    if file.is_relative_to(trees) and not file.parent.is_dir():
        worktree_of(spot, folder, file.relative_to(trees).parts[0])


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise WorkflowError("stories.worktree needs git, which is not installed: install it, or say false") from None
    if done.returncode:
        why = " ".join(done.stderr.split())
        raise WorkflowError(
            f"stories.worktree: git {words[0]} failed: {why}: a repository with a first commit is needed; make one "
            "with `git init` and `git commit`, or say `worktree: false`"
        )
    return done.stdout.strip()


def _ignored(state: Path) -> None:
    """Keep worktrees out of the repository that they are made from."""
    state.mkdir(parents=True, exist_ok=True)
    if not (state / ".gitignore").exists():
        (state / ".gitignore").write_text("*\n", encoding="utf-8")
