"""Baselines whose backedge process was killed: their run never started, so nobody will ever ask for them."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.adapters.agents.process import Process
from backedge.adapters.agents.process_tree import Identity, lives, row_of
from backedge.core.errors import AgentError
from backedge.core.ready_types import make_ready

OWNER = "owner"
"""The file beside the records of a judge's program that says which process started it."""
_GRACE = 0.5


class Owner(msgspec.Struct, frozen=True):
    """The backedge process that started a part of a judge's attempt."""

    process: Identity
    run: str
    step: str
    part: str


make_ready(Owner)


def owner_note(run: str, step: str, part: str) -> bytes:
    """The note for a program that this process starts."""
    row = row_of(os.getpid())
    return msgspec.json.encode(Owner(row.identity if row else Identity(os.getpid(), ""), run, step, part))


async def end_orphans(state: Path) -> None:
    """End the programs of baselines whose process has ended."""
    for note in sorted((state / "attempts").glob(f"*/*-0/*/{OWNER}")):
        try:
            owner = msgspec.json.decode(note.read_bytes(), type=Owner)
            folder = AttemptFolder(state, owner.run, owner.step, 0, part=owner.part)
            process = Process.found(folder) if folder.path == note.parent and folder.ended is None else None
        except (OSError, msgspec.DecodeError, AgentError):
            continue  # something else wrote there
        if process is not None and process.lives and not lives(owner.process):
            await process.cancel(_GRACE)
