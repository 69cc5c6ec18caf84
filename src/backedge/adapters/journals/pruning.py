"""Giving back the space of large values in a journal. Events are never touched: the chain stays whole."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path

import apsw

from backedge.adapters.journals.sqlite_errors import StorageError, translated
from backedge.adapters.journals.sqlite_format import PRUNED, open_journal, stored_payload
from backedge.engine.codec import put_back, set_aside_in

Named = Callable[[Iterable[bytes]], Iterable[str]]
"""The digests of the large values that some events, as their JSON text, name."""

_EVENTS = """SELECT events.id, CAST(body AS BLOB), runs.run FROM events JOIN runs ON runs.id = events.run
             WHERE events.id > ? ORDER BY events.id"""


def prune_payloads(path: Path, runs: Collection[str], named: Named, dry_run: bool = False) -> tuple[int, int]:
    """Remove the large values that only these runs name; returns how many, and how many bytes. What was taken out of
    events themselves stays: without it they could not be read.

    Raises a JournalError if the journal cannot be used.
    """
    connection = open_journal(path, "full")
    try:
        gone: set[str] = set()
        needed: set[str] = set()
        newest = 0

        def look() -> None:
            nonlocal newest
            for id, body, run in connection.execute(_EVENTS, (newest,)):
                told = set_aside_in(body)
                if told:
                    needed.update(told.values())
                    body = put_back(
                        body, {digest: stored_payload(connection, path, digest) for digest in told.values()}
                    )
                (gone if run in runs else needed).update(named([body]))
                newest = id

        look()
        connection.execute("BEGIN IMMEDIATE")
        try:
            # What was written meanwhile may name a value that was there already, and so was not stored again.
            look()
            sizes = {
                digest: size
                for digest in gone - needed
                if (size := connection.execute("SELECT length(body) FROM payloads WHERE digest = ?", (digest,)).get)
                is not None
            }
            if not dry_run:
                connection.execute(PRUNED)
                connection.executemany("INSERT OR IGNORE INTO pruned VALUES (?)", [(digest,) for digest in sizes])
                connection.executemany("DELETE FROM payloads WHERE digest = ?", [(digest,) for digest in sizes])
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        if sizes and not dry_run:
            with suppress(apsw.BusyError):  # somebody is at work: the space is used again by what is written next
                connection.execute("VACUUM")
    except StorageError as error:
        raise translated(error, str(path)) from error
    finally:
        connection.close()
    return len(sizes), sum(sizes.values())
