"""Who executes a run, as byte-range locks on one lock file, which the system drops when their process dies.

Each process keeps one descriptor per lock file, shared by everybody in it, and remembers here who holds what. A thousand
claims cost one descriptor. Each claim is two locks side by side. The first excludes others; where the system has them, it
is a lock of the open file, which stays when somebody else in the process reads and closes the lock file. The second is a
POSIX lock, which knows the process that has it: it says who that is, and nothing depends on it.
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
_open_files: dict[str, _LockFile] = {}


class RunLocks:
    """The claims that one owner made through one lock file."""

    def __init__(self, path: Path) -> None:
        self._path = os.path.realpath(path)

    def claim(self, run: str) -> None:
        with _guard:
            file = _open_files.get(self._path)
            if file is None:
                file = _LockFile(self._path)
                _open_files[self._path] = file
            try:
                file.take(run, owner=self)
            finally:
                self._close_if_idle(file)

    def holder(self, run: str) -> str | None:
        with _guard:
            file = _open_files.get(self._path)
            if file is not None:
                return "this process" if run in file.owners else _holder(file.descriptor, _offset(run))
            if not os.path.exists(self._path):
                return None
            file = _LockFile(self._path)
            try:
                return _holder(file.descriptor, _offset(run))
            finally:
                os.close(file.descriptor)

    def release(self, run: str) -> None:
        with _guard:
            file = _open_files.get(self._path)
            if file and file.owners.get(run) is self:
                file.give_back(run)
                self._close_if_idle(file)

    def release_all(self) -> None:
        with _guard:
            file = _open_files.get(self._path)
            if file:
                for run in [run for run, owner in file.owners.items() if owner is self]:
                    file.give_back(run)
                self._close_if_idle(file)

    def _close_if_idle(self, file: _LockFile) -> None:
        # With nothing held there is nothing to lose by closing, and a folder that was replaced is found anew.
        if not file.owners:
            os.close(_open_files.pop(self._path).descriptor)


class _LockFile:
    def __init__(self, path: str) -> None:
        self.path = path
        self.owners: dict[str, RunLocks] = {}
        try:
            self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise JournalUnavailable(
                f"cannot open the lock file {path}: {error.strerror}; expected a file that can be written: "
                "make its folder writable, or use another folder"
            ) from error

    def take(self, run: str, owner: RunLocks) -> None:
        if run in self.owners:
            raise RunHeld(run, "this process")
        offset = _offset(run)
        while True:
            try:
                _lock(self.descriptor, fcntl.F_WRLCK, offset)
            except (BlockingIOError, PermissionError):
                holder = _holder(self.descriptor, offset)
                if holder is None:  # given back since: try again
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
                    fcntl.lockf(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset + 1)
            return

    def give_back(self, run: str) -> None:
        del self.owners[run]
        offset = _offset(run)
        if _OFD is not None:
            fcntl.lockf(self.descriptor, fcntl.LOCK_UN, 1, offset + 1)
        _lock(self.descriptor, fcntl.F_UNLCK, offset)


def _offset(run: str) -> int:
    """Where in the file the run's lock is: the same in every process, before the run has any event."""
    return (int.from_bytes(sha256(run.encode()).digest()[:8], "big") >> 2) & ~1


_OFD: int | None = getattr(fcntl, "F_OFD_SETLK", None)
_OFD_ASK: int = getattr(fcntl, "F_OFD_GETLK", fcntl.F_GETLK)


def _lock(descriptor: int, kind: int, offset: int) -> None:
    if _OFD is not None:
        fcntl.fcntl(descriptor, _OFD, _flock(kind, offset))
    else:
        how = fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB
        fcntl.lockf(descriptor, how, 1, offset)


def _holder(descriptor: int, offset: int) -> str | None:
    """Who has the lock, or None if nobody has it any more."""
    kind, pid = _flock_of(fcntl.fcntl(descriptor, _OFD_ASK, _flock(fcntl.F_WRLCK, offset)))
    if kind == fcntl.F_UNLCK:
        return None
    if _OFD is not None:
        _, pid = _flock_of(fcntl.fcntl(descriptor, fcntl.F_GETLK, _flock(fcntl.F_WRLCK, offset + 1)))
    # Zero is a process that this one cannot see, such as one in another container.
    return f"process {pid}" if pid > 0 else "another process"


def _flock(kind: int, offset: int) -> bytes:
    # The order of the fields of `struct flock` is the system's own affair.
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
