"""Frees the space of large values in a journal. Events are never changed, so the chain stays intact."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import apsw

from backedge.adapters.journals.payloads import payloads_of
from backedge.adapters.journals.sqlite_errors import StorageError, translated
from backedge.adapters.journals.sqlite_format import PRUNED, open_journal
from backedge.engine.codec import set_aside_in

_EVENTS = """SELECT events.id, CAST(body AS BLOB), runs.run FROM events JOIN runs ON runs.id = events.run
             WHERE events.id > ? ORDER BY events.id"""


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or would be: how many values, how many bytes, and which runs named them."""

    count: int
    bytes: int
    runs: frozenset[str]


def prune_payloads(path: Path, runs: Collection[str], dry_run: bool = False) -> Pruned:
    """Remove the large values that only these runs name. What was taken out of events themselves stays: without it they
    could not be read.

    Raises a JournalError if the journal cannot be used.
    """
    connection = open_journal(path, "full")
    try:
        gone: dict[str, set[str]] = {}
        needed: set[str] = set()
        newest = 0

        def look() -> set[str]:
            """Read the new events. Returns their runs."""
            nonlocal newest
            found: set[str] = set()
            for id, body, run in connection.execute(_EVENTS, (newest,)):
                needed.update(set_aside_in(body).values())
                for digest in payloads_of(body):
                    if run in runs:
                        gone.setdefault(digest, set()).add(run)
                    else:
                        needed.add(digest)
                newest = id
                found.add(run)
            return found

        look()
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Events written in the meantime may name a value that existed already, and so was not stored again. And a
            # run that has continued needs its values.
            went_on = look()
            needed.update(digest for digest, names in gone.items() if names & went_on)
            sizes = {
                digest: size
                for digest in gone.keys() - needed
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
            with suppress(apsw.BusyError):  # another process is writing: new data will reuse the space
                connection.execute("VACUUM")
    except StorageError as error:
        raise translated(error, str(path)) from error
    finally:
        connection.close()
    return Pruned(len(sizes), sum(sizes.values()), frozenset(run for digest in sizes for run in gone[digest]))
