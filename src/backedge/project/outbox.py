"""The outbox of a journal: the messages that follow from its events, less those that were sent.

A message is sent at least once, and always with the same id. A delivery that fails changes nothing in the run.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from backedge.adapters.notifications.address import NotSent, name_of
from backedge.adapters.notifications.outbox_file import OutboxEntry, OutboxFile
from backedge.adapters.notifications.quiet_hours import quiet_until
from backedge.adapters.notifications.sending import send
from backedge.analytics.blast import blast_in
from backedge.analytics.message import Message, Told, message_about, outdated, told_events, wants
from backedge.analytics.rounds import LoopHistory, loop_histories
from backedge.core.errors import BackedgeError
from backedge.core.escalation.packet import packet
from backedge.core.events import Event, RunStarted
from backedge.core.state.evolve import replay
from backedge.core.state.run import Escalation, RunState
from backedge.core.workflow.notify import Channel
from backedge.engine.store import events_of
from backedge.ports import OPEN, Clock, JournalWithClaims

NO_CHANNELS = -1
"""The position of a run whose workflow has no channels: it is never read again."""
LONGEST_PAUSE = 3600.0
"""Seconds between two tries of a message that could not be sent; the first ones are closer together."""
MOST_TRIES = 30
"""After so many tries, in about a day, a message counts as failed."""
LIST_AGAIN = 30.0
"""Seconds between two looks at all runs: a hint that something changed may be lost."""
AT_ONCE = 8
"""How many channels are sent to at the same time."""


class Watched(Protocol):
    """What the outbox needs of an engine."""

    journal: JournalWithClaims

    @property
    def clock(self) -> Clock: ...

    async def keep_deadlines(self) -> float | None: ...


def pause_after(tries: int) -> float:
    """Seconds until the next try: 5, 15, 45 … up to an hour."""
    return min(LONGEST_PAUSE, 5.0 * 3.0 ** min(tries - 1, 10))


class Outbox:
    """Sends what has to be sent, one pass at a time. Only the process that holds the lock may use it."""

    def __init__(self, engine: Watched, file: OutboxFile, folder: Path, url: str = "") -> None:
        self._engine, self._file, self._folder, self._url = engine, file, folder, url.rstrip("/")
        self._positions = file.positions()
        self._channels: dict[str, tuple[Channel, ...]] = {}
        self._changed: set[str] = set()
        self._list_at = self._deadline = self._send_at = 0.0
        """When all runs are listed again, when something becomes due in a run, and when a message has to be sent: not before
        that, because each of these reads whole runs."""

    def look_at(self, run: str) -> None:
        """Read this run in the next pass: it has new events."""
        self._changed.add(run)

    async def send_due(self) -> float:
        """Remind and expire what is due, and send what can be sent now. Returns when there is something to do again."""
        now = self._engine.clock.now()
        if now >= self._deadline:
            self._deadline = await self._engine.keep_deadlines() or math.inf
        await self._gather(now)
        if now >= self._send_at:
            self._send_at = await self._send_waiting()
        return min(self._list_at, self._deadline, self._send_at)

    async def _gather(self, now: float) -> None:
        """Note the messages of all events that were not read yet."""
        changed, self._changed = self._changed, set()
        if now >= self._list_at:
            heads = await self._engine.journal.runs()
            if self._file.new:
                # An outbox begins with what is open: there are no messages about runs of the past.
                self._note([(head.run, head.seq) for head in heads if head.outcome not in OPEN])
                self._file.new = False
            changed |= {head.run for head in heads if self._positions.get(head.run, 0) not in (NO_CHANNELS, head.seq)}
            self._list_at = now + LIST_AGAIN
        for run in sorted(changed):
            if self._positions.get(run) != NO_CHANNELS:
                try:
                    await self._read(run)
                except BackedgeError:
                    continue  # a run that cannot be read has no messages, and does not keep the others from it

    def _note(self, positions: Sequence[tuple[str, int]], entries: Iterable[OutboxEntry] = ()) -> None:
        self._file.note(positions, entries)
        self._positions.update(positions)

    async def _read(self, run: str) -> None:
        position, channels = self._positions.get(run, 0), self._channels.get(run)
        events = await events_of(self._engine.journal, run, position if channels is not None else 0)
        if channels is None:
            started = events[0] if events else None
            channels = started.workflow.notify if isinstance(started, RunStarted) else ()
            self._channels[run] = channels
            new = events[position:]
        else:
            new = events
        if not channels:
            self._note([(run, NO_CHANNELS)] if events else [])
            return
        told = told_events(new, position)
        entries: list[OutboxEntry] = []
        if told:
            state = replay(await events_of(self._engine.journal, run))
            assert state is not None
            entries = [
                OutboxEntry(run, each.seq, index, each.escalation)
                for each in told
                for index, channel in enumerate(channels)
                if (found := state.escalation(each.escalation)) is not None and wants(channel, each, found.for_roles)
            ]
            self._deadline = self._send_at = 0.0
        self._note([(run, position + len(new))], entries)

    async def _send_waiting(self) -> float:
        """Send what is due, the messages about one question in their order. Returns when the next one is due."""
        waiting = self._file.entries("waiting")
        runs = {
            run: await _RunSoFar.of(self._engine.journal, run) for run in dict.fromkeys(each.run for each in waiting)
        }
        queues: dict[object, list[OutboxEntry]] = {}
        for entry in waiting:
            channel = runs[entry.run].channel(entry)
            key = (channel.to, channel.command) if channel is not None else entry.order
            queues.setdefault(key, []).append(entry)
        limit = asyncio.Semaphore(AT_ONCE)

        async def send_all(queue: list[OutboxEntry]) -> list[float]:
            held: dict[object, float] = {}
            async with limit:
                for entry in queue:
                    if entry.order not in held:
                        later = [each for each in queue if each.order == entry.order]
                        again = await self._deliver(entry, runs[entry.run], later)
                        if again is not None:
                            held[entry.order] = again
            return list(held.values())

        times = await asyncio.gather(*(send_all(queue) for queue in queues.values()))
        return min((time for each in times for time in each), default=math.inf)

    async def _deliver(self, entry: OutboxEntry, run: _RunSoFar, later: Sequence[OutboxEntry]) -> float | None:
        """Send one message if it is its time. Returns when it has to be tried again; None if it is settled."""
        now = self._engine.clock.now()
        channel, told = run.channel(entry), run.told.get(entry.seq)
        found = run.state.escalation(entry.escalation) if run.state is not None else None
        if run.state is None or channel is None or told is None or found is None:
            # The journal was restored from a backup that does not have this event.
            self._file.record(replace(entry, state="dropped"))
            return None
        if outdated(told, found, [run.told[each.seq] for each in later if each.seq in run.told]):
            self._file.record(replace(entry, state="dropped"))
            return None
        quiet = quiet_until(channel.quiet, now)
        if quiet is not None or entry.next_at > now:
            return max(quiet or 0.0, entry.next_at)
        try:
            await send(channel, self._message(run, told), now, os.environ, self._folder)
        except NotSent as error:
            tries = entry.tries + 1
            failed = replace(entry, tries=tries, error=str(error), next_at=now + pause_after(tries))
            if tries >= MOST_TRIES:
                self._file.record(replace(failed, state="failed"))
                return None
            self._file.record(failed)
            return failed.next_at
        self._file.record(replace(entry, state="sent", tries=entry.tries + 1, error=""))
        return None

    def _message(self, run: _RunSoFar, told: Told) -> Message:
        state = run.state
        found = state.escalation(told.escalation) if state is not None else None
        assert state is not None and found is not None
        loop = state.loop(found.loop) if found.loop else None
        return message_about(
            state,
            found,
            packet(state, found.id),
            told,
            loop_histories(run.events).get(found.loop or "", LoopHistory()),
            self._engine.clock.now(),
            blast_in(state, run.events, loop) if loop is not None and loop.open else None,
            self._address(state.run, found) if self._url else "",
        )

    def _address(self, run: str, asked: Escalation) -> str:
        """The page on which a question is answered; that of the run once it was."""
        name = quote(run, safe="")
        return f"{self._url}/runs/{name}" if asked.decided else f"{self._url}/?run={name}#{name}:{asked.id}"


class _RunSoFar:
    """A run as it is now, with the events that people are told about."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.state: RunState | None = replay(events)
        self.told = {each.seq: each for each in told_events(events)}

    @classmethod
    async def of(cls, journal: JournalWithClaims, run: str) -> _RunSoFar:
        try:
            return cls(await events_of(journal, run))
        except BackedgeError:
            return cls(())

    def channel(self, entry: OutboxEntry) -> Channel | None:
        channels = self.state.workflow.notify if self.state is not None else ()
        return channels[entry.channel] if entry.channel < len(channels) else None


__all__ = ["MOST_TRIES", "Outbox", "Watched", "name_of", "pause_after"]
