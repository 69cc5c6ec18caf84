"""Where the git repository of a workspace lies: in it, above it, or elsewhere if the workspace is a worktree."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class GitFolders(NamedTuple):
    """The parts of a repository that a workspace uses. For an ordinary repository all three are the same folder."""

    entry: Path
    """The `.git` that git finds: a folder, or the file of a worktree or submodule that names the folder."""
    own: Path
    """HEAD and index."""
    common: Path
    """Objects, branches, hooks and configuration."""

    @property
    def outermost(self) -> tuple[Path, ...]:
        """The folders, without those that lie in another one."""
        return (self.common,) if self.own.is_relative_to(self.common) else (self.common, self.own)


def git_folders(workspace: Path) -> GitFolders | None:
    """The repository of a workspace; None if there is none, or if its parts are missing."""
    here = Path(os.path.realpath(workspace))
    for folder in (here, *here.parents):
        entry = folder / ".git"
        if entry.is_dir():
            real = Path(os.path.realpath(entry))
            return GitFolders(entry, real, real)
        if entry.is_file():
            return _named_by(entry)
    return None


def _named_by(entry: Path) -> GitFolders | None:
    own = _path_in(entry, "gitdir:")
    if own is None or not own.is_dir():
        return None
    common = _path_in(own / "commondir") or own
    return GitFolders(entry, own, common) if common.is_dir() else None


def _path_in(file: Path, label: str = "") -> Path | None:
    """The path that a file of git names, relative to the folder of that file."""
    try:
        named = os.fsdecode(file.read_bytes()).strip().removeprefix(label).strip()
    except OSError:
        return None
    return Path(os.path.realpath(file.parent / named))
