"""Tells listeners of commits: this journal's own at once, those of others by looking at a version number.

SQLite cannot call another process, so somebody has to look. Looking costs a few microseconds, happens only while
somebody listens, and what changed is found from where the last look ended, however long the history is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from backedge.core.errors import JournalError
from backedge.ports import Append, Listener

INTERVAL = 0.015
"""Seconds between looks: with a busy event loop, others' commits are still noticed within 50 ms."""
INTERVAL_AFTER_FAILURE = 1.0


class Changes(Protocol):
    """What the watch looks at."""

    def version(self) -> int: ...
    def newest(self) -> int: ...
    def changed(self, since: int) -> tuple[list[tuple[str, int]], int]: ...


class Watch:
    """The listeners of one journal, on one event loop at a time. A commit may be told twice, never not at all."""

    def __init__(self, changes: Callable[[], Changes]) -> None:
        self._changes = changes
        self._listeners: dict[object, tuple[Listener, bool]] = {}
        """Each with whether it wants to hear of this journal's own commits."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._source: Changes | None = None
        self._version: int | None = None
        self._seen = 0
        self._announced: dict[str, int] = {}

    def subscribe(self, listener: Listener, own: bool = True) -> Callable[[], None]:
        """Tell the listener of every commit, or with `own=False` only of those that others make."""
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
                self._stop_looking()

        return unsubscribe

    def follow(self) -> None:
        """Look from the event loop that runs now, if there is anybody to tell; costs nothing if that is so already."""
        if self._listeners:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return  # subscribed before the event loop started: the first call on it begins the looking
            if loop is not self._loop:
                self._stop_looking()
                self._loop = loop
                self._timer = loop.call_later(INTERVAL, self._look, loop)

    def announce_own(self, entries: Iterable[Append]) -> None:
        """Tell of commits made through this journal."""
        if self._listeners:
            newest = {entry.run: entry.after + len(entry.bodies) for entry in entries if entry.bodies}
            self._announced |= newest
            self._tell(newest, own=True)

    def close(self) -> None:
        self._listeners.clear()
        self._stop_looking()

    def _stop_looking(self) -> None:
        # A timer is no task: one that is left on a closed event loop is simply never called.
        if self._timer:
            self._timer.cancel()
        self._timer = self._loop = None

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            news = self._news()
        except JournalError as error:
            self._timer = loop.call_later(INTERVAL_AFTER_FAILURE, self._look, loop)
            loop.call_exception_handler(
                {"message": "cannot see what other processes append; looking again", "exception": error}
            )
            return
        self._timer = loop.call_later(INTERVAL, self._look, loop)
        self._tell(news, own=False)

    def _news(self) -> dict[str, int]:
        source = self._changes()
        if source is not self._source:  # the numbers of one connection say nothing about another's
            self._source, self._version = source, None
        # Asked before the version: if that has not changed, everything up to here is this journal's own and was told,
        # and the next query need not go through it.
        newest = source.newest() if self._announced else self._seen
        version = source.version()
        announced, self._announced = self._announced, {}
        if version == self._version:
            self._seen = newest
            return {}
        runs, self._seen = source.changed(self._seen)
        self._version = version
        return {run: seq for run, seq in runs if announced.get(run) != seq}

    def _tell(self, newest: dict[str, int], own: bool) -> None:
        for run, seq in newest.items():
            for listener, hears_own in tuple(self._listeners.values()):
                if hears_own or not own:
                    listener(run, seq)
