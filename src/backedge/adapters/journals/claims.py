"""Claims on runs, as byte-range locks on the journal file. The system drops them when their process dies.

The locks are on bytes far behind the end of the file and behind those that SQLite locks. They are on the journal file
itself, because a separate lock file could be deleted while its locks are held. Then two processes could hold one run.

Closing any descriptor of a file drops the POSIX locks that a process has on it, SQLite's among them. So all users of a
journal in one process share one descriptor, which is closed only when the last of them has closed the journal.

Each claim is two locks side by side. The first excludes others. Where the system supports it, it is a lock of the open
file, which stays when other code in this process opens and closes the journal. The second is a POSIX lock, which names
the process that holds it. It is used only to show the holder.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import threading
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from backedge.core.errors import JournalUnavailable, RunHeld

_guard = threading.Lock()
_files: dict[tuple[int, int], _LockedFile] = {}
"""The journals that are open in this process, by device and inode."""


class RunLocks:
    """The claims that one owner makes on one journal file, which must exist and stay open until `close`."""

    def __init__(self, path: Path) -> None:
        found = os.stat(path)
        self._identity = found.st_dev, found.st_ino
        with _guard:
            self._file = _files.setdefault(self._identity, _LockedFile(path, self._identity))
            self._file.path = path  # the newest path: an earlier one may belong to a file that was deleted
            self._file.users.add(self)

    def claim(self, run: str) -> None:
        """Claim the run. Raises RunHeld, which names the holder."""
        with _guard:
            self._file.take(run, owner=self)

    def holder(self, run: str) -> str | None:
        """The process that executes the run, in words; None if none does."""
        with _guard:
            return "this process" if run in self._file.owners else _holder(self._file.descriptor(), _offset(run))

    def release(self, run: str) -> None:
        """Release the run, if it was claimed here."""
        with _guard:
            if self._file.owners.get(run) is self:
                self._file.give_back(run)

    def close(self) -> None:
        """Release all claims. Call this after the owner has closed its connections to the file."""
        with _guard:
            for run in [run for run, owner in self._file.owners.items() if owner is self]:
                self._file.give_back(run)
            self._file.users.discard(self)
            if not self._file.users:
                self._file.close()
                _files.pop(self._identity, None)


class _LockedFile:
    def __init__(self, path: Path, identity: tuple[int, int]) -> None:
        self.path, self.identity = path, identity
        self.users: set[RunLocks] = set()
        self.owners: dict[str, RunLocks] = {}
        self._descriptor: int | None = None

    def descriptor(self) -> int:
        if self._descriptor is None:
            try:
                opened = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                raise JournalUnavailable(
                    f"cannot lock {self.path}: {error.strerror}; expected a journal that can be written: check path and "
                    "rights"
                ) from error
            found = os.fstat(opened)
            if (found.st_dev, found.st_ino) != self.identity:
                os.close(opened)
                raise JournalUnavailable(
                    f"{self.path} was deleted or moved while it was open: put it back, or start again with what is there"
                )
            self._descriptor = opened
        return self._descriptor

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def take(self, run: str, owner: RunLocks) -> None:
        if run in self.owners:
            raise RunHeld(run, "this process")
        offset, descriptor = _offset(run), self.descriptor()
        while True:
            try:
                _lock(descriptor, fcntl.F_WRLCK, offset)
            except (BlockingIOError, PermissionError):
                holder = _holder(descriptor, offset)
                if holder is None:  # released in the meantime: try again
                    continue
                raise RunHeld(run, holder) from None
            except OSError as error:
                raise JournalUnavailable(
                    f"cannot lock {self.path}: {error.strerror}; expected a local file system with POSIX locks: "
                    "keep the journal on a local disk"
                ) from error
            self.owners[run] = owner
            if _OFD is not None:
                with suppress(OSError):
                    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset + 1)
            return

    def give_back(self, run: str) -> None:
        del self.owners[run]
        offset, descriptor = _offset(run), self.descriptor()
        if _OFD is not None:
            fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, offset + 1)
        _lock(descriptor, fcntl.F_UNLCK, offset)


def _offset(run: str) -> int:
    """The offset of the run's lock. It is the same in every process, even before the run has events, and never overlaps
    SQLite's locks."""
    return _BEHIND_EVERY_FILE | (int.from_bytes(sha256(run.encode()).digest()[:8], "big") >> 3) & ~1


_BEHIND_EVERY_FILE = 1 << 61


_OFD: int | None = getattr(fcntl, "F_OFD_SETLK", None)
_OFD_ASK: int = getattr(fcntl, "F_OFD_GETLK", fcntl.F_GETLK)


def _lock(descriptor: int, kind: int, offset: int) -> None:
    if _OFD is not None:
        fcntl.fcntl(descriptor, _OFD, _flock(kind, offset))
    else:
        how = fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB
        fcntl.lockf(descriptor, how, 1, offset)


def _holder(descriptor: int, offset: int) -> str | None:
    """The process that holds the lock, in words; None if the lock was released."""
    kind, pid = _flock_of(fcntl.fcntl(descriptor, _OFD_ASK, _flock(fcntl.F_WRLCK, offset)))
    if kind == fcntl.F_UNLCK:
        return None
    if _OFD is not None:
        _, pid = _flock_of(fcntl.fcntl(descriptor, fcntl.F_GETLK, _flock(fcntl.F_WRLCK, offset + 1)))
    # Zero stands for a process that this one cannot see, such as one in another container.
    return f"process {pid}" if pid > 0 else "another process"


def _flock(kind: int, offset: int) -> bytes:
    # The order of the fields of `struct flock` depends on the system.
    if sys.platform == "darwin":
        return struct.pack("qqihh", offset, 1, 0, kind, 0)
    return struct.pack("hhqqi4x", kind, 0, offset, 1, 0)


def _flock_of(answer: bytes) -> tuple[int, int]:
    """The kind of a lock, and the process that has it."""
    if sys.platform == "darwin":
        _, _, pid, kind, _ = struct.unpack("qqihh", answer)
    else:
        kind, _, _, _, pid = struct.unpack("hhqqi4x", answer)
    return kind, pid
