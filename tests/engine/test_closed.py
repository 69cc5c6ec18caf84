"""A closed engine says so, and agents that do not stop block nothing."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from backedge import BackedgeError, Briefing, Engine, Feedback, MemoryJournal, Report, Run, Step, Usage
from backedge.core import events as e
from backedge.core.errors import EngineClosed, NotExecuted
from backedge.ports import Attempt
from tests.engine.parts import flow, named, only, play, until

GRACE = 0.05
PERSON = Feedback("fix_request", "human", "push or polling?")


async def never_stops(briefing: Briefing) -> str:
    """Swallows every cancel."""
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)


async def sleeps(briefing: Briefing) -> None:
    await asyncio.sleep(3600)


# Closed

ENGINE: dict[str, Callable[[Engine, Run], Awaitable[object]]] = {
    "start": lambda engine, run: engine.start(flow(Step("a", named))),
    "resume": lambda engine, run: engine.resume("r", flow(Step("a", named))),
    "find": lambda engine, run: engine.find("r"),
    "import_file": lambda engine, run: engine.import_file("notes.md", "# Notes\n", "scratchpad"),
    "runs": lambda engine, run: engine.runs(),
    "inbox": lambda engine, run: engine.inbox(),
    "keep_deadlines": lambda engine, run: engine.keep_deadlines(),
    "waiting_runs": lambda engine, run: engine.waiting_runs(),
    "Run.result": lambda engine, run: run.result(),
    "Run.at_rest": lambda engine, run: run.at_rest(),
    "Run.changed": lambda engine, run: run.changed(),
    "Run.changed since": lambda engine, run: run.changed(99),
    "Run.release": lambda engine, run: run.release(),
    "Run.report": lambda engine, run: run.report(),
    "Run.state": lambda engine, run: run.state(),
    "Run.events": lambda engine, run: run.events(),
    "Run.input": lambda engine, run: run.input(),
    "Run.change_input": lambda engine, run: run.change_input(1),
    "Run.context": lambda engine, run: run.context.get(),
    "Run.notices": lambda engine, run: run.notices("a"),
    "Run.wait_for": lambda engine, run: run.wait_for("L-1"),
    "Run.decide": lambda engine, run: run.decide("E-1", "continue"),
    "Run.raise_feedback": lambda engine, run: run.raise_feedback(PERSON),
    "Run.acknowledge": lambda engine, run: run.acknowledge("L-1", "a"),
    "Run.resolve_feedback": lambda engine, run: run.resolve_feedback("L-1", note="use the queue"),
    "Run.escalate_feedback": lambda engine, run: run.escalate_feedback("L-1"),
    "Run.withdraw_feedback": lambda engine, run: run.withdraw_feedback("L-1"),
    "Run.reclassify": lambda engine, run: run.reclassify("F-1", "code"),
    "Run.pause": lambda engine, run: run.pause(),
    "Run.resume": lambda engine, run: run.resume(),
    "Run.cancel": lambda engine, run: run.cancel(),
    "Run.end_attempts": lambda engine, run: run.end_attempts(lambda *_: asyncio.sleep(0)),
}


def test_every_public_method_is_tested_below() -> None:
    methods = {name for name in vars(Engine) if not name.startswith("_")} - {
        *("close", "subscribe", "allow", "kill_now", "clock"),
    }
    methods |= {f"Run.{name}" for name in vars(Run) if not name.startswith("_")} - {"Run.executed_here"}
    assert methods == {name.partition(" ")[0] for name in ENGINE}


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "under way"])
@pytest.mark.parametrize("found", [True, False], ids=["found", "executed"])
@pytest.mark.parametrize("method", ENGINE)
def test_an_engine_that_was_closed_says_so(method: str, found: bool, ended: bool) -> None:
    async def scenario() -> None:
        async with Engine() as engine:
            run = await engine.start(flow(Step("a", named if ended else sleeps)), run="r")
            if ended:
                await run.result()
            if found:
                await run.release()
                run = await engine.find("r")
        with pytest.raises(EngineClosed, match="this engine was closed: open another one on the same journal"):
            await ENGINE[method](engine, run)

    play(scenario(), patience=5)
    assert issubclass(EngineClosed, BackedgeError)


def test_synchronous_methods_of_a_closed_engine_are_errors_too() -> None:
    async def scenario() -> None:
        async with Engine() as engine:
            pass
        with pytest.raises(EngineClosed):
            engine.subscribe(lambda run, event: None)
        with pytest.raises(EngineClosed):
            engine.allow(1)

    play(scenario())


def test_following_a_run_of_another_process_ends_when_the_engine_closes() -> None:
    async def scenario() -> None:
        journal = MemoryJournal()
        async with Engine(journal) as executing:
            await executing.start(flow(Step("a", sleeps)), run="r")
            async with Engine(journal) as looking:
                run = await looking.find("r")
                followers = [asyncio.create_task(each) for each in (run.result(), run.changed())]
                await asyncio.sleep(0.01)
            for follower in followers:
                with pytest.raises(EngineClosed):
                    await follower

    play(scenario(), patience=5)


# Agents that do not stop


def test_a_timeout_leaves_an_agent_behind_that_does_not_stop() -> None:
    attempts: list[int] = []

    async def stubborn_once(briefing: Briefing, attempt: Attempt) -> str:
        attempts.append(briefing.attempt)
        if briefing.attempt == 1:
            attempt.spend(Usage(cost_usd=0.5))
            await never_stops(briefing)
        return "made"

    async def scenario() -> tuple[Report, list[e.Event], int]:
        async with Engine(grace=GRACE) as engine:
            run = await engine.start(flow(Step("a", stubborn_once, timeout=0.02, idempotent=True)))
            return await run.result(), await run.events(), engine._inner.slots.taken

    report, events, taken = play(scenario(), patience=5)
    assert (report.outcome, report.steps["a"].output, attempts) == ("done", "made", [1, 2])
    [failure] = only(e.AttemptFailed, events)
    assert failure.error == "timeout: no outcome after 0.02 s, and the agent did not stop when it was told to"
    assert failure.usage.cost_usd == 0.5
    assert taken == 0


def test_cancelling_a_run_records_an_agent_that_does_not_stop_as_in_doubt() -> None:
    async def scenario() -> list[e.Event]:
        async with Engine(grace=GRACE) as engine:
            run = await engine.start(flow(Step("a", never_stops)))
            await asyncio.sleep(0.01)
            await run.cancel()
            assert (await run.result()).outcome == "cancelled"
            await until(lambda: not engine._inner.slots.taken)
            await asyncio.sleep(0.01)
            return await run.events()

    [dropped] = only(e.AttemptDropped, play(scenario(), patience=5))
    assert dropped.reason == "in doubt"


def test_closing_takes_no_longer_than_the_grace_period_and_resume_asks_or_reruns() -> None:
    journal = MemoryJournal()

    async def scenario() -> tuple[float, list[e.Event]]:
        engine = await Engine(journal, grace=0.2).__aenter__()
        for number in range(20):
            steps = Step("a", never_stops, idempotent=True), Step("b", never_stops)
            await engine.start(flow(*steps), run=f"r-{number}")
        await asyncio.sleep(0.01)
        began = time.perf_counter()
        await engine.close()
        took = time.perf_counter() - began
        async with Engine(journal) as other:
            run = await other.resume("r-7", flow(Step("a", named), Step("b", named)))
            report = await run.result()
            assert (report.outcome, report.steps["a"].output) == ("waiting", {"made by": "a"})
            await run.decide("E-1", "continue")
            assert (await run.result()).outcome == "done"
            return took, await run.events()

    took, events = play(scenario(), patience=10)
    assert 0.2 <= took < 2.0
    assert [event.reason for event in only(e.AttemptDropped, events)] == ["in doubt", "in doubt"]


def test_releasing_a_run_does_not_wait_for_an_agent_that_does_not_stop() -> None:
    async def scenario() -> list[e.Event]:
        async with Engine(grace=GRACE) as engine:
            run = await engine.start(flow(Step("a", never_stops)), run="r")
            await asyncio.sleep(0.01)
            await run.release()
            assert engine._inner.slots.taken == 0
            return await run.events()

    assert [event.reason for event in only(e.AttemptDropped, play(scenario(), patience=5))] == ["in doubt"]


def test_a_late_report_of_an_agent_that_was_left_behind_is_ignored() -> None:
    late: list[str] = []

    async def slow_to_stop(briefing: Briefing, attempt: Attempt) -> str:
        if briefing.attempt > 1:
            return "made in time"
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(4 * GRACE)
        try:
            await attempt.raise_feedback(PERSON)
        except BackedgeError as error:
            late.append(str(error))
        return "made too late"

    async def scenario() -> tuple[Report, list[e.Event]]:
        async with Engine(grace=GRACE) as engine:
            run = await engine.start(flow(Step("a", slow_to_stop, timeout=0.02, idempotent=True)))
            await until(lambda: late)
            await asyncio.sleep(0.01)
            return await run.result(), await run.events()

    report, events = play(scenario(), patience=5)
    assert report.steps["a"].output == "made in time"
    assert len(late) == 1
    assert "attempt 1 of step 'a' is not running" in late[0]
    assert not only(e.LoopOpened, events)


def test_an_agent_that_needs_a_moment_to_stop_gets_it() -> None:
    stopped: list[str] = []

    async def tidy(briefing: Briefing) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.03)
            stopped.append(briefing.step)

    async def scenario() -> None:
        async with Engine() as engine:
            await engine.start(flow(Step("a", tidy)))
            await asyncio.sleep(0.01)

    play(scenario())
    assert stopped == ["a"]


PROGRAM = """
import asyncio, backedge as be
async def never_stops(briefing):
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass
async def main():
    async with be.Engine(grace=0.1) as engine:
        await engine.start(be.Workflow("w", [be.Step("a", never_stops)]))
        await asyncio.sleep(0.05)
asyncio.run(main())
print("over")
"""


def test_the_end_of_the_program_does_not_wait_for_an_agent_that_does_not_stop() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=20)
    assert done.stdout == "over\n"


@pytest.mark.parametrize("grace", [-1, float("nan"), float("inf")])
def test_a_grace_period_that_is_not_a_time_is_refused(grace: float) -> None:
    with pytest.raises(ValueError, match=r"grace is .*: expected seconds, 0 or more"):
        Engine(grace=grace)


# Paused by hand


@pytest.mark.parametrize("where", ["here", "in another engine", "nowhere"])
def test_resuming_lifts_a_manual_pause_whichever_process_executes_the_run(where: str) -> None:
    journal = MemoryJournal()
    gate = asyncio.Event()

    async def first(briefing: Briefing) -> str:
        await gate.wait()
        return "made"

    work = flow(Step("a", first), Step("b", named, needs="a"))

    async def scenario() -> tuple[Report, list[e.Event]]:
        async with Engine(journal) as engine, Engine(journal) as other:
            run = await engine.start(work, run="r")
            await run.pause("ann")
            gate.set()
            assert (await run.result()).outcome == "waiting"
            if where == "nowhere":
                await run.release()
            resumed = await (engine if where == "here" else other).resume("r", work)
            assert resumed.executed_here == (where != "in another engine")
            return await resumed.result(), await resumed.events()

    report, events = play(scenario(), patience=5)
    assert (report.outcome, report.paused) == ("done", False)
    assert len(only(e.RunResumed, events)) == 1


def test_resuming_a_paused_run_that_was_cancelled_changes_nothing() -> None:
    async def scenario() -> tuple[int, int]:
        async with Engine() as engine:
            work = flow(Step("a", named), Step("b", sleeps))
            run = await engine.start(work, run="r")
            await run.pause()
            await run.cancel()
            await until(lambda: not engine._inner.slots.taken)
            await asyncio.sleep(0.01)
            before = len(await run.events())
            await run.release()
            return before, len(await (await engine.resume("r", work)).events())

    before, after = play(scenario(), patience=5)
    assert before == after


# Runs that nobody executes


def test_asking_for_the_result_of_a_run_without_a_process_is_an_error() -> None:
    async def scenario() -> None:
        async with Engine() as engine:
            run = await engine.start(flow(Step("a", sleeps)), run="r")
            await asyncio.sleep(0.01)
            await run.release()
            found = await engine.find("r")
            for waits in (found.result, found.at_rest):
                with pytest.raises(NotExecuted, match="run 'r' has not ended, but no process executes it: resume it"):
                    await waits()

    play(scenario(), patience=5)


@pytest.mark.parametrize("outcome", ["done", "waiting"])
def test_the_result_of_a_run_at_rest_is_available_in_every_process(outcome: str) -> None:
    async def scenario() -> str:
        async with Engine() as engine:
            run = await engine.start(flow(Step("a", named if outcome == "done" else "human")), run="r")
            await run.result()
            await run.release()
            return (await (await engine.find("r")).result()).outcome

    assert play(scenario(), patience=5) == outcome


def test_following_a_run_ends_when_its_process_releases_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backedge.engine.engine.HOLDER_INTERVAL", 0.02)

    async def scenario() -> Any:
        journal = MemoryJournal()
        async with Engine(journal) as executing, Engine(journal) as looking:
            run = await executing.start(flow(Step("a", sleeps)), run="r")
            follower = asyncio.create_task((await looking.find("r")).result())
            await asyncio.sleep(0.05)
            assert not follower.done()
            await run.release()
            with pytest.raises(NotExecuted):
                await follower

    play(scenario(), patience=5)


def test_a_python_that_cannot_forget_a_task_waits_for_it_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(asyncio, "_unregister_task")
    ended: list[str] = []

    async def slow_to_stop(briefing: Briefing) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(4 * GRACE)
            await asyncio.sleep(0)
            ended.append(briefing.step)

    async def scenario() -> list[e.Event]:
        async with Engine(grace=GRACE) as engine:
            run = await engine.start(flow(Step("a", slow_to_stop)))
            await asyncio.sleep(0.01)
            await run.release()
            return await run.events()

    assert [event.reason for event in only(e.AttemptDropped, play(scenario(), patience=5))] == ["in doubt"]
    assert ended == ["a"], "the end of the event loop waited for it"
