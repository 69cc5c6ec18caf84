"""What was sent and what still has to be, in a small file beside the journal; and the lock of the process that sends.

The journal stays the truth: the file only says how far it was read, and what became of each message.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

_TABLES = """
CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS messages (
    run TEXT NOT NULL, seq INTEGER NOT NULL, channel INTEGER NOT NULL, escalation TEXT NOT NULL, state TEXT NOT NULL,
    tries INTEGER NOT NULL, next_at REAL NOT NULL, error TEXT NOT NULL, PRIMARY KEY (run, seq, channel)
) STRICT;
CREATE INDEX IF NOT EXISTS unsent ON messages (state, run, seq) WHERE state != 'sent';
"""
State = Literal["waiting", "sent", "dropped", "failed"]


@dataclass(frozen=True)
class OutboxEntry:
    """One message to one channel."""

    run: str
    seq: int
    """The event that it is about."""
    channel: int
    """The number of the channel in the workflow of the run, from 0."""
    escalation: str
    state: State = "waiting"
    tries: int = 0
    next_at: float = 0.0
    """When it is tried again."""
    error: str = ""

    @property
    def order(self) -> tuple[str, int, str]:
        """Messages with the same order are sent one after the other."""
        return self.run, self.channel, self.escalation


class OutboxFile:
    """The file, open. Every change is durable when its method returns."""

    def __init__(self, path: Path) -> None:
        self.new = not path.exists() or not path.stat().st_size
        """Whether nothing was ever recorded in it."""
        self._db = sqlite3.connect(path, timeout=10, isolation_level=None)
        self._db.executescript(_TABLES)

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def positions(self) -> dict[str, int]:
        """How far each run was read."""
        return dict(self._db.execute("SELECT run, seq FROM runs"))

    def note(self, positions: Iterable[tuple[str, int]], entries: Iterable[OutboxEntry] = ()) -> None:
        """Record messages to send together with how far their runs were read, so that neither is lost without the other."""
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:
            self._db.executemany("INSERT OR IGNORE INTO messages VALUES (?,?,?,?,?,?,?,?)", map(_row, entries))
            self._db.executemany("INSERT OR REPLACE INTO runs VALUES (?,?)", positions)

    def record(self, entry: OutboxEntry) -> None:
        """Record what became of a message."""
        self._db.execute("INSERT OR REPLACE INTO messages VALUES (?,?,?,?,?,?,?,?)", _row(entry))

    def entries(self, *states: State) -> list[OutboxEntry]:
        """The messages in these states, in the order of their events."""
        marks = ",".join("?" * len(states))
        rows: Sequence[tuple[object, ...]] = self._db.execute(
            f"SELECT * FROM messages WHERE state IN ({marks}) ORDER BY run, seq, channel", states
        ).fetchall()
        return [OutboxEntry(*row) for row in rows]  # type: ignore[arg-type]  # the columns have these types


def _row(each: OutboxEntry) -> tuple[object, ...]:
    return each.run, each.seq, each.channel, each.escalation, each.state, each.tries, each.next_at, each.error


class SendLock:
    """Held by the one process that sends for a journal. It is released when that process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def hold(self) -> bool:
        """Whether this process sends from now on, or does already."""
        if self._descriptor is not None:
            return True
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
