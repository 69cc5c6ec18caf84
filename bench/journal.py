"""The bare journal under the floor: one table, and two ways of committing to it."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import apsw

SCHEMA = """
create table if not exists journal (run text not null, seq integer not null, body blob not null);
create unique index if not exists journal_run_seq on journal (run, seq);
"""

Row = tuple[str, int, bytes]


def connect(folder: Path) -> apsw.Connection:
    db = apsw.Connection(str(folder / "journal.db"))
    db.set_busy_timeout(5000)
    db.execute("pragma journal_mode=wal; pragma synchronous=full")
    db.execute(SCHEMA)
    return db


def commit(db: apsw.Connection, rows: Sequence[Row]) -> None:
    db.execute("begin immediate")
    try:
        db.executemany("insert into journal values (?, ?, ?)", rows)
    except BaseException:
        db.execute("rollback")
        raise
    db.execute("commit")


class Writer(Protocol):
    def append(self, row: Row) -> asyncio.Future[None]:
        """Durable when the future is done."""
        ...

    def close(self) -> None: ...


class InlineWriter:
    """Commits on the event loop, once for all that was appended in one turn of it."""

    def __init__(self, db: apsw.Connection, loop: asyncio.AbstractEventLoop) -> None:
        self._db = db
        self._loop = loop
        self._waiting: list[tuple[Row, asyncio.Future[None]]] = []

    def append(self, row: Row) -> asyncio.Future[None]:
        done = self._loop.create_future()
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append((row, done))
        return done

    def _flush(self) -> None:
        batch, self._waiting = self._waiting, []
        commit(self._db, [row for row, _ in batch])
        for _, done in batch:
            done.set_result(None)

    def close(self) -> None: ...


class ThreadWriter:
    """Commits in a thread of its own, once for all that gathered during the last commit."""

    def __init__(self, db: apsw.Connection, loop: asyncio.AbstractEventLoop) -> None:
        self._db = db
        self._loop = loop
        self._queue: queue.SimpleQueue[tuple[Row, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def append(self, row: Row) -> asyncio.Future[None]:
        done = self._loop.create_future()
        self._queue.put((row, done))
        return done

    def _write(self) -> None:
        while (first := self._queue.get()) is not None:
            batch = [first]
            while not self._queue.empty():
                more = self._queue.get()
                if more is None:
                    self._queue.put(None)
                    break
                batch.append(more)
            commit(self._db, [row for row, _ in batch])
            self._loop.call_soon_threadsafe(self._settle, batch)

    @staticmethod
    def _settle(batch: Sequence[tuple[Row, asyncio.Future[None]]]) -> None:
        for _, done in batch:
            done.set_result(None)

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()
