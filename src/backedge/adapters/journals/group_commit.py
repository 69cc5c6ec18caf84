"""Group commit: what many runs append in one turn of the event loop becomes one transaction and one fsync.

The transaction runs inline on the event loop, because handing it to a thread costs as much as the fsync of a good
disk. Where commits turn out slow (a slow disk, another process that holds the write lock), they move to a single
writer thread, so that everything else on the event loop goes on; they come back when commits are quick again.
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
"""Stores the entries in one transaction; says what became of each, and how many seconds were spent waiting for the lock
and the disk. The time for the work itself does not count: a thread would not make it shorter."""
_Group = list[tuple[Append, asyncio.Future[int]]]
_Job = concurrent.futures.Future[list[Outcome]]

SLOW_COMMIT = 0.020
"""Seconds of waiting that everything else on the event loop would feel."""
_SLOW, _FAST, _TO_THREAD, _MOST = 20, -1, 60, 160
# Three slow commits among a few dozen, or one that is three times too slow, move to the thread; a hundred quick ones
# in a row come back. A single slow one, such as a checkpoint, moves nothing.


class GroupCommit:
    """Collects entries and commits them together; each caller learns the fate of its own entry only."""

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
        """Return the number of its last event when the entry is stored. If the caller is cancelled meanwhile, it may be stored all the same."""
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
        """Wait for a commit that is under way; what is put afterwards is refused by the closed file, inline."""
        if self._thread:
            self._thread.shutdown()
        self._slowness = 0

    def _move_to(self, loop: asyncio.AbstractEventLoop) -> None:
        # The loop before has ended. Nobody waits for what it left in the queue, and nobody was told it was stored.
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
            if waited is None:  # it failed, perhaps after waiting for somebody's lock
                waited = perf_counter() - started
            weight = _SLOW * int(waited / SLOW_COMMIT) or _FAST
            self._slowness = min(max(self._slowness + weight, 0), _MOST)
        return outcomes

    def _call_back(self, loop: asyncio.AbstractEventLoop, group: _Group, job: _Job) -> None:
        try:
            loop.call_soon_threadsafe(self._after_job, loop, group, job)
        except RuntimeError:
            return  # the event loop was closed meanwhile, so nobody waits any more

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
            for _, waiter in group:  # nobody may wait for ever for a commit that was broken off
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
