"""Keeps feedback-scratchpad.md and progress.json up to date for every run that this process executes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from backedge.analytics.progress import notes_of, progress_of
from backedge.analytics.tight_loop import TightLoop, tight_loop
from backedge.compat.progress import progress_json
from backedge.compat.scratchpad import scratchpad_text
from backedge.core.events import Event, RunStarted

SCRATCHPAD = "feedback-scratchpad.md"
PROGRESS = "progress.json"
DELAY = 0.05
"""Seconds from a change to the files that show it: the changes of a busy run are written together."""


class RunViews:
    """Subscribe `tell` to an engine, and give `paths` to its agents: the files they read are never older than their
    briefing.

    The files are written soon after a change, and before `paths` returns. To resume a run, pass its past events to
    `load`.
    """

    def __init__(self, folder: Callable[[str], Path], complain: Callable[[str], None] | None = None) -> None:
        self._folder, self._complain = folder, complain
        self._loops: dict[str, TightLoop] = {}
        self._unwritten: dict[str, None] = {}

    def load(self, run: str, events: Iterable[Event]) -> None:
        """Take the past of a run and write its files: a crash may have left older ones."""
        self._loops.pop(run, None)
        self._take(run, events)

    async def refresh(self, run: str, read: Callable[[int], Awaitable[Sequence[Event]]]) -> None:
        """Write the files of a run from its journal, after an answer to a run that no process executes. `read` returns the
        events after a number.

        If a process executes it after all, the newer state stays: the journal is read until nothing was added meanwhile.
        """
        self._loops.pop(run, None)
        seen = 0
        while events := await read(seen):
            seen += len(events)
            self._take(run, events)

    def _take(self, run: str, events: Iterable[Event]) -> None:
        loop = self._loops.get(run)
        for event in events:
            loop = tight_loop(loop, event)
        if loop is not None:
            self._loops[run] = loop
            self._unwritten[run] = None
            self.flush()

    def tell(self, run: str, event: Event) -> None:
        before = self._loops.get(run)
        if before is None and not isinstance(event, RunStarted):
            return  # the past of the run is unknown: no file is better than a wrong one
        after = tight_loop(before, event)
        if after is before:
            return
        self._loops[run] = after
        if not self._unwritten:
            with suppress(RuntimeError):  # without an event loop they are written when `paths` is called
                asyncio.get_running_loop().call_later(DELAY, self.flush)
        self._unwritten[run] = None

    def paths(self, run: str) -> Mapping[str, str]:
        """Where the files of a run are, as briefings name them; they are current on return."""
        self.flush()
        folder = self._folder(run).absolute()
        return {"scratchpad": str(folder / SCRATCHPAD), "progress": str(folder / PROGRESS)}

    def flush(self) -> None:
        """Write what has changed. If that fails, warn once: the run itself does not need its views."""
        while self._unwritten:
            run = next(iter(self._unwritten))
            del self._unwritten[run]
            folder, progress, notes = self._folder(run), progress_of(self._loops[run]), notes_of(self._loops[run])
            try:
                folder.mkdir(parents=True, exist_ok=True)
                _replace(folder / SCRATCHPAD, scratchpad_text(progress, notes).encode("utf-8", "replace"))
                _replace(folder / PROGRESS, progress_json(progress))
            except OSError as error:
                if self._complain is not None:
                    self._complain(f"{SCRATCHPAD} and {PROGRESS} of {run} cannot be written: {error.strerror or error}")
                    self._complain = None


def _replace(path: Path, text: bytes) -> None:
    """Write a file so that no reader ever sees half of it. No fsync: the file can be written again from the journal."""
    # Two processes may refresh the same view, so each writes its own draft.
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        draft.write_bytes(text)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
