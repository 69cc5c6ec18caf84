"""The tools that ship for tests do what they say."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Literal

import pytest

from backedge import Briefing, Step, Workflow, run
from backedge.adapters.journals.memory import MemoryJournal
from backedge.ports import Append, Clock
from backedge.testing import Crashed, CrashingJournal, FakeClock, ScriptedAgent


@pytest.mark.parametrize(("when", "left"), [("before", 1), ("after", 2)])
def test_a_crash_comes_before_or_after_the_append_is_stored(when: Literal["before", "after"], left: int) -> None:
    async def scenario() -> None:
        inside = MemoryJournal()
        journal = CrashingJournal(inside, dies_at=2, when=when)
        heard: list[int] = []
        journal.subscribe(lambda _, seq: heard.append(seq))
        claim = await journal.claim("r")
        await journal.append(Append("r", 0, (b"{}",)))
        with pytest.raises(Crashed):
            await journal.append(Append("r", 1, (b"{}",)))
        assert journal.crashed
        for call in (journal.append(Append("r", 1, (b"{}",))), journal.read("r"), journal.runs(), journal.payload("")):
            with pytest.raises(Crashed):
                await call
        with pytest.raises(Crashed):
            await journal.release(claim)
        assert len(await inside.read("r")) == left
        await inside.claim("r")  # a dead process holds nothing
        await inside.append(Append("r", left, (b"{}",)))
        assert heard[-1] <= 2, "and hears nothing"

    asyncio.run(scenario())


def test_an_append_under_way_never_learns_of_its_success_after_the_crash() -> None:
    async def scenario() -> None:
        journal = CrashingJournal(MemoryJournal(), dies_at=2)
        first = asyncio.create_task(journal.append(Append("a", 0, (b"{}",))))
        await asyncio.sleep(0)
        with pytest.raises(Crashed):
            await journal.append(Append("b", 0, (b"{}",)))
        with pytest.raises(Crashed):
            await first

    asyncio.run(scenario())


def test_a_scripted_agent_awaits_what_is_async_and_raises_an_error_that_is_named_by_its_type() -> None:
    async def thinks(briefing: Briefing) -> str:
        await asyncio.sleep(0)
        return f"thought about {briefing.step}"

    report = run(Workflow("w", [Step("a", ScriptedAgent(thinks))]))
    assert (report.outcome, report.steps["a"].output) == ("done", "thought about a")
    broken = run(Workflow("w", [Step("a", ScriptedAgent(ConnectionError))], limits={"errors_in_a_row": 1}))
    assert broken.steps["a"].last_error == "ConnectionError"


def test_sleepers_wake_in_the_order_of_their_time() -> None:
    woken: list[str] = []

    async def sleeper(clock: Clock, name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(name)

    async def scenario() -> None:
        clock = FakeClock(start=100.0)
        lengths = {"late": 30.0, "early": 10.0, "also early": 10.0, "never": 99.0, "cancelled": 5.0, "at once": 0.0}
        tasks = {name: asyncio.create_task(sleeper(clock, name, seconds)) for name, seconds in lengths.items()}
        await asyncio.sleep(0)
        tasks["cancelled"].cancel()
        clock.advance(9.5)
        await asyncio.sleep(0)
        assert woken == ["at once"]
        clock.advance(20.5)
        await asyncio.sleep(0)
        assert woken == ["at once", "early", "also early", "late"]
        assert clock.now() == 130.0
        tasks["never"].cancel()

    asyncio.run(scenario())


def test_an_automatic_clock_never_waits() -> None:
    async def scenario() -> None:
        clock = FakeClock(start=0.0, auto=True)
        await clock.sleep(3600)
        await clock.sleep(-1)
        assert clock.now() == 3600

    asyncio.run(scenario())


def test_the_tools_need_no_pytest_until_the_contract_is_asked_for() -> None:
    program = "import sys, backedge.testing as t; assert 'pytest' not in sys.modules; t.JournalContract; assert 'pytest' in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
