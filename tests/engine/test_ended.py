"""A run that has ended uses no resources, and can still be read, answered and continued."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from backedge import Briefing, Engine, Feedback, MemoryJournal, Report, Run, Step
from backedge.adapters.journals.sqlite import SqliteJournal
from backedge.core import events as e
from backedge.errors import IllegalCommand
from backedge.ports import Claim
from backedge.testing import ScriptedAgent
from tests.engine.parts import flow, named, only, play, until


def kept(engine: Engine) -> int:
    return len(engine._inner._live)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_runs_that_have_ended_are_evicted(kind: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        journal = MemoryJournal() if kind == "memory" else SqliteJournal(tmp_path / "j.db")
        async with Engine(journal) as engine:
            runs = [await engine.start(flow(Step("a", named)), run=f"r-{number}") for number in range(20)]
            assert {(await run.result()).outcome for run in runs} == {"done"}
            assert kept(engine) == 0
            assert not any([await journal.holder(run.id) for run in runs])
            assert not runs[0].executed_here
            report = await (await engine.find("r-3")).result()
            assert (report.outcome, report.steps["a"].output) == ("done", {"made by": "a"})
            assert await runs[4].at_rest() == "done"
            await runs[5].release()
            again = await engine.resume("r-6", flow(Step("a", named)))
            assert (await again.result()).outcome == "done"
            await until(lambda: not kept(engine))
        if isinstance(journal, SqliteJournal):
            await journal.close()

    play(scenario())


def test_the_id_of_an_evicted_run_stays_taken_and_its_agents_stay_registered() -> None:
    begun: list[str] = []

    async def begins(briefing: Briefing) -> None:
        begun.append(briefing.run)

    heard: list[e.Event] = []

    async def scenario() -> None:
        async with Engine() as engine:
            await (await engine.start(flow(Step("a", begins)), run="x")).result()
            await until(lambda: not kept(engine))
            engine.subscribe(lambda run, event: heard.append(event))
            with pytest.raises(IllegalCommand, match="run 'x' exists: resume it, or choose another id"):
                await engine.start(flow(Step("a", begins)), run="x")
            assert await engine.journal.holder("x") is None

    play(scenario())
    assert begun == ["x"]
    assert not heard


def test_starting_the_id_of_a_crashed_run_starts_nothing() -> None:
    begun: list[int] = []

    async def sleeps(briefing: Briefing) -> None:
        begun.append(briefing.attempt)
        await asyncio.sleep(3600)

    async def scenario() -> None:
        journal = MemoryJournal()
        async with Engine(journal) as engine:
            await engine.start(flow(Step("a", sleeps)), run="x")
            await until(lambda: begun)
            await journal.release(Claim("x", 1, "this process"))  # as if its process had died
            async with Engine(journal) as other:
                with pytest.raises(IllegalCommand, match="run 'x' exists"):
                    await other.start(flow(Step("a", sleeps)), run="x")
                await asyncio.sleep(0.01)

    play(scenario())
    assert begun == [1]


@pytest.mark.parametrize("where", ["here", "in another engine"])
def test_late_feedback_makes_an_evicted_run_continue_in_its_process(where: str) -> None:
    code = ScriptedAgent("first", "second")

    async def scenario() -> tuple[Report, list[e.Event], str | None]:
        journal = MemoryJournal()
        async with Engine(journal) as engine, Engine(journal) as other:
            run = await engine.start(flow(Step("code", code)), run="r")
            assert (await run.result()).steps["code"].output == "first"
            await until(lambda: not kept(engine))
            asked = run if where == "here" else await other.find("r")
            loop = await asked.raise_feedback(Feedback("fix_request", "code", "round up"))
            # The person who raised it is asked whether that will do.
            assert (await asked.wait_for(loop, 5)).state == "escalated"
            assert (await asked.result()).outcome == "waiting"
            assert run.executed_here
            await asked.decide("E-1", "resolve")
            report = await asked.result()
            await until(lambda: not kept(engine))
            return report, await run.events(), await journal.holder("r")

    report, events, holder = play(scenario())
    assert report.steps["code"].output == "second"
    assert len(only(e.RunEnded, events)) == 2
    assert holder is None


def test_a_run_that_has_ended_is_not_evicted_while_a_change_is_awaited() -> None:
    async def scenario() -> None:
        async with Engine() as engine:
            gate = asyncio.Event()

            async def waits(briefing: Briefing) -> None:
                await gate.wait()

            run: Run = await engine.start(flow(Step("a", waits)))
            change = asyncio.create_task(run.changed(99))
            await asyncio.sleep(0)
            gate.set()
            await run.result()
            await asyncio.sleep(0.01)
            assert kept(engine) == 1
            change.cancel()
            await until(lambda: not kept(engine))

    play(scenario())


def test_a_cancelled_run_is_evicted_when_its_attempts_are_over() -> None:
    async def tidies(briefing: Briefing) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.02)

    async def scenario() -> list[e.Event]:
        async with Engine() as engine:
            run = await engine.start(flow(Step("a", tidies)))
            await asyncio.sleep(0.01)
            await run.cancel()
            assert (await run.result()).outcome == "cancelled"
            assert kept(engine) == 1
            await until(lambda: not kept(engine))
            return await run.events()

    assert [event.reason for event in only(e.AttemptDropped, play(scenario()))] == ["interrupted"]
