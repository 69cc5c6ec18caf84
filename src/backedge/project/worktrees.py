"""Git worktrees of a project: where they are, how they are made and removed. Stories and single runs share them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from backedge.adapters.agents.file_name import file_name
from backedge.adapters.evidence.git_folders import git_folders
from backedge.adapters.journals.private_files import private_folder
from backedge.core.errors import WorkflowError
from backedge.project.borrowed import borrow, imports
from backedge.project.git import GitRefused, answer, git, names
from backedge.project.location import Project
from backedge.project.project import origin_of

FOLDER = "worktrees"
RUN, STORY = "backedge/", "story/"
"""How the branches of runs and of stories begin."""


@dataclass(frozen=True)
class Worktree:
    """A worktree of a run or of a story."""

    id: str
    """The name of its folder: the id of the story, or that of the run."""
    path: Path
    branch: str

    @property
    def of_story(self) -> bool:
        return self.branch.startswith(STORY)


def folder_of(project: Project) -> Path:
    return project.state / FOLDER


def run_worktree(project: Project, run: str) -> Worktree:
    """Where the worktree of a run is, if it has one."""
    name = file_name(run)
    return Worktree(name, folder_of(project) / name, f"{RUN}{name}")


def has_worktree(project: Project, run: str) -> bool:
    """Whether a run that is not one of a story works in a worktree that is still there."""
    tree = run_worktree(project, run).path
    return tree.is_dir() and origin_of(project, run).is_relative_to(tree.resolve())


def worktree_in_use(project: Project, run: str) -> Worktree | None:
    """The worktree in which a run works, its own or that of its story; None if it has none, or if it is gone."""
    own = run_worktree(project, run)
    if has_worktree(project, run):
        return own
    inside = enclosing(project, origin_of(project, run))
    if inside is None or not inside.is_dir() or inside.name == own.id:
        return None
    return Worktree(inside.name, folder_of(project) / inside.name, f"{STORY}{inside.name}")


def enclosing(project: Project, folder: Path) -> Path | None:
    """The worktree of this project that a folder is in; None if it is in none."""
    trees, inside = folder_of(project).resolve(), folder.resolve()
    return trees / inside.relative_to(trees).parts[0] if trees in inside.parents else None


def checkout_of(tree: Path) -> Path:
    """The top of the checkout that a worktree belongs to: the one around it, or the repository's own."""
    around = next((folder for folder in tree.parents if (folder / ".git").exists()), None)
    found = git_folders(tree)
    return around or (found.common.parent if found is not None else tree)


def imports_in(project: Project, folder: Path) -> dict[str, str]:
    """What the environment of agents and judges has in addition if they work in a worktree of this project."""
    tree = enclosing(project, folder)
    return {} if tree is None else imports(checkout_of(tree), tree, os.environ)


def make(project: Project, folder: Path, tree: Worktree) -> Path:
    """Make a worktree, or make it again on its branch. Returns the counterpart of `folder` in it. Raises GitRefused."""
    top = Path(git(folder, "rev-parse", "--show-toplevel"))
    if not (tree.path / ".git").exists():
        _ignored(project.state)
        git(folder, "worktree", "prune")
        known = git(folder, "branch", "--list", tree.branch)
        more = [str(tree.path), tree.branch] if known else ["-b", tree.branch, str(tree.path)]
        git(folder, "worktree", "add", "--quiet", *more)
        borrow(top, tree.path)
    return tree.path / os.path.relpath(folder.resolve(), top.resolve())


def start(project: Project, folder: Path, run: str) -> tuple[Worktree, Path, str]:
    """Make the worktree of a new run from HEAD. Returns it with the counterpart of `folder` in it, and the commit.

    Raises WorkflowError with what is wrong with the repository."""
    tree = run_worktree(project, run)
    try:
        git(folder, "rev-parse", "--show-toplevel")
    except GitRefused as error:
        missing = "not installed" in error.why
        todo = "install git" if missing else "run `git init` and commit your files first"
        raise WorkflowError(
            f"--worktree needs a git repository, and {folder} is in none{' (git is not installed)' if missing else ''}: "
            f"{todo}, or run without --worktree"
        ) from None
    commit = answer(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if not commit:
        raise WorkflowError(
            "--worktree starts from the last commit, and this repository has none: commit your files first"
        )
    if enclosing(project, folder) is not None:
        raise WorkflowError("this folder is a worktree that backedge made: run --worktree in the main checkout")
    if modules := submodules(folder):
        raise WorkflowError(
            f"--worktree: the repository has submodules ({', '.join(modules[:5])}), which would be empty in a worktree: "
            "run without --worktree"
        )
    if tree.path.exists() or answer(folder, "branch", "--list", tree.branch):
        raise WorkflowError(
            f"the branch {tree.branch} or the folder {tree.path} already exists: choose another id with --run, or remove it "
            f"with `backedge worktrees remove {tree.id}`"
        )
    try:
        inside = make(project, folder, tree)
    except GitRefused as error:
        remove(folder, tree)
        raise WorkflowError(f"--worktree: {error}") from None
    if not inside.is_dir():
        remove(folder, tree)
        raise WorkflowError(f"--worktree: the last commit has no folder {inside.name!r}: commit your files first")
    return tree, inside, commit


def submodules(folder: Path) -> list[str]:
    """The submodules of the repository, by their paths from its top."""
    top = Path(git(folder, "rev-parse", "--show-toplevel"))
    listed = names(top, "ls-files", "-s", "-z")
    return [line.partition("\t")[2] for line in listed if line.startswith("160000 ")]


def remove(folder: Path, tree: Worktree, keep_branch: bool = False) -> None:
    """Remove a worktree with everything in it, and its branch. What is gone already is left out."""
    if tree.path.exists():
        try:
            git(folder, "worktree", "remove", "--force", "--force", str(tree.path))
        except GitRefused:  # git no longer knows it: then it is a folder like any other
            shutil.rmtree(tree.path, ignore_errors=True)
    answer(folder, "worktree", "prune")
    if not keep_branch and answer(folder, "branch", "--list", tree.branch):
        git(folder, "branch", "--quiet", "-D", tree.branch)


def worktrees(project: Project) -> Iterator[Worktree]:
    """The worktrees that are there, in the order of their names."""
    try:
        found = sorted(each for each in folder_of(project).iterdir() if each.is_dir())
    except FileNotFoundError:
        return
    for path in found:
        runs = answer(path, "rev-parse", "--verify", "--quiet", f"refs/heads/{RUN}{path.name}")
        yield Worktree(path.name, path, f"{RUN if runs else STORY}{path.name}")


def _ignored(state: Path) -> None:
    """Keep the worktrees out of their repository."""
    private_folder(state)
    if not (state / ".gitignore").exists():
        (state / ".gitignore").write_text("*\n", encoding="utf-8")
