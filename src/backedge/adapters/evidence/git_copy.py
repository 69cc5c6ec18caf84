"""A git folder for a copy of a workspace: it reads the objects of the real repository and writes only to itself."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from backedge.adapters.evidence.git_folders import GitFolders

_OWN = ("HEAD", "index", "ORIG_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")
_COMMON = ("config", "packed-refs", "shallow", "refs", "info", "modules")


def add_git(git: GitFolders, target: Path, linked: bool) -> None:
    """Add what git needs to a copy of a workspace. If `linked`, the real git folder will lie over it."""
    if not linked:
        copy_git(git, target)
    elif git.entry.is_file():
        shutil.copyfile(git.entry, target)


def copy_git(git: GitFolders, target: Path) -> None:
    """Make `target` a git folder like that of the workspace, without hooks. Tools can ask it for tags and changes."""
    target.mkdir(parents=True)
    for folder, names in ((git.common, _COMMON), (git.own, _OWN)):
        for name in names:
            source = folder / name
            if source.is_dir():
                shutil.copytree(source, target / name, symlinks=True)
            elif source.is_file():
                shutil.copyfile(source, target / name)
    (target / "refs").mkdir(exist_ok=True)
    (target / "objects" / "info").mkdir(parents=True)
    objects = (git.common / "objects", *_alternates(git.common / "objects"))
    (target / "objects" / "info" / "alternates").write_bytes(b"".join(os.fsencode(each) + b"\n" for each in objects))
    with (target / "config").open("a", encoding="utf-8") as config:
        # A submodule names its work tree, and a bare repository with worktrees says that it has none.
        config.write("\n[core]\n\tbare = false\n\tworktree = ..\n")


def _alternates(objects: Path) -> list[Path]:
    """Where else the repository reads its objects, as absolute paths: relative ones would begin at the copy."""
    try:
        lines = (objects / "info" / "alternates").read_bytes().splitlines()
    except OSError:
        return []
    return [Path(os.path.realpath(objects / os.fsdecode(line))) for line in lines if line and not line.startswith(b"#")]
