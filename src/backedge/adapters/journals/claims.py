"""Who executes a run, as byte-range locks on one lock file, which the system drops when their process dies.

A POSIX lock belongs to the process, not to the descriptor: it does not exclude its own process, and it vanishes when
*any* descriptor of the file is closed. So each process keeps one descriptor per lock file, shared by everybody in it,
and remembers here who holds what. A thousand claims cost one descriptor.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import threading
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
            # This process holds nothing there, so that closing the file drops nothing.
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
                fcntl.lockf(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
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
            return

    def give_back(self, run: str) -> None:
        del self.owners[run]
        fcntl.lockf(self.descriptor, fcntl.LOCK_UN, 1, _offset(run))


def _offset(run: str) -> int:
    """Where in the file the run's lock is: the same in every process, before the run has any event."""
    return int.from_bytes(sha256(run.encode()).digest()[:8], "big") >> 2


def _holder(descriptor: int, offset: int) -> str | None:
    """Who has the lock, or None if nobody has it any more."""
    # The order of the fields of `struct flock` is the system's own affair.
    if sys.platform == "darwin":
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack("qqihh", offset, 1, 0, fcntl.F_WRLCK, 0))
        _, _, pid, kind, _ = struct.unpack("qqihh", answer)
    else:
        answer = fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, offset, 1, 0))
        kind, _, _, _, pid = struct.unpack("hhqqi4x", answer)
    if kind == fcntl.F_UNLCK:
        return None
    # Zero is a process that this one cannot see, such as one in another container.
    return f"process {pid}" if pid > 0 else "a process in another container"
