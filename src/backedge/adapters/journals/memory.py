"""A journal that lives as long as its process: for tests, simulations and runs that need not survive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from backedge.core.chain import genesis, links
from backedge.core.errors import JournalConflict, JournalDamaged, RunHeld
from backedge.ports import Append, Listener, Record, RunHead


@dataclass(slots=True)
class _Run:
    workflow: str
    outcome: str
    link: str
    records: list[Record] = field(default_factory=list)


class MemoryJournal:
    """Journal and Claims in memory. Several engines on one event loop may share one instance."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._payloads: dict[str, bytes] = {}
        self._listeners: dict[object, Listener] = {}
        self._held: set[str] = set()

    async def append(self, entry: Append) -> None:
        """Store all events of the entry, or none; the workflow of a run is the one its first entry names."""
        # Giving way once, as a journal on disk does, shows tests the same interleavings.
        await asyncio.sleep(0)
        run = self._runs.get(entry.run)
        count = len(run.records) if run else 0
        if count != entry.after:
            raise JournalConflict(f"{entry.run!r} has {count} events, expected {entry.after}: reload and decide again")
        for digest, body in entry.payloads.items():
            self._payloads.setdefault(digest, body)
        if not entry.bodies:
            return
        if run is None:
            run = self._runs[entry.run] = _Run(entry.workflow, entry.outcome, genesis(entry.run))
        chained = links(run.link, entry.bodies)
        run.records.extend(
            Record(seq, body, link)
            for seq, (body, link) in enumerate(zip(entry.bodies, chained, strict=True), start=count + 1)
        )
        run.outcome, run.link = entry.outcome, chained[-1]
        for listener in tuple(self._listeners.values()):
            listener(entry.run, len(run.records))

    async def read(self, run: str, after: int = 0) -> Sequence[Record]:
        """The events of a run after number `after`, in order; empty for a run that does not exist."""
        stored = self._runs.get(run)
        return stored.records[after:] if stored else []

    async def runs(self) -> Sequence[RunHead]:
        """Every run, newest first."""
        return [
            RunHead(name, run.workflow, run.outcome, len(run.records), run.link)
            for name, run in reversed(self._runs.items())
        ]

    async def payload(self, digest: str) -> bytes:
        """A large value by its digest. Raises JournalDamaged if it is missing or does not match its digest."""
        body = self._payloads.get(digest)
        if body is None:
            raise JournalDamaged(f"payload {digest} is not in this journal: it was never stored, or it was pruned")
        if sha256(body).hexdigest() != digest:
            raise JournalDamaged(f"payload {digest} has other contents than its digest says: whoever stored it erred")
        return body

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell the listener of every append, before the appender goes on. It must not raise."""
        token = object()
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    def claim(self, run: str) -> None:
        """Take the run. Raises RunHeld, naming the holder, if somebody else has it."""
        if run in self._held:
            raise RunHeld(run, "this process")
        self._held.add(run)

    def holder(self, run: str) -> str | None:
        """Who executes the run, in words; None if nobody does."""
        return "this process" if run in self._held else None

    def release(self, run: str) -> None:
        """Give the run back; nothing happens if it was not held here."""
        self._held.discard(run)
