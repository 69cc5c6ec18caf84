"""One attempt of a program from its briefing to its end, even if backedge dies in between.

This module does not interpret the program's output: the agent does.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from backedge.adapters.agents.attempt_folder import AttemptFolder, Ended, Starting
from backedge.adapters.agents.process import Bounds, Process
from backedge.adapters.agents.supervisor import SupervisorLost
from backedge.adapters.agents.workspace import Snapshot
from backedge.core.errors import AgentError

UNNAMED = 1.0
"""Seconds after the start in which a process may exist without a record or a marked environment, because backedge died
while starting it."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is started, where, and with what in its environment and on its stdin."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    briefing: bytes
    before: Snapshot | None = None
    """The workspace before it begins, to find out afterwards what it changed."""
    report: Path | None = None
    """The file that the program has to write."""
    notes: Mapping[str, bytes] = field(default_factory=dict)
    """More files for the folder of the attempt, by name."""
    is_briefed: bool = True
    """Whether the briefing is on its stdin; else its stdin is empty."""


async def executed(folder: AttemptFolder, program: Program, bounds: Bounds) -> Ended:
    """Run a program to its end, which is not known if its supervisor was killed. Raises AgentError if it cannot be
    started."""
    loop = asyncio.get_running_loop()
    # Not a task: the end of the event loop cancels all tasks, and the thread would still start a process.
    begun = loop.run_in_executor(None, _begun, folder, program)
    try:
        process = await asyncio.shield(begun)
    except SupervisorLost:
        return Ended()
    except asyncio.CancelledError:
        while not begun.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({begun})
        if begun.exception() is None:
            await begun.result().cancel(bounds.grace)
        raise
    return await process.ended(bounds)


async def recover(folder: AttemptFolder, bounds: Bounds) -> Ended | None:
    """How an attempt ended that an earlier backedge process started; waits if it still runs. None if it never started or
    was cancelled. Without code and signal its end is not known."""
    starting = folder.starting
    if starting is None:
        return None
    ended = folder.ended
    if ended is not None:
        return None if ended.cancelled else ended
    process = Process.found(folder)
    while process is None and folder.exited is None and 0 <= _seconds_since(starting) < UNNAMED:
        await asyncio.sleep(0.05)
        process = Process.found(folder)
    if process is not None and process.lives:
        ended = await process.ended(bounds, spent=max(0.0, _seconds_since(starting)))
        return Ended(left=ended.left) if ended.signal is not None and not ended.because else ended
    if process is not None:
        # The program may have ended a moment ago: its supervisor still has to record how.
        await process.end_known()
        await process.swept(bounds.grace)
    exited = folder.exited
    # The signal that killed backedge may have killed it too, so it is not a failure of the program.
    left = exited.left if exited is not None else ()
    return Ended(left=left) if exited is None or exited.code is None else Ended(exited.code, unwatched=True, left=left)


def _seconds_since(starting: Starting) -> float:
    """How long ago the process was made. The time of day would not do: if it is set while backedge is dead, a living agent
    would seem to be late."""
    if starting.ticks is not None:
        return time.monotonic() - starting.ticks
    return time.time() - starting.at


def stamp(path: Path | None) -> tuple[int, ...] | None:
    """The state of a file: it changes whenever the file is written."""
    try:
        found = path.stat() if path is not None else None
    except OSError:
        return None
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns) if found else None


def kept_before(folder: AttemptFolder) -> Snapshot | None:
    """The workspace before the attempt; None if it was lost in the crash."""
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(folder.before.read_bytes(), type=Snapshot)
    return None


def _begun(folder: AttemptFolder, program: Program) -> Process:
    try:
        if folder.path.exists():
            earlier = Process.found(folder.as_found())
            if earlier is not None and earlier.lives:
                raise AgentError(f"this attempt is already running as process {earlier.identity.pid}")
        folder.make()
        folder.write(folder.briefing, program.briefing)
        if program.before is not None:
            folder.write(folder.before, msgspec.json.encode(program.before.stored(folder.secrets.data)))
        for name, text in program.notes.items():
            folder.write(folder.path / name, text)
        # From here on the process may exist, even if backedge dies before it can record that.
        folder.starting = Starting(time.time(), time.monotonic(), stamp(program.report))
    except OSError as error:
        raise AgentError(f"the attempt cannot be recorded in {str(folder.path)!r}: {error}") from error
    stdin = None if program.is_briefed else Path(os.devnull)
    return Process.start(folder, program.argv, program.cwd, program.env, stdin)
