"""The write-ahead log beside the journal (`journal.db-wal`), watched by the process that writes it.

SQLite trusts this file while it is open. If another program cuts it short, SQLite continues behind the cut. The writer
does not notice, because it has the pages in memory, and the next checkpoint copies the hole into the journal. So the log
is looked at before each append, and read back from the disk when a run ends or starts to wait.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import apsw

from backedge.adapters.journals.sqlite_errors import StorageError
from backedge.core.chain import genesis, link

_HEADER, _FRAME_HEADER, _SALT = 32, 24, slice(8, 16)
"""The layout that https://sqlite.org/fileformat2.html#the_write_ahead_log describes."""
_TAIL = 64
"""How many of the last events of a run are read back: the work stays the same however long the run is."""
_LAST = """SELECT seq, CAST(body AS BLOB), link FROM events
           WHERE run = (SELECT id FROM runs WHERE run = ? AND seq = ? AND link = ?) ORDER BY seq DESC LIMIT ?"""


class WriteAheadLog:
    """The log of one connection that writes."""

    def __init__(self, path: str, connection: apsw.Connection) -> None:
        self._path, self._log = path, f"{path}-wal"
        self._frame = _FRAME_HEADER + int(connection.execute("PRAGMA page_size").get)
        self._reader: apsw.Connection | None = None
        self._written: tuple[int, int, int] | None = None
        """Device, inode and size after our last append."""

    def written(self) -> None:
        """Remember the log as it is after an append."""
        self._written = self._found()

    def lost(self) -> str:
        """What was taken away since our last append, in words; empty if nothing was. Call it with the write lock."""
        if self._written is None:
            return ""
        found = self._found()
        if found is None or found[:2] != self._written[:2]:
            return f"{self._log} was deleted or replaced"
        if found[2] >= self._written[2]:
            return ""
        # SQLite itself only ever cuts the log down to nothing, after it has copied all of it to the journal.
        return "" if found[2] == 0 and self._can_be_read() else f"{self._log} was cut short"

    def missing(self, ends: Mapping[str, tuple[int, str]]) -> str:
        """What the file lacks of these runs, each with the number and the link of its last event, in words; empty if
        it lacks nothing.

        A second connection reads them: it has no page in memory that was written since it was used last.
        """
        if not ends:
            return ""
        return self._hole() or next(filter(None, (self._missing(run, *end) for run, end in ends.items())), "")

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def _missing(self, run: str, seq: int, last: str) -> str:
        try:
            rows: list[Any] = self._second().execute(_LAST, (run, seq, bytes.fromhex(last), _TAIL)).fetchall()
        except StorageError as error:
            return f"the end of run {run!r} cannot be read back ({error})"
        there = {row[0] for row in rows}
        for number in range(seq, max(seq - _TAIL, 0), -1):
            if number not in there:
                return f"event {number} of run {run!r} cannot be read back"
        before = [linked.hex() for _, _, linked in rows[1:]] + ([genesis(run)] if seq <= _TAIL else [])
        for (number, body, linked), previous in zip(rows, before, strict=False):
            if link(previous, body) != linked.hex():
                return f"event {number} of run {run!r} is not the one that was stored"
        return ""

    def _can_be_read(self) -> bool:
        try:
            self._second().execute("SELECT max(link) FROM runs").fetchall()
        except StorageError:
            return False
        return True

    def _hole(self) -> str:
        """Every frame has the numbers of its log in its header; a hole has zeros in their place."""
        try:
            descriptor = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            return f"{self._log} cannot be read ({error.strerror})"
        try:
            for start in range(_HEADER, os.fstat(descriptor).st_size, self._frame):
                if not any(os.pread(descriptor, _FRAME_HEADER, start)[_SALT]):
                    return f"{self._log} was cut short"
        finally:
            os.close(descriptor)
        return ""

    def _second(self) -> apsw.Connection:
        if self._reader is None:
            self._reader = apsw.Connection(self._path)
        return self._reader

    def _found(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._log)
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size
