"""The statements of the journal, on one connection: plain calls, each one transaction at most."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import Any

import apsw

from backedge.adapters.journals.group_commit import Outcome
from backedge.adapters.journals.sqlite_errors import StorageError, translated
from backedge.adapters.journals.sqlite_format import Durability, open_journal, pruned, stored_payload
from backedge.adapters.journals.write_ahead_log import WriteAheadLog
from backedge.core.chain import genesis, links
from backedge.core.errors import JournalConflict, JournalDamaged, JournalError, JournalUnavailable, KeyUsed, RunLost
from backedge.core.text import counted
from backedge.ports import Append, OpenEscalation, Record, RunHead

_HEAD = "SELECT id, seq, link, fence FROM runs WHERE run = ?"
_NEW_RUN = "INSERT INTO runs (run, workflow, outcome, seq, link) VALUES (?, ?, ?, 0, x'')"
_MOVE_RUN = "UPDATE runs SET outcome = ?, seq = ?, link = ?, fence = ? WHERE id = ?"
_FENCE = "SELECT fence FROM runs WHERE run = ?"
# The casts keep the bytes as they are, while the file holds text that a shell can show.
_EVENT = "INSERT INTO events (run, seq, body, link) VALUES (?, ?, CAST(? AS TEXT), ?)"
_PAYLOAD = "INSERT OR IGNORE INTO payloads (digest, body) VALUES (?, ?)"
_READ = """SELECT seq, CAST(body AS BLOB), lower(hex(link)) FROM events
           WHERE run = (SELECT id FROM runs WHERE run = ?) AND seq > ? ORDER BY seq"""
_OPENED = "INSERT OR IGNORE INTO escalations (run, escalation) VALUES (?, ?)"
_CLOSED = "DELETE FROM escalations WHERE run = ? AND escalation = ?"
_KEY = "SELECT before, after FROM keys WHERE run = ? AND key = ?"
_NEW_KEY = "INSERT INTO keys VALUES (?, ?, ?, ?)"
_BODIES = "SELECT CAST(body AS BLOB) FROM events WHERE run = ? AND seq > ? AND seq <= ? ORDER BY seq"
_RUNS = """SELECT run, workflow, outcome, seq, lower(hex(link)) FROM runs
           WHERE {which} AND (?1 IS NULL OR id < (SELECT id FROM runs WHERE run = ?1)) ORDER BY id DESC LIMIT ?2"""
_ALL_RUNS, _OPEN_RUNS = _RUNS.format(which="true"), _RUNS.format(which="outcome IN ('running', 'waiting')")
_ESCALATIONS = """SELECT runs.run, escalation FROM escalations JOIN runs ON runs.id = escalations.run
                  WHERE ?1 IS NULL OR escalation = ?1 ORDER BY escalations.run, escalations.id"""
_STRAY = "SELECT count(*) FROM events WHERE run NOT IN (SELECT id FROM runs)"
_LINKS = "SELECT link FROM events ORDER BY id LIMIT ?"
# The plus keeps SQLite from grouping by the index, which would walk through the whole history.
_CHANGED = """SELECT runs.run, max(events.seq), max(events.id) FROM events JOIN runs ON runs.id = events.run
              WHERE events.id > ? GROUP BY +events.run"""

_Head = tuple[int, int, str, int]
"""The number of a run, how many events it has, its last link, and its newest fence."""


class SqliteStore:
    """One open connection. Every error of SQLite comes out as a JournalError."""

    def __init__(self, path: Path, durability: Durability) -> None:
        self._path = str(path)
        self._connection = open_journal(path, durability)
        self._identity = self._on_disk()
        self._log = WriteAheadLog(self._path, self._connection)

    def _on_disk(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def commit(self, entries: Sequence[Append]) -> tuple[list[Outcome], float]:
        """Store the entries in one transaction, except those that conflict.

        If the transaction fails, none is stored. Returns the result of each entry, and the seconds spent waiting for
        the lock and the disk.
        """
        connection = self._connection
        outcomes: list[Outcome] = []
        heads: dict[str, _Head] = {}
        moves: dict[int, tuple[str, int, bytes, int, int]] = {}
        events: list[tuple[int, int, bytes, bytes]] = []
        payloads: list[tuple[str, bytes]] = []
        at_rest: dict[str, None] = {}
        if self._on_disk() != self._identity:
            # SQLite would continue to write to the deleted file.
            raise JournalUnavailable(
                f"{self._path} was deleted or moved while it was open: nothing more is recorded; put it back, or start "
                "again with what is there"
            )
        try:
            # The write lock is taken first, so that no other process can append between the check and the insert.
            started = perf_counter()
            connection.execute("BEGIN IMMEDIATE")
            locked = perf_counter()
            if lost := self._log.lost():
                raise self._cut(lost)
            for entry in entries:
                head = heads.get(entry.run) or self._head(entry.run)
                count = head[1] if head else 0
                if entry.fence is not None and head and head[3] > entry.fence:
                    outcomes.append(RunLost(entry.run))
                    continue
                if entry.key is not None and head:
                    if events:  # an entry of the same transaction may have the same key
                        connection.executemany(_EVENT, events)
                        events.clear()
                    known = self._known(head[0], entry)
                    if known is not None:
                        outcomes.append(known)
                        continue
                if count != entry.after:
                    outcomes.append(
                        JournalConflict(
                            f"{entry.run!r} has {counted(count, 'event')}, expected {entry.after}: reload and decide again"
                        )
                    )
                    continue
                outcomes.append(count + len(entry.bodies))
                if entry.payloads:
                    payloads.extend(entry.payloads.items())
                if not entry.bodies:
                    continue
                key, seq, previous, fence = head or self._new_run(entry)
                chained = links(previous, entry.bodies)
                for body, link in zip(entry.bodies, chained, strict=True):
                    seq += 1
                    events.append((key, seq, body, bytes.fromhex(link)))
                fence = max(fence, entry.fence or 0)
                heads[entry.run] = key, seq, chained[-1], fence
                moves[key] = entry.outcome, seq, events[-1][3], fence, key
                if entry.outcome != "running":
                    at_rest[entry.run] = None
                if entry.opened:
                    connection.executemany(_OPENED, [(key, each) for each in entry.opened])
                if entry.closed:
                    connection.executemany(_CLOSED, [(key, each) for each in entry.closed])
                if entry.key is not None:
                    connection.execute(_NEW_KEY, (key, entry.key, count, seq))
            connection.executemany(_EVENT, events)
            connection.executemany(_MOVE_RUN, moves.values())
            if payloads:
                connection.executemany(_PAYLOAD, payloads)
            worked = perf_counter()
            connection.execute("COMMIT")
        except (apsw.ConstraintError, apsw.TooBigError) as error:
            self._roll_back()
            if len(entries) > 1:  # one entry or one run is damaged: the others must still be stored
                return [self._commit_alone(entry) for entry in entries], 0.0
            raise translated(error, self._path) from error
        except StorageError as error:
            self._roll_back()
            raise translated(error, self._path) from error
        except BaseException:
            self._roll_back()
            raise
        waited = locked - started + perf_counter() - worked
        self._log.written()
        # Before the outcome of a run is reported.
        if lost := self._log.missing({run: heads[run][1:3] for run in at_rest}):
            raise self._cut(lost)
        return outcomes, waited

    def read(self, run: str, after: int) -> list[Record]:
        try:
            return [Record(*row) for row in self._connection.execute(_READ, (run, after))]
        except StorageError as error:
            raise translated(error, self._path) from error

    def runs(self, limit: int | None, after: str | None, only_open: bool = False) -> list[RunHead]:
        """Runs, newest first: at most `limit`, from the one that follows the run `after`."""
        statement, values = _OPEN_RUNS if only_open else _ALL_RUNS, (after, -1 if limit is None else limit)
        try:
            return [RunHead(*row) for row in self._connection.execute(statement, values)]
        except StorageError as error:
            raise translated(error, self._path) from error

    def open_escalations(self, escalation: str | None) -> list[OpenEscalation]:
        """The open escalations of all runs, or those with this id, oldest run first."""
        try:
            return [OpenEscalation(*row) for row in self._connection.execute(_ESCALATIONS, (escalation,))]
        except StorageError as error:
            raise translated(error, self._path) from error

    def fence(self, run: str) -> int:
        """The fence of the newest claim under which the run was written; 0 if there is none."""
        try:
            return int(self._connection.execute(_FENCE, (run,)).get or 0)
        except StorageError as error:
            raise translated(error, self._path) from error

    def payload(self, digest: str) -> bytes:
        try:
            return stored_payload(self._connection, self._path, digest)
        except StorageError as error:
            raise translated(error, self._path) from error

    def pruned(self) -> list[str]:
        """The digests of the large values that were removed to free space."""
        try:
            return pruned(self._connection)
        except StorageError as error:
            raise translated(error, self._path) from error

    def gap(self) -> str | None:
        """Which event or run numbers are missing, in words. The journal never reuses a number, so a gap means a
        deletion."""
        try:
            for table in ("events", "runs"):
                count, newest = self._connection.execute(f"SELECT count(*), coalesce(max(id), 0) FROM {table}").get
                if count != newest:
                    return f"{newest - count} of {newest} {table} are missing"
            stray = self._connection.execute(_STRAY).get
            self._require_sound_file()
        except StorageError as error:
            raise translated(error, self._path) from error
        return f"{stray} events belong to no run" if stray else None

    def _require_sound_file(self) -> None:
        """Raises JournalDamaged if tables and their indexes disagree, or a large value is not the one that its key names: a
        search through the index would find neither."""
        found = self._connection.execute("PRAGMA integrity_check(1)").get
        if found != "ok":
            raise JournalDamaged(f"{self._path} is damaged: {found}; restore a backup")
        for digest, body in self._connection.execute("SELECT digest, body FROM payloads NOT INDEXED"):
            if sha256(body).hexdigest() != digest:
                raise JournalDamaged(
                    f"payload {digest} in {self._path} has other contents than its digest says: restore a backup"
                )

    def head(self, events: int | None = None) -> str:
        """The number of the events of all runs and the hash of their links, in the order in which they were written."""
        try:
            rows: list[Any] = self._connection.execute(_LINKS, (-1 if events is None else events,)).fetchall()
        except StorageError as error:
            raise translated(error, self._path) from error
        return f"{len(rows)}:{sha256(b''.join(link for (link,) in rows)).hexdigest()}"

    def version(self) -> int:
        """A number that changes when, and only when, another connection commits."""
        try:
            return int(self._connection.execute("PRAGMA data_version").get)
        except StorageError as error:
            raise translated(error, self._path) from error

    def newest(self) -> int:
        """The number of the newest event of all runs; a later commit has larger ones."""
        try:
            return int(self._connection.execute("SELECT coalesce(max(id), 0) FROM events").get)
        except StorageError as error:
            raise translated(error, self._path) from error

    def changed(self, since: int) -> tuple[list[tuple[str, int]], int]:
        """The runs with events numbered above `since`, each with its newest sequence number, and the newest event."""
        try:
            rows: list[Any] = self._connection.execute(_CHANGED, (since,)).fetchall()
        except StorageError as error:
            raise translated(error, self._path) from error
        return [(run, seq) for run, seq, _ in rows], max((newest for _, _, newest in rows), default=since)

    def close(self) -> None:
        self._log.close()
        self._connection.close()

    def _cut(self, lost: str) -> JournalDamaged:
        """The error after a loss. Closing copies nothing into the journal: what it had before the cut stays intact."""
        self._connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        return JournalDamaged(
            f"{lost} while {self._path} was in use: the last events are lost; end all commands that use the journal, "
            "check it with `backedge audit verify`, then resume"
        )

    def _commit_alone(self, entry: Append) -> Outcome:
        try:
            [outcome], _ = self.commit([entry])
        except JournalError as error:
            return error
        return outcome

    def _head(self, run: str) -> _Head | None:
        row = self._connection.execute(_HEAD, (run,)).get
        return (row[0], row[1], row[2].hex(), row[3]) if row else None

    def _new_run(self, entry: Append) -> _Head:
        self._connection.execute(_NEW_RUN, (entry.run, entry.workflow, entry.outcome))
        return self._connection.last_insert_rowid(), 0, genesis(entry.run), 0

    def _known(self, run: int, entry: Append) -> Outcome | None:
        """The result of an earlier entry with the same key; None if there is none."""
        found = self._connection.execute(_KEY, (run, entry.key)).get
        if found is None:
            return None
        bodies = tuple(body for (body,) in self._connection.execute(_BODIES, (run, *found)))
        if bodies != entry.bodies:
            return KeyUsed(f"key {entry.key!r} of run {entry.run!r} was used for other events: choose another key")
        return int(found[1])

    def _roll_back(self) -> None:
        # After some failures, such as a full disk, SQLite has rolled back already; after close() there is nothing to do.
        with contextlib.suppress(apsw.ConnectionClosedError):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
