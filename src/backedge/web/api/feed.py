"""What happens in runs, for any number of watchers: each event is read and written as text once, and all share it.

A watcher has a place in the sequence and no queue, so that one who reads slowly costs no memory. One who was up to date
and then falls too far behind is told so, and has to connect again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from hashlib import sha256

import msgspec

from backedge.core.errors import BackedgeError
from backedge.core.text import escaped
from backedge.engine.store import sound_records
from backedge.ports import Journal, Record
from backedge.reading.event_line import stored_line

MOST_BEHIND = 1_000
"""How many events a watcher who was up to date may fall behind."""
PAUSE = 0.1
"""Seconds between two looks at the journal while much happens: what happens meanwhile is sent together."""
PAUSE_EACH = 0.0015
"""The same for each watcher: with many of them, sending takes a small part of the time however much happens."""
BEAT = 15.0
"""Seconds without an event after which a comment is sent: proxies and browsers then know that the stream lives."""
CHUNK = 32 * 1024
"""About how many bytes to send at once."""


BEAT_MESSAGE = b": beat\n\n"


def frame_of(run: str, record: Record) -> bytes:
    """An event as a message of server-sent events. Its id is the number that a watcher continues after."""
    return b"id: %d\ndata: %s\n\n" % (record.seq, stored_line(run, record))


class Behind(Exception):
    """The watcher was up to date and has fallen too far behind."""

    def __init__(self, seen: int, newest: int) -> None:
        self.seen, self.newest = seen, newest


class Channel:
    """The events of one run."""

    def __init__(self, journal: Journal, run: str, newest: int) -> None:
        self._journal, self.run = journal, run
        self._frames: list[bytes] = []
        """The messages up to `newest`, the last ones of the run: as many as a watcher needs."""
        self.newest = newest
        self.watchers: dict[object, asyncio.Event] = {}
        self.catching_up: dict[object, int] = {}
        """The number of the last event that each watcher has got who was not up to date yet."""
        self._changed = asyncio.Event()
        self._pump = asyncio.create_task(self._follow())

    @property
    def first(self) -> int:
        """The number of the first event whose message is at hand."""
        return self.newest - len(self._frames) + 1

    def wake(self) -> None:
        self._changed.set()

    def close(self) -> None:
        self._pump.cancel()

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                records = await sound_records(self._journal, self.run, self.newest)
            except BackedgeError:
                records = ()  # tried again with the next change; watchers see no event that cannot be read
            if records:
                self._frames += [frame_of(self.run, record) for record in records]
                self.newest = records[-1].seq
                self._forget()
                for woken in self.watchers.values():
                    woken.set()
            await asyncio.sleep(max(PAUSE, PAUSE_EACH * len(self.watchers)))

    def _forget(self) -> None:
        """Keep only the messages that a watcher may still need."""
        slowest = min(self.catching_up.values(), default=self.newest)
        keep = max(self.newest - slowest, MOST_BEHIND)
        if len(self._frames) > 2 * keep:
            del self._frames[:-keep]

    async def after(self, seen: int) -> list[bytes]:
        """The next messages after a number, about CHUNK bytes of them; empty if there are none yet."""
        if seen < self.first - 1:
            older = await sound_records(self._journal, self.run, seen)
            if seen < self.first - 1:  # another watcher may have read them meanwhile
                missing = self.first - 1 - seen
                self._frames[:0] = [frame_of(self.run, record) for record in older[:missing]]
        found, size = [], 0
        for frame in self._frames[max(0, seen - self.first + 1) :]:
            found.append(frame)
            size += len(frame)
            if size >= CHUNK:
                break
        return found


class Feed:
    """All channels of a journal. It listens to the journal only while somebody watches."""

    def __init__(self, journal: Journal, head: Callable[[str], Awaitable[int]]) -> None:
        """`head` gives the number of the newest event of a run, and raises NotFound if there is no such run."""
        self._journal, self._head = journal, head
        self._channels: dict[str, Channel] = {}
        self._inbox: dict[object, asyncio.Event] = {}
        self._unsubscribe: Callable[[], None] | None = None

    def _listen(self) -> None:
        if self._unsubscribe is None:
            self._unsubscribe = self._journal.subscribe(self._written)

    def _rest(self) -> None:
        if not self._channels and not self._inbox and self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def _written(self, run: str, seq: int) -> None:
        channel = self._channels.get(run)
        if channel is not None and seq > channel.newest:
            channel.wake()
        for woken in self._inbox.values():
            woken.set()

    async def events(self, run: str, after: int) -> AsyncGenerator[bytes, None]:
        """The messages of a run after a number, for ever, a few at a time. Raises Behind."""
        self._listen()  # before the journal is read, so that nothing falls between
        token, woken, seen = object(), asyncio.Event(), after
        try:
            if run not in self._channels:
                newest = await self._head(run)
                if run not in self._channels:
                    self._channels[run] = Channel(self._journal, run, newest)
            channel = self._channels[run]
            channel.watchers[token], channel.catching_up[token] = woken, seen
            channel.wake()
            while True:
                woken.clear()
                if token not in channel.catching_up and channel.newest - seen > MOST_BEHIND:
                    raise Behind(seen, channel.newest)
                frames = await channel.after(seen)
                if frames:
                    seen += len(frames)
                    if token in channel.catching_up:
                        channel.catching_up[token] = seen
                    yield b"".join(frames)
                else:
                    channel.catching_up.pop(token, None)
                    if not await _within_a_beat(woken):
                        yield BEAT_MESSAGE
        finally:
            held = self._channels.get(run)
            if held is not None:
                held.watchers.pop(token, None)
                held.catching_up.pop(token, None)
                if not held.watchers:
                    held.close()
                    del self._channels[run]
            self._rest()

    async def inbox(self, known: str) -> AsyncGenerator[bytes, None]:
        """A message whenever the open escalations have changed, and at once if they are not those that the watcher
        knows. The id of a message is a digest of them."""
        self._listen()
        token, woken = object(), asyncio.Event()
        self._inbox[token] = woken
        try:
            while True:
                woken.clear()
                opened = [
                    {"run": each.run, "escalation": each.escalation} for each in await self._journal.open_escalations()
                ]
                data = msgspec.json.encode({"open": len(opened), "escalations": opened})
                digest = sha256(data).hexdigest()[:16]
                if digest != known:
                    known = digest
                    yield b"id: %s\ndata: %s\n\n" % (digest.encode(), escaped(data))
                while not await _within_a_beat(woken):
                    yield BEAT_MESSAGE
                await asyncio.sleep(max(PAUSE, PAUSE_EACH * len(self._inbox)))
        finally:
            self._inbox.pop(token, None)
            self._rest()


async def _within_a_beat(woken: asyncio.Event) -> bool:
    """Wait until something has happened. False after a beat in which nothing has."""
    try:
        async with asyncio.timeout(BEAT):
            return await woken.wait()
    except TimeoutError:
        return False
