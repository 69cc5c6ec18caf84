"""Running: parallel steps within bounds, every way an attempt can end, and notified waiters."""

from __future__ import annotations

import asyncio
import re
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from backedge import (
    Attempt,
    Briefing,
    Engine,
    Feedback,
    MemoryJournal,
    Outcome,
    Report,
    Run,
    Step,
    Usage,
    Workflow,
    failed,
    passed,
)
from backedge.core import events as e
from backedge.core.errors import AlreadyClosed, JournalUnavailable
from backedge.core.state.evolve import replay
from backedge.errors import IllegalCommand
from backedge.testing import FakeClock, ScriptedAgent
from tests.engine.parts import SlowJournal, flow, named, only, play, turns_until, until


async def finished(workflow: Workflow, input: object = None, **engine: Any) -> tuple[Report, list[e.Event]]:
    async with Engine(**engine) as running:
        run = await running.start(workflow, input)
        return await run.result(), await run.events()


# What can run in parallel does


def test_steps_that_do_not_need_each_other_run_at_the_same_time() -> None:
    met = asyncio.Barrier(3)

    async def meets(briefing: Briefing) -> str:
        await met.wait()  # nobody passes unless all three are there
        return briefing.step

    steps = [Step(name, meets) for name in "abc"]
    last = Step("last", lambda briefing: sorted(briefing.inputs.values()), needs=["a", "b", "c"])
    report, _ = play(finished(flow(*steps, last)))
    assert report.outcome == "done"
    assert report.steps["last"].output == ["a", "b", "c"]


def test_two_judges_of_one_step_judge_at_the_same_time_and_the_rework_waits_for_both() -> None:
    met = asyncio.Barrier(2)

    async def judges(briefing: Briefing) -> Outcome:
        await met.wait()
        return failed(f"seen by {briefing.step}") if briefing.attempt == 1 else passed()

    code = ScriptedAgent("first", "second")
    report, _ = play(
        finished(flow(Step("code", code), Step("r1", judges, reviews="code"), Step("r2", judges, reviews="code")))
    )
    assert report.outcome == "verified"
    assert report.steps["code"].attempts == 2, "one rework for what both found"
    assert {issue.description for issue in code.briefings[1].feedback.findings} == {"seen by r1", "seen by r2"}


# Bounded concurrency


@pytest.mark.parametrize("bound", [1, 2, 7])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_no_more_attempts_run_than_allowed_and_every_run_gets_its_turn(bound: int, kind: str, tmp_path: Path) -> None:
    now, most = 0, 0

    async def counted(briefing: Briefing) -> Outcome | str:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.0005 * (hash(briefing.run) % 3))
        now -= 1
        if briefing.step == "review":
            return failed("again") if briefing.attempt == 1 else passed()
        return f"{briefing.step} {briefing.attempt}"

    work = flow(
        Step("a", counted),
        Step("b", counted),
        Step("c", counted, needs=["a", "b"]),
        Step("review", counted, reviews="c"),
    )

    async def scenario() -> list[str]:
        async with Engine(tmp_path / "j.db" if kind == "sqlite" else None, max_parallel=bound) as engine:
            runs = await asyncio.gather(*(engine.start(work) for _ in range(40)))
            return [(await run.result()).outcome for run in runs]

    assert play(scenario()) == ["verified"] * 40
    assert most == bound


def test_a_run_that_waits_for_a_slot_is_not_forgotten_when_another_run_takes_it() -> None:
    async def scenario() -> list[str]:
        async with Engine(max_parallel=1) as engine:
            first, waiting = await engine.start(flow(Step("a", named))), await engine.start(flow(Step("a", named)))
            await first.result()
            newcomer = await engine.start(flow(Step("a", named)))  # before the waiting run could take the free slot
            return [(await run.result()).outcome for run in (newcomer, waiting)]

    assert play(scenario()) == ["done", "done"]


def test_a_slot_that_becomes_free_while_a_run_is_being_recorded_is_used() -> None:
    async def short(briefing: Briefing) -> int:
        await asyncio.sleep(0.02)
        return 1

    async def scenario() -> list[str]:
        async with Engine(SlowJournal(after=0.05), max_parallel=1) as engine:
            runs = [await engine.start(flow(Step("a", short))) for _ in range(2)]
            return [(await run.result()).outcome for run in runs]

    assert play(scenario()) == ["done", "done"]


def test_the_slots_of_a_run_that_broke_go_to_the_others() -> None:
    async def slow(briefing: Briefing) -> int:
        await asyncio.sleep(0.02)
        return 1

    async def scenario() -> None:
        journal = SlowJournal()
        journal.fails = lambda entry: (
            JournalUnavailable("no space for this one") if entry.run == "broken" and entry.after else None
        )
        async with Engine(journal, max_parallel=1) as engine:
            broken = await engine.start(flow(Step("a", slow)), run="broken")
            others = [await engine.start(flow(Step("a", slow), Step("b", slow, needs="a"))) for _ in range(3)]
            with pytest.raises(JournalUnavailable, match="no space for this one"):
                await broken.result()
            assert [(await run.result()).outcome for run in others] == ["done"] * 3

    play(scenario())


@pytest.mark.parametrize("setting", ["max_parallel", "max_output"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "4", True, None])
def test_an_engine_without_slots_or_room_for_output_is_refused(setting: str, value: Any) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{setting} is {value!r}: expected a whole number, 1 or more")):
        Engine(**{setting: value})


# Every way to end an attempt is recorded, with what it cost and how long it took

SPENT = Usage(cost_usd=0.25, tokens_in=100, tokens_out=10)


async def spends(briefing: Briefing, attempt: Attempt, clock: FakeClock) -> None:
    attempt.spend(Usage(cost_usd=0.2, tokens_in=100))
    clock.advance(2.5)
    attempt.spend(Usage(cost_usd=0.05, tokens_out=10))


def test_success_records_usage_and_seconds() -> None:
    clock = FakeClock()

    async def agent(briefing: Briefing, attempt: Attempt) -> Outcome:
        clock.advance(2.5)
        attempt.spend(Usage(tokens_out=4))
        return Outcome(output="x", usage=Usage(cost_usd=0.25, tokens_in=100, tokens_out=6))

    report, events = play(finished(flow(Step("a", agent)), clock=clock))
    [event] = only(e.AttemptSucceeded, events)
    assert (event.usage, event.seconds) == (SPENT, 2.5)
    assert (report.usage.cost_usd, report.usage.tokens_in, report.usage.tokens_out) == (0.25, 100, 10)
    assert report.usage.seconds == 2.5


def test_failure_records_usage_and_seconds() -> None:
    clock = FakeClock()

    async def agent(briefing: Briefing, attempt: Attempt) -> None:
        await spends(briefing, attempt, clock)
        raise ConnectionError("the model is down")

    report, events = play(finished(flow(Step("a", agent), limits={"errors_in_a_row": 1}), clock=clock))
    [event] = only(e.AttemptFailed, events)
    assert (event.usage, event.seconds) == (SPENT, 2.5)
    assert event.error == "ConnectionError: the model is down"
    assert report.usage.cost_usd == 0.25


def test_an_invalid_outcome_is_an_error_that_still_counts_its_cost() -> None:
    judge = ScriptedAgent(Outcome(verdict="pass", findings=failed("bad").findings, usage=SPENT), passed())
    report, events = play(finished(flow(Step("a", named), Step("r", judge, reviews="a")), clock=FakeClock(auto=True)))
    [event] = only(e.AttemptFailed, events)
    assert event.usage == SPENT
    assert report.usage.cost_usd == 0.25


def test_a_timeout_records_usage_and_seconds_and_the_attempt_is_stopped() -> None:
    stopped = False

    async def agent(briefing: Briefing, attempt: Attempt) -> str:
        nonlocal stopped
        attempt.spend(SPENT)
        if briefing.attempt > 1:
            return "in time"
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped = True
            raise
        return "never"

    report, events = play(finished(flow(Step("a", agent, timeout=0.05))))
    [event] = only(e.AttemptFailed, events)
    assert event.error == "timeout: no outcome after 0.05 s"
    assert event.usage == SPENT
    assert 0.05 <= event.seconds < 5
    assert stopped
    assert report.steps["a"].output == "in time"
    assert report.usage.cost_usd == 0.5, "both attempts"


def test_a_timeout_of_its_own_inside_an_agent_is_not_taken_for_the_steps_timeout() -> None:
    async def agent(briefing: Briefing) -> None:
        async with asyncio.timeout(0.01):
            await asyncio.sleep(60)

    _, events = play(finished(flow(Step("a", agent, timeout=30), limits={"errors_in_a_row": 1})))
    assert only(e.AttemptFailed, events)[0].error == "TimeoutError"


def test_cancelling_stops_running_attempts_and_records_what_they_cost() -> None:
    clock = FakeClock()
    stopped: list[str] = []

    async def agent(briefing: Briefing, attempt: Attempt) -> None:
        attempt.spend(SPENT)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.append(briefing.step)
            raise

    async def scenario() -> tuple[Report, list[e.Event]]:
        async with Engine(clock=clock) as engine:
            run = await engine.start(flow(Step("a", agent), Step("b", agent)))
            await asyncio.sleep(0.01)
            clock.advance(3.0)
            await run.cancel(by="maria", reason="wrong branch")
            report = await run.result()
            await until(lambda: len(stopped) == 2)
            await asyncio.sleep(0.01)
            with pytest.raises(AlreadyClosed, match="has ended: cancelled"):
                await run.cancel()
            return report, await run.events()

    report, events = play(scenario())
    assert report.outcome == "cancelled"
    dropped = only(e.AttemptDropped, events)
    assert sorted((event.step, event.reason) for event in dropped) == [("a", "interrupted"), ("b", "interrupted")]
    assert [(event.usage, event.seconds) for event in dropped] == [(SPENT, 3.0)] * 2
    assert only(e.RunEnded, events)[0].reason == "wrong branch"


def test_an_agent_that_ignores_cancellation_has_no_further_effect() -> None:
    async def stubborn(briefing: Briefing) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.01)
        return "done all the same"

    async def scenario() -> tuple[Report, list[e.Event]]:
        async with Engine() as engine:
            run = await engine.start(flow(Step("a", stubborn)))
            await asyncio.sleep(0.01)
            await run.cancel()
            await until(lambda: not engine._inner.slots.taken)
            await asyncio.sleep(0.01)
            return await run.result(), await run.events()

    report, events = play(scenario())
    assert report.outcome == "cancelled"
    assert [event.reason for event in only(e.AttemptDropped, events)] == ["interrupted"]
    assert not only(e.AttemptSucceeded, events)


def test_closing_the_engine_records_interruptions_with_their_cost() -> None:
    clock, journal = FakeClock(), MemoryJournal()

    async def agent(briefing: Briefing, attempt: Attempt) -> None:
        attempt.spend(SPENT)
        await asyncio.sleep(60)

    async def scenario() -> list[e.Event]:
        async with Engine(journal, clock=clock) as engine:
            run = await engine.start(flow(Step("a", agent)), run="r")
            await asyncio.sleep(0.01)
            clock.advance(4.0)
            assert (await run.report()).outcome == "running"
        async with Engine(journal) as engine:
            return await (await engine.find("r")).events()

    events = play(scenario())
    [event] = only(e.AttemptDropped, events)
    assert (event.reason, event.usage, event.seconds) == ("interrupted", SPENT, 4.0)
    assert events[-1] is event


def test_a_budget_that_only_failures_used_up_stops_the_run() -> None:
    async def agent(briefing: Briefing, attempt: Attempt) -> None:
        attempt.spend(Usage(cost_usd=1.0))
        raise ConnectionError("down")

    clock = FakeClock(auto=True)
    report, _ = play(finished(flow(Step("a", agent), limits={"errors_in_a_row": 10, "cost_usd": 2}), clock=clock))
    assert report.outcome == "waiting"
    assert report.escalations[0].breach is not None
    assert report.escalations[0].breach.limit == "cost_usd"
    assert report.steps["a"].attempts == 2


# Errors wait longer each time


def test_errors_in_a_row_wait_half_a_second_and_twice_as_long_each_time() -> None:
    clock = FakeClock()
    begun: list[float] = []

    async def agent(briefing: Briefing) -> None:
        begun.append(clock.now())
        raise ConnectionError("down")

    async def scenario() -> Report:
        async with Engine(clock=clock) as engine:
            run = await engine.start(flow(Step("a", agent), limits={"errors_in_a_row": 9}))
            for count in range(1, 9):
                await until(lambda n=count: len(begun) == n and not engine._inner.slots.taken)  # type: ignore[misc]
                wait = min(0.5 * 2 ** (count - 1), 30.0)
                clock.advance(wait - 0.001)
                await asyncio.sleep(0.002)
                assert len(begun) == count, "not before its time"
                clock.advance(0.001)
            return await run.result()

    report = play(scenario())
    waits = [round(later - earlier, 3) for earlier, later in pairwise(begun)]
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert report.outcome == "waiting"
    assert report.escalations[0].step == "a"
    assert "keeps ending with an error: ConnectionError: down" in report.escalations[0].reason


def test_a_success_ends_the_streak() -> None:
    judge = ScriptedAgent(failed("x"), passed())
    work = ScriptedAgent(OSError("1"), OSError("2"), "made", OSError("3"), OSError("4"), "made again")
    report, events = play(finished(flow(Step("a", work), Step("r", judge, reviews="a")), clock=FakeClock(auto=True)))
    assert report.outcome == "verified"
    waits = [round(event.retry_at - event.at, 3) for event in only(e.AttemptFailed, events)]
    assert waits == [0.5, 1.0, 0.5, 1.0]


def test_continue_after_errors_grants_more_tries() -> None:
    async def scenario() -> Report:
        async with Engine(clock=FakeClock(auto=True)) as engine:
            run = await engine.start(flow(Step("a", ScriptedAgent(*[OSError("x")] * 4, "made"))))
            report = await run.result()
            assert report.escalations[0].options == ("continue", "skip", "cancel")
            await run.decide("E-1", "continue", rounds=2)
            return await run.result()

    report = play(scenario())
    assert report.outcome == "done"
    assert report.steps["a"].attempts == 5


# Pausing


def test_pausing_starts_nothing_and_lets_running_attempts_finish() -> None:
    go = asyncio.Event()

    async def waits(briefing: Briefing) -> str:
        await go.wait()
        return "made"

    async def scenario() -> None:
        async with Engine() as engine:
            run = await engine.start(flow(Step("a", waits), Step("b", named, needs="a")))
            await run.pause(by="maria")
            await run.pause(by="maria")
            go.set()
            await until(lambda: not engine._inner.slots.taken)
            await asyncio.sleep(0.01)
            report = await run.report()
            assert report.paused
            assert report.steps["a"].state == "done"
            assert report.steps["b"].attempts == 0
            await run.resume(by="maria")
            report = await run.result()
            assert report.outcome == "done"
            assert not report.paused
            events = await run.events()
            assert [type(event) for event in events if isinstance(event, e.RunPaused | e.RunResumed)] == [
                e.RunPaused,
                e.RunResumed,
            ]

    play(scenario())


# Waiters and subscribers


def test_waiting_for_a_run_ends_as_soon_as_it_is_decided() -> None:
    async def scenario() -> list[float]:
        delays = []
        for _ in range(5):
            async with Engine() as engine:
                run = await engine.start(flow(Step("a", ScriptedAgent(OSError("x"))), limits={"errors_in_a_row": 1}))
                await run.result()
                told: list[float] = []

                async def waits(run: Run = run, told: list[float] = told) -> None:
                    await run.changed()
                    told.append(time.perf_counter())

                waiter = asyncio.create_task(waits())
                await asyncio.sleep(0.05)
                decided = time.perf_counter()
                await run.decide("E-1", "cancel")
                await waiter
                delays.append(told[0] - decided)
        return delays

    assert min(play(scenario())) < 0.02


def test_a0_08_a_waiter_on_a_loop_gets_the_resolution_at_once_and_so_do_the_notices() -> None:
    async def asks(briefing: Briefing) -> Outcome:
        question = Feedback("fix_request", "human", "polling or push?")
        return Outcome(output="draft", feedback=[] if briefing.attempt > 1 else [question])

    async def scenario() -> None:
        async with Engine() as engine:
            run = await engine.start(flow(Step("a", asks)))
            report = await run.result()
            assert report.outcome == "waiting"
            waiter = asyncio.create_task(run.wait_for("L-1"))
            await asyncio.sleep(0.05)
            assert not waiter.done()
            await run.decide("E-1", "resolve", option="polling", by="maria")
            assert await turns_until(waiter.done) <= 3, "no polling"
            resolution = await waiter
            assert (resolution.state, resolution.option, resolution.by) == ("resolved", "polling", "maria")
            [notice] = await run.notices("human")
            assert notice.resolved
            assert notice.resolution is not None
            assert notice.resolution.option == "polling"
            assert await run.wait_for("L-1") == resolution, "a later question gets the same answer"
            with pytest.raises(IllegalCommand, match="unknown loop 'L-9'"):
                await run.wait_for("L-9")

    play(scenario())


def test_waiting_for_a_loop_can_have_a_timeout() -> None:
    async def asks(briefing: Briefing) -> Outcome:
        return Outcome(feedback=[Feedback("fix_request", "human", "hm?")])

    async def scenario() -> None:
        async with Engine() as engine:
            run = await engine.start(flow(Step("a", asks)))
            await run.result()
            assert (await run.wait_for("L-1", timeout=0.02)).state == "timeout"

    play(scenario())


def test_subscribers_get_every_event_in_order_as_it_is_stored() -> None:
    heard: list[tuple[str, e.Event]] = []

    async def scenario() -> dict[str, list[e.Event]]:
        async with Engine() as engine:
            unsubscribe = engine.subscribe(lambda run, event: heard.append((run, event)))
            review = ScriptedAgent(failed("x"), passed())
            runs = [await engine.start(flow(Step("a", named), Step("r", review, reviews="a"))) for _ in range(3)]
            for run in runs:
                await run.result()
            stored = {run.id: await run.events() for run in runs}
            unsubscribe()
            unsubscribe()
            await (await engine.start(flow(Step("a", named)))).result()
            return stored

    stored = play(scenario())
    assert {run: [event for which, event in heard if which == run] for run in stored} == stored
    assert len(heard) == sum(map(len, stored.values())), "and nothing after the subscription ended"


def test_a_subscriber_that_raises_harms_neither_the_run_nor_other_subscribers() -> None:
    heard: list[e.Event] = []
    complaints: list[str] = []

    def bad(run: str, event: e.Event) -> None:
        raise ValueError("a bug in the page that listens")

    async def scenario() -> Report:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["message"]))
        async with Engine() as engine:
            engine.subscribe(bad)
            engine.subscribe(lambda run, event: heard.append(event))
            return await (await engine.start(flow(Step("a", named)))).result()

    assert play(scenario()).outcome == "done"
    assert [type(event) for event in heard] == [e.RunStarted, e.AttemptStarted, e.AttemptSucceeded, e.RunEnded]
    assert len(complaints) == 4
    assert "a subscriber failed at RunStarted" in complaints[0]


def test_the_live_state_is_the_replay_of_the_journal() -> None:
    async def scenario() -> None:
        async with Engine() as engine:
            review = ScriptedAgent(failed("x"), failed("x", "y"), passed())
            run = await engine.start(flow(Step("a", ScriptedAgent(1, 2, 3)), Step("r", review, reviews="a")))
            live = engine._inner.live(run.id)
            assert live is not None
            assert (await run.result()).outcome == "verified"
            assert replay(await run.events()) == live.state

    play(scenario())


# A caller may be cancelled while the journal has the entry


@pytest.mark.parametrize("slow", [{"before": 0.05}, {"after": 0.05}], ids=["before it is stored", "after"])
def test_a_decision_whose_caller_was_cancelled_still_takes_effect(slow: dict[str, float]) -> None:
    async def scenario() -> str:
        journal = SlowJournal()
        async with Engine(journal) as engine:
            run = await engine.start(
                flow(Step("a", ScriptedAgent(OSError("x"), "made")), limits={"errors_in_a_row": 1})
            )
            await run.result()
            journal.before, journal.after = slow.get("before", 0.0), slow.get("after", 0.0)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(run.decide("E-1", "continue"), 0.02)
            journal.before = journal.after = 0.0
            await asyncio.sleep(0.01)
            report = await run.report()
            if slow.get("before"):  # it was withdrawn before it was stored: nothing happened
                assert report.outcome == "waiting"
                await run.decide("E-1", "continue")
            return (await run.result()).outcome

    assert play(scenario()) == "done"


def test_a_timeout_while_raising_feedback_is_only_an_error_of_the_agent() -> None:
    async def asks(briefing: Briefing, attempt: Attempt) -> str:
        if briefing.attempt == 1:
            await attempt.raise_feedback(Feedback("fix_request", "a", "too slow"))
        return "made"

    async def scenario() -> Report:
        async with Engine(SlowJournal(after=0.1)) as engine:
            run = await engine.start(flow(Step("a", named), Step("b", asks, needs="a", timeout=0.05)))
            return await run.result()

    report = play(scenario())
    assert report.outcome == "done"
    assert [loop.state for loop in report.loops] == ["resolved"]


def test_runs_whose_inputs_are_checked_wait_for_slots_like_all_others() -> None:
    work = flow(
        Step("plan", ScriptedAgent({"n": "x"}, {"n": 1})),
        Step("code", lambda briefing: briefing.inputs["plan"], needs="plan", accepts=dict[str, int]),
        Step("docs", lambda briefing: briefing.inputs["plan"], needs="plan", accepts=dict[str, int]),
    )

    async def scenario() -> list[str]:
        async with Engine(max_parallel=1) as engine:
            runs = [await engine.start(work) for _ in range(20)]
            return [(await run.result()).outcome for run in runs]

    assert play(scenario()) == ["done"] * 20
