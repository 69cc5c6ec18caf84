"""A git worktree for each story, so that parallel stories do not see each other's files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from backedge.adapters.agents.git_tree import ask, common_folder, repository_of
from backedge.adapters.evidence.around import git_settings_of_user
from backedge.adapters.evidence.caches import cached
from backedge.adapters.evidence.folder_looks import FolderLooks
from backedge.adapters.evidence.git_settings import git_settings
from backedge.core.errors import WorkflowError
from backedge.project import Project
from backedge.project.borrowed import is_borrowed
from backedge.project.delivery import everything
from backedge.project.git import GitRefused, answer, git
from backedge.project.worktrees import STORY, Worktree, checkout_of, folder_of, make, run_worktree, worktrees


def worktree_of(project: Project, folder: Path, id: str, first: bool = False) -> Path:
    """The folder of the project in the worktree of a story; created on the branch story/ID if it does not exist.

    Raises WorkflowError, also if this is the `first` run of the story and its branch already has commits of its own, or its
    folder files of its own: the agent of another story can make both, and a run trusts what it begins with."""
    tree = Worktree(id, folder_of(project) / id, branch_of(id))
    try:
        if first:
            _begin_at_head(folder, tree)
        return make(project, folder, tree)
    except GitRefused as error:
        if "not installed" in error.why:
            todo = "install it, or set it to false"
            raise WorkflowError(f"stories.worktree needs git, which is not installed: {todo}") from None
        raise WorkflowError(
            f"stories.worktree: {' '.join(str(error).split())}: it needs a repository with a commit; create one "
            "with `git init` and `git commit`, or set `worktree: false`"
        ) from None


def branch_of(id: str) -> str:
    """The branch of a story that has a worktree."""
    return f"{STORY}{id}"


def worktree_path(project: Project, id: str) -> Path | None:
    """The worktree of a story; None if it has none."""
    tree = folder_of(project) / id
    return tree if (tree / ".git").exists() else None


def unmerged(project: Project, folder: Path, ids: Iterable[str]) -> list[str]:
    """Those of some stories, in any case, whose work is in their worktrees and not in HEAD."""
    wanted = {id.casefold() for id in ids}
    found = []
    for tree in worktrees(project):
        if tree.of_story and tree.id.casefold() in wanted:
            ahead = answer(folder, "rev-list", "--count", tree.branch, "^HEAD") not in ("", "0")
            if ahead or everything(tree, "HEAD").files:
                found.append(tree.id)
    return found


def restored(project: Project, folder: Path, run: str, file: Path) -> None:
    """Create the worktree of a run again if its workflow file is missing with it. Raises WorkflowError."""
    trees = folder_of(project).resolve()
    if not file.is_relative_to(trees) or file.parent.is_dir():
        return
    name = file.relative_to(trees).parts[0]
    own = run_worktree(project, run)
    if name != own.id:
        worktree_of(project, folder, name)
        return
    try:
        make(project, folder, own)
    except GitRefused as error:
        raise WorkflowError(f"the worktree of run {run} is gone and cannot be made again: {error}") from None


def settings_of(folder: Path) -> dict[str, str]:
    """What decides, beside the commits, which files a new worktree gets: hooks, filters, replaced objects, also those of the
    user. Empty if the folder is not in a repository."""
    repository = repository_of(folder)
    if repository is None:
        return {}
    hooks = os.fsdecode(ask(folder, "config", "--path", "--get", "core.hooksPath") or b"").rstrip("\n")
    found = {"core.hooksPath": FolderLooks().at(os.path.join(folder, hooks))} if hooks else {}
    return {**found, **git_settings(common_folder(repository)), **git_settings_of_user(os.environ)}


def require_same_settings(folder: Path, before: Mapping[str, str]) -> None:
    """Raises WorkflowError if git would give a new worktree other files than before: agents of other stories work in the
    same repository."""
    changed = sorted({name for name, _ in before.items() ^ settings_of(folder).items()})
    if changed:
        raise WorkflowError(
            f"git's settings have changed since this command began: {', '.join(changed)}; a new worktree could get other "
            "files than those of the commit: look at them, then start the command again"
        )


def _begin_at_head(folder: Path, tree: Worktree) -> None:
    """Make sure that the worktree will begin as HEAD is. Raises WorkflowError if somebody's work would be lost."""
    if os.path.lexists(tree.path):
        _remove_unused(folder, tree.path, tree.id)
    if not git(folder, "branch", "--list", tree.branch):
        return
    if (commits := git(folder, "rev-list", "--count", tree.branch, "^HEAD")) != "0":
        raise WorkflowError(
            f"the branch {tree.branch} has {commits} commits that HEAD does not have, and no run of story {tree.id} has "
            f"made them: look at them (`git log HEAD..{tree.branch}`), then merge them, or rename or delete the branch"
        )
    git(folder, "worktree", "prune")
    # HEAD has all its commits, and perhaps tests that it does not have.
    git(folder, "branch", "--quiet", "--force", tree.branch, "HEAD")


def _remove_unused(folder: Path, tree: Path, id: str) -> None:
    """Remove a worktree in which no run has worked, so that it is made again as HEAD is: a killed process left it, or the
    agent of another story made it. Raises WorkflowError if there is anything in it that would be lost."""
    ours, theirs = repository_of(folder), repository_of(tree) if (tree / ".git").is_file() else None
    if ours is not None and theirs is not None and common_folder(theirs).resolve() == common_folder(ours).resolve():
        said = git(tree, "-c", "core.fsmonitor=false", "status", "--porcelain", "--ignored").splitlines()
        names = [line.split(maxsplit=1)[1] for line in said]
        top = checkout_of(tree)
        found = [
            name for name in names if not cached(name.rstrip("/")) and not is_borrowed(top, tree, name.rstrip("/"))
        ]
    else:
        found = ["a repository of its own, or none"]
    if found:
        raise WorkflowError(
            f"{str(tree)!r} is there already, and no run of story {id} has made it: it has {', '.join(found[:5])}; "
            f"look at it, then remove it (`git worktree remove --force {str(tree)!r}`, or delete the folder)"
        )
    git(folder, "worktree", "remove", "--force", str(tree))
