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
from backedge.core.errors import RunLost
from backedge.ports import Append, Claim, Listener, LostListener, OpenEscalation, Record, RunHead


class SqliteJournal:
    """Journal and Claims on one file. Use it on one event loop at a time; a later loop may use it after the first has
    ended.

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
        self._commits = GroupCommit(self._store.commit, self._watch.announce_own)
        self._locks = RunLocks(self._path)
        self._claims: dict[str, Claim] = {}
        self._newest_fence = 0

    async def append(self, entry: Append) -> int:
        """Store all events of the entry, or none; durable on return. Returns the number of its last event.

        If the caller is cancelled while it waits, its entry is stored as a whole or not at all. The workflow of a run
        is the one its first entry names; an entry without events only stores its payloads.
        """
        # A name that is not text must fail here, alone, and not in the transaction it would share with others.
        (entry.run + entry.workflow + entry.outcome).encode()
        if entry.fence is not None and not self._is_claimed(entry.run, entry.fence):
            raise RunLost(entry.run)
        self._watch.follow()
        return await self._commits.put(entry)

    async def read(self, run: str, after: int = 0) -> Sequence[Record]:
        """The events of a run after number `after`, in order; empty for a run that does not exist."""
        self._watch.follow()
        return self._reading().read(run, after)

    async def runs(self, limit: int | None = None, after: str | None = None) -> Sequence[RunHead]:
        """Runs, newest first: at most `limit`, from the one that follows the run `after`."""
        return self._reading().runs(limit, after)

    async def open_runs(self, limit: int | None = None, after: str | None = None) -> Sequence[RunHead]:
        """The same for runs that have not ended."""
        return self._reading().runs(limit, after, only_open=True)

    async def open_escalations(self, escalation: str | None = None) -> Sequence[OpenEscalation]:
        """The open escalations of all runs, or those with this id: oldest run first, in the order they were opened."""
        return self._reading().open_escalations(escalation)

    async def payload(self, digest: str) -> bytes:
        """A large value by its digest. Raises JournalDamaged if it is missing or does not match its digest."""
        return self._reading().payload(digest)

    async def missing(self) -> str | None:
        """What is missing between the events of all runs, in words; None if nothing is."""
        return self._reading().gap()

    async def pruned(self) -> Sequence[str]:
        """The digests of the large values that were removed to free space."""
        return self._reading().pruned()

    async def head(self) -> str:
        """A proof of all events: keep it elsewhere, for `disproof`."""
        return self._reading().head()

    async def disproof(self, head: str) -> str | None:
        """Why the journal does not contain all the events that a head proves, in words; None if it does."""
        count, _, rest = head.partition(":")
        if not count.isascii() or not count.isdigit() or not rest:
            return f"{head!r} is not the head of a journal: expected one that `audit verify --json` printed"
        now = self._reading().head(int(count))
        if now == head.lower():
            return None
        return (
            f"the first {count} events of the journal give the head {now}, not {head}: some were changed or deleted since "
            "the head was taken; restore a backup"
        )

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call the listener after every commit; for this journal's own commits, before `append` returns. It must not
        raise."""
        return self._watch.subscribe(listener)

    async def claim(self, run: str) -> Claim:
        """Claim the run. Raises RunHeld, which names the holder, if it is claimed already."""
        self._locks.claim(run)
        try:
            # No other process can claim it now. The number is stored with the first append under it, so a claim costs
            # no fsync.
            self._newest_fence = max(self._newest_fence, self._reading().fence(run)) + 1
        except BaseException:
            self._locks.release(run)
            raise
        claim = self._claims[run] = Claim(run, self._newest_fence, "this process")
        return claim

    async def holds(self, claim: Claim) -> bool:
        """Whether the claim is still valid: neither released nor taken over."""
        return self._is_claimed(claim.run, claim.fence) and self._reading().fence(claim.run) <= claim.fence

    async def holder(self, run: str) -> str | None:
        """The process that executes the run, in words; None if no process does."""
        return self._locks.holder(run)

    async def release(self, claim: Claim) -> None:
        """Release the run. A claim that is no longer valid is ignored."""
        if self._is_claimed(claim.run, claim.fence):
            del self._claims[claim.run]
            self._locks.release(claim.run)

    def on_lost(self, listener: LostListener) -> Callable[[], None]:
        """Call the listener with each claim made here that another process has overridden. Returns a function that
        unsubscribes.

        The locks of a living process cannot be taken over. This is for systems on which they can be lost.
        """

        def look(run: str, _: int) -> None:
            claim = self._claims.get(run)
            if claim is not None and self._reading().fence(run) > claim.fence:
                listener(claim)

        return self._watch.subscribe(look, own=False)

    async def close(self) -> None:
        """Release every claim and close the file. Appends that are still waiting fail."""
        self._watch.close()
        self._commits.close()
        if self._reader is not self._store:
            self._reader.close()
        self._store.close()
        # Last: closing the descriptor that has the locks would drop those of SQLite too.
        self._claims.clear()
        self._locks.close()

    def _is_claimed(self, run: str, fence: int) -> bool:
        return run in self._claims and self._claims[run].fence == fence

    def _reading(self) -> SqliteStore:
        # While a thread may be in the middle of a transaction, its connection cannot be used elsewhere.
        if self._reader is self._store and self._commits.uses_thread:
            self._reader = SqliteStore(self._path, self._durability)
        return self._reader
