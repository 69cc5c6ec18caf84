"""Group commit: everything that is appended in one iteration of the event loop becomes one transaction and one fsync.

The transaction runs inline on the event loop, because handing it to a thread costs as much as the fsync of a good disk.
If commits become slow (a slow disk, another process that holds the write lock), they move to a single writer thread, so
that the event loop is not blocked. They move back when commits are fast again.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter

from backedge.core.errors import BackedgeError, JournalError
from backedge.ports import Append

Outcome = int | BackedgeError
"""The number of the entry's last event, or why the entry was refused."""
Commit = Callable[[Sequence[Append]], tuple[list[Outcome], float]]
"""Stores the entries in one transaction. Returns the result of each, and the seconds spent waiting for the lock and the
disk. The time for the work itself does not count: a thread would not make it shorter."""
_Group = list[tuple[Append, asyncio.Future[int]]]
_Job = concurrent.futures.Future[list[Outcome]]

SLOW_COMMIT = 0.020
"""A commit that waits longer than this many seconds is slow: it delays everything else on the event loop."""
_SLOW, _FAST, _TO_THREAD, _MOST = 20, -1, 60, 160
# Three slow commits among a few dozen, or one that is three times too slow, move commits to the thread. A hundred fast
# ones in a row move them back. A single slow one, such as a checkpoint, changes nothing.


class GroupCommit:
    """Collects entries and commits them together. Each caller gets the result of its own entry only."""

    def __init__(self, commit: Commit, committed: Callable[[Sequence[Append]], None]) -> None:
        self._commit = commit
        self._committed = committed
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: _Group = []
        self._scheduled = False
        self._slowness = 0
        self._thread: concurrent.futures.ThreadPoolExecutor | None = None
        self._job: _Job | None = None

    @property
    def uses_thread(self) -> bool:
        """Whether a thread may be committing; once true it stays true."""
        return self._thread is not None

    async def put(self, entry: Append) -> int:
        """Store an entry and return the number of its last event. If the caller is cancelled while it waits, the entry
        may still be stored."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._move_to(loop)
        waiter: asyncio.Future[int] = loop.create_future()
        self._queue.append((entry, waiter))
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._flush, loop)
        return await waiter

    def close(self) -> None:
        """Wait for a commit that is under way. Later entries are refused, because the file is closed."""
        if self._thread:
            self._thread.shutdown()
        self._slowness = 0

    def _move_to(self, loop: asyncio.AbstractEventLoop) -> None:
        # The previous event loop has ended. No caller waits for the entries in its queue, and none was confirmed as
        # stored.
        if self._job:
            concurrent.futures.wait([self._job])
        self._job = None
        self._queue = []
        self._scheduled = False
        self._loop = loop

    def _flush(self, loop: asyncio.AbstractEventLoop) -> None:
        group, self._queue = self._queue, []
        entries = [entry for entry, _ in group]
        if self._slowness < _TO_THREAD:
            self._scheduled = False
            self._settle(group, partial(self._timed, entries))
            return
        if self._thread is None:
            self._thread = concurrent.futures.ThreadPoolExecutor(1, "backedge-journal")
        self._job = self._thread.submit(self._timed, entries)
        self._job.add_done_callback(partial(self._call_back, loop, group))

    def _timed(self, entries: Sequence[Append]) -> list[Outcome]:
        started, waited = perf_counter(), None
        try:
            outcomes, waited = self._commit(entries)
        finally:
            if waited is None:  # it failed, perhaps after waiting for another process's lock
                waited = perf_counter() - started
            weight = _SLOW * int(waited / SLOW_COMMIT) or _FAST
            self._slowness = min(max(self._slowness + weight, 0), _MOST)
        return outcomes

    def _call_back(self, loop: asyncio.AbstractEventLoop, group: _Group, job: _Job) -> None:
        try:
            loop.call_soon_threadsafe(self._after_job, loop, group, job)
        except RuntimeError:
            return  # the event loop was closed in the meantime: no caller waits any more

    def _after_job(self, loop: asyncio.AbstractEventLoop, group: _Group, job: _Job) -> None:
        self._job = None
        try:
            self._settle(group, job.result)
        finally:
            if self._queue:
                self._flush(loop)
            else:
                self._scheduled = False

    def _settle(self, group: _Group, outcomes: Callable[[], list[Outcome]]) -> None:
        try:
            fates: list[Outcome] = outcomes()
        except JournalError as error:
            # One exception for each caller: a shared one would collect the tracebacks of all of them.
            fates = [_copy(error) for _ in group]
        except BaseException:
            for _, waiter in group:  # no caller may wait for ever for an interrupted commit
                waiter.cancel()
            raise
        stored = []
        for (entry, waiter), fate in zip(group, fates, strict=True):
            if isinstance(fate, int):
                stored.append(entry)
            if waiter.done():
                continue
            if isinstance(fate, int):
                waiter.set_result(fate)
            else:
                waiter.set_exception(fate)
        if stored:
            self._committed(stored)


def _copy(error: JournalError) -> JournalError:
    copy = type(error)(*error.args)
    copy.__cause__ = error.__cause__
    return copy
