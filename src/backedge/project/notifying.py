"""Tells people about questions while a process runs: it sends what is due, and stops with what it is used in."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from backedge.adapters.journals.private_files import private_file, private_folder
from backedge.adapters.notifications.outbox_file import OutboxEntry, OutboxFile, SendLock
from backedge.core.errors import BackedgeError
from backedge.project.location import Project
from backedge.project.outbox import Outbox, Watched

ADDRESS = "BACKEDGE_URL"
"""The environment variable with the address of the web page, for links in messages."""
LOOK_AGAIN = 30.0
"""Seconds after which a process looks at its clock again: the machine may have been suspended."""
LOCK_AGAIN = 2.0
"""Seconds after which a process asks again whether another one still sends."""
LAST_PASS = 10.0
"""Seconds that a process which ends takes to send what is left. Whatever it cannot send, the next one does."""


def outbox_path(project: Project) -> Path:
    return project.journal.with_name(f"{project.journal.name}.outbox")


def opened_outbox(project: Project) -> OutboxFile:
    """The outbox file of a project, which is made if there is none. Raises OSError or sqlite3.Error."""
    private_folder(project.state)
    private_file(outbox_path(project))
    return OutboxFile(outbox_path(project))


def unsent(project: Project) -> list[OutboxEntry]:
    """The messages that wait or have failed. Nothing is made if there is no outbox."""
    if not outbox_path(project).exists():
        return []
    with OutboxFile(outbox_path(project)) as file:
        return file.entries("waiting", "failed")


class Notifying:
    """Sends in the background, if no other process does."""

    def __init__(
        self, engine: Watched, project: Project, url: str = "", warn: Callable[[str], None] | None = None
    ) -> None:
        self._engine, self._project, self._url = engine, project, url or os.environ.get(ADDRESS, "")
        self._warn = warn or (lambda _: None)
        self._lock = SendLock(outbox_path(project).with_suffix(".outbox-lock"))
        self._file: OutboxFile | None = None
        self._outbox: Outbox | None = None
        self._changed = asyncio.Event()
        self._stopping = False

    def __enter__(self) -> Notifying:
        self._file = opened_outbox(self._project)
        self._unsubscribe = self._engine.journal.subscribe(self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        self._unsubscribe()
        self._lock.release()
        if self._file is not None:
            self._file.close()

    def _hear(self, run: str, _: int) -> None:
        if self._outbox is not None:
            self._outbox.look_at(run)
        self._changed.set()

    async def pass_once(self) -> float:
        """Send what is due now. Returns when there is something to do again."""
        if not self._lock.hold():
            return self._engine.clock.now() + LOCK_AGAIN
        if self._outbox is None:
            # Only now: what another process sent until it ended is in the file.
            assert self._file is not None
            self._outbox = Outbox(self._engine, self._file, self._project.folder, self._url)
        return await self._outbox.send_due()

    @property
    def sends(self) -> bool:
        """Whether this is the process that sends."""
        return self._outbox is not None

    async def keep_sending(self) -> None:
        """Send whatever becomes due, until `stop`. A fault is reported once and does not end it."""
        warned = ""
        while not self._stopping:
            if not self._stopping:
                self._changed.clear()
            wait = LOOK_AGAIN
            try:
                wait = min(LOOK_AGAIN, max(0.05, await self.pass_once() - self._engine.clock.now()))
            except (BackedgeError, OSError, sqlite3.Error) as error:
                if str(error) != warned:
                    warned = str(error)
                    self._warn(f"messages cannot be sent now: {warned}")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), wait)

    def stop(self) -> None:
        """Let the pass that is under way end, and begin no other."""
        self._stopping = True
        self._changed.set()


@asynccontextmanager
async def notifying(
    engine: Watched, project: Project, url: str = "", warn: Callable[[str], None] | None = None
) -> AsyncIterator[None]:
    """Tell people about questions as long as this lasts: remind them, let questions expire, send what is due. On leaving, what
    can be sent at once still is. Only one process sends for a journal at a time; the others wait.

    `url` is the address of the web page, for links; `warn` is called with what is wrong.
    """
    try:
        sender = Notifying(engine, project, url, warn).__enter__()
    except (OSError, sqlite3.Error) as error:
        if warn is not None:
            warn(f"messages are not sent: {outbox_path(project)} cannot be used: {error}")
        yield
        return
    task = asyncio.create_task(sender.keep_sending())
    try:
        yield
    finally:
        sender.stop()
        await asyncio.wait([task], timeout=LAST_PASS)
        task.cancel()
        await asyncio.wait([task])
        with suppress(BackedgeError, OSError, sqlite3.Error, TimeoutError):
            async with asyncio.timeout(LAST_PASS):
                await sender.pass_once()
        sender.__exit__(None, None, None)
