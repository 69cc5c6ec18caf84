"""Notifies listeners of commits: this journal's own at once, those of other processes by polling a version number.

SQLite cannot notify another process, so the watch polls. A poll costs a few microseconds and happens only while there
are listeners. It reads only what was added since the last poll, so its cost does not grow with the history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from backedge.core.errors import JournalError
from backedge.ports import Append, Listener

INTERVAL = 0.015
"""Seconds between polls: even on a busy event loop, commits of other processes are noticed within 50 ms."""
INTERVAL_AFTER_FAILURE = 1.0


class Changes(Protocol):
    """What the watch polls."""

    def version(self) -> int: ...
    def newest(self) -> int: ...
    def changed(self, since: int) -> tuple[list[tuple[str, int]], int]: ...


class Watch:
    """The listeners of one journal, on one event loop at a time. A commit may be announced twice, but is never
    missed."""

    def __init__(self, changes: Callable[[], Changes]) -> None:
        self._changes = changes
        self._listeners: dict[object, tuple[Listener, bool]] = {}
        """Each listener, and whether it also wants this journal's own commits."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._source: Changes | None = None
        self._version: int | None = None
        self._seen = 0
        self._announced: dict[str, int] = {}

    def subscribe(self, listener: Listener, own: bool = True) -> Callable[[], None]:
        """Call the listener after every commit, or with `own=False` only after those of other processes."""
        if not self._listeners:
            self._source = self._changes()
            self._version = self._source.version()
            self._seen = self._source.newest()
            self._announced = {}
        token = object()
        self._listeners[token] = listener, own
        self.follow()

        def unsubscribe() -> None:
            self._listeners.pop(token, None)
            if not self._listeners:
                self._stop_polling()

        return unsubscribe

    def follow(self) -> None:
        """Poll on the current event loop, if there are listeners. Costs nothing if it already does."""
        if self._listeners:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return  # subscribed before the event loop started: the first call on it starts the polling
            if loop is not self._loop:
                self._stop_polling()
                self._loop = loop
                self._timer = loop.call_later(INTERVAL, self._poll, loop)

    def announce_own(self, entries: Iterable[Append]) -> None:
        """Announce commits made through this journal."""
        if self._listeners:
            newest = {entry.run: entry.after + len(entry.bodies) for entry in entries if entry.bodies}
            self._announced |= newest
            self._notify(newest, own=True)

    def close(self) -> None:
        self._listeners.clear()
        self._stop_polling()

    def _stop_polling(self) -> None:
        # A timer is not a task: if its event loop is closed, it is simply never called.
        if self._timer:
            self._timer.cancel()
        self._timer = self._loop = None

    def _poll(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            news = self._news()
        except JournalError as error:
            self._timer = loop.call_later(INTERVAL_AFTER_FAILURE, self._poll, loop)
            loop.call_exception_handler(
                {"message": "cannot read what other processes append; trying again", "exception": error}
            )
            return
        self._timer = loop.call_later(INTERVAL, self._poll, loop)
        self._notify(news, own=False)

    def _news(self) -> dict[str, int]:
        source = self._changes()
        if source is not self._source:  # the numbers of one connection say nothing about another's
            self._source, self._version = source, None
        # Read before the version: if that has not changed, everything up to here is this journal's own and was
        # announced, so the next query can skip it.
        newest = source.newest() if self._announced else self._seen
        version = source.version()
        announced, self._announced = self._announced, {}
        if version == self._version:
            self._seen = newest
            return {}
        runs, self._seen = source.changed(self._seen)
        self._version = version
        return {run: seq for run, seq in runs if announced.get(run) != seq}

    def _notify(self, newest: dict[str, int], own: bool) -> None:
        for run, seq in newest.items():
            for listener, wants_own in tuple(self._listeners.values()):
                if wants_own or not own:
                    listener(run, seq)
