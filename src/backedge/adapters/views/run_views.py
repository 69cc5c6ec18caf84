"""feedback-scratchpad.md and progress.json of every run that this process executes, kept current."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from backedge.analytics.progress import progress_json, scratchpad
from backedge.analytics.tight_loop import TightLoop, tight_loop
from backedge.core.events import Event, RunStarted

SCRATCHPAD = "feedback-scratchpad.md"
PROGRESS = "progress.json"


class RunViews:
    """Subscribe `tell` to an engine, and give `paths` to its agents: what they read there is never older than what
    they are told.

    The events of one decision come in a row, so the files are written once after the last of them: as soon as the
    event loop is free, or when somebody asks for their paths. Whoever resumes a run gives its past to `load`.
    """

    def __init__(self, folder: Callable[[str], Path], complain: Callable[[str], None] | None = None) -> None:
        self._folder, self._complain = folder, complain
        self._loops: dict[str, TightLoop] = {}
        self._unwritten: dict[str, None] = {}

    def load(self, run: str, events: Iterable[Event]) -> None:
        """Take the past of a run, and write its files as of then: a crash may have left them behind."""
        loop: TightLoop | None = None
        for event in events:
            loop = tight_loop(loop, event)
        if loop is not None:
            self._loops[run] = loop
            self._unwritten[run] = None
            self.flush()

    async def refresh(self, run: str, read: Callable[[], Awaitable[Sequence[Event]]]) -> None:
        """Write the files of a run as its journal has it, for those who answer a run that nobody executes.

        Where somebody does after all, the newer state stays: it is read again until nothing was added meanwhile.
        """
        seen = -1
        while len(events := await read()) != seen:
            seen = len(events)
            self.load(run, events)

    def tell(self, run: str, event: Event) -> None:
        before = self._loops.get(run)
        if before is None and not isinstance(event, RunStarted):
            return  # a run whose past nobody gave us: better no file than a wrong one
        after = tight_loop(before, event)
        if after is before:
            return
        self._loops[run] = after
        if not self._unwritten:
            with suppress(RuntimeError):  # without a loop they are written when they are asked for
                asyncio.get_running_loop().call_soon(self.flush)
        self._unwritten[run] = None

    def paths(self, run: str) -> Mapping[str, str]:
        """Where the files of a run are, as briefings name them; they are current on return."""
        self.flush()
        folder = self._folder(run).absolute()
        return {"scratchpad": str(folder / SCRATCHPAD), "progress": str(folder / PROGRESS)}

    def flush(self) -> None:
        """Write what has changed. A disk that refuses is complained about once: the run itself does not need views."""
        while self._unwritten:
            run = next(iter(self._unwritten))
            del self._unwritten[run]
            loop, folder = self._loops[run], self._folder(run)
            try:
                folder.mkdir(parents=True, exist_ok=True)
                written(folder / SCRATCHPAD, scratchpad(loop).encode("utf-8", "replace"))
                written(folder / PROGRESS, progress_json(loop))
            except OSError as error:
                if self._complain is not None:
                    self._complain(f"{SCRATCHPAD} and {PROGRESS} of {run} cannot be written: {error.strerror or error}")
                    self._complain = None


def written(path: Path, text: bytes) -> None:
    """Write a file so that nobody ever sees half of it, and so that it is on the disk on return."""
    # Two processes may refresh the same view: each has a draft of its own.
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with draft.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
