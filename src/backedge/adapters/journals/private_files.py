"""The rights of a journal and its folder: what we create is for its user only, what exists stays as it is.

The folder has prompts, logs and outputs of agents in it. A team that shares a journal on one machine makes the folder for
it, or the folder above it, writable by its group (`chmod g+ws`). Then what we create in it is for that group too.
"""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from pathlib import Path

STATE_FOLDER = ".backedge"
"""The folder of a project's state, beside its workflow file."""
_creating = threading.Lock()


def private_folder(path: Path) -> None:
    """Make the folder if there is none. The folder of a project keeps itself out of git from the beginning, so that nobody
    has to change a .gitignore. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Many systems make every folder writable by the group of its user, which is that user alone: only the set-group-id
    # bit shows that a folder is shared.
    shared = _mode(path.parent) & stat.S_ISGID and _for_group(path.parent)
    path.mkdir(exist_ok=True, mode=0o770 if shared else 0o700)
    if path.name == STATE_FOLDER and not (path / ".gitignore").exists():
        with suppress(OSError):  # the folder may be read-only, and its journal still readable
            (path / ".gitignore").write_text("*\n", encoding="utf-8")


def private_file(path: Path) -> None:
    """Make an empty file if there is none. SQLite gives its other files the same rights."""
    # Closing a descriptor drops the locks that SQLite has on the same file: no thread opens it before it is closed here.
    with _creating, suppress(OSError):  # SQLite will say why it cannot be made
        mode = 0o660 if _for_group(path.parent) else 0o600
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode))


def _for_group(folder: Path) -> bool:
    return bool(_mode(folder) & stat.S_IWGRP) and not _mode(folder) & stat.S_IWOTH


def _mode(path: Path) -> int:
    return path.stat().st_mode
