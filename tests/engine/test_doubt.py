"""Stopping and continuing: attempts in doubt, engines that close, runs that resume."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest

from backedge import (
    Attempt,
    Briefing,
    Engine,
    Feedback,
    MemoryJournal,
    Report,
    Step,
    Usage,
    Workflow,
    failed,
    passed,
)
from backedge.core import events as e
from backedge.core.errors import AlreadyClosed, EngineClosed, JournalUnavailable, NotFound
from backedge.errors import IllegalCommand, WorkflowError
from backedge.ports import Append
from backedge.testing import Crashed, CrashingJournal, FakeClock, ScriptedAgent
from tests.engine.parts import SlowJournal, flow, named, only, play, until


async def sleeps(briefing: Briefing) -> None:
    await asyncio.sleep(60)


async def crashed(workflow: Workflow, dies_at: int = 2, clock: FakeClock | None = None) -> MemoryJournal:
    """A journal with run "r" from a process that died at its second append, while attempts ran."""
    journal = MemoryJournal()
    engine = Engine(CrashingJournal(journal, dies_at), clock=clock)
    await engine.__aenter__()
    run = await engine.start(workflow, run="r")
    await asyncio.sleep(0.01)
    with pytest.raises(Crashed):
        await run.pause()
    return journal


# In doubt


@pytest.mark.parametrize("step", [{"idempotent": True}, {"on_doubt": "rerun"}], ids=["idempotent", "rerun"])
def test_an_idempotent_attempt_that_a_crash_left_is_run_again(step: dict[str, Any]) -> None:
    async def scenario() -> tuple[Report, list[e.Event]]:
        journal = await crashed(flow(Step("a", sleeps, **step)))
        async with Engine(journal) as engine:
            run = await engine.resume("r", flow(Step("a", named, **step)))
            return await run.result(), await run.events()

    report, events = play(scenario())
    assert report.outcome == "done"
    assert report.steps["a"].attempts == 2, "with a number of its own"
    assert not report.escalations
    assert [event.reason for event in only(e.AttemptDropped, events)] == ["in doubt"]


@pytest.mark.parametrize("step", [{}, {"on_doubt": "ask"}, {"idempotent": True, "on_doubt": "ask"}])
def test_any_other_attempt_that_a_crash_left_runs_again_only_if_a_person_says_so(
    step: dict[str, Any],
) -> None:
    again = ScriptedAgent("made")

    async def scenario() -> Report:
        journal = await crashed(flow(Step("a", sleeps, **step), Step("b", named, needs="a")))
        async with Engine(journal) as engine:
            run = await engine.resume("r", flow(Step("a", again, **step), Step("b", named, needs="a")))
            report = await run.result()
            assert report.outcome == "waiting"
            assert not again.briefings, "never silently run twice"
            [packet] = report.escalations
            assert packet.step == "a"
            assert packet.breach is None
            assert "attempt 1 of 'a' is in doubt" in packet.reason
            assert packet.options == ("continue", "skip", "cancel")
            await run.decide(packet.id, "continue")
            return await run.result()

    report = play(scenario())
    assert report.outcome == "done"
    assert [briefing.attempt for briefing in again.briefings] == [2]


def test_an_attempt_in_doubt_does_not_hold_other_branches() -> None:
    async def scenario() -> Report:
        work = [Step("a", sleeps), Step("b", sleeps, idempotent=True)]
        journal = await crashed(flow(*work))
        async with Engine(journal) as engine:
            run = await engine.resume("r", flow(Step("a", named), Step("b", named, idempotent=True)))
            return await run.result()

    report = play(scenario())
    assert report.outcome == "waiting"
    assert report.steps["b"].state == "done"


@pytest.mark.parametrize(("choice", "outcome"), [("skip", "accepted"), ("cancel", "cancelled")])
def test_an_attempt_in_doubt_may_also_be_skipped_or_end_the_run(choice: str, outcome: str) -> None:
    async def scenario() -> Report:
        journal = await crashed(flow(Step("a", sleeps), Step("b", named, needs="a")))
        async with Engine(journal) as engine:
            run = await engine.resume("r", flow(Step("a", named), Step("b", named, needs="a")))
            await run.result()
            await run.decide("E-1", choice)
            return await run.result()

    assert play(scenario()).outcome == outcome


def test_idle_time_does_not_count_as_work() -> None:
    clock = FakeClock()

    async def scenario() -> Report:
        work = [Step("a", sleeps, idempotent=True), Step("b", sleeps, idempotent=True)]
        journal = await crashed(flow(*work, limits={"wall_clock": 3600}), clock=clock)
        clock.advance(30 * 24 * 3600)
        async with Engine(journal, clock=clock) as engine:
            run = await engine.resume("r", flow(*(Step(name, named) for name in "ab")))
            return await run.result()

    report = play(scenario())
    assert report.outcome == "done"
    assert report.usage.seconds == 0


# Closing


def test_an_interrupted_attempt_is_run_again_by_resume_without_asking() -> None:
    async def scenario() -> Report:
        journal = MemoryJournal()
        async with Engine(journal) as engine:
            await engine.start(flow(Step("a", sleeps)), run="r")
        async with Engine(journal) as engine:
            run = await engine.resume("r", flow(Step("a", named)))
            return await run.result()

    report = play(scenario())
    assert report.outcome == "done"
    assert report.steps["a"].attempts == 2
    assert not report.escalations


def test_closing_while_an_outcome_is_on_its_way_to_the_journal_keeps_the_outcome() -> None:
    async def short(briefing: Briefing) -> str:
        await asyncio.sleep(0.02)
        return "made"

    async def scenario() -> tuple[Report, list[e.Event]]:
        journal = SlowJournal(after=0.1)
        async with Engine(journal) as engine:
            await engine.start(flow(Step("a", short), Step("b", sleeps)), run="r")
            await asyncio.sleep(0.05)  # a has finished, and its report is being stored
        async with Engine(journal) as engine:
            run = await engine.find("r")
            return await run.report(), await run.events()

    report, events = play(scenario())
    assert report.steps["a"].output == "made"
    assert [(event.step, event.reason) for event in only(e.AttemptDropped, events)] == [("b", "interrupted")]


def test_closing_while_a_run_is_being_started_leaves_nothing_running() -> None:
    begun: list[int] = []

    async def agent(briefing: Briefing) -> None:
        begun.append(briefing.attempt)
        await asyncio.sleep(60)

    async def scenario() -> None:
        journal = SlowJournal(after=0.02)
        engine = Engine(journal)
        await engine.__aenter__()
        await asyncio.gather(engine.start(flow(Step("a", agent)), run="r"), engine.close())
        assert not begun
        async with Engine(journal) as other:
            run = await other.resume("r", flow(Step("a", named)))
            assert (await run.result()).outcome == "done", "it is interrupted, not in doubt"

    play(scenario())


def test_waiters_of_a_run_get_an_error_when_its_engine_closes() -> None:
    async def scenario() -> None:
        async with Engine() as engine:
            run = await engine.start(flow(Step("a", sleeps)))
            waiter = asyncio.create_task(run.result())
            await asyncio.sleep(0.01)
        with pytest.raises(IllegalCommand, match="is no longer executed here: resume it"):
            await waiter

    play(scenario())


def test_a_failed_append_while_closing_is_raised_and_the_other_runs_are_recorded() -> None:
    async def scenario() -> None:
        journal = SlowJournal()
        engine = Engine(journal)
        await engine.__aenter__()
        for run in ("one", "two", "three"):
            await engine.start(flow(Step("a", sleeps)), run=run)
        await asyncio.sleep(0.01)
        journal.fails = lambda entry: JournalUnavailable("the disk is full") if entry.run == "one" else None
        with pytest.raises(JournalUnavailable, match="the disk is full"):
            await engine.close()
        journal.fails = lambda entry: None
        async with Engine(journal) as other:
            for run, dropped in (("one", 0), ("two", 1), ("three", 1)):
                events = await (await other.find(run)).events()
                assert len(only(e.AttemptDropped, events)) == dropped
                await other.resume(run, flow(Step("a", named)))  # nobody holds it any more

    play(scenario())


def test_closing_twice_is_closing_once() -> None:
    async def scenario() -> None:
        engine = Engine()
        async with engine:
            await engine.start(flow(Step("a", sleeps)))
            await engine.close()
        await engine.close()

    play(scenario())


def test_nothing_starts_in_an_engine_that_is_closed() -> None:
    begun: list[int] = []

    async def scenario() -> None:
        engine = Engine()
        async with engine:
            pass
        with pytest.raises(EngineClosed, match="this engine was closed: open another one on the same journal"):
            await engine.start(flow(Step("a", lambda briefing: begun.append(1))))
        await asyncio.sleep(0.01)

    play(scenario())
    assert not begun


# Going on


def test_a_run_left_before_a_retry_continues_when_the_retry_is_due() -> None:
    clock, journal = FakeClock(), MemoryJournal()
    work = flow(Step("a", ScriptedAgent(OSError("x"), OSError("y"), "made")))

    async def scenario() -> Report:
        async with Engine(journal, clock=clock) as engine:
            run = await engine.start(work, run="r")
            await until(lambda: not engine._inner.slots.taken)
            await asyncio.sleep(0.01)
        async with Engine(journal, clock=clock) as engine:
            run = await engine.resume("r", work)
            await asyncio.sleep(0.01)
            assert (await run.report()).steps["a"].attempts == 1, "not before its time"
            clock.advance(0.5)
            await until(lambda: not engine._inner.slots.taken and clock._sleepers)
            clock.advance(1.0)
            return await run.result()

    assert play(scenario()).outcome == "done"


def test_a_retry_that_falls_due_while_its_decision_is_stored_is_made() -> None:
    """The disk is slow, or the process is frozen between its decision and its next look at the clock."""
    clock = FakeClock()

    class SlowJournal(MemoryJournal):
        async def append(self, entry: Append) -> int:
            number = await super().append(entry)
            if any(b"attempt_failed" in body for body in entry.bodies):
                clock.advance(10)
            return number

    async def scenario() -> Report:
        work = flow(Step("a", ScriptedAgent(OSError("x"), "made")))
        async with Engine(SlowJournal(), clock=clock) as engine, asyncio.timeout(5):
            return await (await engine.start(work, run="r")).result()

    assert play(scenario()).outcome == "done"


def test_a_question_to_a_person_times_out_also_after_resume() -> None:
    clock, journal = FakeClock(), MemoryJournal()

    async def asks(briefing: Briefing, attempt: Attempt) -> str:
        await attempt.raise_feedback(Feedback("fix_request", "human", "?"))
        return "made"

    async def scenario() -> list[e.Event]:
        work = flow(Step("a", asks))
        async with Engine(journal, clock=clock) as engine:
            await (await engine.start(work, run="r")).result()
        async with Engine(journal, clock=clock) as engine:
            run = await engine.resume("r", work)
            clock.advance(600)
            await asyncio.sleep(0.01)
            return await run.events()

    assert len(only(e.LoopOverdue, play(scenario()))) == 1


def test_resume_continues_a_manually_paused_run() -> None:
    async def scenario() -> Report:
        journal = MemoryJournal()
        async with Engine(journal) as engine:
            run = await engine.start(flow(Step("a", sleeps)), run="r")
            await run.pause()
        async with Engine(journal) as engine:
            return await (await engine.resume("r", flow(Step("a", named)))).result()

    assert play(scenario()).outcome == "done"


def test_counters_and_budgets_survive_resume() -> None:
    clock = FakeClock(auto=True)

    async def costly(briefing: Briefing, attempt: Attempt) -> str:
        attempt.spend(Usage(cost_usd=1.0))
        return f"made {briefing.attempt}"

    work = flow(
        Step("a", costly),
        Step("r", ScriptedAgent(failed("x"), failed("y"), passed()), reviews="a"),
        limits={"cost_usd": 2},
    )

    async def scenario() -> Report:
        journal = MemoryJournal()
        report = None
        for _ in range(3):
            async with Engine(journal, clock=clock) as engine:
                run = await (engine.resume("r", work) if report else engine.start(work, run="r"))
                report = await run.result()
        assert report is not None
        return report

    report = play(scenario())
    assert report.outcome == "waiting"
    assert report.usage.cost_usd == 2.0
    assert report.steps["a"].attempts == 2
    assert len(report.escalations) == 1, "asked once, however often it is resumed"


def test_resuming_a_run_that_has_ended_changes_nothing() -> None:
    async def scenario() -> None:
        journal = MemoryJournal()
        async with Engine(journal) as engine:
            run = await engine.start(flow(Step("a", named)), run="r")
            await run.result()
            before = await run.events()
        async with Engine(journal) as engine:
            run = await engine.resume("r", flow(Step("a", named)))
            assert (await run.result()).outcome == "done"
            assert await run.events() == before

    play(scenario())


def test_resuming_a_run_of_the_same_engine_returns_the_same_run() -> None:
    async def scenario() -> None:
        async with Engine() as engine:
            work = flow(Step("a", sleeps))
            run = await engine.start(work, run="r")
            again = await engine.resume("r", work)
            assert again.id == run.id
            assert (await again.report()).steps["a"].attempts == 1

    play(scenario())


def test_resuming_needs_a_run_and_its_agents() -> None:
    async def scenario() -> None:
        journal = MemoryJournal()
        async with Engine(journal) as engine:
            await engine.start(flow(Step("a", named), Step("b", named)), run="r")
        async with Engine(journal) as engine:
            with pytest.raises(NotFound, match="run 'x' does not exist"):
                await engine.resume("x", flow(Step("a", named)))
            with pytest.raises(WorkflowError, match="step 'b' has no agent 'b': pass one of that name"):
                await engine.resume("r", flow(Step("a", named)))
            run = await engine.resume("r", flow(Step("a", named), Step("b", named)))
            assert (await run.result()).outcome == "done", "a failed try holds nothing"

    play(scenario())


def test_a_run_id_is_used_once() -> None:
    async def scenario() -> None:
        journal = MemoryJournal()
        async with Engine(journal) as engine:
            await (await engine.start(flow(Step("a", named)), run="r")).result()
        async with Engine(journal) as engine:
            with pytest.raises(IllegalCommand, match="run 'r' exists: resume it, or choose another id"):
                await engine.start(flow(Step("a", named)), run="r")
            assert (await (await engine.resume("r", flow(Step("a", named)))).result()).outcome == "done"

    play(scenario())


def test_deciding_twice_names_the_first_decision() -> None:
    async def scenario() -> None:
        async with Engine() as engine:
            run = await engine.start(flow(Step("a", ScriptedAgent(OSError("x"))), limits={"errors_in_a_row": 1}))
            await run.result()
            await run.decide("E-1", "skip", by="maria")
            with pytest.raises(AlreadyClosed, match="E-1 was already decided: skip by maria"):
                await run.decide("E-1", "continue")
            with pytest.raises(NotFound, match="unknown escalation 'E-2'"):
                await run.decide("E-2", "continue")

    play(scenario())


Way = Literal["by", "note", "rounds", "choice"]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"by": None}, "Expected `str`, got `null`"),
        ({"note": 5}, "Expected `str`, got `int`"),
        ({"rounds": 2.5}, "Expected `int`, got `float`"),
        ({"rounds": "3"}, "Expected `int`, got `str`"),
        ({"rounds": 0}, "rounds is 0: expected 1 or more"),
        ({"amount": -1}, "amount is -1"),
        ({"amount": float("nan")}, "amount"),
        ({"note": "\ud800"}, "surrogates"),
        ({"choice": "retry"}, "'retry' is not a valid choice for E-1"),
    ],
)
def test_an_invalid_decision_is_refused_and_nothing_is_written(wrong: dict[str, Any], problem: str) -> None:
    async def scenario() -> None:
        async with Engine() as engine:
            run = await engine.start(flow(Step("a", ScriptedAgent(OSError("x"), "y")), limits={"errors_in_a_row": 1}))
            await run.result()
            before = await run.events()
            with pytest.raises(IllegalCommand, match=problem):
                await run.decide("E-1", **{"choice": "continue", **wrong})
            assert await run.events() == before
            await run.decide("E-1", "continue")
            assert (await run.result()).outcome == "done"

    play(scenario())


@pytest.mark.parametrize("slow", [{"before": 0.05}, {"after": 0.05}], ids=["before it is stored", "after"])
@pytest.mark.parametrize("way", ["start", "resume"])
def test_a_cancelled_start_or_resume_executes_nothing(slow: dict[str, float], way: str) -> None:
    executed: list[tuple[str, int]] = []

    async def agent(briefing: Briefing) -> str:
        executed.append((briefing.step, briefing.attempt))
        await asyncio.sleep(0.02)
        return "made"

    work = flow(Step("a", agent, idempotent=True), Step("b", agent, idempotent=True))

    async def scenario() -> Report:
        journal = SlowJournal()
        if way == "resume":
            journal.inside = await crashed(flow(*(Step(name, sleeps, idempotent=True) for name in "ab")))
        journal.before, journal.after = slow.get("before", 0.0), slow.get("after", 0.0)
        async with Engine(journal) as engine, Engine(journal) as other:
            for patience in (0.01, 0.07):
                journal.before, journal.after = slow.get("before", 0.0), slow.get("after", 0.0)
                begin = engine.start(work, run="r") if way == "start" and patience == 0.01 else engine.resume("r", work)
                with pytest.raises((TimeoutError, NotFound)):
                    await asyncio.wait_for(begin, patience)
                journal.before = journal.after = 0.0
                await asyncio.sleep(0.03)
                seen = len(executed)
                await asyncio.sleep(0.03)
                assert len(executed) == seen, "nothing goes on in a process that does not hold the run"
            exists = await other.runs()
            run = await (other.resume("r", work) if exists else other.start(work, run="r"))
            return await run.result()

    assert play(scenario()).outcome == "done"
    assert len(executed) == len(set(executed)), "no attempt is executed twice"
