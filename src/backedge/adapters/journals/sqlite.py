"""The journal on one SQLite file, for any number of processes on one machine.

    journal = SqliteJournal("backedge.db")

Durable by default: an append that returned survives a power cut (WAL, synchronous=FULL, one fsync per group of
concurrent appends). With `durability="normal"` it survives every crash of the process, but a power cut may take the
last appends, whole ones, newest first. The file belongs on a local disk; WAL does not work across a network.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from backedge.adapters.journals.claims import RunLocks
from backedge.adapters.journals.group_commit import GroupCommit
from backedge.adapters.journals.sqlite_format import Durability
from backedge.adapters.journals.sqlite_store import SqliteStore
from backedge.adapters.journals.watch import Watch
from backedge.ports import Append, Listener, Record, RunHead


class SqliteJournal:
    """Journal and Claims on one file. One event loop at a time; another one may follow when it has ended.

    Appends are committed inline on the event loop while commits are quick, and by a writer thread while they are
    slow (`group_commit` says when), so that a slow disk does not hold up everything else.
    """

    def __init__(self, path: str | os.PathLike[str], durability: Durability = "full") -> None:
        """Open the file, and make it and its folder if they are missing.

        Raises JournalTooNew, JournalDamaged or JournalUnavailable.
        """
        self._path = Path(os.path.abspath(path))  # an agent may change the folder of its process
        self._durability: Durability = durability
        self._store = SqliteStore(self._path, durability)
        self._reader = self._store
        self._watch = Watch(self._reading)
        self._commits = GroupCommit(self._store.commit, self._watch.tell_own)
        real = Path(os.path.realpath(path))  # whoever comes by a link meets the same lock
        self._locks = RunLocks(real.with_name(real.name + ".lock"))

    async def append(self, entry: Append) -> None:
        """Store all events of the entry, or none; durable on return.

        A caller that is cancelled while it waits does not know: its entry may be stored or not, whole in any case.
        The workflow of a run is the one its first entry names; an entry without events only stores its payloads.
        """
        # A name that is not text must fail here, alone, and not in the transaction it would share with others.
        (entry.run + entry.workflow + entry.outcome).encode()
        self._watch.follow()
        await self._commits.put(entry)

    async def read(self, run: str, after: int = 0) -> Sequence[Record]:
        """The events of a run after number `after`, in order; empty for a run that does not exist."""
        self._watch.follow()
        return self._reading().read(run, after)

    async def runs(self) -> Sequence[RunHead]:
        """Every run, newest first."""
        return self._reading().runs()

    async def payload(self, digest: str) -> bytes:
        """A large value by its digest. Raises JournalDamaged if it is missing or does not match its digest."""
        return self._reading().payload(digest)

    def gap(self) -> str | None:
        """What is missing between the events of all runs, in words; None if nothing is."""
        return self._reading().gap()

    def pruned(self) -> list[str]:
        """The digests of the large values that were removed to give their space back."""
        return self._reading().pruned()

    def head(self, events: int | None = None) -> str:
        """What proves the first so many events of all runs, or all: keep it elsewhere, for `verify_all`."""
        return self._reading().head(events)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell the listener of every commit: own ones before their appenders go on. It must not raise."""
        return self._watch.subscribe(listener)

    def claim(self, run: str) -> None:
        """Take the run. Raises RunHeld, naming the holder, if somebody else has it."""
        self._locks.claim(run)

    def holder(self, run: str) -> str | None:
        """Who executes the run, in words; None if nobody does."""
        return self._locks.holder(run)

    def release(self, run: str) -> None:
        """Give the run back; nothing happens if it was not held here."""
        self._locks.release(run)

    def close(self) -> None:
        """Give back every claim and close the file; appends that are still waiting fail."""
        self._watch.close()
        self._commits.close()
        self._locks.release_all()
        if self._reader is not self._store:
            self._reader.close()
        self._store.close()

    def _reading(self) -> SqliteStore:
        # While a thread may be in the middle of a transaction, nobody else can use its connection.
        if self._reader is self._store and self._commits.uses_thread:
            self._reader = SqliteStore(self._path, self._durability)
        return self._reader
