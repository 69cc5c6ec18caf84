"""The folders of rooms: one per open room, locked for as long as something uses it, and the copies that are kept.

    rooms.lock          held for a moment by a process that makes or removes a room
    rooms/NAME/         one open room: its lock, its plan, its layers
    copies/KEY/1/       a kept copy of a workspace, and the name of the room that uses it
    bytecode/PRINT/     compiled Python of an environment, by its fingerprint

The lock of a room is shared by the process that opened it and by the program inside. After a crash of backedge the program
keeps its room; when both are gone, the next process removes it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from backedge.adapters.evidence.kept_copy import KeptCopy, remove_tree
from backedge.adapters.evidence.room_plan import RoomPlan


class RoomFolder:
    """The folder of one room, and our share of its lock."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path, self._lock = path, lock
        self.plan_file, self.lock_file, self.failed = path / "plan", path / "lock", path / "failed"

    @classmethod
    def make(cls, scratch: Path) -> RoomFolder:
        path = scratch / "rooms" / secrets.token_hex(8)
        with _alone(scratch):
            path.mkdir(parents=True, mode=0o700)
            return cls._locked(path)

    @classmethod
    def found(cls, scratch: Path, name: str) -> RoomFolder | None:
        """A room that an earlier process opened; None if it is gone."""
        path = scratch / "rooms" / name
        with _alone(scratch):
            return cls._locked(path) if (path / "plan").exists() else None

    @classmethod
    def _locked(cls, path: Path) -> RoomFolder:
        lock = os.open(path / "lock", os.O_RDONLY | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_SH)
        return cls(path, lock)

    def remove(self) -> None:
        """Remove the folder, with layers that are elsewhere. Doing it twice does no harm."""
        if self._lock >= 0:
            _remove_room(self.path)
            os.close(self._lock)
            self._lock = -1

    def copy_of(self, scratch: Path, workspace: Path) -> KeptCopy:
        """A copy of the workspace that no other room uses. It is this room's until the room is removed."""
        copies = scratch / "copies" / sha256(os.fsencode(workspace)).hexdigest()[:16]
        with _alone(scratch):
            number = 1
            while _used(scratch, copies / str(number)):
                number += 1
            folder = copies / str(number)
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (folder / "room").write_text(self.path.name)
        return KeptCopy(folder)


def leftover_rooms(scratch: Path, keep: Collection[str] = ()) -> list[str]:
    """Remove rooms that no process uses any more: what a killed process left. Returns their names. Rooms in `keep` stay,
    because an attempt that is about to be adopted used them."""
    rooms = scratch / "rooms"
    if not rooms.is_dir():
        return []
    removed = []
    with _alone(scratch):
        for path in sorted(rooms.iterdir()):
            if path.name not in keep and not _locked_by_any(path):
                _remove_room(path)
                removed.append(path.name)
    return removed


def _used(scratch: Path, copy: Path) -> bool:
    with suppress(OSError):
        return _locked_by_any(scratch / "rooms" / (copy / "room").read_text())
    return False


def _locked_by_any(room: Path) -> bool:
    try:
        lock = os.open(room / "lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _remove_room(path: Path) -> None:
    plan = RoomPlan.load(path / "plan")
    if plan is not None and plan.layers:
        remove_tree(Path(os.fsdecode(plan.layers)))
    remove_tree(path)


@contextmanager
def _alone(scratch: Path) -> Iterator[None]:
    """Be the only process that makes, takes or removes rooms."""
    scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(scratch / "rooms.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
