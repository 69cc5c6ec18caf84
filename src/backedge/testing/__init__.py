"""What a project needs to test its own adapters and workflows: the journal contract, faults and a clock to move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backedge.testing.agents import ScriptedAgent
from backedge.testing.clock import FakeClock
from backedge.testing.faults import Crashed, CrashingJournal

if TYPE_CHECKING:
    from backedge.testing.journal_contract import JournalContract

__all__ = ["Crashed", "CrashingJournal", "FakeClock", "JournalContract", "ScriptedAgent"]


def __getattr__(name: str) -> object:
    # The contract needs pytest, which is not installed everywhere; a fake clock works without it.
    if name == "JournalContract":
        from backedge.testing.journal_contract import JournalContract

        return JournalContract
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
