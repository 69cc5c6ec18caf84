"""Folders for the reports of judges, outside of everything that an agent can reach, with names that nobody can guess."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path
from secrets import token_hex

_NAME = re.compile(r"[0-9a-f]{16}")
_PATIENCE = 24 * 3600.0
"""Seconds after which the report of a judge without a room is certainly of no use any more."""


class ReportFolder:
    """The folder for one report. The name of the room that it belongs to is in a file beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._room = path.with_name(f"{path.name}.room")

    def belongs_to(self, room: str) -> None:
        self._room.write_text(room)

    @property
    def room(self) -> str:
        try:
            return self._room.read_text()
        except OSError:
            return ""

    def remove(self) -> None:
        """Doing it twice does no harm."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._room.unlink(missing_ok=True)


class ReportFolders:
    """The folders for all reports of a project."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def make(self) -> ReportFolder:
        made = ReportFolder(self._folder / token_hex(8))
        made.path.mkdir(parents=True, mode=0o700)
        return made

    def found(self, report: str) -> ReportFolder | None:
        """The folder of a report that an earlier process wanted; None if it is not one of these."""
        path = Path(report).parent
        return ReportFolder(path) if path.parent == self._folder and _NAME.fullmatch(path.name) else None

    def sweep(self, rooms: Path) -> None:
        """Remove the folders that killed processes left: those whose room is gone."""
        for path in [each for each in self._folder.glob("*") if _NAME.fullmatch(each.name)]:
            left = ReportFolder(path)
            if not (rooms / left.room).is_dir() if left.room else _age(path) > _PATIENCE:
                left.remove()


def _age(path: Path) -> float:
    try:
        return time.time() - os.lstat(path).st_mtime
    except OSError:
        return 0.0
