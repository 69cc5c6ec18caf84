"""A journal in memory: for tests, simulations and runs that need not survive their process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import TypeVar

from backedge.core.chain import genesis, links
from backedge.core.errors import JournalConflict, JournalDamaged, KeyUsed, RunHeld, RunLost
from backedge.core.text import counted
from backedge.ports import OPEN, Append, Claim, Listener, LostListener, OpenEscalation, Record, RunHead

T = TypeVar("T")


@dataclass(slots=True)
class _Run:
    workflow: str
    outcome: str
    link: str
    records: list[Record] = field(default_factory=list)
    escalations: dict[str, None] = field(default_factory=dict)
    """The open ones, in the order they were opened."""
    keys: dict[str, tuple[int, int]] = field(default_factory=dict)
    """How many events there were before an entry with a key, and after it."""


@dataclass(slots=True)
class _Memory:
    """The contents that all instances on one memory share."""

    runs: dict[str, _Run] = field(default_factory=dict)
    payloads: dict[str, bytes] = field(default_factory=dict)
    listeners: dict[object, Listener] = field(default_factory=dict)
    held: dict[str, tuple[Claim, MemoryJournal]] = field(default_factory=dict)
    fences: dict[str, int] = field(default_factory=dict)
    """The newest fence of each run that was ever claimed."""


class MemoryJournal:
    """Journal and Claims in memory. Several engines on one event loop may share one instance, or have one each:
    `MemoryJournal(first)` is another instance on the memory of the first."""

    def __init__(self, shared: MemoryJournal | None = None) -> None:
        self._memory: _Memory = shared._memory if shared else _Memory()
        self._lost: dict[object, LostListener] = {}

    async def append(self, entry: Append) -> int:
        """Store all events of the entry, or none; the workflow of a run is the one its first entry names."""
        # Yield once, as a journal on disk does, so that tests see the same interleavings.
        await asyncio.sleep(0)
        memory = self._memory
        run = memory.runs.get(entry.run)
        count = len(run.records) if run else 0
        if entry.fence is not None and not self._valid(entry.run, entry.fence):
            raise RunLost(entry.run)
        if run and entry.key in run.keys:
            before, after = run.keys[entry.key]
            if tuple(record.body for record in run.records[before:after]) != entry.bodies:
                raise KeyUsed(f"key {entry.key!r} of run {entry.run!r} was used for other events: choose another key")
            return after
        if count != entry.after:
            raise JournalConflict(
                f"{entry.run!r} has {counted(count, 'event')}, expected {entry.after}: reload and decide again"
            )
        for digest, body in entry.payloads.items():
            memory.payloads.setdefault(digest, body)
        if not entry.bodies:
            return count
        if run is None:
            run = memory.runs[entry.run] = _Run(entry.workflow, entry.outcome, genesis(entry.run))
        chained = links(run.link, entry.bodies)
        run.records.extend(
            Record(seq, body, link)
            for seq, (body, link) in enumerate(zip(entry.bodies, chained, strict=True), start=count + 1)
        )
        run.outcome, run.link = entry.outcome, chained[-1]
        run.escalations.update(dict.fromkeys(entry.opened))
        for escalation in entry.closed:
            run.escalations.pop(escalation, None)
        if entry.key is not None:
            run.keys[entry.key] = count, len(run.records)
        for listener in tuple(memory.listeners.values()):
            listener(entry.run, len(run.records))
        return len(run.records)

    async def read(self, run: str, after: int = 0) -> Sequence[Record]:
        """The events of a run after number `after`, in order; empty for a run that does not exist."""
        stored = self._memory.runs.get(run)
        return stored.records[after:] if stored else []

    async def runs(self, limit: int | None = None, after: str | None = None) -> Sequence[RunHead]:
        """Runs, newest first: at most `limit`, from the one that follows the run `after`."""
        return self._heads(reversed(self._memory.runs), limit, after)

    async def open_runs(self, limit: int | None = None, after: str | None = None) -> Sequence[RunHead]:
        """The same for runs that have not ended."""
        runs = self._memory.runs
        return self._heads(
            (name for name in reversed(runs) if runs[name].outcome in OPEN or name == after), limit, after
        )

    def _heads(self, names: Iterable[str], limit: int | None, after: str | None) -> list[RunHead]:
        names = iter(names)
        if after is not None:
            for name in names:
                if name == after:
                    break
        runs = self._memory.runs
        return [
            RunHead(name, run.workflow, run.outcome, len(run.records), run.link)
            for name in islice(names, limit)
            for run in (runs[name],)
        ]

    async def open_escalations(self, escalation: str | None = None) -> Sequence[OpenEscalation]:
        """The open escalations of all runs, or those with this id: oldest run first, in the order they were opened."""
        return [
            OpenEscalation(name, each)
            for name, run in self._memory.runs.items()
            for each in run.escalations
            if escalation in (None, each)
        ]

    async def payload(self, digest: str) -> bytes:
        """A large value by its digest. Raises JournalDamaged if it is missing or does not match its digest."""
        body = self._memory.payloads.get(digest)
        if body is None:
            raise JournalDamaged(f"payload {digest} is not in this journal: it was never stored, or it was pruned")
        if sha256(body).hexdigest() != digest:
            raise JournalDamaged(f"payload {digest} does not match its digest: store it under the sha256 of its bytes")
        return body

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call the listener after every append, before `append` returns. It must not raise."""
        return _add(self._memory.listeners, listener)

    async def claim(self, run: str) -> Claim:
        """Claim the run. Raises RunHeld, which names the holder, if another engine holds it."""
        if run in self._memory.held:
            raise RunHeld(run, self._memory.held[run][0].holder)
        return self._take(run)

    def take_over(self, run: str) -> Claim:
        """Claim the run even if another engine holds it, as after an expired lease: for tests of lost claims."""
        before = self._memory.held.get(run)
        claim = self._take(run)
        if before is not None:
            lost, owner = before
            for listener in tuple(owner._lost.values()):
                listener(lost)
        return claim

    def _take(self, run: str) -> Claim:
        fence = self._memory.fences[run] = self._memory.fences.get(run, 0) + 1
        claim = Claim(run, fence, "this process")
        self._memory.held[run] = claim, self
        return claim

    async def holds(self, claim: Claim) -> bool:
        """Whether the claim is still valid: neither released nor taken over."""
        return self._valid(claim.run, claim.fence)

    def _valid(self, run: str, fence: int) -> bool:
        return run in self._memory.held and self._memory.held[run][0].fence == fence

    async def holder(self, run: str) -> str | None:
        """The process that executes the run, in words; None if no process does."""
        return self._memory.held[run][0].holder if run in self._memory.held else None

    async def release(self, claim: Claim) -> None:
        """Release the run. A claim that is no longer valid is ignored."""
        if await self.holds(claim):
            del self._memory.held[claim.run]

    def on_lost(self, listener: LostListener) -> Callable[[], None]:
        """Call the listener with each claim made here that is taken over. Returns a function that unsubscribes."""
        return _add(self._lost, listener)

    async def close(self) -> None:
        """Release every claim that was made here. Other instances can still use the memory."""
        for claim, owner in tuple(self._memory.held.values()):
            if owner is self:
                await self.release(claim)


def _add(listeners: dict[object, T], listener: T) -> Callable[[], None]:
    token = object()
    listeners[token] = listener

    def unsubscribe() -> None:
        listeners.pop(token, None)

    return unsubscribe
