"""Compiled Python that judges share, kept outside the workspace by the fingerprint of the environment.

Bytecode beside the source can be forged: Python believes it if the time and size in it are those of the source. A cold
cache costs seconds, so it is kept. Only a run on the files of the start may fill it, and what it compiled of the workspace
itself is dropped: the time of a file there can be set at will.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from backedge.adapters.evidence.kept_copy import remove_tree

MOST_KEPT = 3
"""How many environments have their bytecode kept."""


def kept_bytecode(scratch: Path, fingerprint: str) -> Path:
    """The folder for the bytecode of an environment. Those that were not used for the longest time are removed."""
    folder = scratch / "bytecode" / fingerprint
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.utime(folder)
    for old in sorted(folder.parent.iterdir(), key=_last_used, reverse=True)[MOST_KEPT:]:
        remove_tree(old)
    return folder


def drop_workspace(bytecode: Path, workspace: Path) -> None:
    """Remove what was compiled of the workspace, but not of virtual environments in it."""
    below = bytecode / os.fspath(workspace).lstrip("/")
    with suppress(FileNotFoundError):
        for each in list(below.iterdir()):
            if not (workspace / each.name / "pyvenv.cfg").exists():
                remove_tree(each)


def _last_used(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0
