"""Folders for the reports of judges, outside of everything that an agent can reach, with names that nobody can guess."""

from __future__ import annotations

import fcntl
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
    """The folder for one report. The name of the room that it belongs to is in a file beside it. Until that is known, the
    process that made the folder holds a lock on it."""

    def __init__(self, path: Path, lock: int = -1) -> None:
        self.path, self._lock = path, lock
        self._room = path.with_name(f"{path.name}.room")

    def belongs_to(self, room: str) -> None:
        """Name the room; empty if the judge works without one."""
        self._room.write_text(room)
        self._unlock()

    @property
    def room(self) -> str | None:
        """The name of its room, empty without one; None while nobody has named it."""
        try:
            return self._room.read_text()
        except OSError:
            return None

    def remove(self) -> None:
        """Doing it twice does no harm."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._room.unlink(missing_ok=True)
        self._unlock()

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


class ReportFolders:
    """The folders for all reports of a project."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def make(self) -> ReportFolder:
        while True:
            path = self._folder / token_hex(8)
            path.mkdir(parents=True, mode=0o700)
            lock = _locked(path)
            if lock >= 0 and path.is_dir():  # another process may have swept it before it was locked
                return ReportFolder(path, lock)
            if lock >= 0:
                os.close(lock)

    def found(self, report: str) -> ReportFolder | None:
        """The folder of a report that an earlier process wanted; None if it is not one of these."""
        path = Path(report).parent
        return ReportFolder(path) if path.parent == self._folder and _NAME.fullmatch(path.name) else None

    def sweep(self, rooms: Path) -> None:
        """Remove the folders that killed processes left: those whose room is gone, or which never got one."""
        for path in [each for each in self._folder.glob("*") if _NAME.fullmatch(each.name)]:
            room = ReportFolder(path).room
            if room is None:
                lock = _locked(path)
                if lock >= 0 and ReportFolder(path).room is None:
                    ReportFolder(path, lock).remove()
                elif lock >= 0:
                    os.close(lock)
            elif not (rooms / room).is_dir() if room else _age(path) > _PATIENCE:
                ReportFolder(path).remove()


def _locked(path: Path) -> int:
    """A lock on a folder that ends with this process; -1 if another process has it, or the folder is gone."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return -1
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return -1
    return lock


def _age(path: Path) -> float:
    try:
        return time.time() - os.lstat(path).st_mtime
    except OSError:
        return 0.0
