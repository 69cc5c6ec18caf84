"""The format of the journal file: its tables, its identifiers, and how it is opened.

runs         one small row per run, updated with each append: its name, its listing, how far its chain has come, and the
             fence of the newest claim that was written under.
events       append-only; `body` is JSON text, so that any SQLite shell reads it; `link` is 32 bytes.
payloads     large values by the hex sha256 of their bytes, each once.
escalations  the open ones, an index: everything in it follows from the events.
keys         the entries that have a key: how many events their run had before and after.
pruned       the digests of large values that were removed to free space; the first prune creates the table.

Format 1 had no fences, escalations and keys. A file of format 1 becomes one of format 2 when it is opened.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Literal, get_args

import apsw
import msgspec

from backedge.adapters.journals.private_files import private_file, private_folder
from backedge.adapters.journals.sqlite_errors import BUSY_TIMEOUT, StorageError, translated
from backedge.core.errors import JournalDamaged, JournalTooNew, JournalUnavailable, PayloadPruned

Durability = Literal["full", "normal"]

APPLICATION_ID = 0x62616B65
"""Marks the file as a journal of backedge: "bake" in ASCII."""
VERSION = 2

_ADDED_IN_2 = """
CREATE INDEX open_runs ON runs (id) WHERE outcome IN ('running', 'waiting');
CREATE TABLE escalations (
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  escalation TEXT NOT NULL,
  UNIQUE (run, escalation)
) STRICT;
CREATE TABLE keys (
  run INTEGER NOT NULL,
  key TEXT NOT NULL,
  before INTEGER NOT NULL,
  after INTEGER NOT NULL,
  PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
"""

SCHEMA = f"""
CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  run TEXT NOT NULL UNIQUE,
  workflow TEXT NOT NULL,
  outcome TEXT NOT NULL,
  seq INTEGER NOT NULL,
  link BLOB NOT NULL,
  fence INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  body TEXT NOT NULL,
  link BLOB NOT NULL,
  UNIQUE (run, seq)
) STRICT;
CREATE TABLE payloads (
  digest TEXT NOT NULL PRIMARY KEY,
  body BLOB NOT NULL
) STRICT;
{_ADDED_IN_2}
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
"""
PRUNED = "CREATE TABLE IF NOT EXISTS pruned (digest TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID"


def open_journal(path: Path, durability: Durability) -> apsw.Connection:
    """A connection to the journal, which is created if there is none; a file that is something else is left as it is.

    Raises JournalTooNew, JournalDamaged or JournalUnavailable.
    """
    if durability not in get_args(Durability):
        raise ValueError(f"durability is {durability!r}: expected {' or '.join(map(repr, get_args(Durability)))}")
    if "\0" in str(path):
        raise JournalUnavailable(f"{str(path)!r} is not a path: it has a NUL character in it; choose another one")
    try:
        private_folder(path.parent)
    except OSError as error:
        raise JournalUnavailable(
            f"cannot make the folder {path.parent}: {error.strerror}; expected a folder that can be written: "
            "check path and rights, or choose another folder"
        ) from error
    connection: apsw.Connection | None = None
    try:
        _refuse_one_byte(path)
        private_file(path)
        # An absolute path is never taken for one of SQLite's special names, such as ":memory:".
        connection = apsw.Connection(os.path.abspath(path))
        connection.set_busy_timeout(int(BUSY_TIMEOUT * 1000))
        exists = _is_journal(connection, path)
        if connection.readonly("main"):
            raise JournalUnavailable(f"{path} is read-only: expected a journal that can be written; change its rights")
        _use_wal(connection, path)
        if not exists:
            _create(connection, path)
        elif connection.execute("PRAGMA user_version").get < VERSION:
            _upgrade(connection)
        connection.execute(f"PRAGMA synchronous = {durability}")
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, StorageError):
            raise translated(error, str(path)) from error
        raise
    return connection


def stored_payload(connection: apsw.Connection, path: Path | str, digest: str) -> bytes:
    """A large value by its digest. Raises PayloadPruned, or JournalDamaged if it is missing or does not match."""
    body = connection.execute("SELECT body FROM payloads WHERE digest = ?", (digest,)).get
    if body is None and digest in pruned(connection, "WHERE digest = ?", (digest,)):
        raise PayloadPruned(f"payload {digest} is no longer in {path}: it was pruned; a backup has it")
    if body is None:
        raise JournalDamaged(f"payload {digest} is not in {path}: it was never stored; restore a backup")
    if sha256(body).hexdigest() != digest:
        raise JournalDamaged(f"payload {digest} in {path} has other contents than its digest says: restore a backup")
    return bytes(body)


def pruned(connection: apsw.Connection, which: str = "", values: Sequence[str] = ()) -> list[str]:
    """The digests of the large values that were removed to free space."""
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'pruned'").get is None:
        return []
    return [digest for (digest,) in connection.execute(f"SELECT digest FROM pruned {which}", values)]


def _refuse_one_byte(path: Path) -> None:
    """SQLite finds by itself that a file is something else, but takes one of a single byte for a new database."""
    with suppress(OSError):
        if path.stat().st_size == 1:
            raise JournalDamaged(
                f"{path} is not a valid journal: got a file of one byte; expected a database that backedge wrote: choose "
                "another file"
            )


def _is_journal(connection: apsw.Connection, path: Path) -> bool:
    """True for a journal this version can use, False for an empty file."""
    application, version, tables = _marks(connection)
    if application == APPLICATION_ID:
        if version > VERSION:
            raise JournalTooNew(
                f"{path} has journal format {version}, this backedge knows formats up to {VERSION}: "
                "install a newer backedge, or choose another file"
            )
        return True
    if application or version or tables:
        raise JournalDamaged(
            f"{path} is a database of something else: got application id {application}, version {version} and tables "
            f"{tables or 'none'}, expected a journal of backedge: choose another file"
        )
    return False


def _marks(connection: apsw.Connection) -> tuple[int, int, str | None]:
    """The application id, the version and the tables of a database, all of one moment: another process may be creating it."""
    own = not connection.in_transaction
    if own:
        connection.execute("BEGIN")
    try:
        application = connection.execute("PRAGMA application_id").get
        version = connection.execute("PRAGMA user_version").get
        tables = connection.execute("SELECT group_concat(name, ', ') FROM sqlite_schema WHERE type = 'table'").get
    finally:
        if own and connection.in_transaction:
            connection.execute("ROLLBACK")
    return application, version, tables


def _create(connection: apsw.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _is_journal(connection, path):  # else another process was quicker
            connection.execute(SCHEMA)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


class _AboutEscalation(msgspec.Struct):
    """As much of an event as the index needs."""

    type: str
    escalation: str = ""


_about_escalation = msgspec.json.Decoder(_AboutEscalation)
_CANDIDATES = """SELECT events.run, CAST(body AS BLOB) FROM events JOIN runs ON runs.id = events.run
                 WHERE outcome IN ('running', 'waiting') AND body LIKE '%"type":"escalation_%' ORDER BY events.id"""


def _upgrade(connection: apsw.Connection) -> None:
    """Make a file of format 1 one of format 2. What other processes have open stays usable."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("PRAGMA user_version").get < VERSION:  # else another process was quicker
            connection.execute("ALTER TABLE runs ADD COLUMN fence INTEGER NOT NULL DEFAULT 0")
            connection.execute(_ADDED_IN_2)
            connection.executemany("INSERT INTO escalations (run, escalation) VALUES (?, ?)", _open_ones(connection))
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _open_ones(connection: apsw.Connection) -> list[tuple[int, str]]:
    """The open escalations of all runs, from their events."""
    found: dict[tuple[int, str], None] = {}
    for run, body in connection.execute(_CANDIDATES):
        try:
            event = _about_escalation.decode(body)
        except msgspec.DecodeError:
            continue  # damage is found when the run is read, and by audit
        if event.type.startswith("escalation_opened/"):
            found[run, event.escalation] = None
        elif event.type.startswith("escalation_decided/"):
            found.pop((run, event.escalation), None)
    return list(found)


def _use_wal(connection: apsw.Connection, path: Path) -> None:
    """Turn WAL on where it is not on already: for a new file, and for a copy that was made without it."""
    # SQLite does not wait when two processes do this in the same moment, so the waiting is done here.
    give_up = time.monotonic() + BUSY_TIMEOUT
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = WAL").get
        except apsw.BusyError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.005)
            continue
        if mode == "wal":
            return
        raise JournalUnavailable(
            f"{path} got journal mode {mode!r}, expected 'wal': its file system has no shared memory; "
            "keep the journal on a local disk"
        )
