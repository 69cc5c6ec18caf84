"""Tests with a real engine that a process which was frozen and has lost its run does nothing more and records nothing
more. Part of the journal contract."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import pytest

from backedge.core import commands as c
from backedge.core.briefing import Briefing
from backedge.core.decide import transact
from backedge.core.errors import RunLost
from backedge.core.value import Json
from backedge.core.workflow.build import build_workflow
from backedge.core.workflow.definition import Step
from backedge.engine.engine import LiveEngine
from backedge.engine.protocol import Outcome
from backedge.engine.store import States, entry_of
from backedge.ports import Attempt, Claim, Claims, JournalWithClaims, LostListener

SOON = 5.0


class _Sleeper:
    """An agent that works until it is told to end."""

    def __init__(self) -> None:
        self.attempts: list[str] = []
        self.begun = asyncio.Event()
        self.cancelled = False

    async def work(self, briefing: Briefing, attempt: Attempt) -> object:
        self.attempts.append(f"{briefing.step} {briefing.attempt}")
        self.begun.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return Outcome()

    def input_errors(self, inputs: Mapping[str, Json]) -> Sequence[tuple[str, str, str]]:
        return ()


class _Deaf:
    """Claims that never announce a loss: the hint may get lost, and then the zombie must find out by itself."""

    def __init__(self, claims: Claims) -> None:
        self.claim, self.holds, self.holder, self.release = claims.claim, claims.holds, claims.holder, claims.release

    def on_lost(self, listener: LostListener) -> Callable[[], None]:
        return lambda: None


class ZombieContract:
    """The test. It needs `take_over` of the claims contract."""

    async def take_over(self, other: JournalWithClaims, run: str) -> Claim:
        raise NotImplementedError

    @pytest.mark.parametrize("notified", [True, False], ids=["notified of the loss", "not notified"])
    def test_a_zombie_performs_nothing_and_records_nothing(
        self, journal: JournalWithClaims, other: JournalWithClaims, notified: bool
    ) -> None:
        async def scenario() -> None:
            agent = _Sleeper()
            steps = [Step(name, phase="code", agents=("sleeper",)) for name in ("first", "second")]
            workflow = build_workflow("w", [(step, {}) for step in steps])
            async with LiveEngine(journal, journal if notified else _Deaf(journal), max_parallel=1) as engine:
                live = await engine.start(workflow, {"sleeper": agent}, run="r")
                await asyncio.wait_for(agent.begun.wait(), SOON)
                new = await self.take_over(other, "r")
                # Its new holder has room for the second step, and starts it.
                state = await States(other).of("r")
                events, after = transact(state, c.Proceed(), engine.clock.now(), free_slots=1)
                assert after.steps["second"].running is not None
                await other.append(entry_of(state, events, after, fence=new.fence))
                with pytest.raises(RunLost, match="'r'"):
                    await asyncio.wait_for(live.at_rest(), SOON)
                with pytest.raises(RunLost):
                    await live.submit(c.Pause())
            assert (agent.attempts, agent.cancelled) == (["first 1"], True)
            assert len(await other.read("r")) == after.seq
            assert await other.holds(new)

        asyncio.run(scenario())
