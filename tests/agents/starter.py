"""Starts an attempt of a command and waits for it, until it is killed: `starter FOLDER ATTEMPT WORD…`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from backedge.adapters.agents.command import CommandAgent
from backedge.core.briefing import Briefing
from backedge.core.model import Resolution, Usage


class Hands:
    inputs: dict[str, object] = {}

    def spend(self, usage: Usage) -> None: ...

    async def raise_feedback(self, feedback: object) -> str:
        return ""

    async def wait_for(self, loop: str, timeout: float | None = None) -> Resolution:
        return Resolution("timeout")


folder = Path(sys.argv[1])
agent = CommandAgent(sys.argv[3:], folder=folder, state=folder / ".backedge")
asyncio.run(agent.work(Briefing("r-1", "code", "code", int(sys.argv[2]), "work"), Hands()))
